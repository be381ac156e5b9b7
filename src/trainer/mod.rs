//! Trains one run, a step at a time.
//!
//! [`Run`] owns everything that a run's future depends on; [`Run::advance`] moves it by one step, so that whoever
//! drives it can stop, beat or checkpoint between steps: [`Run::snapshot`] copies all that, and [`Run::restore`] goes
//! on from it. Nothing here knows of sweeps, files or processes.

pub(crate) mod clock;
pub mod ledger;
mod profile;
mod run;
mod snapshot;

pub use clock::Elapsed;
pub use profile::{Phase, Profile};
pub use run::{Run, TrainError};
pub use snapshot::{BadStep, Progressed, Snapshot};

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

#[cfg(test)]
mod options_tests;
