//! The table of configurations, with their intervals drawn.

use std::fmt::Write;

use super::super::analysis::Analysis;
use super::super::closing::{best_first, difference};
use super::super::devices::Kinds;
use super::super::metric::{metric_name, test_name};
use super::super::wording::{direction, label, value_text};
use super::page::Source;
use super::scale::{Kind, SIDE, Scale};
use super::text::{coordinate, esc};
use crate::stats::Summary;

/// Rows of the table; the rest is in summary.csv.
const MOST_ROWS: usize = 300;

/// Letters of a name that stays on one line.
const LONG_NAME: usize = 24;

/// The section.
pub(super) fn section(source: &Source) -> String {
    let (plan, analysis) = (source.plan, source.analysis);
    let (metric, test) = (metric_name(plan.compare.metric), test_name(plan.compare.metric));
    let order = best_first(plan, analysis);
    let kinds = Some(Kinds::of(plan, source.loaded)).filter(Kinds::differ);
    let summaries = order.iter().filter_map(|c| analysis.configurations[*c].summary());
    let scale = scale(summaries);
    let bars = match analysis.configurations.iter().any(|results| results.finished() > 0) {
        true => format!(" The bars run from {} to {}.", value_text(scale.lo), value_text(scale.hi)),
        false => String::new(),
    };
    let mut html = format!(
        "<section id=\"configurations\"><h2>Configurations</h2><p class=\"sub\">Means of {metric} over the seeds that \
         finished, with 95% t intervals; {}.{bars} Differences are from the baseline’s best, \
         paired by seed, on validation; their p values are not corrected: for exploration only.</p>\
         <div class=\"scroll\"><table class=\"sortable\"><thead><tr>",
        direction(plan)
    );
    for (name, hint, class) in [
        ("configuration", "", ""),
        ("n", "seeds finished of planned", "num"),
        ("div", "diverged", troubled(analysis)),
        ("fail", "failed", troubled(analysis)),
        (metric, "mean ± half of the 95% interval", "num"),
        ("95% interval", "", "wide"),
        ("difference [95%]", "from the baseline’s best", "num"),
        ("p", "sign-flip", "num"),
        (test, "mean on the test split", "num"),
        ("device", "kinds of device that runs were made on", ""),
    ] {
        if name == "device" && kinds.is_none() {
            continue;
        }
        let _ = write!(html, "<th scope=\"col\" class=\"{class}\" title=\"{}\">{}</th>", esc(hint), esc(name));
    }
    html += "</tr></thead><tbody>";
    for configuration in order.iter().take(MOST_ROWS) {
        html += &row(source, *configuration, &scale, kinds.as_ref());
    }
    html += "</tbody></table></div>";
    if order.len() > MOST_ROWS {
        let _ = write!(html, "<p class=\"sub\">The best {MOST_ROWS} of {}; summary.csv has all.</p>", order.len());
    }
    html + "</section>"
}

/// The common scale of a table's intervals.
pub(super) fn scale(summaries: impl Iterator<Item = Summary>) -> Scale {
    Scale::over(Kind::Linear, summaries.flat_map(|s| ends(&s)), 0.03)
}

fn ends(summary: &Summary) -> [f64; 2] {
    summary.ci95.map_or([summary.mean; 2], |i| [i.lo, i.hi])
}

fn row(source: &Source, configuration: usize, scale: &Scale, kinds: Option<&Kinds>) -> String {
    let (plan, analysis) = (source.plan, source.analysis);
    let results = &analysis.configurations[configuration];
    let (summary, test) = (results.summary(), results.test_summary());
    let [difference_text, p] = difference(analysis, configuration);
    let paired = analysis.verdict.exploratory.iter().find(|c| c.configuration == configuration).and_then(|c| c.paired);
    let value = |x: Option<f64>| x.map(|x| format!("{x:?}")).unwrap_or_default();
    let best = if source.is_best(configuration) { "<em title=\"the best of its arm\">best</em>" } else { "" };
    let mut html = format!(
        "<tr class=\"k{configuration}\"><th scope=\"row\"{}><span class=\"chip\"></span>{} {best}</th>",
        width_class(&label(&plan.configurations[configuration])),
        esc(&label(&plan.configurations[configuration]))
    );
    let (n, planned) = (results.finished(), results.seeds.len());
    let test_cell = test.map_or_else(|| "–".to_owned(), |s| value_text(s.mean));
    let troubled = troubled(analysis);
    for (class, order, text) in [
        ("num", n.to_string(), format!("{n}/{planned}")),
        (troubled, results.diverged().to_string(), trouble(results.diverged())),
        (troubled, results.failed().to_string(), trouble(results.failed())),
        ("num", value(summary.map(|s| s.mean)), esc(&mean_text(summary))),
    ] {
        let _ = write!(html, "<td class=\"{class}\" data-v=\"{order}\">{text}</td>");
    }
    let _ =
        write!(html, "<td class=\"wide\" data-v=\"{}\">{}</td>", value(summary.map(|s| s.mean)), bar(summary, scale));
    for (order, text) in [
        (value(paired.map(|p| p.mean_diff)), difference_text),
        (value(paired.map(|p| p.sign_flip_p)), p),
        (value(test.map(|s| s.mean)), test_cell),
    ] {
        let _ = write!(html, "<td class=\"num\" data-v=\"{order}\">{}</td>", esc(&text));
    }
    if let Some(kinds) = kinds {
        let _ = write!(html, "<td>{}</td>", esc(&kinds.text(configuration)));
    }
    html + "</tr>"
}

/// The class of a row's head whose name must not stay on one line.
pub(super) fn width_class(name: &str) -> &'static str {
    if name.chars().count() > LONG_NAME { " class=\"long\"" } else { "" }
}

/// The class of the columns that count diverged and failed runs: where there are none, a phone's room is for others.
fn troubled(analysis: &Analysis) -> &'static str {
    let none = analysis.configurations.iter().all(|results| results.diverged() + results.failed() == 0);
    if none { "num desk" } else { "num" }
}

fn trouble(n: usize) -> String {
    if n == 0 { "0".to_owned() } else { format!("<b class=\"bad\">{n}</b>") }
}

pub(super) fn mean_text(summary: Option<Summary>) -> String {
    match summary {
        None => "no run finished".to_owned(),
        Some(s) => match s.ci95 {
            Some(i) => format!("{} ± {}", value_text(s.mean), value_text((i.hi - i.lo) / 2.0)),
            None => format!("{} (one run)", value_text(s.mean)),
        },
    }
}

/// An interval on the table's common scale.
pub(super) fn bar(summary: Option<Summary>, scale: &Scale) -> String {
    let Some(summary) = summary else {
        return String::new();
    };
    let [lo, hi] = ends(&summary).map(|x| coordinate(scale.at(x)));
    let mean = coordinate(scale.at(summary.mean));
    format!(
        "<svg class=\"bar\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\">\
         <path class=\"rail\" d=\"M0 5H{SIDE}\"/><path class=\"whisker\" d=\"M{lo} 5H{hi}\"/><path class=\"dot\" d=\"M{mean} 5h0\"/></svg>",
        esc(&mean_text(Some(summary)))
    )
}
