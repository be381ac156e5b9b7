//! A plot in the page.
//!
//! The drawing is an SVG that is stretched to the space that there is; lines keep their width. What must not be
//! stretched (the marks' texts) stands beside it, placed in percent. So one drawing serves a phone and a desk, with
//! letters of the same size.

use std::fmt::Write;

use super::plot::{Axis, Ended, Group, Mark, Place, Plot, Rule, Size, Span, Style};
use super::scale::SIDE;
use super::text::{coordinate, esc};

/// Marks closer than this, in thousandths of the width, would run into each other on a phone.
const CROWDED: f64 = 140.0;

/// The figure.
pub(super) fn figure(plot: &Plot) -> String {
    let (id, title) = (&plot.id, esc(&plot.title));
    let (class, style) = match plot.size {
        Size::Large => ("large", String::new()),
        Size::Medium => ("medium", String::new()),
        Size::Small => ("small", String::new()),
        Size::Effect => ("effect", String::new()),
        Size::Rows(rows) => ("timeline", format!(" style=\"--rows:{rows}\"")),
    };
    let (mut grid, mut texts) = (String::new(), String::new());
    for (x, text, crowded) in x_texts(&plot.x) {
        let _ = write!(grid, "M{} 0V1000", coordinate(x));
        let class = if crowded { "tx crowded" } else { "tx" };
        let _ = write!(texts, "<span class=\"{class}\" style=\"left:{}%\">{}</span>", coordinate(x / 10.0), esc(text));
    }
    for (value, text) in &plot.y.ticks {
        let y = SIDE - plot.y.scale.at(*value);
        let _ = write!(grid, "M0 {}H1000", coordinate(y));
        let _ = write!(texts, "<span class=\"ty\" style=\"top:{}%\">{}</span>", coordinate(y / 10.0), esc(text));
    }
    let marks: String = plot.marks.iter().map(mark).collect();
    format!(
        "<figure class=\"chart {class}\" id=\"{id}\"{}{style}><figcaption>{title}</figcaption><div class=\"ytitle\">{}</div>\
         <div class=\"area\"><svg role=\"img\" aria-labelledby=\"{id}-t {id}-d\" viewBox=\"0 0 1000 1000\" \
         preserveAspectRatio=\"none\"><title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{}</desc>\
         <path class=\"grid\" d=\"{grid}\"/><g class=\"marks\">{marks}</g></svg><div class=\"ticks\" aria-hidden=\"true\">{texts}</div></div>\
         <div class=\"xtitle\">{}</div></figure>",
        plot.attributes,
        esc(&plot.y.title),
        esc(&plot.description),
        esc(&plot.x.title)
    )
}

/// The marks of a horizontal axis: place, text, and whether a phone has no room for it.
pub(super) fn x_texts(axis: &Axis) -> Vec<(f64, &str, bool)> {
    let mut last = f64::NEG_INFINITY;
    let mut texts = Vec::new();
    for (value, text) in &axis.ticks {
        let x = axis.scale.at(*value);
        let crowded = x - last < CROWDED;
        if !crowded {
            last = x;
        }
        texts.push((x, text.as_str(), crowded));
    }
    texts
}

fn mark(mark: &Mark) -> String {
    match mark {
        Mark::Open(group) => open(group),
        Mark::Close => "</g>".to_owned(),
        Mark::Line(pieces) => format!("<path class=\"line\" d=\"{}\"/>", path(pieces, "")),
        Mark::Band(areas) => format!("<path class=\"band\" d=\"{}\"/>", path(areas, "z")),
        Mark::Rule(rule, from, to) => {
            let class = match rule {
                Rule::Reference => "zero",
                Rule::Whisker => "whisker",
                Rule::Stem => "stem",
            };
            format!("<path class=\"{class}\" d=\"{}\"/>", path(&[vec![*from, *to]], ""))
        }
        // A line of no length with round ends: a circle would be stretched.
        Mark::Dot((x, y), name) => {
            let (x, y) = (coordinate(*x), coordinate(*y));
            format!("<path class=\"dot\" d=\"M{x} {y}h0\"><title>{}</title></path>", esc(name))
        }
        Mark::Cross(x, name) => {
            let (x, name) = (coordinate(*x), esc(name));
            format!("<path class=\"cross\" d=\"M{x} 30m-10 -20l20 40m0 -40l-20 40\"><title>{name}</title></path>")
        }
        Mark::Span(s) => span(s),
    }
}

fn open(group: &Group) -> String {
    let c = group.configuration;
    let style = match group.style {
        Style::Dashed => "",
        Style::Best => " best",
        Style::Solid => " solid",
        Style::Diverged => " diverged",
    };
    let chosen = if group.chosen { format!(" s{c}") } else { String::new() };
    let shift = match group.shift {
        0.0 => String::new(),
        shift => format!(" transform=\"translate({} 0)\"", coordinate(shift)),
    };
    format!("<g class=\"k{c}{chosen}{style}\"{shift}>")
}

fn path(pieces: &[Vec<Place>], end: &str) -> String {
    let mut d = String::new();
    for piece in pieces {
        for (i, (x, y)) in piece.iter().enumerate() {
            let _ = write!(d, "{}{} {}", if i == 0 { "M" } else { " " }, coordinate(*x), coordinate(*y));
        }
        d += end;
    }
    d
}

fn span(span: &Span) -> String {
    let colour = span.configuration.map_or_else(String::new, |c| format!("k{c} "));
    let class = match span.ended {
        Ended::Well => "finished",
        Ended::Failed => "failed",
        Ended::Open => "hollow",
    };
    let again = if span.again { " again" } else { "" };
    let [x, y, width, height] = span.place.map(coordinate);
    let mut html = format!(
        "<rect class=\"{colour}{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"><title>{}</title></rect>",
        esc(&span.name)
    );
    if !again.is_empty() {
        let _ = write!(html, "<path class=\"again\" d=\"M{x} {y}v{height}\"/>");
    }
    html
}
