//! What the controller knows.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::clerk::Claim;
use super::dies::DieSpec;
use super::effects::WorkerId;
use super::halt::{Conclusion, Summary};
use super::others::Others;
use super::pause::Pause;
use super::process::Exit;
use super::stopping::Stopping;
use crate::event::{At, Failure, Halt, Past};
use crate::plan::{Plan, PlannedRun};
use crate::protocol::Place;

/// How patient the controller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest silence of a worker.
    pub beat: Duration,
    /// A step is given at least this.
    pub step: Duration,
    /// And at least so many times what such a step usually takes.
    pub step_medians: u64,
    /// A step for which there is no usual time yet is given this.
    pub first_step: Duration,
    /// A worker that does not hear of its controller for so long leaves.
    pub controller: Duration,
    /// A worker that was told to stop is given this.
    pub stop_grace: Duration,
    /// A worker that was told to leave with nothing in hand is given this; and so is one between the end of its
    /// output and the end of its process.
    pub leave: Duration,
    /// Time that a full disk is waited for.
    pub disk: Duration,
    /// Bytes of room that end that wait.
    pub room: u64,
    /// Wait of a run between its first failure and its next attempt; doubled with each further one.
    pub backoff: Duration,
    /// When the sweep stops by itself.
    pub time_limit: Option<TimeLimit>,
    /// Whether the sweep stops at the first run that fails for good.
    pub fail_fast: bool,
}

/// The time that a sweep is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit {
    /// As the user gave it.
    pub given: Duration,
    /// When the sweep stops, so that all is saved before it is over.
    pub stop_at: Instant,
}

impl Limits {
    /// Time between two signs of life to the workers.
    pub fn worker_beat(&self) -> Duration {
        self.controller / 20
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(30),
            step: Duration::from_secs(60),
            step_medians: 20,
            first_step: Duration::from_secs(600),
            controller: Duration::from_secs(20),
            stop_grace: Duration::from_secs(20),
            leave: Duration::from_secs(5),
            disk: Duration::from_secs(600),
            room: 1 << 20,
            backoff: Duration::from_millis(500),
            time_limit: None,
            fail_fast: false,
        }
    }
}

/// Where a run is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RunState {
    /// In the queue.
    Waiting,
    /// The ledger was asked for it.
    Claiming,
    /// Claimed, and without a lane yet.
    Ready,
    /// In a lane.
    Running,
    /// It has a result that is not on disk yet.
    Publishing { at: At, outcome: Box<crate::run::Outcome> },
    /// Its result is on disk.
    Finished,
    /// It rests, and that is not on disk yet.
    Resting,
    /// It rests until others have got as far.
    Rested,
    /// The rule of early stopping has it trained no further.
    Stopped,
    /// Given up.
    Failed(Failure),
    /// Another controller's.
    Elsewhere { holder: String },
}

impl RunState {
    /// Whether the run can get no further here.
    const fn settled(&self) -> bool {
        matches!(self, Self::Finished | Self::Stopped | Self::Failed(_) | Self::Elsewhere { .. })
    }

    /// Whether it is another controller's.
    const fn elsewhere(&self) -> bool {
        matches!(self, Self::Elsewhere { .. })
    }

    /// Whether a clerk has it in hand.
    const fn pending(&self) -> bool {
        matches!(self, Self::Claiming | Self::Resting | Self::Publishing { .. })
    }
}

/// A run with its history in this controller.
#[derive(Debug)]
pub(super) struct RunEntry {
    pub(super) state: RunState,
    /// Attempts that failed and count.
    pub(super) failures: u32,
    /// Attempts that failed.
    pub(super) tries: u32,
}

/// An attempt in a lane.
#[derive(Clone, Debug)]
pub(super) struct Busy {
    pub(super) run: usize,
    pub(super) place: Place,
    pub(super) folder: PathBuf,
    pub(super) started: SystemTime,
    /// Last logged step.
    pub(super) logged: Option<u64>,
    pub(super) cancelled: bool,
    /// Who has taken the run over meanwhile.
    pub(super) lost: Option<String>,
}

impl Busy {
    /// The claim that the attempt was made on.
    pub(super) fn claim(&self) -> Claim {
        Claim { attempt: self.place.attempt, folder: self.folder.clone() }
    }
}

/// What a worker is expected to do next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mood {
    /// To say hello.
    Starting,
    /// To work.
    Live,
    /// To leave.
    Leaving { since: Instant },
    /// To die: it was killed because it failed.
    Doomed { failure: Failure },
    /// To die: it was killed because the sweep stops.
    Dismissed,
}

