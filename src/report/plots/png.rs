//! A sheet as PNG, with the letters that the program carries.

use tiny_skia::{
    Color, FillRule, LineJoin, Mask, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform,
};

use super::font;
use super::sheet::{Anchor, Point, Shape, Sheet};
use crate::report::html::Rgb;

/// Pixels of the picture for a pixel of the sheet: 250 dots an inch where a sheet is as wide as a page's text.
const SCALE: f32 = 2.5;

/// The file's bytes.
///
/// # Errors
/// The sheet has no size, or the picture does not fit the memory.
pub(super) fn png(sheet: &Sheet) -> Result<Vec<u8>, String> {
    let pixels = |length: f32| (length * SCALE).ceil() as u32;
    let mut picture = Pixmap::new(pixels(sheet.width), pixels(sheet.height)).ok_or("it has no size")?;
    picture.fill(Color::WHITE);
    sheet.frame.iter().for_each(|shape| draw(&mut picture, shape, None));
    let mask = area(sheet);
    sheet.marks.iter().for_each(|shape| draw(&mut picture, shape, mask.as_ref()));
    picture.encode_png().map_err(|error| error.to_string())
}

/// The part of the picture that marks may change.
fn area(sheet: &Sheet) -> Option<Mask> {
    let [left, top, right, bottom] = sheet.area;
    let mut mask = Mask::new((sheet.width * SCALE).ceil() as u32, (sheet.height * SCALE).ceil() as u32)?;
    let path = PathBuilder::from_rect(Rect::from_ltrb(left, top, right, bottom)?);
    mask.fill_path(&path, FillRule::Winding, true, Transform::from_scale(SCALE, SCALE));
    Some(mask)
}

fn paint([r, g, b]: Rgb, opacity: f32) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(r, g, b, (opacity.clamp(0.0, 1.0) * 255.0).round() as u8);
    paint
}

/// A path through points; none where they make no path.
fn path(pieces: &[Vec<Point>], closed: bool) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for piece in pieces {
        for (i, (x, y)) in piece.iter().enumerate() {
            if i == 0 {
                builder.move_to(*x, *y);
            } else {
                builder.line_to(*x, *y);
            }
        }
        if closed {
            builder.close();
        }
    }
    builder.finish()
}

fn draw(picture: &mut Pixmap, shape: &Shape, mask: Option<&Mask>) {
    let scale = Transform::from_scale(SCALE, SCALE);
    match shape {
        Shape::Line { pieces, pen } => {
            let dash = if pen.dashes.is_empty() { None } else { StrokeDash::new(pen.dashes.to_vec(), 0.0) };
            let stroke = Stroke { width: pen.width, line_join: LineJoin::Round, dash, ..Stroke::default() };
            if let Some(path) = path(pieces, false) {
                picture.stroke_path(&path, &paint(pen.colour, pen.opacity), &stroke, scale, mask);
            }
        }
        Shape::Area { pieces, colour, opacity } => {
            if let Some(path) = path(pieces, true) {
                picture.fill_path(&path, &paint(*colour, *opacity), FillRule::Winding, scale, mask);
            }
        }
        Shape::Disc { at: (x, y), radius, colour } => {
            if let Some(path) = PathBuilder::from_circle(*x, *y, *radius) {
                picture.fill_path(&path, &paint(*colour, 1.0), FillRule::Winding, scale, mask);
            }
        }
        Shape::Text { at: (x, y), size, anchor, turned, colour, text } => {
            let mut builder = PathBuilder::new();
            font::outline(text, *size, &mut builder);
            let back = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => font::width(text, *size) / 2.0,
                Anchor::End => font::width(text, *size),
            };
            let turn = if *turned { Transform::from_rotate(-90.0) } else { Transform::identity() };
            let place =
                Transform::from_translate(-back, 0.0).post_concat(turn).post_translate(*x, *y).post_concat(scale);
            if let Some(path) = builder.finish() {
                picture.fill_path(&path, &paint(*colour, 1.0), FillRule::Winding, place, mask);
            }
        }
    }
}
