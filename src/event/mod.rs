//! What happens in a sweep, as one public type: the console, `--json` and `events/<controller>.jsonl` are its consumers.

mod failure;
mod halt;
mod stamp;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use failure::{Cause, Failure};
pub use halt::{Halt, signal_name};
pub use stamp::{Stamped, rfc3339};

use crate::run::{Outcome, Row, RunId};

/// What a run had come to before a controller began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Past {
    /// It is to be trained.
    Open,
    /// It has a result.
    Finished,
    /// The rule of early stopping has it trained no further.
    Stopped,
    /// It was given up after this failure, and is left so.
    Failed(Failure),
}

/// What a worker or a lane of it is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Opening the corpus and building the model.
    Opening,
    /// Training and evaluating.
    Training,
    /// Closing the log.
    Closing,
}

/// A GPU as a worker opened it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// UUID, `GPU-…` or `MIG-…`.
    pub uuid: String,
    /// PCI bus, `00000000:04:00.0`.
    pub pci: String,
    /// Model.
    pub name: String,
}

/// An attempt at a run, as events name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    /// Run.
    pub run: RunId,
    /// Attempt, from 1.
    pub attempt: u32,
    /// Die that it is on.
    pub die: usize,
    /// The run in words: arm, axis values and seed.
    pub label: String,
}

