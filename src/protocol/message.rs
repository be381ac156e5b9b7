//! The messages.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::event::{Device, Failure, Phase};
use crate::plan::{CheckpointEvery, CorpusInfo, Mark, Rest};
use crate::run::{Outcome, Row, RunId};
use crate::settings::Settings;

/// Raised whenever a message changes; both sides must have the same.
pub const VERSION: u32 = 5;

/// Exit status of a worker that does not hear of its controller any more. Nobody is to blame for it.
pub const ORPHANED: u8 = 3;

/// Exit status of a worker whose die was lost: its controller does not use the die any more.
pub const DIE_LOST: u8 = 4;

/// Which attempt, and in which slot of the worker: what makes a late or stray message recognisable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Slot of the worker, from 0.
    pub lane: u32,
    /// Run.
    pub run: RunId,
    /// Attempt, from 1.
    pub attempt: u32,
}

/// What a worker says first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`VERSION`] of the worker.
    pub version: u32,
    /// Its process.
    pub pid: u32,
    /// Die that it was started for.
    pub die: usize,
    /// Cores that the kernel says it is pinned to.
    pub cores: Vec<usize>,
    /// `cpu` or `cuda`.
    pub backend: String,
    /// Vector instructions in use.
    pub simd: String,
    /// Attempts that it can train at once.
    pub lanes: u32,
    /// The GPU that it really opened; none of a worker on the CPU.
    #[serde(default)]
    pub device: Option<Device>,
}

/// An attempt to train.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// Lane, run and attempt.
    pub place: Place,
    /// Folder of the attempt, absolute; it exists and is this attempt's alone.
    pub folder: PathBuf,
    /// What the run is configured by.
    pub settings: Settings,
    /// The corpus that was planned with, which must be the one that is found.
    pub corpus: CorpusInfo,
    /// How often the run is saved.
    pub checkpoint_every: CheckpointEvery,
    /// Where it rests; to its end where absent.
    #[serde(default)]
    pub rest: Option<Rest>,
}

/// From the controller to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToWorker {
    /// Train this in a lane that is free.
    Assign {
        /// What to train.
        assignment: Box<Assignment>,
    },
    /// Stop this attempt after the step in hand, with a checkpoint. An attempt that has ended meanwhile is no error.
    Cancel {
        /// The attempt.
        place: Place,
    },
    /// Leave as soon as no attempt is left; nothing is assigned any more.
    Shutdown,
    /// The controller lives. Sent all the time: a worker that does not hear of its controller for too long saves what it has in
    /// hand and leaves.
    Beat,
}

/// How far an attempt is, once a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pulse {
    /// The attempt.
    pub place: Place,
    /// What it does.
    pub phase: Phase,
    /// Last step that was trained.
    pub step: Option<u64>,
    /// Milliseconds since that step, or since the training began.
    pub still_ms: u64,
    /// Milliseconds that the step in hand usually takes, by the median of the last ones; absent before there is one.
    pub usual_ms: Option<u64>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case", deny_unknown_fields)]
pub enum End {
    /// With a result; its log is closed.
    Result {
        /// The result.
        outcome: Box<Outcome>,
    },
    /// It rests where it was to, and is saved.
    Rested {
        /// The run as it was there.
        mark: Mark,
    },
    /// It was cancelled.
    Cancelled {
        /// Last step that was trained.
        step: Option<u64>,
    },
    /// It failed.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// It was never begun: the worker has fewer lanes now than when it was assigned.
    Returned,
}

/// From a worker to its controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum FromWorker {
    /// The first message, once.
    Hello {
        /// Who it is.
        hello: Hello,
    },
    /// A logged step; it is in the attempt's log.
    Row {
        /// The attempt.
        place: Place,
        /// The step.
        row: Row,
    },
    /// The worker can train another number of attempts at once from now on. Attempts in lanes beyond it are returned.
    Lanes {
        /// How many.
        count: u32,
        /// Why, in words.
        why: String,
    },
    /// There were checkpoints of earlier attempts. At most once, before any row.
    Resumed {
        /// The attempt.
        place: Place,
        /// Steps that are done; absent where none of the checkpoints could be used.
        steps: Option<u64>,
        /// Why newer checkpoints could not be used.
        refused: Vec<String>,
    },
    /// A checkpoint is on disk: the attempt can go on from after this step.
    Checkpointed {
        /// The attempt.
        place: Place,
        /// Last step that it holds.
        step: u64,
    },
    /// There was no room for a checkpoint; training goes on.
    NotSaved {
        /// The attempt.
        place: Place,
        /// What could not be written, and why.
        message: String,
    },
    /// The attempt is over and its lane is free. Exactly once for each assignment.
    Ended {
        /// The attempt.
        place: Place,
        /// How.
        end: End,
    },
    /// Once a second, whatever the worker does.
    Beat {
        /// One for each attempt in hand.
        pulses: Vec<Pulse>,
    },
}
