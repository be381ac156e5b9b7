//! The frame of a plot, and what is drawn in it.
//!
//! The drawing is an SVG that is stretched to the space that there is; lines keep their width. What must not be
//! stretched (the marks' texts) stands beside it, placed in percent. So one drawing serves a phone and a desk, with
//! letters of the same size.

use std::fmt::Write;

use super::scale::{SIDE, Scale};
use super::text::{coordinate, esc};

/// Marks closer than this, in thousandths of the width, would run into each other on a phone.
const CROWDED: f64 = 140.0;

/// An axis with what it shows.
pub(super) struct Axis {
    /// Quantity and unit.
    pub(super) title: String,
    /// Its range.
    pub(super) scale: Scale,
    /// Marked values with their texts.
    pub(super) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis with about `most` marks.
    pub(super) fn new(title: impl Into<String>, scale: Scale, most: usize) -> Self {
        Self { title: title.into(), scale, ticks: scale.ticks(most) }
    }
}

/// A plot.
pub(super) struct Plot {
    /// Unique in the page.
    pub(super) id: String,
    /// Heading.
    pub(super) title: String,
    /// What a reader who cannot see it should know.
    pub(super) description: String,
    /// Horizontal axis.
    pub(super) x: Axis,
    /// Vertical axis, upwards.
    pub(super) y: Axis,
    /// Class names of the figure.
    pub(super) class: &'static str,
    /// Further attributes of the figure, as HTML.
    pub(super) attributes: String,
    /// What is drawn, as SVG.
    pub(super) body: String,
}

impl Plot {
    /// The place of a point, if the axes have one.
    pub(super) fn place(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let within = self.x.scale.has(x) && self.y.scale.has(y);
        within.then(|| (self.x.scale.at(x), SIDE - self.y.scale.at(y)))
    }

    /// Draws a line through points, broken where one has no place.
    pub(super) fn line(&mut self, points: impl IntoIterator<Item = (f64, f64)>) {
        let mut d = String::new();
        let mut pen = "M";
        for (x, y) in points {
            match self.place(x, y) {
                Some((x, y)) => {
                    let _ = write!(d, "{pen}{} {}", coordinate(x), coordinate(y));
                    pen = " ";
                }
                None => pen = "M",
            }
        }
        if !d.is_empty() {
            let _ = write!(self.body, "<path class=\"line\" d=\"{d}\"/>");
        }
    }

    /// Draws the area between (x, lo) and (x, hi).
    pub(super) fn band(&mut self, points: impl IntoIterator<Item = (f64, f64, f64)>) {
        let (mut there, mut back) = (Vec::new(), Vec::new());
        let mut d = String::new();
        let mut close = |there: &mut Vec<String>, back: &mut Vec<String>| {
            if there.len() > 1 {
                back.reverse();
                let _ = write!(d, "M{} {}z", there.join(" "), back.join(" "));
            }
            there.clear();
            back.clear();
        };
        for (x, lo, hi) in points {
            match (self.place(x, lo), self.place(x, hi)) {
                (Some((x, lo)), Some((_, hi))) => {
                    there.push(format!("{} {}", coordinate(x), coordinate(lo)));
                    back.push(format!("{} {}", coordinate(x), coordinate(hi)));
                }
                _ => close(&mut there, &mut back),
            }
        }
        close(&mut there, &mut back);
        if !d.is_empty() {
            let _ = write!(self.body, "<path class=\"band\" d=\"{d}\"/>");
        }
    }

    /// Draws a point with a name that shows when it is pointed at. (A line of no length with round ends: a circle
    /// would be stretched.)
    pub(super) fn dot(&mut self, x: f64, y: f64, name: &str) {
        if let Some((x, y)) = self.place(x, y) {
            let (x, y) = (coordinate(x), coordinate(y));
            let _ = write!(self.body, "<path class=\"dot\" d=\"M{x} {y}h0\"><title>{}</title></path>", esc(name));
        }
    }

    /// Draws a cross at the top, for a value that there is not.
    pub(super) fn cross_at_top(&mut self, x: f64, name: &str) {
        let at = coordinate(self.x.scale.at(x));
        let _ = write!(
            self.body,
            "<path class=\"cross\" d=\"M{at} 30m-10 -20l20 40m0 -40l-20 40\"><title>{}</title></path>",
            esc(name)
        );
    }

    /// Draws a straight line of a class.
    pub(super) fn rule(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        if let (Some((a, b)), Some((c, d))) = (self.place(from.0, from.1), self.place(to.0, to.1)) {
            let [a, b, c, d] = [a, b, c, d].map(coordinate);
            let _ = write!(self.body, "<path class=\"{class}\" d=\"M{a} {b}L{c} {d}\"/>");
        }
    }

    /// Opens a group of classes; `attributes` is HTML.
    pub(super) fn open(&mut self, class: &str, attributes: &str) {
        let _ = write!(self.body, "<g class=\"{class}\"{attributes}>");
    }

    /// Closes the group.
    pub(super) fn close(&mut self) {
        self.body.push_str("</g>");
    }

    /// The figure.
    pub(super) fn html(&self) -> String {
        let (id, title) = (&self.id, esc(&self.title));
        let mut html = format!(
            "<figure class=\"{}\" id=\"{id}\"{}><figcaption>{title}</figcaption><div class=\"ytitle\">{}</div>\
             <div class=\"area\"><svg role=\"img\" aria-labelledby=\"{id}-t {id}-d\" viewBox=\"0 0 1000 1000\" \
             preserveAspectRatio=\"none\"><title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{}</desc>",
            self.class,
            self.attributes,
            esc(&self.y.title),
            esc(&self.description)
        );
        let (mut grid, mut texts) = (String::new(), String::new());
        let mut last = f64::NEG_INFINITY;
        for (value, text) in &self.x.ticks {
            let x = self.x.scale.at(*value);
            // On a phone there is room for six texts or so.
            let class = if x - last < CROWDED { "tx crowded" } else { "tx" };
            if class == "tx" {
                last = x;
            }
            let _ = write!(grid, "M{} 0V1000", coordinate(x));
            let (at, text) = (coordinate(x / 10.0), esc(text));
            let _ = write!(texts, "<span class=\"{class}\" style=\"left:{at}%\">{text}</span>");
        }
        for (value, text) in &self.y.ticks {
            let y = SIDE - self.y.scale.at(*value);
            let _ = write!(grid, "M0 {}H1000", coordinate(y));
            let (at, text) = (coordinate(y / 10.0), esc(text));
            let _ = write!(texts, "<span class=\"ty\" style=\"top:{at}%\">{text}</span>");
        }
        let x_title = esc(&self.x.title);
        let _ = write!(
            html,
            "<path class=\"grid\" d=\"{grid}\"/>{}</svg><div aria-hidden=\"true\">{texts}</div></div>\
             <div class=\"xtitle\">{x_title}</div></figure>",
            self.body
        );
        html
    }
}