/// How a configuration stood where the rule of early stopping compared it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RungStanding {
    /// Its axes, `lr=0.001 target_step=0.003`.
    pub configuration: String,
    /// Mean over its seeds; infinite if one had diverged, absent if all had failed.
    #[serde(with = "crate::num")]
    pub value: Option<f64>,
    /// Seeds that count.
    pub seeds: usize,
    /// Seeds that had failed for good.
    pub failed: usize,
    /// Whether it goes on.
    pub goes_on: bool,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// The controller knows what it will do.
    SweepStarted {
        /// Name of the sweep.
        sweep: String,
        /// Results folder.
        results: PathBuf,
        /// Runs of the plan.
        runs: usize,
        /// Runs that had a result before.
        finished: usize,
        /// Runs that were given up before, and are left so.
        #[serde(default)]
        failed: usize,
        /// Runs that were stopped early before.
        #[serde(default)]
        stopped: usize,
        /// Dies that it will use.
        dies: usize,
    },
    /// A worker is ready.
    WorkerReady {
        /// Its die.
        die: usize,
        /// Its process.
        pid: u32,
        /// Cores that it is really pinned to.
        cores: Vec<usize>,
        /// `cpu` or `cuda`.
        backend: String,
        /// Vector instructions in use.
        simd: String,
        /// Attempts that it can train at once.
        #[serde(default = "one")]
        lanes: u32,
        /// The GPU that it opened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<Device>,
    },
    /// A worker trains another number of attempts at once from now on.
    WorkerLanes {
        /// Its die.
        die: usize,
        /// How many.
        lanes: u32,
        /// Why.
        why: String,
    },
    /// A worker is gone, and not because it was told to leave.
    WorkerLost {
        /// Its die.
        die: usize,
        /// Attempts that it had in hand; each is told of besides.
        attempts: usize,
        /// Why.
        failure: Failure,
    },
    /// A die is not used any more.
    DieSetAside {
        /// The die.
        die: usize,
        /// Its UUID, of a GPU.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uuid: Option<String>,
        /// Its last failure.
        failure: Failure,
    },
    /// An attempt began.
    AttemptStarted {
        /// Attempt.
        at: At,
        /// Steps that the run has.
        steps: u64,
        /// Training tokens of a step.
        tokens_per_step: u64,
        /// Shape key's number.
        shape: usize,
    },
    /// A step was logged.
    Logged {
        /// Attempt.
        at: At,
        /// The logged step.
        row: Row,
    },
    /// A worker told how far it is.
    Beat {
        /// Attempt.
        at: At,
        /// What it does.
        phase: Phase,
        /// Last step that was trained.
        step: Option<u64>,
    },
    /// A run has a result, and it is on disk.
    RunFinished {
        /// Attempt.
        at: At,
        /// The result.
        outcome: Box<Outcome>,
    },
    /// An attempt failed.
    AttemptFailed {
        /// Attempt.
        at: At,
        /// Why.
        failure: Failure,
        /// Whether the run will be tried again.
        again: bool,
    },
    /// An attempt found checkpoints of earlier ones.
    AttemptResumed {
        /// Attempt.
        at: At,
        /// Steps that are done; absent where none of the checkpoints could be used.
        steps: Option<u64>,
        /// Why newer checkpoints could not be used.
        refused: Vec<String>,
    },
    /// A checkpoint is on disk.
    Checkpointed {
        /// Attempt.
        at: At,
        /// Last step that it holds.
        step: u64,
    },
    /// There was no room for a checkpoint; training goes on.
    NotSaved {
        /// Attempt.
        at: At,
        /// What could not be written, and why.
        message: String,
    },
    /// The disk is full: the sweep waits for room.
    DiskFull {
        /// What could not be written, and why.
        message: String,
        /// Bytes that are needed at the least.
        needed: u64,
        /// Seconds after which it stops.
        patience: u64,
    },
    /// There is room again: the sweep goes on.
    DiskFree {
        /// Seconds that it waited.
        waited: u64,
    },
    /// An attempt was given up because the sweep stops; the run goes on from its last checkpoint next time.
    AttemptAbandoned {
        /// Attempt.
        at: At,
    },
    /// A run is not tried again.
    RunFailed {
        /// Run.
        run: RunId,
        /// The run in words.
        label: String,
        /// Attempts that failed.
        attempts: u32,
        /// Failure of the last.
        failure: Failure,
    },
    /// An attempt rests: its run is saved, and waits for others to get as far.
    RunRests {
        /// Attempt.
        at: At,
        /// Steps that are done.
        steps: u64,
    },
    /// The rule of early stopping has decided who goes on.
    RungDecided {
        /// Arm whose configurations were compared.
        arm: String,
        /// The rung, in steps.
        steps: u64,
        /// By which value.
        metric: String,
        /// What was seen, in the order of the plan.
        standings: Vec<RungStanding>,
    },
    /// A run is trained no further, by the rule of early stopping.
    RunStopped {
        /// Run.
        run: RunId,
        /// The run in words.
        label: String,
        /// Steps after which it was judged.
        steps: u64,
        /// By which value.
        metric: String,
        /// The value that it had there.
        #[serde(with = "crate::num")]
        value: f64,
        /// Whether it has reached a target, and not lost to others.
        target: bool,
    },
    /// A run belongs to another controller.
    RunElsewhere {
        /// Run.
        run: RunId,
        /// Who holds it.
        holder: String,
    },
    /// Another controller has published a run's result.
    FinishedElsewhere {
        /// Run.
        run: RunId,
        /// The run in words.
        label: String,
        /// The result.
        outcome: Box<Outcome>,
    },
    /// Another controller has taken over a run that this one was at: the attempt publishes nothing.
    LeaseLost {
        /// Run.
        run: RunId,
        /// The run in words.
        label: String,
        /// Who holds it now.
        holder: String,
    },
    /// An attempt gave another result than the one that is published, which must never be.
    ResultDiffers {
        /// Run.
        run: RunId,
        /// What differs, and where both are.
        message: String,
    },
    /// All that is left is held by other controllers, which are waited for.
    Waiting {
        /// Runs that are left.
        runs: usize,
        /// Who holds them.
        holders: Vec<String>,
    },
    /// This controller cannot prove that it lives: others may take its runs over.
    BeatFailed {
        /// What cannot be written, and why.
        message: String,
    },
    /// A worker left, since it had not heard of this controller for too long; what it had in hand is saved and goes on.
    WorkerLeft {
        /// Its die.
        die: usize,
    },
    /// The sweep stops before its end.
    Stopping {
        /// Why.
        halt: Halt,
    },
    /// The controller is done.
    SweepEnded {
        /// Runs with a result, earlier ones included.
        finished: usize,
        /// Runs that failed.
        failed: usize,
        /// Runs without a result that were not given up.
        left: usize,
        /// Runs that were stopped early.
        #[serde(default)]
        stopped: usize,
        /// Runs whose result this controller published.
        #[serde(default)]
        here: usize,
        /// Runs whose result other controllers published meanwhile.
        #[serde(default)]
        elsewhere: usize,
        /// Seconds since the start.
        wall_sec: f64,
    },
}

const fn one() -> u32 {
    1
}
