//! Other controllers on the same folder: their runs, and what they may think of this one.

use std::time::{Duration, Instant};

use super::clerk::{LedgerError, Seen, Tended};
use super::effects::Effects;
use super::state::{RunState, State};
use crate::event::Event;
use crate::protocol::ToWorker;
use crate::run::{Outcome, RunId};

/// Time between two looks at other controllers' runs while this one has work of its own.
const LOOKS_AT_WORK: Duration = Duration::from_secs(5);

/// Runs of others that are looked at with each tick; of more than that, each is looked at less often.
const LOOKS_A_TICK: usize = 50;

/// What has to do with other controllers.
#[derive(Debug)]
pub(super) struct Others {
    /// Runs whose result this controller published.
    pub(super) published: usize,
    /// Runs whose result others published meanwhile.
    pub(super) finished: usize,
    /// The ledger is being tended.
    tending: bool,
    /// The ledger could not be tended, and that was told.
    told_of_failure: bool,
    /// It was told that others are waited for.
    told_of_waiting: bool,
    /// Last look at the others' runs.
    looked: Instant,
    /// Last sign of life to the workers.
    beaten: Instant,
}

impl Others {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            published: 0,
            finished: 0,
            tending: false,
            told_of_failure: false,
            told_of_waiting: false,
            looked: now,
            beaten: now,
        }
    }
}

impl State {
    /// With each tick: lets the workers know that this controller lives, and has the ledger tended.
    pub(super) fn tend(&mut self, now: Instant, fx: &mut dyn Effects) {
        if now.saturating_duration_since(self.others.beaten) >= self.limits.worker_beat() {
            self.others.beaten = now;
            self.workers().for_each(|(_, worker)| fx.send(worker.id, ToWorker::Beat));
        }
        if !self.others.tending {
            self.others.tending = true;
            fx.tend(self.due_looks(now));
        }
    }

    /// The runs of others, if it is time to look at them.
    fn due_looks(&mut self, now: Instant) -> Vec<usize> {
        let runs = self.elsewhere();
        let tick = self.limits.worker_beat() / 4;
        let crowd = u32::try_from(runs / LOOKS_A_TICK).unwrap_or(u32::MAX);
        let pause = if self.waiting.is_empty() { tick.saturating_mul(crowd) } else { LOOKS_AT_WORK };
        if runs == 0 || self.stop.is_some() || now.saturating_duration_since(self.others.looked) < pause {
            return Vec::new();
        }
        self.others.looked = now;
        let elsewhere = |&run: &usize| matches!(self.runs[run].state, RunState::Elsewhere { .. });
        (0..self.runs.len()).filter(elsewhere).collect()
    }

    /// The ledger was tended.
    pub(super) fn tended(&mut self, answer: Result<Tended, LedgerError>, fx: &mut dyn Effects) {
        self.others.tending = false;
        match answer {
            Ok(tended) => {
                self.others.told_of_failure = false;
                for (id, holder) in tended.lost {
                    self.lost(id, &holder, fx);
                }
                for (run, seen) in tended.seen {
                    self.seen(run, seen, fx);
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut self.others.told_of_failure, true) {
                    fx.announce(Event::BeatFailed { message: error.message });
                }
            }
        }
    }

    /// A look at a run that another controller held.
    fn seen(&mut self, run: usize, seen: Seen, fx: &mut dyn Effects) {
        if !matches!(self.runs[run].state, RunState::Elsewhere { .. }) {
            return;
        }
        match seen {
            Seen::Finished(outcome) => self.finished_elsewhere(run, outcome, fx),
            Seen::Free => {
                self.set(run, RunState::Waiting);
                self.waiting.push_back(run);
                self.reconsider(fx);
            }
            Seen::Held { holder } => {
                self.set(run, RunState::Elsewhere { holder });
            }
        }
    }

    /// Another controller has published a run's result.
    pub(super) fn finished_elsewhere(&mut self, run: usize, outcome: Box<Outcome>, fx: &mut dyn Effects) {
        self.set(run, RunState::Finished);
        self.others.finished += 1;
        let (id, label) = (self.run(run).id, self.run(run).label());
        self.course_ended(run, &outcome, fx);
        fx.announce(Event::FinishedElsewhere { run: id, label, outcome });
    }

    /// Another controller has taken a run over.
    fn lost(&mut self, id: RunId, holder: &str, fx: &mut dyn Effects) {
        let Some(run) = self.plan.runs.iter().position(|run| run.id == id) else { return };
        match self.runs[run].state {
            RunState::Waiting => {
                self.waiting.retain(|&waiting| waiting != run);
                self.resting.retain(|&(_, resting)| resting != run);
            }
            RunState::Ready => {
                while let Some(at) = self.ready.iter().position(|(ready, _)| *ready == run) {
                    let claim = self.ready.remove(at);
                    claim.into_iter().for_each(|(run, claim)| fx.release(run, claim));
                }
            }
            RunState::Running => {
                self.cancel_lost(run, holder, fx);
                return;
            }
            // The ledger's answer will tell; or the run is not this controller's in any case.
            RunState::Claiming
            | RunState::Publishing { .. }
            | RunState::Resting
            | RunState::Rested
            | RunState::Stopped
            | RunState::Finished
            | RunState::Failed(_)
            | RunState::Elsewhere { .. } => return,
        }
        self.set(run, RunState::Elsewhere { holder: holder.to_owned() });
    }

    /// Cancels the attempt at a run that was taken over.
    fn cancel_lost(&mut self, run: usize, holder: &str, fx: &mut dyn Effects) {
        for (_, worker) in self.workers() {
            for busy in worker.lanes.iter_mut().flatten().filter(|busy| busy.run == run) {
                (busy.cancelled, busy.lost) = (true, Some(holder.to_owned()));
                fx.send(worker.id, ToWorker::Cancel { place: busy.place });
            }
        }
        self.tell_of_loss(run, holder, fx);
    }

    pub(super) fn tell_of_loss(&self, run: usize, holder: &str, fx: &mut dyn Effects) {
        let (id, label) = (self.run(run).id, self.run(run).label());
        fx.announce(Event::LeaseLost { run: id, label, holder: holder.to_owned() });
    }

    pub(super) fn tell_of_difference(&self, run: usize, differs: Option<String>, fx: &mut dyn Effects) {
        if let Some(message) = differs {
            fx.announce(Event::ResultDiffers { run: self.run(run).id, message });
        }
    }

    /// Tells once, whenever this controller has nothing left of its own, who is waited for.
    pub(super) fn tell_of_waiting(&mut self, fx: &mut dyn Effects) {
        let waiting = self.only_others();
        if waiting == std::mem::replace(&mut self.others.told_of_waiting, waiting) || !waiting {
            return;
        }
        let holder = |state: &RunState| match state {
            RunState::Elsewhere { holder } => Some(holder.clone()),
            _ => None,
        };
        let mut holders: Vec<String> = self.runs.iter().filter_map(|entry| holder(&entry.state)).collect();
        holders.sort();
        holders.dedup();
        fx.announce(Event::Waiting { runs: self.elsewhere(), holders });
    }
}
