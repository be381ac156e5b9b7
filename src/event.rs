//! What happens in a sweep, as one public type: the console, `--json` and `events/<controller>.jsonl` are its consumers.

use std::fmt;
use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::duration;
use crate::run::{Outcome, Row, RunId};

/// Why an attempt, a worker or a die failed: what a retry rule can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The trainer refused the settings.
    BadSettings,
    /// The corpus could not be read, or is not the one that was planned.
    Corpus,
    /// The trainer broke a rule of its own (a caught panic).
    Bug,
    /// The host's memory ran out.
    OutOfMemory,
    /// The die's memory ran out.
    OutOfDeviceMemory,
    /// The driver lost the die.
    DeviceLost,
    /// A file of the results folder could not be written.
    Disk,
    /// There was no room for a file of the results folder.
    DiskFull,
    /// Something outside of the sweep told the worker's process to end.
    Preempted,
    /// The worker's process ended by itself.
    Crashed,
    /// The worker gave no sign of life, or its training stood still.
    Hung,
    /// The worker broke the protocol.
    Protocol,
    /// The worker's process could not be started, or left before it was ready.
    Start,
}

impl Cause {
    /// Whether the run is tried again: what another attempt would only repeat is not.
    pub const fn retried(self) -> bool {
        match self {
            Self::BadSettings | Self::Corpus | Self::Bug => false,
            Self::OutOfMemory
            | Self::OutOfDeviceMemory
            | Self::DeviceLost
            | Self::Disk
            | Self::DiskFull
            | Self::Preempted
            | Self::Crashed
            | Self::Hung
            | Self::Protocol
            | Self::Start => true,
        }
    }

    /// Whether the failure uses up one of the run's attempts: what is not the run's doing does not.
    pub const fn counts(self) -> bool {
        !matches!(self, Self::Disk | Self::DiskFull | Self::Preempted)
    }

    /// Whether the die is not used any more from the first such failure on.
    pub const fn ends_die(self) -> bool {
        matches!(self, Self::DeviceLost)
    }

    /// The cause of this name, as [`Display`](fmt::Display) writes it.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.to_string() == name)
    }

    const ALL: [Self; 13] = [
        Self::BadSettings,
        Self::Corpus,
        Self::Bug,
        Self::OutOfMemory,
        Self::OutOfDeviceMemory,
        Self::DeviceLost,
        Self::Disk,
        Self::DiskFull,
        Self::Preempted,
        Self::Crashed,
        Self::Hung,
        Self::Protocol,
        Self::Start,
    ];

    /// Whether the failure counts against the die that it happened on.
    pub const fn blames_die(self) -> bool {
        match self {
            Self::DeviceLost | Self::Crashed | Self::Hung | Self::Protocol | Self::Start => true,
            Self::BadSettings
            | Self::Corpus
            | Self::Bug
            | Self::OutOfMemory
            | Self::OutOfDeviceMemory
            | Self::Disk
            | Self::DiskFull
            | Self::Preempted => false,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadSettings => "bad settings",
            Self::Corpus => "corpus",
            Self::Bug => "bug",
            Self::OutOfMemory => "out of memory",
            Self::OutOfDeviceMemory => "out of device memory",
            Self::DeviceLost => "device lost",
            Self::Disk => "disk",
            Self::DiskFull => "disk full",
            Self::Preempted => "preempted",
            Self::Crashed => "crashed",
            Self::Hung => "hung",
            Self::Protocol => "protocol",
            Self::Start => "start",
        })
    }
}

/// A failure with its cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
#[error("{cause}: {message}")]
pub struct Failure {
    /// Its kind.
    pub cause: Cause,
    /// What happened: a lower-case fragment.
    pub message: String,
}

/// Bytes of a failure's message that are kept: a message must fit a line of the protocol.
const MESSAGE_BYTES: usize = 8 << 10;

impl Failure {
    /// A failure; a message beyond 8 KiB is cut.
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MESSAGE_BYTES {
            let end = (0..=MESSAGE_BYTES).rev().find(|&i| message.is_char_boundary(i));
            message.truncate(end.unwrap_or(0));
            message.push('…');
        }
        Self { cause, message }
    }
}

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

/// Why a sweep stops before its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "why")]
pub enum Halt {
    /// A signal asked for it.
    Signal {
        /// Its number.
        signal: i32,
    },
    /// The first three runs failed with one and the same message.
    FailedAlike {
        /// The failure.
        failure: Failure,
    },
    /// A results file could not be written.
    Disk {
        /// What could not be written, and why.
        message: String,
    },
    /// No die is left.
    NoDies,
    /// The time that the sweep was given is nearly over.
    TimeLimit {
        /// Seconds that it was given.
        seconds: u64,
    },
    /// A run failed for good, and the sweep was to stop at the first that does.
    FailFast {
        /// The run in words.
        label: String,
        /// Its last failure.
        failure: Failure,
    },
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal { signal } => write!(f, "{}", signal_name(*signal)),
            Self::FailedAlike { failure } => {
                write!(f, "the first three runs failed alike: {failure}")
            }
            Self::Disk { message } => f.write_str(message),
            Self::NoDies => f.write_str("every die was set aside"),
            Self::TimeLimit { seconds } => write!(f, "the time limit of {} is near", duration::text(*seconds)),
            Self::FailFast { label, failure } => write!(f, "{label} failed for good: {failure}"),
        }
    }
}

/// `SIGINT` for 2, and so on; `signal 40` for one without a common name.
pub fn signal_name(signal: i32) -> String {
    signal_hook::low_level::signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
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

/// An event and when it happened, as written to a line of JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Stamped<'a> {
    /// UTC, RFC 3339 with milliseconds.
    pub time: String,
    /// What happened.
    #[serde(flatten)]
    pub event: &'a Event,
}

impl<'a> Stamped<'a> {
    /// The event, now.
    pub fn now(event: &'a Event) -> Self {
        Self { time: rfc3339(crate::clock::now()), event }
    }
}

/// A point in time in UTC as RFC 3339 with milliseconds: `2026-11-30T19:48:14.250Z`.
///
/// Days become a date by Howard Hinnant's `civil_from_days`
/// (<https://howardhinnant.github.io/date_algorithms.html>). Times before 1970 read as its start.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn stamps_are_utc_and_know_leap_years() {
        let at = |secs, ms| rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(secs) + Duration::from_millis(ms));
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399, 999), "2000-02-28T23:59:59.999Z");
        assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_796_068_094, 250), "2026-11-30T19:48:14.250Z");
        assert_eq!(at(4_107_542_399, 0), "2100-02-28T23:59:59.000Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn long_messages_are_cut_at_a_character() {
        let failure = Failure::new(Cause::Bug, "ü".repeat(MESSAGE_BYTES));
        assert!(failure.message.len() <= MESSAGE_BYTES + '…'.len_utf8());
        assert!(failure.message.ends_with("ü…"));
    }

    #[test]
    fn an_event_is_one_line_with_its_time_first() {
        let event = Event::Stopping { halt: Halt::Signal { signal: 2 } };
        let line = serde_json::to_string(&Stamped { time: "T".into(), event: &event }).unwrap();
        assert_eq!(line, r#"{"time":"T","event":"stopping","halt":{"why":"signal","signal":2}}"#);
    }
}