/// A process.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) id: WorkerId,
    pub(super) pid: u32,
    pub(super) mood: Mood,
    pub(super) lanes: Vec<Option<Busy>>,
    /// Lanes that it trains in; those beyond are on their way back.
    pub(super) open: usize,
    pub(super) heard: Instant,
    pub(super) closed: Option<Instant>,
    pub(super) exit: Option<(Exit, Instant)>,
}

impl Worker {
    /// Lanes that a run can be put in.
    pub(super) fn free(&self) -> usize {
        self.lanes.iter().take(self.open).filter(|lane| lane.is_none()).count()
    }

    /// Attempts that it has in hand.
    pub(super) fn in_hand(&self) -> usize {
        self.lanes.iter().flatten().count()
    }
}

/// What a die holds.
#[derive(Debug)]
pub(super) enum DieState {
    /// No worker; none is started before then.
    Down { until: Instant },
    /// A worker.
    Up(Worker),
    /// Not used any more.
    Aside,
}

/// A die.
#[derive(Debug)]
pub(super) struct Die {
    pub(super) state: DieState,
    /// What its workers are pinned to.
    pub(super) spec: DieSpec,
    /// Failures in a row that count against it, each with the run that it hit.
    pub(super) faults: Vec<Option<usize>>,
}

/// The sweep stops.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) halt: Halt,
    pub(super) since: Instant,
    /// Nothing is waited for any more.
    pub(super) at_once: bool,
}

/// The first failure of each of the first runs, as long as no run has had a result.
#[derive(Debug)]
pub(super) enum Early {
    Watching(Vec<(usize, Failure)>),
    Over,
}

/// Everything that the controller knows.
#[derive(Debug)]
pub(super) struct State {
    pub(super) plan: Arc<Plan>,
    pub(super) limits: Limits,
    pub(super) runs: Vec<RunEntry>,
    /// Runs that are not settled; kept with every change, since it is asked for after every input.
    unsettled: usize,
    /// Runs that other controllers hold.
    elsewhere: usize,
    /// Runs that rest.
    rested: usize,
    pub(super) stopping: Stopping,
    /// Runs that a clerk has in hand.
    pending: usize,
    /// Runs that the ledger was asked for.
    pub(super) claiming: usize,
    pub(super) waiting: VecDeque<usize>,
    /// Runs that failed, and when each of them enters the queue again.
    pub(super) resting: Vec<(Instant, usize)>,
    /// The disk is full.
    pub(super) pause: Option<Pause>,
    /// Since when nothing could be written.
    pub(super) starved: Option<Instant>,
    pub(super) ready: VecDeque<(usize, Claim)>,
    pub(super) dies: Vec<Die>,
    pub(super) stop: Option<Stop>,
    pub(super) early: Early,
    pub(super) started: Instant,
    pub(super) ticked: Instant,
    /// Whether runs of other controllers are waited for.
    pub(super) wait: bool,
    pub(super) others: Others,
    next_worker: u64,
}

impl State {
    /// A sweep at its beginning; with the dies that it is trained on.
    pub(super) fn new(plan: Arc<Plan>, past: &[Past], dies: Vec<DieSpec>, limits: Limits, now: Instant) -> Self {
        let entry = |past: &Past| {
            let state = match past {
                Past::Open => RunState::Waiting,
                Past::Finished => RunState::Finished,
                Past::Stopped => RunState::Stopped,
                Past::Failed(failure) => RunState::Failed(failure.clone()),
            };
            RunEntry { state, failures: 0, tries: 0 }
        };
        let open: VecDeque<usize> = (0..plan.runs.len()).filter(|&run| past[run] == Past::Open).collect();
        let die = |spec| Die { state: DieState::Down { until: now }, spec, faults: Vec::new() };
        Self {
            unsettled: open.len(),
            waiting: open,
            resting: Vec::new(),
            pause: None,
            starved: None,
            runs: past.iter().map(entry).collect(),
            pending: 0,
            claiming: 0,
            plan,
            limits,
            ready: VecDeque::new(),
            dies: dies.into_iter().map(die).collect(),
            stop: None,
            early: Early::Watching(Vec::new()),
            started: now,
            ticked: now,
            elsewhere: 0,
            rested: 0,
            stopping: Stopping::default(),
            wait: true,
            others: Others::new(now),
            next_worker: 0,
        }
    }

