//! The seam between a worker and what trains.

use crate::event::{Device, Failure};
use crate::protocol::Assignment;
use crate::settings::Settings;
use crate::trainer::{Progress, Snapshot};

/// What became of the attempts that moved: the lane of each, and its progress or why it failed.
pub type Moved = Vec<(u32, Result<Progress, Failure>)>;

/// Trains attempts, one in each of its lanes; keeps what outlives a run, such as open corpora and buffers.
pub trait Trainer {
    /// `cpu` or `cuda`.
    fn backend(&self) -> &str;

    /// Vector instructions in use.
    fn simd(&self) -> &str;

    /// The GPU that it opened.
    fn device(&self) -> Option<Device> {
        None
    }

    /// Attempts that it can train at once.
    fn lanes(&self) -> u32 {
        1
    }

    /// Makes ready for attempts like this one. Called with all lanes free; [`Trainer::lanes`] may be another afterwards, and
    /// then the text says why.
    ///
    /// # Errors
    /// The run cannot be trained as configured.
    fn prepare(&mut self, assignment: &Assignment) -> Result<Option<String>, Failure>;

    /// Whether the attempt can be trained beside those that are in the other lanes.
    fn fits(&self, assignment: &Assignment) -> bool;

    /// Puts an attempt in its lane, which is free: at its beginning, or as it was when it was saved.
    ///
    /// # Errors
    /// The run cannot be trained as configured.
    fn begin(&mut self, assignment: &Assignment, from: Option<Snapshot>) -> Result<(), Failure>;

    /// Moves every attempt on by a step or more. The lane of one that ended or failed is free afterwards.
    ///
    /// # Errors
    /// All attempts are lost, and so is what they were trained with.
    fn advance(&mut self) -> Result<Moved, Failure>;

    /// Whether attempts can be saved.
    fn saves(&self) -> bool {
        true
    }

    /// Copies all that the future of a lane's attempt depends on; none where there is nothing to save.
    ///
    /// # Errors
    /// All attempts are lost.
    fn snapshot(&mut self, lane: u32) -> Result<Option<Snapshot>, Failure>;

    /// The weights that a lane's attempt ended with, until the lane is filled again.
    ///
    /// # Errors
    /// All attempts are lost.
    fn weights(&mut self, lane: u32) -> Result<Vec<f32>, Failure>;

    /// Gives a lane's attempt up.
    ///
    /// # Errors
    /// All attempts are lost.
    fn empty(&mut self, lane: u32) -> Result<(), Failure>;

    /// Work of `step` with the evaluation that belongs to it, in plain steps: what its time is judged by.
    fn work(&self, lane: u32, step: u64) -> f64;
}

/// Work of a step of the built-in trainer, in plain steps; `tests` is the number of test windows. A window that is only evaluated
/// counts like one that is trained, which is more than it takes.
pub(super) fn work(settings: &Settings, tests: usize, step: u64) -> f64 {
    let last = step + 1 == settings.steps;
    let windows = if step >= settings.steps {
        2 * settings.eval_batches + tests as u64
    } else if step.is_multiple_of(settings.eval_every) || last {
        settings.eval_batches
    } else {
        0
    };
    1.0 + windows as f64 / (settings.batch * settings.accum_steps) as f64
}
