//! From a plot to a sheet: margins, marks of the axes, legend.

use super::font;
use super::sheet::{Anchor, Pen, Point, Shape, Sheet};
use crate::report::html::{Ended, Group, Looks, Mark, Place, Plot, Rgb, Rule, SIDE, Size, Span, Style};

const INK: Rgb = [0x16, 0x19, 0x1d];
const SOFT: Rgb = [0x5a, 0x63, 0x6d];
const GRID: Rgb = [0xe3, 0xe6, 0xea];
const BAD: Rgb = [0xb3, 0x26, 0x1e];
const WHITE: Rgb = [0xff; 3];
/// Sizes of letters.
const TITLE: f32 = 13.0;
const TEXT: f32 = 11.0;
/// Space around everything.
const MARGIN: f32 = 10.0;
/// Height of a row of the legend, and length of its samples.
const ROW: f32 = 17.0;
const SAMPLE: f32 = 26.0;

/// The sheet of a plot.
pub(super) fn sheet(plot: &Plot, looks: &Looks) -> Sheet {
    let (width, height) = match plot.size {
        Size::Large => (640.0, 340.0),
        Size::Medium => (480.0, 300.0),
        Size::Small => (400.0, 220.0),
        Size::Effect => (640.0, 60.0),
        Size::Rows(rows) => (640.0, 24.0 * rows as f32),
    };
    let y_width = plot.y.ticks.iter().map(|(_, text)| font::width(text, TEXT)).fold(0.0, f32::max);
    let y_titles = broken(&plot.y.title, TEXT, height);
    let y_titles = if plot.y.title.is_empty() { Vec::new() } else { y_titles };
    let left = MARGIN + (TEXT + 3.0) * y_titles.len() as f32 + y_width + 15.0;
    let titles = broken(&plot.title, TITLE, width - 2.0 * MARGIN);
    let top = MARGIN + (TITLE + 4.0) * titles.len() as f32 + 8.0;
    let area = [left, top, width - MARGIN - 12.0, top + height];
    let (legend, rows) = legend(plot, looks, area[3] + 2.0 * TEXT + 30.0, left, width - MARGIN - left);
    let bottom = area[3] + 2.0 * TEXT + 18.0 + if rows > 0 { 10.0 + ROW * rows as f32 } else { 0.0 };
    let mut sheet = Sheet {
        width,
        height: bottom + MARGIN - 4.0,
        title: plot.title.clone(),
        description: plot.description.clone(),
        area,
        frame: Vec::new(),
        marks: Vec::new(),
    };
    for (i, line) in titles.into_iter().enumerate() {
        let at = (MARGIN, MARGIN + TITLE + (TITLE + 4.0) * i as f32);
        sheet.frame.push(text(at, TITLE, Anchor::Start, INK, line));
    }
    axes(&mut sheet, plot, y_titles);
    sheet.frame.extend(legend);
    marks(&mut sheet, plot, looks);
    sheet
}

