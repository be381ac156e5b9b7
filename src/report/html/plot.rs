//! What a plot shows: its axes, and marks in a square of coordinates.
//!
//! How it looks is decided where it is drawn: [`drawing`](super::drawing) for the page, [`crate::report::plots`] for
//! papers.

use super::scale::{SIDE, Scale};

/// An axis with what it shows.
#[derive(Clone)]
pub(in crate::report) struct Axis {
    /// Quantity and unit.
    pub(in crate::report) title: String,
    /// Its range.
    pub(in crate::report) scale: Scale,
    /// Marked values with their texts.
    pub(in crate::report) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis with about `most` marks.
    pub(super) fn new(title: impl Into<String>, scale: Scale, most: usize) -> Self {
        Self { title: title.into(), scale, ticks: scale.ticks(most) }
    }
}

/// How much room a plot takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Size {
    /// The width of the page.
    Large,
    /// Half of it.
    Medium,
    /// A third of it.
    Small,
    /// The width of the page, and low: one row.
    Effect,
    /// The width of the page, and as high as so many rows need.
    Rows(usize),
}

/// How the marks of a group look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Style {
    /// Lines with their configuration's dashes.
    Dashed,
    /// The same, and heavier: the best of its arm.
    Best,
    /// Lines without dashes, in the background of their points.
    Solid,
    /// A thin line: a single run that diverged.
    Diverged,
}

/// Marks that belong to one configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::report) struct Group {
    /// Index in the plan.
    pub(in crate::report) configuration: usize,
    /// Look.
    pub(in crate::report) style: Style,
    /// Whether the page's choice of configurations hides it.
    pub(in crate::report) chosen: bool,
    /// Shift to the right, in thousandths of the width.
    pub(in crate::report) shift: f64,
}

impl Group {
    /// A group that is neither hidden nor shifted.
    pub(super) const fn new(configuration: usize, style: Style) -> Self {
        Self { configuration, style, chosen: false, shift: 0.0 }
    }
}

/// Kinds of straight lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Rule {
    /// No difference, or another value to hold against.
    Reference,
    /// An interval.
    Whisker,
    /// From the reference to a point.
    Stem,
}

/// How an attempt on a timeline ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Ended {
    /// With a result.
    Well,
    /// As failed.
    Failed,
    /// Broken off, or at work.
    Open,
}

/// A span on a timeline.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) struct Span {
    /// Its configuration, if it is in the plan.
    pub(in crate::report) configuration: Option<usize>,
    /// How it ended.
    pub(in crate::report) ended: Ended,
    /// Whether it was not the run's first attempt.
    pub(in crate::report) again: bool,
    /// Left, top, width and height.
    pub(in crate::report) place: [f64; 4],
    /// What it is.
    pub(in crate::report) name: String,
}

/// A place: thousandths of the width from the left, and of the height from the top.
pub(in crate::report) type Place = (f64, f64);

/// Something drawn.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) enum Mark {
    /// What follows belongs to a configuration, up to the matching [`Mark::Close`].
    Open(Group),
    /// The end of a group.
    Close,
    /// A line of several pieces.
    Line(Vec<Vec<Place>>),
    /// Areas.
    Band(Vec<Vec<Place>>),
    /// A straight line.
    Rule(Rule, Place, Place),
    /// A point with its name.
    Dot(Place, String),
    /// A cross at the top, with what there is no value of.
    Cross(f64, String),
    /// A span of time.
    Span(Span),
}

/// A plot.
pub(in crate::report) struct Plot {
    /// Unique in the page; the name of its files.
    pub(in crate::report) id: String,
    /// Heading.
    pub(in crate::report) title: String,
    /// What a reader who cannot see it should know.
    pub(in crate::report) description: String,
    /// Horizontal axis.
    pub(in crate::report) x: Axis,
    /// Vertical axis, upwards.
    pub(in crate::report) y: Axis,
    /// Room.
    pub(in crate::report) size: Size,
    /// Further attributes of the page's figure, as HTML.
    pub(super) attributes: String,
    /// What stands for what: configurations with names, where there are several.
    pub(in crate::report) legend: Vec<(usize, String)>,
    /// What is drawn, in order.
    pub(in crate::report) marks: Vec<Mark>,
}

