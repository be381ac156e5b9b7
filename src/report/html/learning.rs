//! Curves over the steps: learning, and the state of ternary weights.

use std::fmt::Write;

use super::curves::{Curve, Quantity, Trace};
use super::page::Source;
use super::plot::{Axis, Plot};
use super::scale::{Kind, Scale};
use super::text::{count, esc, json_for_script, short_json};
use crate::report::wording::label;

/// The section of learning curves.
pub(super) fn section(source: &Source, curves: &[Curve]) -> String {
    let mut html = "<section id=\"learning\"><h2>Learning curves</h2>".to_owned();
    if curves.iter().all(|curve| curve.runs == 0 && curve.diverged.is_empty()) {
        html += "<p class=\"none\">No run has a log yet, so there is nothing to draw.</p></section>";
        return html;
    }
    html += &controls(source, curves);
    for quantity in Quantity::LEARNING {
        for kind in [Kind::Linear, Kind::Log] {
            let hidden = quantity != default_quantity(source) || kind != Kind::Linear;
            html += &figure(source, curves, quantity, kind, hidden);
        }
    }
    html += &legend_note(source, curves);
    html += &data(source, curves);
    html += "</section>";
    html
}

/// The section on ternary weights; nothing for a sweep without any.
pub(super) fn health_section(source: &Source, curves: &[Curve]) -> String {
    let with_panel: Vec<Curve> = curves.iter().filter(|curve| curve.has_panel()).cloned().collect();
    if with_panel.is_empty() {
        return String::new();
    }
    let mut html = "<section id=\"health\"><h2>Ternary weights</h2>\
        <p class=\"sub\">What goes on inside the runs that train ternary weights: means over the finished runs with 95% \
        t intervals. Weights that change without end (churn) or hardly at all, accumulators at their rails or dead, and \
        scales that run away are signs of ill health.</p><div class=\"grid3\">"
        .to_owned();
    for quantity in Quantity::HEALTH {
        let points = with_panel.iter().flat_map(|curve| curve.points(quantity));
        let mut plot = empty_plot(quantity, Kind::Linear, points.flat_map(|p| [p.mean, p.lo, p.hi]), last_step(curves));
        plot.id = format!("health-{}", quantity.column());
        plot.class = "chart small hover";
        plot.title = quantity.column().to_owned();
        plot.description = describe(source, &with_panel, quantity);
        plot.attributes = hover_attributes(quantity, &plot);
        draw(&mut plot, source, &with_panel, quantity);
        html += &plot.html();
    }
    html += "</div></section>";
    html
}

fn default_quantity(source: &Source) -> Quantity {
    use crate::plan::Metric::{BestValAcc, BestValBpb, TrainBpb, ValAcc, ValBpb};
    match source.plan.compare.metric {
        ValBpb | BestValBpb => Quantity::ValBpb,
        ValAcc | BestValAcc => Quantity::ValAcc,
        TrainBpb => Quantity::TrainBpb,
    }
}

fn controls(source: &Source, curves: &[Curve]) -> String {
    let mut html = "<div class=\"controls script\"><fieldset><legend>Metric</legend>".to_owned();
    for quantity in Quantity::LEARNING {
        let name = quantity.column();
        let checked = if quantity == default_quantity(source) { " checked" } else { "" };
        let _ = write!(html, "<label><input type=\"radio\" name=\"metric\" value=\"{name}\"{checked}>{name}</label>");
    }
    html += "</fieldset><fieldset><legend>Axes</legend>\
        <label><input type=\"radio\" name=\"scale\" value=\"linear\" checked>linear</label>\
        <label><input type=\"radio\" name=\"scale\" value=\"log\">logarithmic</label></fieldset></div>";
    html += "<div class=\"legend\" role=\"group\" aria-label=\"Configurations\">";
    let mut arms: Vec<&str> = Vec::new();
    for curve in curves {
        let arm = source.plan.configurations[curve.configuration].arm.as_str();
        if !arms.contains(&arm) {
            arms.push(arm);
        }
    }
    for (number, arm) in arms.iter().enumerate() {
        let of_arm: Vec<usize> =
            curves.iter().map(|c| c.configuration).filter(|c| source.plan.configurations[*c].arm == **arm).collect();
        html += "<div class=\"arm\">";
        if of_arm.len() > 1 {
            let _ = write!(
                html,
                "<label class=\"all script\"><input type=\"checkbox\" checked data-arm=\"{number}\">all of {}</label>",
                esc(arm)
            );
        }
        for c in of_arm {
            let best = if source.is_best(c) { " <em>best</em>" } else { "" };
            let _ = write!(
                html,
                "<label class=\"k{c}\"><input class=\"script\" type=\"checkbox\" checked data-toggle=\"{c}\" data-of=\"{number}\">\
                 <svg class=\"key\" viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path class=\"line\" d=\"M1 5H27\"/></svg>{}{best}</label>",
                esc(&label(&source.plan.configurations[c]))
            );
        }
        html += "</div>";
    }
    html += "</div>";
    html
}

