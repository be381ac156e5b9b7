//! Trains one run, a step at a time.
//!
//! [`Run`] owns everything that a run's future depends on; [`Run::advance`] moves it by one step, so that whoever
//! drives it can stop, beat or checkpoint between steps. Nothing here knows of sweeps, files or processes.

pub(crate) mod clock;
pub mod ledger;
mod run;

pub use run::{Run, TrainError};

use crate::run::{Outcome, Row};

/// What one call of [`Run::advance`] did.
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
