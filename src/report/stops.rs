//! Early stopping in words.

use super::columns::number;
use super::metric::metric_name;
use super::wording::label;
use crate::plan::{Decision, Plan, Standing, StopKind};
use crate::store::{Loaded, RunState, Stops};

/// Arms and configurations that a note lists.
const MOST_LISTED: usize = 8;

/// Notes for whoever reads a verdict: that runs were stopped early, by which rule, and how many.
pub(super) fn notes(plan: &Plan, loaded: &Loaded) -> Vec<String> {
    let (Some(rule), Some(stops)) = (&plan.stop, &loaded.stops) else { return Vec::new() };
    let stopped = loaded.states.iter().filter(|state| matches!(state, RunState::Stopped { .. })).count();
    let of = format!("{stopped} of {} runs", plan.runs.len());
    if let StopKind::Target { .. } = rule.kind {
        return vec![
            format!("early stopping was on: {rule}; {of} were stopped there, and are in no mean"),
            format!("steps to the target: {}", to_target(plan, stops)),
        ];
    }
    let mut notes = vec![format!(
        "early stopping was on: {rule}; {of} were stopped, and are in no mean: a stopped configuration lost to others of its own arm on \
         validation data, before its end"
    )];
    let failed: usize = stops.decisions.rungs.iter().flat_map(|rung| &rung.standings).map(|s| s.failed).sum();
    if failed > 0 {
        notes.push(format!("early stopping judged without runs that had failed, {failed} times"));
    }
    notes
}

/// By configuration: how many runs reached the target, and after how many steps.
fn to_target(plan: &Plan, stops: &Stops) -> String {
    let one = |configuration: &crate::plan::Configuration| {
        let steps = configuration.runs.iter().filter_map(|&run| Some(stops.courses[run].marks.first()?.steps));
        let steps: Vec<u64> = steps.collect();
        let (reached, seeds) = (steps.len(), configuration.runs.len());
        let mean = steps.iter().sum::<u64>() as f64 / reached as f64;
        let name = label(configuration);
        match reached {
            0 => format!("{name} not reached by any of {seeds}"),
            _ => format!("{name} {mean:.1} on average over {reached} of {seeds}"),
        }
    };
    let mut parts: Vec<String> = plan.configurations.iter().take(MOST_LISTED).map(one).collect();
    if plan.configurations.len() > MOST_LISTED {
        parts.push("and so on in the report and in comparison.csv".to_owned());
    }
    parts.join("; ")
}

/// A standing's value as the report shows it.
pub(super) fn value_of(standing: &Standing) -> String {
    match standing.value {
        None => "failed".to_owned(),
        Some(value) if value.is_infinite() => "diverged".to_owned(),
        Some(value) => format!("{value:.5}"),
    }
}

/// What a rung's decision was about, in words.
pub(super) fn heading(plan: &Plan, decision: &Decision) -> String {
    let metric = plan.stop.as_ref().map_or("", |rule| metric_name(rule.metric));
    let gone = decision.standings.iter().filter(|standing| !standing.goes_on).count();
    let (arm, rung, all) = (&decision.arm, number(decision.rung as f64), decision.standings.len());
    let rung = rung.trim_end_matches(".0");
    format!("{arm}, after {rung} steps: {gone} of {all} configurations stopped, by mean {metric}")
}