fn figure(source: &Source, curves: &[Curve], quantity: Quantity, kind: Kind, hidden: bool) -> String {
    let means = curves.iter().flat_map(|c| c.points(quantity)).flat_map(|p| [p.mean, p.lo, p.hi]);
    // A run on its way to infinity must not flatten the others: its trace may leave the plot.
    let values: Vec<f64> = means.filter(|x| x.is_finite()).collect();
    let traces = || curves.iter().flat_map(|c| &c.diverged).flat_map(|t| t.points(quantity)).map(|(_, y)| y);
    let values = if values.is_empty() { traces().collect() } else { values };
    let mut plot = empty_plot(quantity, kind, values, last_step(curves));
    plot.id = format!("learning-{}-{}", quantity.column(), kind.name());
    plot.class = "chart large hover";
    plot.title = format!("{} over training, mean over seeds with 95% interval", quantity.column());
    plot.description = describe(source, curves, quantity);
    plot.attributes = format!(
        "{} data-metric=\"{}\" data-scale=\"{}\"{}",
        hover_attributes(quantity, &plot),
        quantity.column(),
        kind.name(),
        if hidden { " hidden" } else { "" }
    );
    draw(&mut plot, source, curves, quantity);
    plot.html()
}

fn last_step(curves: &[Curve]) -> f64 {
    let points = curves.iter().flat_map(|c| c.points(Quantity::ValBpb)).map(|p| p.step);
    let traces = curves.iter().flat_map(|c| &c.diverged).flat_map(|t| t.points(Quantity::ValBpb)).map(|(step, _)| step);
    points.chain(traces).fold(1.0, f64::max)
}

fn empty_plot(quantity: Quantity, kind: Kind, values: impl IntoIterator<Item = f64>, last_step: f64) -> Plot {
    let x_title = if kind == Kind::Log { "training step (logarithmic; step 0 left out)" } else { "training step" };
    let y_title = format!("{}{}", quantity.words(), if kind == Kind::Log { " (logarithmic)" } else { "" });
    let x = Scale { kind, lo: if kind == Kind::Log { 1.0 } else { 0.0 }, hi: last_step.max(2.0) };
    Plot {
        id: String::new(),
        title: String::new(),
        description: String::new(),
        x: Axis::new(x_title, x, 6),
        y: Axis::new(y_title, Scale::over(kind, values, 0.04), 6),
        class: "",
        attributes: String::new(),
        body: String::new(),
    }
}

/// What the script needs to find the step under the pointer.
fn hover_attributes(quantity: Quantity, plot: &Plot) -> String {
    let Scale { kind, lo, hi } = plot.x.scale;
    format!(" data-q=\"{}\" data-x0=\"{lo}\" data-x1=\"{hi}\" data-kind=\"{}\"", quantity.column(), kind.name())
}

fn draw(plot: &mut Plot, source: &Source, curves: &[Curve], quantity: Quantity) {
    for curve in curves {
        let best = if source.is_best(curve.configuration) { " best" } else { "" };
        plot.open(&format!("k{0} s{0}{best}", curve.configuration), "");
        let points = curve.points(quantity);
        plot.band(points.iter().map(|p| (p.step, p.lo, p.hi)));
        plot.line(points.iter().map(|p| (p.step, p.mean)));
        if let [only] = points {
            plot.dot(only.step, only.mean, "the only logged step");
        }
        for trace in &curve.diverged {
            plot.open("diverged", "");
            plot.line(trace.points(quantity));
            if let Some((step, y)) = last_finite(trace, quantity) {
                plot.dot(step, y, &format!("seed {} diverged after this row", trace.seed));
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
fn describe(source: &Source, curves: &[Curve], quantity: Quantity) -> String {
    let ends = curves.iter().filter_map(|curve| {
        let last = curve.points(quantity).last()?;
        let name = label(&source.plan.configurations[curve.configuration]);
        Some(format!("{name} ends at {:.4} (n = {})", last.mean, curve.runs))
    });
    let ends: Vec<String> = ends.collect();
    format!("Line plot of {} over training steps. {}.", quantity.words(), ends.join("; "))
}

/// What is drawn and what is not.
fn legend_note(source: &Source, curves: &[Curve]) -> String {
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

/// The values for the script.
fn data(source: &Source, curves: &[Curve]) -> String {
    let mut json = "[".to_owned();
    for (i, curve) in curves.iter().enumerate() {
        let name = serde_json::Value::from(label(&source.plan.configurations[curve.configuration])).to_string();
        let steps = list(curve.points(Quantity::ValBpb).iter().map(|p| p.step));
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(
            json,
            "{comma}{{\"c\":{},\"name\":{name},\"n\":{},\"x\":{steps},\"q\":{{",
            curve.configuration, curve.runs
        );
        let mut first = true;
        for quantity in Quantity::LEARNING.into_iter().chain(Quantity::HEALTH) {
            let points = curve.points(quantity);
            if points.is_empty() {
                continue;
            }
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            let _ = write!(json, "{comma}\"{}\":[{}", quantity.column(), list(points.iter().map(|p| p.mean)));
            if Quantity::LEARNING.contains(&quantity) && curve.runs > 1 {
                let half = points.iter().map(|p| (p.hi - p.lo) / 2.0);
                let _ = write!(json, ",{}", list(half));
            }
            json.push(']');
        }
        json += "}}";
    }
    json.push(']');
    format!("<script type=\"application/json\" id=\"curves\">{}</script>", json_for_script(&json))
}

fn list(values: impl Iterator<Item = f64>) -> String {
    let values: Vec<String> = values.map(short_json).collect();
    format!("[{}]", values.join(","))
}