/// A text as lines of at most this width, broken at blanks.
fn broken(text: &str, size: f32, width: f32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if font::width(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn text(at: Point, size: f32, anchor: Anchor, colour: Rgb, text: impl Into<String>) -> Shape {
    Shape::Text { at, size, anchor, turned: false, colour, text: text.into() }
}

fn line(pieces: Vec<Vec<Point>>, colour: Rgb, width: f32) -> Shape {
    Shape::Line { pieces, pen: Pen { colour, width, opacity: 1.0, dashes: &[] } }
}

/// The place of a mark on the sheet.
fn on(area: [f32; 4], (x, y): Place) -> Point {
    let [left, top, right, bottom] = area;
    (left + (right - left) * (x / SIDE) as f32, top + (bottom - top) * (y / SIDE) as f32)
}

fn axes(sheet: &mut Sheet, plot: &Plot, y_titles: Vec<String>) {
    let [left, top, right, bottom] = sheet.area;
    let mut end_of_last = f32::NEG_INFINITY;
    for (value, label) in &plot.x.ticks {
        let (x, _) = on(sheet.area, (plot.x.scale.at(*value), 0.0));
        sheet.frame.push(line(vec![vec![(x, top), (x, bottom)]], GRID, 1.0));
        let half = font::width(label, TEXT) / 2.0;
        // A text that would touch the one before it is left out; its mark stays.
        if x - half > end_of_last + 6.0 {
            sheet.frame.push(text((x, bottom + TEXT + 6.0), TEXT, Anchor::Middle, SOFT, label));
            end_of_last = x + half;
        }
    }
    for (value, label) in &plot.y.ticks {
        let (_, y) = on(sheet.area, (0.0, SIDE - plot.y.scale.at(*value)));
        sheet.frame.push(line(vec![vec![(left, y), (right, y)]], GRID, 1.0));
        sheet.frame.push(text((left - 6.0, y + 0.35 * TEXT), TEXT, Anchor::End, SOFT, label));
    }
    sheet.frame.push(line(vec![vec![(left, bottom), (right, bottom)]], SOFT, 1.0));
    let middle = (left + right) / 2.0;
    sheet.frame.push(text((middle, bottom + 2.0 * TEXT + 13.0), TEXT, Anchor::Middle, INK, &plot.x.title));
    for (i, line) in y_titles.into_iter().enumerate() {
        sheet.frame.push(Shape::Text {
            at: (MARGIN + TEXT + (TEXT + 3.0) * i as f32, (top + bottom) / 2.0),
            size: TEXT,
            anchor: Anchor::Middle,
            turned: true,
            colour: INK,
            text: line,
        });
    }
}

/// The legend from a height on, in columns that fit the width, and how many rows it has.
fn legend(plot: &Plot, looks: &Looks, top: f32, left: f32, width: f32) -> (Vec<Shape>, usize) {
    let widest = plot.legend.iter().map(|(_, name)| font::width(name, TEXT)).fold(0.0, f32::max);
    let column = SAMPLE + 6.0 + widest + 16.0;
    let columns = ((width / column) as usize).clamp(1, plot.legend.len().max(1));
    let mut shapes = Vec::new();
    for (i, (configuration, name)) in plot.legend.iter().enumerate() {
        let x = left + column * (i % columns) as f32;
        let y = top + ROW * (i / columns) as f32;
        let pen = Pen {
            colour: looks.colour(*configuration),
            width: 2.0,
            opacity: 1.0,
            dashes: looks.dashes(*configuration),
        };
        let middle = y - 0.35 * TEXT;
        match plot.size {
            Size::Large | Size::Small => {
                shapes.push(Shape::Line { pieces: vec![vec![(x, middle), (x + SAMPLE, middle)]], pen });
            }
            _ => shapes.push(Shape::Disc { at: (x + SAMPLE / 2.0, middle), radius: 4.0, colour: pen.colour }),
        }
        shapes.push(text((x + SAMPLE + 6.0, y), TEXT, Anchor::Start, INK, name));
    }
    (shapes, plot.legend.len().div_ceil(columns))
}

/// The marks, with the looks of the groups that they are in.
fn marks(sheet: &mut Sheet, plot: &Plot, looks: &Looks) {
    let area = sheet.area;
    let mut groups: Vec<Group> = Vec::new();
    for mark in &plot.marks {
        let group = groups.last();
        let shift = groups.iter().map(|group| group.shift).sum::<f64>();
        let place = |(x, y): &Place| on(area, (x + shift, *y));
        let places = |pieces: &[Vec<Place>]| pieces.iter().map(|piece| piece.iter().map(place).collect()).collect();
        let colour = group.map_or(SOFT, |group| looks.colour(group.configuration));
        match mark {
            Mark::Open(group) => groups.push(*group),
            Mark::Close => drop(groups.pop()),
            Mark::Line(pieces) => {
                let (width, opacity, dashed) = match group.map(|group| group.style) {
                    Some(Style::Best) => (2.4, 1.0, true),
                    Some(Style::Solid) => (1.5, 0.55, false),
                    Some(Style::Diverged) => (1.0, 0.8, true),
                    _ => (1.5, 1.0, true),
                };
                let dashes = group.filter(|_| dashed).map_or(&[][..], |group| looks.dashes(group.configuration));
                sheet.marks.push(Shape::Line { pieces: places(pieces), pen: Pen { colour, width, opacity, dashes } });
            }
            Mark::Band(areas) => sheet.marks.push(Shape::Area { pieces: places(areas), colour, opacity: 0.13 }),
            Mark::Rule(rule, from, to) => {
                let (colour, width, opacity, dashes) = match rule {
                    Rule::Reference => (SOFT, 1.2, 1.0, &[4.0, 3.0][..]),
                    Rule::Whisker => (colour, 2.5, 1.0, &[][..]),
                    Rule::Stem => (colour, 1.0, 0.5, &[][..]),
                };
                let pieces = vec![vec![place(from), place(to)]];
                sheet.marks.push(Shape::Line { pieces, pen: Pen { colour, width, opacity, dashes } });
            }
            Mark::Dot(at, _) => {
                let (radius, colour) = match group.map(|group| group.style) {
                    Some(Style::Diverged) => (2.5, BAD),
                    _ => (4.0, colour),
                };
                sheet.marks.push(Shape::Disc { at: place(at), radius, colour });
            }
            Mark::Cross(x, _) => {
                let (x, y) = place(&(*x, 30.0));
                let strokes =
                    vec![vec![(x - 4.0, y - 4.0), (x + 4.0, y + 4.0)], vec![(x + 4.0, y - 4.0), (x - 4.0, y + 4.0)]];
                sheet.marks.push(line(strokes, BAD, 1.5));
            }
            Mark::Span(one) => span(sheet, one, looks),
        }
    }
}

fn span(sheet: &mut Sheet, span: &Span, looks: &Looks) {
    let [x, y, width, height] = span.place;
    let corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)].map(|place| on(sheet.area, place));
    let colour = span.configuration.map_or(SOFT, |configuration| looks.colour(configuration));
    let around = || {
        let mut around = corners.to_vec();
        around.push(corners[0]);
        vec![around]
    };
    let fill = if span.ended == Ended::Well { colour } else { WHITE };
    sheet.marks.push(Shape::Area { pieces: vec![corners.to_vec()], colour: fill, opacity: 1.0 });
    match span.ended {
        Ended::Well => {}
        Ended::Failed => sheet.marks.push(line(around(), BAD, 1.5)),
        Ended::Open => {
            let pen = Pen { colour, width: 1.2, opacity: 1.0, dashes: &[3.0, 2.0] };
            sheet.marks.push(Shape::Line { pieces: around(), pen });
        }
    }
    if span.again {
        sheet.marks.push(line(vec![vec![corners[0], corners[3]]], INK, 2.0));
    }
}
