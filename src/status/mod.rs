//! How a sweep stands, from its files alone: running or not, and seen from any host.
//!
//! [`gather`] reads a results folder into a [`Status`]; [`text`](Status::text) and serde print it. Nothing is written, and no process is
//! asked.

mod forecast;
mod gather;
mod text;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde::Serialize;

pub use gather::{Beats, gather};

/// A sweep at a moment. docs/status.md describes it as JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// When it was gathered: UTC, RFC 3339.
    pub time: String,
    /// Name of the sweep.
    pub sweep: String,
    /// Results folder.
    pub results: PathBuf,
    /// Runs by state.
    pub runs: Counts,
    /// Share of the training steps that are done, in `[0, 1]`.
    pub done: f64,
    /// Seconds to go at the speeds measured so far with as many runs at once as now; absent where nothing is measured yet
    /// or nobody works on it.
    pub eta_sec: Option<f64>,
    /// Runs that are held, by the order of the plan.
    pub held: Vec<Held>,
    /// The last failures, the latest last.
    pub failures: Vec<Trouble>,
    /// The best configuration of each arm so far.
    pub standing: Vec<Standing>,
    /// Metric of the standing.
    pub metric: String,
    /// What could not be read, in words.
    pub warnings: Vec<String>,
}

/// Runs by state; each run of the plan has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All runs of the plan.
    pub planned: usize,
    /// Nobody holds them.
    pub todo: usize,
    /// Somebody holds them.
    pub held: usize,
    /// All steps are trained.
    pub finished: usize,
    /// Their loss was not finite, or beyond the ceiling: a result too.
    pub diverged: usize,
    /// Given up.
    pub failed: usize,
    /// Stopped early by the sweep's rule.
    pub stopped: usize,
}

/// What is known of a process that holds a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// It is there, or its beat moved while it was watched.
    Alive,
    /// It is gone.
    Dead,
    /// It cannot be seen from here.
    Unknown,
}

/// A run that somebody holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
    /// Run.
    pub run: String,
    /// The run in words.
    pub label: String,
    /// Controller.
    pub controller: String,
    /// Its host.
    pub host: String,
    /// Its process on that host.
    pub pid: u32,
    /// Whether it lives.
    pub life: Life,
    /// Since when it holds the run, by its own clock.
    pub since: String,
    /// Number of the attempt; 0 before there is one.
    pub attempt: u32,
    /// Steps that are trained, as far as the log tells.
    pub step: u64,
    /// Steps that the run has.
    pub steps: u64,
    /// Validation bits per byte of the last logged step.
    pub val_bpb: Option<f64>,
}

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trouble {
    /// When its controller noticed, by its own clock.
    pub time: String,
    /// Run.
    pub run: String,
    /// The run in words.
    pub label: String,
    /// Number of the attempt.
    pub attempt: u32,
    /// Kind of failure.
    pub cause: String,
    /// What happened.
    pub message: String,
    /// Whether the run was given up with it.
    pub for_good: bool,
}

/// An arm's best configuration by the mean over the seeds that are finished.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// Arm.
    pub arm: String,
    /// Its axes, `lr=0.001 target_step=0.003`; empty for an arm without.
    pub configuration: String,
    /// Mean of the metric.
    pub mean: f64,
    /// Seeds that are finished.
    pub seeds: usize,
    /// Seeds that are planned.
    pub planned: usize,
}
