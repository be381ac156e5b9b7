//! A sheet as SVG: plain elements and attributes, and text as text, so that every program that reads SVG can edit it.

use std::fmt::Write;

use super::sheet::{Anchor, Pen, Point, Shape, Sheet};
use crate::report::html::{esc, hex};

/// Plain fonts that any system has one of.
const FONTS: &str = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

/// The file's text.
pub(super) fn svg(sheet: &Sheet) -> String {
    let Sheet { width, height, area: [left, top, right, bottom], .. } = sheet;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
         font-family=\"{FONTS}\">\n<title>{}</title>\n<desc>{}</desc>\n\
         <defs><clipPath id=\"area\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath></defs>\n\
         <rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>\n",
        esc(&sheet.title),
        esc(&sheet.description),
        number(*left),
        number(*top),
        number(right - left),
        number(bottom - top),
        w = number(*width),
        h = number(*height),
    );
    sheet.frame.iter().for_each(|shape| text += &element(shape));
    text += "<g clip-path=\"url(#area)\">\n";
    sheet.marks.iter().for_each(|shape| text += &element(shape));
    text + "</g>\n</svg>\n"
}

/// Two digits after the point at most.
fn number(x: f32) -> String {
    let text = format!("{x:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn path(pieces: &[Vec<Point>], end: &str) -> String {
    let mut d = String::new();
    for piece in pieces {
        for (i, (x, y)) in piece.iter().enumerate() {
            let _ = write!(d, "{}{} {}", if i == 0 { "M" } else { " " }, number(*x), number(*y));
        }
        d += end;
    }
    d
}

fn element(shape: &Shape) -> String {
    match shape {
        Shape::Line { pieces, pen } => format!("<path d=\"{}\" fill=\"none\"{}/>\n", path(pieces, ""), stroke(pen)),
        Shape::Area { pieces, colour, opacity } => {
            format!(
                "<path d=\"{}\" fill=\"{}\" fill-opacity=\"{}\"/>\n",
                path(pieces, "z"),
                hex(*colour),
                number(*opacity)
            )
        }
        Shape::Disc { at: (x, y), radius, colour } => {
            let [x, y, r] = [*x, *y, *radius].map(number);
            format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" fill=\"{}\"/>\n", hex(*colour))
        }
        Shape::Text { at: (x, y), size, anchor, turned, colour, text } => {
            let [x, y, size] = [*x, *y, *size].map(number);
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let turn = if *turned { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            format!(
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{}\"{anchor}{turn}>{}</text>\n",
                hex(*colour),
                esc(text)
            )
        }
    }
}

fn stroke(pen: &Pen) -> String {
    let mut text =
        format!(" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"", hex(pen.colour), number(pen.width));
    if pen.opacity < 1.0 {
        let _ = write!(text, " stroke-opacity=\"{}\"", number(pen.opacity));
    }
    if !pen.dashes.is_empty() {
        let dashes: Vec<String> = pen.dashes.iter().copied().map(number).collect();
        let _ = write!(text, " stroke-dasharray=\"{}\"", dashes.join(" "));
    }
    text
}
