//! The metric against each axis of the sweep.

use std::collections::BTreeMap;

use super::super::metric::metric_name;
use super::super::wording::{direction, label, value_text};
use super::drawing;
use super::page::Source;
use super::plot::{Axis, Group, Plot, Rule, Size, Style};
use super::scale::{Kind, Scale};
use super::text::{esc, slug};
use crate::plan::Configuration;
use crate::stats::Summary;

/// Lines of one plot.
const MOST_LINES: usize = 24;
/// Configurations that a plot's description lists.
const MOST_TOLD: usize = 40;

/// The plots of a section, and what they leave out.
pub(in crate::report) struct Plots {
    /// A plot for each axis of several values.
    pub(in crate::report) plots: Vec<Plot>,
    /// Which lines are not drawn, in words.
    left_out: Vec<String>,
}

/// A line: configurations that differ in one axis alone.
type Line = Vec<usize>;

/// What the configurations of a line have in common: the arm, and the values of the other axes.
type Others<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// The section; nothing for a sweep without an axis of several values.
pub(super) fn section(source: &Source) -> String {
    let Plots { plots, left_out } = plots(source);
    if plots.is_empty() {
        return String::new();
    }
    let figures: String =
        plots.iter().map(|plot| format!("<div>{}{}</div>", drawing::figure(plot), legend(plot))).collect();
    let left_out: String = left_out.iter().map(|line| format!("<p class=\"sub\">{}</p>", esc(line))).collect();
    let reference = if source.analysis.verdict.baseline.is_some() {
        " Dashed: the mean of the baseline’s best configuration."
    } else {
        ""
    };
    format!(
        "<section id=\"axes\"><h2>{} against each axis</h2><p class=\"sub\">Means over the seeds that finished, with 95% \
         t intervals; {}.{reference} All plots have one vertical scale. A cross at the top is a configuration of which \
         no run finished.</p><div class=\"grid2\">{figures}</div>{left_out}</section>",
        esc(metric_name(source.plan.compare.metric)),
        direction(source.plan),
    )
}

/// Which line is which; nothing where there is one.
fn legend(plot: &Plot) -> String {
    let entry = |(c, name): &(usize, String)| {
        format!("<span class=\"entry k{c}\"><span class=\"chip\"></span>{}</span>", esc(name))
    };
    match plot.legend.len() {
        0 => String::new(),
        _ => format!("<div class=\"lines\">{}</div>", plot.legend.iter().map(entry).collect::<String>()),
    }
}

/// The plots.
pub(in crate::report) fn plots(source: &Source) -> Plots {
    let summaries = source.analysis.configurations.iter().filter_map(|results| results.summary());
    let y = Scale::over(Kind::Linear, summaries.flat_map(|s| ends(&s)), 0.08);
    let mut all = Plots { plots: Vec::new(), left_out: Vec::new() };
    for axis in &source.plan.axes {
        let lines = lines(source, axis);
        let Some(plot) = plot(source, axis, &lines[..lines.len().min(MOST_LINES)], y) else {
            continue;
        };
        if lines.len() > MOST_LINES {
            let more = lines.len() - MOST_LINES;
            all.left_out.push(format!(
                "Against {axis} the first {MOST_LINES} lines are drawn, {more} are not; summary.csv has all."
            ));
        }
        all.plots.push(plot);
    }
    all
}

fn value_on<'a>(configuration: &'a Configuration, axis: &str) -> Option<&'a str> {
    configuration.axes.iter().find(|a| a.axis == axis).map(|a| a.value.as_str())
}

fn plot(source: &Source, axis: &str, lines: &[Line], y: Scale) -> Option<Plot> {
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
    let (x_axis, places) = horizontal(axis, &values);
    let metric = metric_name(plan.compare.metric);
    let ends_of_x = [x_axis.scale.lo, x_axis.scale.hi];
    let y_axis = Axis::new(format!("{metric}, mean over seeds"), y, 6);
    let mut plot =
        Plot::new(format!("axis-{}", slug(axis)), format!("{metric} against {axis}"), x_axis, y_axis, Size::Medium);
    plot.description = describe(source, lines.iter().flatten(), metric);
    plot.legend = names(source, axis, lines);
    let baseline = source.analysis.verdict.baseline.and_then(|c| source.analysis.configurations[c].summary());
    if let Some(baseline) = baseline {
        plot.rule(Rule::Reference, (ends_of_x[0], baseline.mean), (ends_of_x[1], baseline.mean));
    }
    for (number, line) in lines.iter().enumerate() {
        // Side by side, so that intervals at one value do not cover each other.
        let shift = 9.0 * (number as f64 - (lines.len() - 1) as f64 / 2.0);
        draw(&mut plot, source, axis, line, shift, &places);
    }
    Some(plot)
}

