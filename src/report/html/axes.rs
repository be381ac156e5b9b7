//! The metric against each axis of the sweep.

use super::super::metric::metric_name;
use super::super::wording::{direction, label, value_text};
use super::page::Source;
use super::plot::{Axis, Plot};
use super::scale::{Kind, Scale};
use super::text::esc;
use crate::plan::Configuration;
use crate::stats::Summary;

/// Lines of one plot.
const MOST_LINES: usize = 24;

/// A line: configurations that differ in one axis alone.
struct Line {
    configurations: Vec<usize>,
}

/// The section; nothing for a sweep without an axis of several values.
pub(super) fn section(source: &Source) -> String {
    let plots: Vec<String> = source.plan.axes.iter().filter_map(|axis| plot(source, axis)).collect();
    if plots.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"axes\"><h2>{} against each axis</h2><p class=\"sub\">Means over the seeds that finished, with 95% \
         t intervals; {}. A cross at the top is a configuration of which no run finished.</p><div class=\"grid2\">{}</div></section>",
        esc(metric_name(source.plan.compare.metric)),
        direction(source.plan),
        plots.concat()
    )
}

fn value_on<'a>(configuration: &'a Configuration, axis: &str) -> Option<&'a str> {
    configuration.axes.iter().find(|a| a.axis == axis).map(|a| a.value.as_str())
}

fn plot(source: &Source, axis: &str) -> Option<String> {
    let plan = source.plan;
    let mut values: Vec<&str> = Vec::new();
    for value in plan.configurations.iter().filter_map(|c| value_on(c, axis)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    if values.len() < 2 {
        return None;
    }
    let (x_axis, places) = horizontal(axis, &mut values);
    let lines = lines(source, axis);
    let configurations = || lines.iter().flat_map(|line| &line.configurations);
    let summaries: Vec<Summary> =
        configurations().filter_map(|c| source.analysis.configurations[*c].summary()).collect();
    let y = Scale::over(Kind::Linear, summaries.iter().flat_map(ends), 0.08);
    let metric = metric_name(plan.compare.metric);
    let mut plot = Plot {
        id: format!("axis-{}", plan.axes.iter().position(|a| a == axis)?),
        title: format!("{metric} against {axis}"),
        description: describe(source, configurations(), metric),
        x: x_axis,
        y: Axis::new(format!("{metric}, mean over seeds"), y, 6),
        class: "chart medium",
        attributes: String::new(),
        body: String::new(),
    };
    for (number, line) in lines.iter().enumerate() {
        // Side by side, so that intervals at one value do not cover each other.
        let shift = 9.0 * (number as f64 - (lines.len() - 1) as f64 / 2.0);
        plot.open("series", &format!(" transform=\"translate({shift} 0)\""));
        draw(&mut plot, source, axis, line, &|value| places.iter().find(|p| p.0 == value).map_or(f64::NAN, |p| p.1));
        plot.close();
    }
    Some(plot.html())
}

/// The horizontal axis with the place of each value: by size, on a logarithmic scale if the values span a factor of 5,
/// or side by side if they are no numbers.
fn horizontal(axis: &str, values: &mut [&str]) -> (Axis, Vec<(String, f64)>) {
    let numbers: Option<Vec<f64>> = values.iter().map(|v| v.parse().ok().filter(|x: &f64| x.is_finite())).collect();
    let Some(numbers) = numbers else {
        let places: Vec<(String, f64)> = values.iter().enumerate().map(|(i, v)| ((*v).to_owned(), i as f64)).collect();
        let ticks = places.iter().map(|(text, x)| (*x, text.clone())).collect();
        let scale = Scale { kind: Kind::Linear, lo: -0.5, hi: values.len() as f64 - 0.5 };
        return (Axis { title: axis.to_owned(), scale, ticks }, places);
    };
    let (lo, hi) = numbers.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (lo.min(*x), hi.max(*x)));
    let kind = if lo > 0.0 && hi / lo >= 5.0 { Kind::Log } else { Kind::Linear };
    let places: Vec<(String, f64)> = values.iter().zip(&numbers).map(|(v, x)| ((*v).to_owned(), *x)).collect();
    let scale = Scale::over(kind, numbers.iter().copied(), 0.1);
    let title = if kind == Kind::Log { format!("{axis} (logarithmic)") } else { axis.to_owned() };
    // The values that were tried are the marks, if they are few.
    let ticks =
        if places.len() <= 6 { places.iter().map(|(text, x)| (*x, text.clone())).collect() } else { scale.ticks(6) };
    (Axis { title, scale, ticks }, places)
}

fn lines(source: &Source, axis: &str) -> Vec<Line> {
    let mut keys: Vec<(String, Line)> = Vec::new();
    for (index, configuration) in source.plan.configurations.iter().enumerate() {
        if value_on(configuration, axis).is_none() {
            continue;
        }
        let others: Vec<String> = configuration
            .axes
            .iter()
            .filter(|a| a.axis != axis)
            .map(|a| format!("{}\u{1}{}", a.axis, a.value))
            .collect();
        let key = format!("{}\u{2}{}", configuration.arm, others.join("\u{2}"));
        match keys.iter_mut().find(|(k, _)| *k == key) {
            Some((_, line)) => line.configurations.push(index),
            None => keys.push((key, Line { configurations: vec![index] })),
        }
    }
    keys.into_iter().take(MOST_LINES).map(|(_, line)| line).collect()
}

fn ends(summary: &Summary) -> [f64; 2] {
    summary.ci95.map_or([summary.mean; 2], |i| [i.lo, i.hi])
}

fn draw(plot: &mut Plot, source: &Source, axis: &str, line: &Line, place: &dyn Fn(&str) -> f64) {
    let mut points: Vec<(f64, usize)> = Vec::new();
    for c in &line.configurations {
        if let Some(value) = value_on(&source.plan.configurations[*c], axis) {
            points.push((place(value), *c));
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mean = |c: usize| source.analysis.configurations[c].summary().map_or(f64::NAN, |s| s.mean);
    let Some(middle) = points.get(points.len() / 2) else {
        return;
    };
    plot.open(&format!("k{} solid", middle.1), "");
    plot.line(points.iter().map(|(x, c)| (*x, mean(*c))));
    plot.close();
    for (x, c) in points {
        let name = label(&source.plan.configurations[c]);
        plot.open(&format!("k{c} solid s{c}"), "");
        match source.analysis.configurations[c].summary() {
            Some(summary) => {
                let [lo, hi] = ends(&summary);
                plot.rule("whisker", (x, lo), (x, hi));
                plot.dot(x, summary.mean, &format!("{name}: {} (n = {})", value_text(summary.mean), summary.n));
            }
            None => plot.cross_at_top(x, &format!("{name}: no run finished")),
        }
        plot.close();
    }
}

fn describe<'a>(source: &Source, configurations: impl Iterator<Item = &'a usize>, metric: &str) -> String {
    let of = |c: &usize| {
        let name = label(&source.plan.configurations[*c]);
        match source.analysis.configurations[*c].summary() {
            Some(summary) => format!("{name}: {}", value_text(summary.mean)),
            None => format!("{name}: no run finished"),
        }
    };
    let points: Vec<String> = configurations.map(of).collect();
    format!("Mean {metric} of each configuration. {}.", points.join("; "))
}
