//! The closing table on the terminal.

use std::fmt::Write;
use std::path::Path;

use super::analysis::{Analysis, ConfigurationResults};
use super::grid::{Align, Grid, WIDTH, wrap};
use super::metric::{better, metric_name, test_name};
use super::verdict::{Comparison, Split};
use super::wording::{direction, label, p_text, value_text};
use crate::plan::Plan;
use crate::stats::{Better, Interval, Summary};
use crate::store::TABLES;

/// Rows of the table; the rest is in summary.csv.
const MOST_ROWS: usize = 40;
/// Names of runs' folders that are listed.
const MOST_NAMES: usize = 5;

/// The closing text of a sweep: a table of the configurations, best first, the best ones on the test split, the
/// verdict, and what a reader should know beside it. At most 100 columns wide; escape codes only if `colour`.
pub fn closing_text(plan: &Plan, analysis: &Analysis, dir: &Path, colour: bool) -> String {
    let mut text = comparison_text(plan, analysis, colour);
    paragraph(&mut text, &format!("Tables in {}: {}", dir.display(), TABLES.join(", ")), "  ");
    paragraph(&mut text, &format!("Report for the browser: {}", dir.join("report.html").display()), "  ");
    text
}

/// The same without the files' places.
pub fn comparison_text(plan: &Plan, analysis: &Analysis, colour: bool) -> String {
    let mut text = String::new();
    let metric = metric_name(plan.compare.metric);
    let title = format!(
        "{}: {metric}, {}; mean over the seeds that finished ± half of its 95% t interval",
        plan.name,
        direction(plan)
    );
    paragraph(&mut text, &title, "");
    text.push('\n');
    text += &configurations(plan, analysis);
    if analysis.verdict.split == Split::Test {
        text += "\nOn the test split, each arm's best by validation:\n";
        text += &test_values(plan, analysis);
    }
    text.push('\n');
    let (bold, plain) = if colour { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    let lines = wrap(&analysis.verdict.sentence, WIDTH, "");
    let _ = writeln!(text, "{bold}{}{plain}", lines.join("\n"));
    for note in &analysis.verdict.notes {
        paragraph(&mut text, &format!("Note: {note}."), "  ");
    }
    for warning in &analysis.warnings {
        paragraph(&mut text, &format!("Warning: {warning}."), "  ");
    }
    if !analysis.strangers.is_empty() {
        paragraph(&mut text, &strangers(&analysis.strangers), "  ");
    }
    text
}

/// Appends a text in lines of at most [`WIDTH`] characters, all but the first indented.
pub(crate) fn paragraph(text: &mut String, words: &str, indent: &str) {
    for line in wrap(words, WIDTH, indent) {
        let _ = writeln!(text, "{line}");
    }
}

fn configurations(plan: &Plan, analysis: &Analysis) -> String {
    let mut grid = Grid::new(&[
        ("configuration", Align::Left),
        ("n", Align::Right),
        ("div", Align::Right),
        ("fail", Align::Right),
        (metric_name(plan.compare.metric), Align::Left),
        ("difference [95%]", Align::Left),
        ("p", Align::Right),
    ]);
    let order = best_first(plan, analysis);
    for index in order.iter().take(MOST_ROWS) {
        let results = &analysis.configurations[*index];
        let [difference, p] = difference(analysis, *index);
        grid.row(vec![
            label(&plan.configurations[*index]),
            format!("{}/{}", results.finished(), results.seeds.len()),
            results.diverged().to_string(),
            results.failed().to_string(),
            mean_text(results.summary()),
            difference,
            p,
        ]);
    }
    let mut text = grid.text();
    if order.len() > MOST_ROWS {
        let _ = writeln!(text, "... and {} more in summary.csv", order.len() - MOST_ROWS);
    }
    if !analysis.verdict.exploratory.is_empty() {
        text += "n: seeds finished of planned; difference from the baseline's best, paired by seed; p: sign-flip,\n";
        text += "not corrected: for exploration only.\n";
    }
    text
}

/// The configurations by their mean, the best first; those without a finished run last, in the plan's order.
pub(super) fn best_first(plan: &Plan, analysis: &Analysis) -> Vec<usize> {
    let key = |results: &ConfigurationResults| {
        let mean = results.summary().map(|s| s.mean);
        match (mean, better(plan.compare.metric)) {
            (None, _) => f64::INFINITY,
            (Some(mean), Better::Lower) => mean,
            (Some(mean), Better::Higher) => -mean,
        }
    };
    let mut order: Vec<usize> = (0..analysis.configurations.len()).collect();
    order.sort_by(|a, b| key(&analysis.configurations[*a]).total_cmp(&key(&analysis.configurations[*b])));
    order
}

pub(super) fn difference(analysis: &Analysis, index: usize) -> [String; 2] {
    let verdict = &analysis.verdict;
    if verdict.baseline == Some(index) {
        return ["the baseline's best".to_owned(), String::new()];
    }
    match verdict.exploratory.iter().find(|c| c.configuration == index) {
        Some(comparison) => difference_cells(comparison),
        None => [String::new(), String::new()],
    }
}

/// The mean difference with its interval, and the sign-flip p.
fn difference_cells(comparison: &Comparison) -> [String; 2] {
    let Some(paired) = &comparison.paired else {
        return ["no seed in common".to_owned(), String::new()];
    };
    let interval = paired.ci95.map(|Interval { lo, hi }| format!(" [{lo:+.4}, {hi:+.4}]"));
    let text = format!("{:+.4}{}", paired.mean_diff, interval.unwrap_or_default());
    [text, p_text(paired.sign_flip_p)]
}

pub(super) fn mean_text(summary: Option<Summary>) -> String {
    let Some(summary) = summary else {
        return "-".to_owned();
    };
    let mean = value_text(summary.mean);
    match summary.ci95 {
        Some(interval) => format!("{mean} ± {}", value_text((interval.hi - interval.lo) / 2.0)),
        None => mean,
    }
}

fn test_values(plan: &Plan, analysis: &Analysis) -> String {
    let verdict = &analysis.verdict;
    let mut grid = Grid::new(&[
        ("configuration", Align::Left),
        ("n", Align::Right),
        (test_name(plan.compare.metric), Align::Left),
        ("difference [95%]", Align::Left),
        ("p", Align::Right),
        ("p (Holm)", Align::Right),
    ]);
    for (_, index) in &verdict.best {
        let results = &analysis.configurations[*index];
        let mut comparisons = verdict.arms.iter().filter_map(|a| a.comparison.as_ref());
        let comparison = comparisons.find(|c| c.configuration == *index);
        let [difference, p] = match comparison {
            Some(comparison) => difference_cells(comparison),
            None => difference(analysis, *index),
        };
        let holm_p = comparison.and_then(|c| c.holm_p).map(p_text);
        grid.row(vec![
            label(&plan.configurations[*index]),
            results.finished().to_string(),
            mean_text(results.test_summary()),
            difference,
            p,
            holm_p.unwrap_or_default(),
        ]);
    }
    grid.text()
}

fn strangers(names: &[String]) -> String {
    let listed: Vec<&str> = names.iter().take(MOST_NAMES).map(String::as_str).collect();
    let more = names.len() - listed.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let runs = if names.len() == 1 { "run" } else { "runs" };
    format!("Kept, but in no table: {} {runs} of another plan, {}{more}.", names.len(), listed.join(", "))
}
