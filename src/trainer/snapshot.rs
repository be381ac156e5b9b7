//! A run between two steps.

use serde::{Deserialize, Serialize};

use super::clock::Elapsed;
use super::run::Run;
use crate::optim::{PanelState, State};
use crate::run::Best;

/// How far a run is: all that its future depends on, but for the arrays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progressed {
    /// Steps done.
    pub steps: u64,
    /// Steps whose update was skipped, of those.
    pub skipped: u64,
    /// Smallest logged validation bits per byte.
    pub best_val_bpb: Option<Best>,
    /// Largest logged validation accuracy.
    pub best_val_acc: Option<Best>,
    /// The step whose evaluation was not finite, and its loss: the run ends at the next call.
    pub bad: Option<BadStep>,
    /// Time so far.
    pub elapsed: Elapsed,
}

/// A step whose evaluation was not finite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BadStep {
    /// The step.
    pub step: u64,
    /// Its loss in nats.
    #[serde(with = "crate::num")]
    pub loss: f64,
}

/// Everything that a run's future depends on, besides its settings and its corpus.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// How far it is.
    pub progress: Progressed,
    /// Weights, moments, accumulators and scales.
    pub state: State,
    /// The ternary weights of the last logged step.
    pub panel: PanelState,
}

impl Run {
    /// Copies everything that the run's future depends on.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { progress: self.progress(), state: self.state().clone(), panel: self.panel().clone() }
    }
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