    pub(super) fn new_worker(&mut self) -> WorkerId {
        self.next_worker += 1;
        WorkerId(self.next_worker)
    }

    pub(super) fn run(&self, run: usize) -> &PlannedRun {
        &self.plan.runs[run]
    }

    /// The attempt as events name it.
    pub(super) fn at(&self, run: usize, attempt: u32, die: usize) -> At {
        let planned = self.run(run);
        At { run: planned.id, attempt, die, label: planned.label() }
    }

    pub(super) fn workers(&mut self) -> impl Iterator<Item = (usize, &mut Worker)> {
        self.dies.iter_mut().enumerate().filter_map(|(die, entry)| match &mut entry.state {
            DieState::Up(worker) => Some((die, worker)),
            DieState::Down { .. } | DieState::Aside => None,
        })
    }

    /// The die of a worker that is still known.
    pub(super) fn die_of(&mut self, id: WorkerId) -> Option<usize> {
        self.workers().find(|(_, worker)| worker.id == id).map(|(die, _)| die)
    }

    pub(super) fn worker(&mut self, die: usize) -> Option<&mut Worker> {
        match &mut self.dies[die].state {
            DieState::Up(worker) => Some(worker),
            DieState::Down { .. } | DieState::Aside => None,
        }
    }

    /// Moves a run on.
    pub(super) fn set(&mut self, run: usize, state: RunState) -> RunState {
        let old = std::mem::replace(&mut self.runs[run].state, state);
        let new = &self.runs[run].state;
        self.unsettled = self.unsettled + usize::from(old.settled()) - usize::from(new.settled());
        self.elsewhere = self.elsewhere + usize::from(new.elsewhere()) - usize::from(old.elsewhere());
        let rests = |state: &RunState| usize::from(*state == RunState::Rested);
        self.rested = self.rested + rests(new) - rests(&old);
        self.pending = self.pending + usize::from(new.pending()) - usize::from(old.pending());
        old
    }

    fn count(&self, is: impl Fn(&RunState) -> bool) -> usize {
        self.runs.iter().filter(|entry| is(&entry.state)).count()
    }

    /// Whether nothing is left to be done or to be waited for.
    pub(super) const fn settled(&self) -> bool {
        self.unsettled == self.rested && (self.elsewhere == 0 || !self.wait)
    }

    /// Whether all that is left is other controllers'.
    pub(super) const fn only_others(&self) -> bool {
        self.unsettled == self.rested && self.elsewhere > 0
    }

    /// How many runs other controllers hold.
    pub(super) const fn elsewhere(&self) -> usize {
        self.elsewhere
    }

    /// How it all ended; `None` while something is to be waited for.
    pub(super) fn conclusion(&self) -> Option<Conclusion> {
        let at_once = self.stop.as_ref().is_some_and(|stop| stop.at_once);
        let up = self.dies.iter().any(|die| matches!(die.state, DieState::Up(_)));
        if !at_once && (up || self.pending > 0 || (self.stop.is_none() && !self.settled())) {
            return None;
        }
        let failed = self.count(|state| matches!(state, RunState::Failed(_))) > 0;
        Some(match &self.stop {
            Some(stop) if !self.settled() => Conclusion::Halted(stop.halt.clone()),
            Some(Stop { halt: halt @ (Halt::FailedAlike { .. } | Halt::FailFast { .. }), .. }) => {
                Conclusion::Halted(halt.clone())
            }
            _ if failed => Conclusion::SomeFailed,
            _ if self.elsewhere > 0 => Conclusion::Elsewhere,
            _ => Conclusion::Complete,
        })
    }

    /// What was done, at the end.
    pub(super) fn summary(&self, conclusion: Conclusion) -> Summary {
        let failed: Vec<_> = self
            .runs
            .iter()
            .enumerate()
            .filter_map(|(run, entry)| match &entry.state {
                RunState::Failed(failure) => Some((run, failure.clone())),
                _ => None,
            })
            .collect();
        let finished = self.count(|state| *state == RunState::Finished);
        let at_once = self.stop.as_ref().is_some_and(|stop| stop.at_once);
        let stopped = self.count(|state| *state == RunState::Stopped);
        let left = self.runs.len() - finished - failed.len() - stopped;
        let Others { published: here, finished: elsewhere, .. } = self.others;
        Summary { conclusion, finished, left, failed, stopped, here, elsewhere, at_once }
    }
}
