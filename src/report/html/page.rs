//! The page: what it is made from, its head, and its sections in order.

use std::collections::BTreeSet;

use super::super::analysis::Analysis;
use super::super::closing::best_first;
use super::super::verdict::arms_of;
use super::colours::Looks;
use super::curves::Curve;
use super::events::Controller;
use super::text::esc;
use super::{axes, health, hero, learning, paired, reproduce, stops, table, timeline, troubles};
use crate::plan::Plan;
use crate::store::{Loaded, View};

/// That a sweep is at work, as of when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// When its state was read, UTC, RFC 3339.
    pub as_of: String,
    /// How often the page is made anew, in words.
    pub every: String,
}

/// Configurations whose curves are drawn.
const MOST_CURVES: usize = 16;

/// What a page is made from.
pub(in crate::report) struct Source<'a> {
    pub(in crate::report) view: &'a View,
    pub(in crate::report) plan: &'a Plan,
    pub(super) loaded: &'a Loaded,
    pub(super) analysis: &'a Analysis,
    /// Whether the sweep is at work.
    pub(super) running: Option<Running>,
    /// What happened when, by controller.
    pub(super) controllers: Vec<Controller>,
    /// Events that could not be read, in words.
    pub(super) left_out: Vec<String>,
    /// The sweep file, verbatim.
    pub(super) sweep_toml: String,
}

impl Source<'_> {
    /// Whether a configuration is its arm's best.
    pub(super) fn is_best(&self, configuration: usize) -> bool {
        self.analysis.verdict.best.iter().any(|(_, index)| *index == configuration)
    }
}

/// The configurations whose curves are drawn, in the plan's order: the best of each arm in turn.
pub(in crate::report) fn shown(plan: &Plan, analysis: &Analysis) -> Vec<usize> {
    let order = best_first(plan, analysis);
    let mut queues: Vec<Vec<usize>> = Vec::new();
    for arm in arms_of(plan) {
        queues.push(order.iter().copied().filter(|c| plan.configurations[*c].arm == arm).collect());
    }
    let longest = queues.iter().map(Vec::len).max().unwrap_or(0);
    let in_turn = (0..longest).flat_map(|rank| queues.iter().filter_map(move |queue| queue.get(rank).copied()));
    let mut shown: Vec<usize> = in_turn.take(MOST_CURVES).collect();
    shown.sort_unstable();
    shown
}

/// The whole page.
pub(super) fn page(source: &Source, curves: &[Curve]) -> String {
    let sections = [
        hero::section(source),
        table::section(source),
        learning::section(source, curves),
        axes::section(source),
        paired::section(source),
        health::section(source, curves),
        stops::section(source),
        troubles::section(source),
        timeline::section(source),
        reproduce::section(source),
    ];
    let sections = sections.join("\n");
    let name = esc(&source.plan.name);
    let (style, script) = (include_str!("style.css"), include_str!("script.js"));
    let rules = Looks::of(source.plan).rules(&configurations_of(&sections));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{name}: diesweep report</title>\n<link rel=\"icon\" href=\"data:,\">\n\
         <style>\n{style}{rules}\n</style>\n</head>\n<body>\n<main>\n{sections}\n</main>\n\
         <script>\n{script}</script>\n</body>\n</html>\n"
    )
}

/// The configurations whose classes stand in a text of HTML.
fn configurations_of(html: &str) -> Vec<usize> {
    let number = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    let numbers: BTreeSet<usize> = html.split("class=\"k").skip(1).filter_map(number).collect();
    numbers.into_iter().collect()
}