/// The horizontal axis with the place of each value: by size, on a logarithmic scale if the values span a factor of 5,
/// or side by side if they are no numbers.
fn horizontal(axis: &str, values: &[&str]) -> (Axis, BTreeMap<String, f64>) {
    let numbers: Option<Vec<f64>> = values.iter().map(|v| v.parse().ok().filter(|x: &f64| x.is_finite())).collect();
    let Some(numbers) = numbers else {
        let ticks = values.iter().enumerate().map(|(i, text)| (i as f64, (*text).to_owned())).collect();
        let scale = Scale { kind: Kind::Linear, lo: -0.5, hi: values.len() as f64 - 0.5 };
        let places = values.iter().enumerate().map(|(i, v)| ((*v).to_owned(), i as f64)).collect();
        return (Axis { title: axis.to_owned(), scale, ticks }, places);
    };
    let (lo, hi) = numbers.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (lo.min(*x), hi.max(*x)));
    let kind = if lo > 0.0 && hi / lo >= 5.0 { Kind::Log } else { Kind::Linear };
    let scale = Scale::over(kind, numbers.iter().copied(), 0.1);
    let title = if kind == Kind::Log { format!("{axis} (logarithmic)") } else { axis.to_owned() };
    // The values that were tried are the marks, if they are few.
    let mut tried: Vec<(f64, String)> = numbers.iter().copied().zip(values.iter().map(|v| (*v).to_owned())).collect();
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    let places = tried.iter().map(|(x, text)| (text.clone(), *x)).collect();
    let ticks = if tried.len() <= 6 { tried } else { scale.ticks(6) };
    (Axis { title, scale, ticks }, places)
}

/// The lines, in the order of their first configurations.
fn lines(source: &Source, axis: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut known: BTreeMap<Others, usize> = BTreeMap::new();
    for (index, configuration) in source.plan.configurations.iter().enumerate() {
        if value_on(configuration, axis).is_none() {
            continue;
        }
        let others = configuration.axes.iter().filter(|a| a.axis != axis);
        let others = others.map(|a| (a.axis.as_str(), a.value.as_str())).collect();
        let line = *known.entry((configuration.arm.as_str(), others)).or_insert_with(|| {
            lines.push(Vec::new());
            lines.len() - 1
        });
        lines[line].push(index);
    }
    lines
}

/// The lines with what they have in common, where there are several.
fn names(source: &Source, axis: &str, lines: &[Line]) -> Vec<(usize, String)> {
    if lines.len() < 2 {
        return Vec::new();
    }
    let name = |line: &Line| {
        let middle = *line.get(line.len() / 2)?;
        let configuration = &source.plan.configurations[middle];
        let axes = configuration.axes.iter().filter(|a| a.axis != axis).cloned().collect();
        Some((middle, label(&Configuration { arm: configuration.arm.clone(), axes, runs: Vec::new() })))
    };
    lines.iter().filter_map(name).collect()
}

fn ends(summary: &Summary) -> [f64; 2] {
    summary.ci95.map_or([summary.mean; 2], |i| [i.lo, i.hi])
}

fn draw(plot: &mut Plot, source: &Source, axis: &str, line: &Line, shift: f64, places: &BTreeMap<String, f64>) {
    let place = |c: usize| value_on(&source.plan.configurations[c], axis).and_then(|v| places.get(v)).copied();
    let mut points: Vec<(f64, usize)> = line.iter().filter_map(|c| Some((place(*c)?, *c))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mean = |c: usize| source.analysis.configurations[c].summary().map_or(f64::NAN, |s| s.mean);
    let Some(middle) = points.get(points.len() / 2) else {
        return;
    };
    plot.open(Group { shift, ..Group::new(middle.1, Style::Solid) });
    plot.line(points.iter().map(|(x, c)| (*x, mean(*c))));
    plot.close();
    for (x, c) in points {
        let name = label(&source.plan.configurations[c]);
        plot.open(Group { shift, chosen: true, ..Group::new(c, Style::Solid) });
        match source.analysis.configurations[c].summary() {
            Some(summary) => {
                let [lo, hi] = ends(&summary);
                plot.rule(Rule::Whisker, (x, lo), (x, hi));
                plot.dot(x, summary.mean, format!("{name}: {} (n = {})", value_text(summary.mean), summary.n));
            }
            None => plot.cross_at_top(x, format!("{name}: no run finished")),
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
    let mut points: Vec<String> = configurations.map(of).collect();
    if points.len() > MOST_TOLD {
        let more = points.len() - MOST_TOLD;
        points.truncate(MOST_TOLD);
        points.push(format!("and {more} more"));
    }
    format!("Mean {metric} of each configuration. {}.", points.join("; "))
}
