//! Learning curves.

use std::fmt::Write;

use super::curves::{Curve, Quantity, Trace};
use super::drawing;
use super::frames::{self, Along, Frame, Range};
use super::page::Source;
use super::plot::{Group, Plot, Size, Style};
use super::scale::Kind;
use super::text::{count, esc};
use crate::report::wording::{label, short_label};

/// The section.
pub(super) fn section(source: &Source, curves: &[Curve]) -> String {
    let mut html = "<section id=\"learning\"><h2>Learning curves</h2>".to_owned();
    if nothing_logged(curves) {
        let why = match curves.iter().any(|curve| !curve.diverged.is_empty()) {
            true => "Every run that has a log diverged before it logged a value",
            false => "No run has a log yet",
        };
        let _ = write!(html, "<p class=\"none\">{why}, so there is nothing to draw.</p></section>");
        return html;
    }
    html += &controls(source);
    html += &legend(source, curves, true);
    let mut plot = plot(source, curves, default_quantity(source));
    plot.id = "curve".to_owned();
    plot.attributes = " data-hover".to_owned();
    html += &drawing::figure(&plot);
    html += &notes(source, curves);
    html += &frames::data(source, curves);
    html += "</section>";
    html
}

fn nothing_logged(curves: &[Curve]) -> bool {
    let has_value = |trace: &Trace| Quantity::LEARNING.iter().any(|q| trace.points(*q).any(|(_, y)| y.is_finite()));
    curves.iter().all(|curve| curve.runs == 0 && !curve.diverged.iter().any(has_value))
}

/// A plot for each quantity.
pub(in crate::report) fn plots(source: &Source, curves: &[Curve]) -> Vec<Plot> {
    if nothing_logged(curves) {
        return Vec::new();
    }
    Quantity::LEARNING.map(|quantity| plot(source, curves, quantity)).into()
}

/// The quantity that the metric of the comparison is a value of.
pub(super) fn default_quantity(source: &Source) -> Quantity {
    use crate::plan::Metric::{BestValAcc, BestValBpb, TrainBpb, ValAcc, ValBpb};
    match source.plan.compare.metric {
        ValBpb | BestValBpb => Quantity::ValBpb,
        ValAcc | BestValAcc => Quantity::ValAcc,
        TrainBpb => Quantity::TrainBpb,
    }
}

fn controls(source: &Source) -> String {
    let mut html = "<div class=\"controls script\">".to_owned();
    let mut choice = |legend: &str, name: &str, options: &[(&str, &str)], chosen: &str| {
        let _ = write!(html, "<fieldset><legend>{legend}</legend>");
        for (value, text) in options {
            let checked = if *value == chosen { " checked" } else { "" };
            let _ =
                write!(html, "<label><input type=\"radio\" name=\"{name}\" value=\"{value}\"{checked}>{text}</label>");
        }
        html += "</fieldset>";
    };
    let metrics = Quantity::LEARNING.map(|quantity| (quantity.column(), quantity.column()));
    choice("Metric", "metric", &metrics, default_quantity(source).column());
    choice("Along", "along", &Along::ALL.map(|along| (along.name(), along.name())), Along::Step.name());
    choice("Axes", "kind", &[("linear", "linear"), ("log", "logarithmic")], "linear");
    choice("Range", "range", &[("all", "all"), ("half", "second half")], "all");
    html + "</div>"
}

/// The configurations that are drawn, by arm, with boxes to choose them by if `choose`.
pub(super) fn legend(source: &Source, curves: &[Curve], choose: bool) -> String {
    let mut html = "<div class=\"legend\" role=\"group\" aria-label=\"Configurations\">".to_owned();
    let arm_of = |curve: &&Curve| source.plan.configurations[curve.configuration].arm.as_str();
    let mut arms: Vec<&str> = Vec::new();
    for arm in curves.iter().map(|curve| arm_of(&curve)) {
        if !arms.contains(&arm) {
            arms.push(arm);
        }
    }
    for (number, arm) in arms.iter().enumerate() {
        let of_arm: Vec<usize> = curves.iter().filter(|c| arm_of(c) == *arm).map(|c| c.configuration).collect();
        html += "<div class=\"arm\">";
        if of_arm.len() > 1 {
            let name = esc(arm);
            html += &match choose {
                true => format!(
                    "<label class=\"all\"><input class=\"script\" type=\"checkbox\" checked data-arm=\"{number}\">{name}</label>"
                ),
                false => format!("<span class=\"all\">{name}</span>"),
            };
        }
        for c in &of_arm {
            let configuration = &source.plan.configurations[*c];
            let name = if of_arm.len() > 1 { short_label(configuration) } else { label(configuration) };
            let best = if source.is_best(*c) { " <em>best</em>" } else { "" };
            let key = "<svg class=\"key\" viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path class=\"line\" d=\"M1 5H27\"/></svg>";
            let text = format!("{key}{}{best}", esc(&name));
            html += &match choose {
                true => format!(
                    "<label class=\"k{c}\"><input class=\"script\" type=\"checkbox\" checked data-toggle=\"{c}\" \
                     data-of=\"{number}\">{text}</label>"
                ),
                false => format!("<span class=\"entry k{c}\">{text}</span>"),
            };
        }
        html += "</div>";
    }
    html + "</div>"
}

