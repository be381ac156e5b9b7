//! A drawing of fixed size: what plots in files come down to, whichever their format.

use crate::report::html::Rgb;

/// A point in pixels, from the upper left corner.
pub(super) type Point = (f32, f32);

/// How a line is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pen {
    pub(super) colour: Rgb,
    pub(super) width: f32,
    pub(super) opacity: f32,
    /// Lengths of strokes and gaps; none for a whole line.
    pub(super) dashes: &'static [f32],
}

/// Which end of a text is at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Something drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// A line of several pieces.
    Line { pieces: Vec<Vec<Point>>, pen: Pen },
    /// Areas.
    Area { pieces: Vec<Vec<Point>>, colour: Rgb, opacity: f32 },
    /// A disc.
    Disc { at: Point, radius: f32, colour: Rgb },
    /// Text; turned ones run upwards.
    Text { at: Point, size: f32, anchor: Anchor, turned: bool, colour: Rgb, text: String },
}

/// A drawing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sheet {
    pub(super) width: f32,
    pub(super) height: f32,
    /// What it shows, in words.
    pub(super) title: String,
    pub(super) description: String,
    /// Left, top, right and bottom of what bounds [`Self::marks`].
    pub(super) area: [f32; 4],
    /// What stands around the area, and behind the marks.
    pub(super) frame: Vec<Shape>,
    /// What is drawn in the area, and cut where it leaves it.
    pub(super) marks: Vec<Shape>,
}