impl Plot {
    /// A plot without marks.
    pub(super) fn new(id: impl Into<String>, title: impl Into<String>, x: Axis, y: Axis, size: Size) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            description: String::new(),
            x,
            y,
            size,
            attributes: String::new(),
            legend: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// The place of a point, if the axes have one.
    fn place(&self, x: f64, y: f64) -> Option<Place> {
        let within = self.x.scale.has(x) && self.y.scale.has(y);
        within.then(|| (self.x.scale.at(x), SIDE - self.y.scale.at(y)))
    }

    /// Draws a line through points, broken where one has no place.
    pub(super) fn line(&mut self, points: impl IntoIterator<Item = (f64, f64)>) {
        let places = points.into_iter().map(|(x, y)| self.place(x, y));
        let pieces = pieces(places, 1);
        if !pieces.is_empty() {
            self.marks.push(Mark::Line(pieces));
        }
    }

    /// Draws the area between (x, lo) and (x, hi).
    pub(super) fn band(&mut self, points: impl IntoIterator<Item = (f64, f64, f64)>) {
        let places = points.into_iter().map(|(x, lo, hi)| self.place(x, lo).zip(self.place(x, hi)));
        let around = |piece: Vec<(Place, Place)>| {
            let (mut area, back): (Vec<Place>, Vec<Place>) = piece.into_iter().unzip();
            area.extend(back.into_iter().rev());
            area
        };
        let areas: Vec<Vec<Place>> = pieces(places, 2).into_iter().map(around).collect();
        if !areas.is_empty() {
            self.marks.push(Mark::Band(areas));
        }
    }

    /// Draws a point with its name.
    pub(super) fn dot(&mut self, x: f64, y: f64, name: impl Into<String>) {
        if let Some(place) = self.place(x, y) {
            self.marks.push(Mark::Dot(place, name.into()));
        }
    }

    /// Draws a cross at the top, for a value that there is not.
    pub(super) fn cross_at_top(&mut self, x: f64, name: impl Into<String>) {
        self.marks.push(Mark::Cross(self.x.scale.at(x), name.into()));
    }

    /// Draws a straight line.
    pub(super) fn rule(&mut self, rule: Rule, from: (f64, f64), to: (f64, f64)) {
        if let (Some(from), Some(to)) = (self.place(from.0, from.1), self.place(to.0, to.1)) {
            self.marks.push(Mark::Rule(rule, from, to));
        }
    }

    /// Opens a group.
    pub(super) fn open(&mut self, group: Group) {
        self.marks.push(Mark::Open(group));
    }

    /// Closes the group.
    pub(super) fn close(&mut self) {
        self.marks.push(Mark::Close);
    }
}

/// Runs of items that are there, of `least` items at least.
fn pieces<T>(items: impl Iterator<Item = Option<T>>, least: usize) -> Vec<Vec<T>> {
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    for item in items {
        match item {
            Some(item) => piece.push(item),
            None => pieces.push(std::mem::take(&mut piece)),
        }
    }
    pieces.push(piece);
    pieces.retain(|piece| piece.len() >= least);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::html::scale::Kind;

    #[test]
    fn lines_and_bands_break_where_there_is_no_value() {
        let axis = |hi| Axis::new("", Scale { kind: Kind::Linear, lo: 0.0, hi }, 6);
        let mut plot = Plot::new("p", "", axis(4.0), axis(1.0), Size::Large);
        plot.line([(0.0, 0.0), (1.0, 1.0), (2.0, f64::NAN), (3.0, 0.5)]);
        plot.band([(0.0, 0.0, 1.0), (1.0, 0.0, 0.5), (2.0, f64::NAN, f64::NAN), (3.0, 0.0, 1.0)]);
        let area = vec![(0.0, 1000.0), (250.0, 1000.0), (250.0, 500.0), (0.0, 0.0)];
        let line = vec![vec![(0.0, 1000.0), (250.0, 0.0)], vec![(750.0, 500.0)]];
        assert_eq!(plot.marks, [Mark::Line(line), Mark::Band(vec![area])]);
    }
}
