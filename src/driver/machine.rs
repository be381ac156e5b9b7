//! What a run is computed on: threads of the CPU, or a GPU with one lane.

use std::rc::Rc;
use std::sync::Arc;

use super::train::DriverError;
use crate::backend::cpu::team::Team;
use crate::backend::cuda::die::Die;
use crate::backend::cuda::lanes::Lanes;
use crate::data::Corpus;
use crate::settings::Settings;
use crate::trainer::{Profile, Progress, Run, Snapshot};

/// Steps between two looks at whether the run is to stop, on a GPU.
const TURN: u64 = 32;

/// Where to compute.
pub enum Machine {
    /// On the CPU, with these threads.
    Cpu(Arc<Team>),
    /// On a GPU; the threads form initial weights.
    Cuda(Rc<Die>, Arc<Team>),
}

/// A run on a machine.
pub(super) enum Going {
    Cpu(Box<Run>),
    /// In the only lane; and the run as it was after its last step, once it is there.
    Cuda(Box<Lanes>, Option<Box<Snapshot>>),
}

impl Going {
    /// A run before its first step, or as it was saved.
    pub(super) fn begin(
        machine: Machine,
        settings: &Settings,
        corpus: &Corpus,
        from: Option<Snapshot>,
    ) -> Result<Self, DriverError> {
        match machine {
            Machine::Cpu(team) => {
                let mut run = Run::new(settings, corpus.clone(), team, None)?;
                if let Some(snapshot) = from {
                    run.restore(snapshot);
                }
                Ok(Self::Cpu(Box::new(run)))
            }
            Machine::Cuda(die, team) => {
                let mut lanes = Lanes::new(die, settings, corpus.clone(), 1, team)?;
                match &from {
                    Some(snapshot) => lanes.resume(0, settings, snapshot)?,
                    None => lanes.fill(0, settings)?,
                }
                // A run that was saved after its last step ends without another one.
                let last = from.filter(|snapshot| snapshot.progress.steps == settings.steps).map(Box::new);
                Ok(Self::Cuda(Box::new(lanes), last))
            }
        }
    }

    /// Moves it on by a step or more. `keeps` is whether it will be saved.
    pub(super) fn advance(&mut self, steps: u64, keeps: bool) -> Result<Vec<Progress>, DriverError> {
        match self {
            Self::Cpu(run) => Ok(vec![run.advance()]),
            Self::Cuda(lanes, last) => {
                let moved = lanes.advance_at_most(TURN)?;
                let over = |progress: &Progress| matches!(progress, Progress::Logged(row) if row.step + 1 == steps);
                if keeps && moved.iter().any(|(_, progress)| over(progress)) {
                    *last = lanes.snapshot(0)?.map(Box::new);
                }
                Ok(moved.into_iter().map(|(_, progress)| progress).collect())
            }
        }
    }

    /// The run as it is; none where a GPU's has diverged, whose lane is empty then.
    pub(super) fn snapshot(&self) -> Result<Option<Snapshot>, DriverError> {
        match self {
            Self::Cpu(run) => Ok(Some(run.snapshot())),
            Self::Cuda(lanes, last) => Ok(lanes.snapshot(0)?.or_else(|| last.as_deref().cloned())),
        }
    }

    /// Times the phases of the next steps.
    pub(super) fn profile(&mut self, steps: u64) -> Result<(), DriverError> {
        match self {
            Self::Cpu(run) => {
                run.profile(steps);
                Ok(())
            }
            Self::Cuda(..) => Err(DriverError::NoProfile),
        }
    }

    /// The profile, once it is there.
    pub(super) fn profiled(&mut self) -> Option<Profile> {
        match self {
            Self::Cpu(run) => run.profiled(),
            Self::Cuda(..) => None,
        }
    }
}
