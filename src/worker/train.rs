//! The seam between a worker and what trains.

use crate::event::Failure;
use crate::protocol::Assignment;
use crate::trainer::{Progress, Run};

/// Trains one attempt, a step a call.
pub trait Train {
    /// Trains the next step.
    ///
    /// # Errors
    /// The attempt is over.
    fn advance(&mut self) -> Result<Progress, Failure>;

    /// The built-in trainer's run, which can be saved and restored; none of a trainer that cannot.
    fn built_in(&mut self) -> Option<&mut Run> {
        None
    }

    /// Work of `step` with the evaluation that belongs to it, in plain steps: what its time is judged by.
    fn work(&self, step: u64) -> f64;
}

/// Makes trainers; keeps what outlives a run, such as open corpora.
pub trait Trainers {
    /// `cpu` or `cuda`.
    fn backend(&self) -> &str;

    /// Vector instructions in use.
    fn simd(&self) -> &str;

    /// A trainer for this attempt.
    ///
    /// # Errors
    /// The run cannot be trained as configured.
    fn begin(&mut self, assignment: &Assignment) -> Result<Box<dyn Train>, Failure>;
}
