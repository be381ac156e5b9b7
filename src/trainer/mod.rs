//! Trains one run, a step at a time.

use crate::run::{Outcome, Row};

/// What one call of `advance` did.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Trained a step that is not logged.
    Stepped {
        /// The step, from 0.
        step: u64,
    },
    /// Trained and evaluated a logged step.
    Logged(Row),
    /// The run ended: all steps trained and the final evaluation done, or diverged.
    Ended(Box<Outcome>),
}