fn plot(source: &Source, curves: &[Curve], quantity: Quantity) -> Plot {
    let Frame { x, y } = frames::frame(curves, quantity, Along::Step, Kind::Linear, Range::All);
    let id = format!("learning-{}", quantity.column());
    let title = format!("{} over training, mean over seeds with 95% interval", quantity.column());
    let mut plot = Plot::new(id, title, x, y, Size::Large);
    plot.description = describe(source, curves, quantity);
    plot.legend = names(source, curves);
    draw(&mut plot, source, curves, quantity);
    plot
}

/// The configurations of curves with their names.
pub(super) fn names(source: &Source, curves: &[Curve]) -> Vec<(usize, String)> {
    let name = |curve: &Curve| (curve.configuration, label(&source.plan.configurations[curve.configuration]));
    curves.iter().map(name).collect()
}

/// Draws the curves of a quantity over the steps.
pub(super) fn draw(plot: &mut Plot, source: &Source, curves: &[Curve], quantity: Quantity) {
    for curve in curves {
        let style = if source.is_best(curve.configuration) { Style::Best } else { Style::Dashed };
        plot.open(Group { chosen: true, ..Group::new(curve.configuration, style) });
        let points = curve.points(quantity);
        plot.band(points.iter().map(|p| (p.step, p.lo, p.hi)));
        plot.line(points.iter().map(|p| (p.step, p.mean)));
        if let [only] = points {
            plot.dot(only.step, only.mean, "the only logged step");
        }
        for trace in &curve.diverged {
            plot.open(Group::new(curve.configuration, Style::Diverged));
            plot.line(trace.points(quantity));
            if let Some((step, y)) = last_finite(trace, quantity) {
                plot.dot(step, y, format!("seed {} diverged after this row", trace.seed));
            }
            plot.close();
        }
        plot.close();
    }
}

fn last_finite(trace: &Trace, quantity: Quantity) -> Option<(f64, f64)> {
    trace.points(quantity).filter(|(_, y)| y.is_finite()).last()
}

/// The curves in words: where each one ends.
pub(super) fn describe(source: &Source, curves: &[Curve], quantity: Quantity) -> String {
    let ends = curves.iter().filter_map(|curve| {
        let last = curve.points(quantity).last()?;
        let name = label(&source.plan.configurations[curve.configuration]);
        Some(format!("{name} ends at {:.4} (n = {})", last.mean, curve.runs))
    });
    let ends: Vec<String> = ends.collect();
    format!("Line plot of {} over training steps. {}.", quantity.words(), ends.join("; "))
}

/// What is drawn and what is not.
fn notes(source: &Source, curves: &[Curve]) -> String {
    let mut notes = Vec::new();
    let every = curves.iter().map(|c| c.every).max().unwrap_or(1);
    if every > 1 {
        notes.push(format!("Of the logged steps every {every}th and the last are drawn; curves.csv has all of them."));
    }
    let all = source.plan.configurations.len();
    if curves.len() < all {
        let drawn = curves.len();
        notes.push(format!(
            "The best {drawn} of {all} configurations are drawn, in turn from each arm; curves.csv has all."
        ));
    }
    if curves.iter().any(|c| c.runs == 1) {
        notes.push("Where only one seed finished there is no interval.".to_owned());
    }
    let diverged: usize = curves.iter().map(|c| c.diverged.len()).sum();
    if diverged > 0 {
        let runs = count(diverged, "run");
        notes.push(format!("Thin lines that end in a red dot: {runs} that diverged, in no mean, and outside the plot where its range ends."));
    }
    if notes.is_empty() { String::new() } else { format!("<p class=\"sub\">{}</p>", notes.join(" ")) }
}
