//! From files to a status.

use std::collections::HashMap;

use rayon::prelude::*;

use super::forecast::Forecast;
use super::{Counts, Held, Life, Standing, Status, Trouble};
use crate::event::{Event, rfc3339};
use crate::plan::{Configuration, Metric, Plan, PlannedRun};
use crate::report::{better, metric_name, value_of};
use crate::run::Ending;
use crate::stats::Better;
use crate::store::{Holder, LeaseState, LeaseView, ReadJournal, RunState, StoreError, View, read_journals};

/// Failures that are shown.
const MOST_FAILURES: usize = 5;

/// Beats that were seen at earlier looks, so that one that moves shows a life that cannot be seen otherwise.
#[derive(Debug, Default)]
pub struct Beats(HashMap<String, u64>);

impl Beats {
    /// Whether a controller's beat moved since the look before.
    fn moved(&mut self, controller: &str, beat: u64) -> bool {
        self.0.insert(controller.to_owned(), beat).is_some_and(|before| before != beat)
    }
}

/// Looks at a results folder.
///
/// # Errors
/// A file is there and cannot be read.
pub fn gather(view: &View, plan: &Plan, beats: &mut Beats) -> Result<Status, StoreError> {
    let states = view.glance(plan)?;
    let journals = read_journals(view.layout())?;
    let mut counts = Counts { planned: plan.runs.len(), ..Counts::default() };
    let mut open = Vec::new();
    for (run, state) in plan.runs.iter().zip(&states) {
        match state {
            RunState::Ended(result) => match result.outcome.ending {
                Ending::Finished(_) => counts.finished += 1,
                Ending::Diverged { .. } => counts.diverged += 1,
            },
            RunState::Failed { failure, .. } if failure.for_good => counts.failed += 1,
            RunState::Stopped { .. } => counts.stopped += 1,
            RunState::Failed { .. } | RunState::Unfinished => open.push(run),
        }
    }
    let leases: Result<Vec<_>, StoreError> =
        open.par_iter().filter(|run| view.is_begun(run)).map(|&run| Ok((run, view.lease(run)?))).collect();
    let mut held = Vec::new();
    for (run, lease) in leases? {
        if let Some(lease) = lease {
            held.extend(holding(view, run, lease, beats)?);
        }
    }
    counts.held = held.len();
    counts.todo = open.len() - held.len();
    let forecast = Forecast::of(plan, &states, &held);
    Ok(Status {
        time: rfc3339(crate::clock::now()),
        sweep: plan.name.clone(),
        results: view.layout().dir().to_owned(),
        runs: counts,
        done: forecast.done(),
        eta_sec: forecast.seconds(&held),
        failures: failures(&journals),
        standing: standing(plan, &states),
        metric: metric_name(plan.compare.metric).to_owned(),
        warnings: journals.into_iter().flat_map(|journal| journal.warnings).collect(),
        held,
    })
}

/// Who holds a run, unless the lease was given back.
fn holding(view: &View, run: &PlannedRun, lease: LeaseView, beats: &mut Beats) -> Result<Option<Held>, StoreError> {
    let here = Holder::this_process();
    let life = match lease.state {
        LeaseState::Released => return Ok(None),
        LeaseState::Dead => Life::Dead,
        LeaseState::Unreadable => Life::Unknown,
        LeaseState::Held { beat } => {
            let seen = lease.holder.as_ref().is_some_and(|holder| holder.is_seen_from(&here));
            let moved = beat.is_some_and(|beat| beats.moved(&lease.controller, beat));
            if seen || moved { Life::Alive } else { Life::Unknown }
        }
    };
    let (attempt, row) = view.last_logged(run)?;
    let (host, pid) = lease.holder.map_or_else(|| ("unknown".to_owned(), 0), |holder| (holder.host, holder.pid));
    Ok(Some(Held {
        run: run.id.to_string(),
        label: run.label(),
        controller: lease.controller,
        host,
        pid,
        life,
        since: lease.since,
        attempt,
        step: row.map_or(0, |row| row.step + 1),
        steps: run.settings.steps,
        val_bpb: row.map(|row| row.val_bpb).filter(|bpb| bpb.is_finite()),
    }))
}

/// The last failed attempts of all controllers.
fn failures(journals: &[ReadJournal]) -> Vec<Trouble> {
    let of = |record: &crate::store::Record| match &record.event {
        Event::AttemptFailed { at, failure, again } => Some(Trouble {
            time: record.time.clone(),
            run: at.run.to_string(),
            label: at.label.clone(),
            attempt: at.attempt,
            cause: failure.cause.to_string(),
            message: failure.message.clone(),
            for_good: !again,
        }),
        _ => None,
    };
    let mut failures: Vec<Trouble> = journals.iter().flat_map(|journal| &journal.records).filter_map(of).collect();
    // Stamps of one form and one zone: their order is that of their text.
    failures.sort_by(|a, b| a.time.cmp(&b.time));
    failures.split_off(failures.len().saturating_sub(MOST_FAILURES))
}

/// The best configuration of each arm, in the order of the plan.
fn standing(plan: &Plan, states: &[RunState]) -> Vec<Standing> {
    let mut best: Vec<Standing> = Vec::new();
    for configuration in &plan.configurations {
        let Some(one) = mean_of(configuration, states, plan.compare.metric) else {
            continue;
        };
        match best.iter_mut().find(|other| other.arm == one.arm) {
            None => best.push(one),
            Some(other) => {
                let is_better = match better(plan.compare.metric) {
                    Better::Lower => one.mean < other.mean,
                    Better::Higher => one.mean > other.mean,
                };
                if is_better {
                    *other = one;
                }
            }
        }
    }
    best
}

fn mean_of(configuration: &Configuration, states: &[RunState], metric: Metric) -> Option<Standing> {
    let finished = configuration.runs.iter().filter_map(|&run| states[run].result());
    let values: Vec<f64> = finished.filter_map(|result| value_of(&result.outcome, metric)).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let axes: Vec<String> = configuration.axes.iter().map(|axis| format!("{}={}", axis.axis, axis.value)).collect();
    mean.is_finite().then(|| Standing {
        arm: configuration.arm.clone(),
        configuration: axes.join(" "),
        mean,
        seeds: values.len(),
        planned: configuration.runs.len(),
    })
}
