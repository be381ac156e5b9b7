//! Runs that were stopped early: the rule, its rungs, and what was decided at each.

use std::fmt::Write;

use super::super::stops::{heading, value_of};
use super::super::wording::label;
use super::page::Source;
use super::text::{count, esc};
use crate::plan::{Decision, StopKind};
use crate::store::{RunState, Stops};

/// Rows of a table.
const MOST_ROWS: usize = 200;

/// The section; nothing for a sweep that stops no run early.
pub(super) fn section(source: &Source) -> String {
    let (Some(rule), Some(stops)) = (&source.plan.stop, &source.loaded.stops) else { return String::new() };
    let stopped = source.loaded.states.iter().filter(|state| matches!(state, RunState::Stopped { .. })).count();
    let mut html = format!(
        "<section id=\"stops\"><h2>Early stopping</h2><p>The rule: {}. It stopped {} of {}; what was stopped is in no mean.</p>",
        esc(&rule.to_string()),
        count(stopped, "run"),
        source.plan.runs.len()
    );
    match rule.kind {
        StopKind::Target { .. } => html += &targets(source, stops),
        _ if stops.decisions.rungs.is_empty() => html += "<p class=\"none\">No rung is decided yet.</p>",
        _ => stops.decisions.rungs.iter().for_each(|decision| html += &rung(source, decision)),
    }
    html + "</section>"
}

fn rung(source: &Source, decision: &Decision) -> String {
    let mut html = format!(
        "<h3>{}</h3><div class=\"scroll\"><table class=\"sortable\"><thead><tr><th scope=\"col\">configuration</th>\
         <th scope=\"col\">mean</th><th scope=\"col\">seeds</th><th scope=\"col\">failed</th><th scope=\"col\">then</th></tr></thead><tbody>",
        esc(&heading(source.plan, decision))
    );
    for standing in decision.standings.iter().take(MOST_ROWS) {
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            esc(&label(&source.plan.configurations[standing.configuration])),
            value_of(standing),
            standing.seeds,
            standing.failed,
            if standing.goes_on { "goes on" } else { "stopped" },
        );
    }
    html += "</tbody></table></div>";
    html + &more(decision.standings.len())
}

/// Steps to the target, run by run.
fn targets(source: &Source, stops: &Stops) -> String {
    let mut html = "<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th scope=\"col\">run</th><th scope=\"col\">steps to \
                    the target</th></tr></thead><tbody>"
        .to_owned();
    for (run, course) in source.plan.runs.iter().zip(&stops.courses).take(MOST_ROWS) {
        let steps = course.marks.first().map_or_else(|| "not reached".to_owned(), |mark| mark.steps.to_string());
        let _ = write!(html, "<tr><th scope=\"row\">{}</th><td>{steps}</td></tr>", esc(&run.label()));
    }
    html += "</tbody></table></div>";
    html + &more(source.plan.runs.len())
}

fn more(rows: usize) -> String {
    match rows.checked_sub(MOST_ROWS) {
        Some(left @ 1..) => format!("<p class=\"sub\">And {left} more.</p>"),
        _ => String::new(),
    }
}
