//! The letters of plots in files: a subset of DejaVu Sans that the program carries, so that no system's fonts are
//! needed and none changes a byte.
//!
//! It holds ASCII, Latin-1 and the signs that the report uses; another character shows as a box. `font/README.md` says
//! how it was made.

use std::sync::LazyLock;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

static FACE: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(include_bytes!("font/DejaVuSans.ttf"), 0).ok());

/// Letters of text one after the other: the glyph of each with its place, in a font of this size.
fn glyphs(text: &str, size: f32) -> impl Iterator<Item = (GlyphId, f32, f32)> + '_ {
    let face = FACE.as_ref();
    let scale = face.map_or(0.0, |face| size / f32::from(face.units_per_em()));
    let mut x = 0.0;
    text.chars().map(move |c| {
        let glyph = face.and_then(|face| face.glyph_index(c)).unwrap_or(GlyphId(0));
        let at = x;
        x += scale * face.and_then(|face| face.glyph_hor_advance(glyph)).map_or(0.0, f32::from);
        (glyph, at, scale)
    })
}

/// How wide a text is in a font of this size.
pub(super) fn width(text: &str, size: f32) -> f32 {
    let face = FACE.as_ref();
    let last = glyphs(text, size).last();
    last.map_or(0.0, |(glyph, x, scale)| {
        x + scale * face.and_then(|face| face.glyph_hor_advance(glyph)).map_or(0.0, f32::from)
    })
}

/// Draws a text that begins at the origin, its baseline the horizontal axis, with y downwards.
pub(super) fn outline(text: &str, size: f32, path: &mut tiny_skia::PathBuilder) {
    let Some(face) = FACE.as_ref() else { return };
    for (glyph, x, scale) in glyphs(text, size) {
        face.outline_glyph(glyph, &mut Pen { path, x, scale });
    }
}

/// Puts a glyph's outline in its place.
struct Pen<'a> {
    path: &'a mut tiny_skia::PathBuilder,
    x: f32,
    scale: f32,
}

impl Pen<'_> {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + self.scale * x, -self.scale * y)
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sign_of_the_report_has_a_letter() {
        let face = FACE.as_ref().unwrap();
        for c in (' '..='~').chain("±·←→−–…’“”≤≥≈\u{fffd}".chars()) {
            assert!(face.glyph_index(c).is_some(), "{c}");
        }
    }

    #[test]
    fn widths_add_up() {
        let [both, one, other] = ["ab", "a", "b"].map(|text| width(text, 12.0));
        assert!((both - one - other).abs() < 1e-4 && one > 4.0, "{both} {one} {other}");
        assert_eq!(width("", 12.0), 0.0);
    }
}
