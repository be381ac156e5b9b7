//! Waiting: for room on a full disk, and of runs between two attempts.

use std::time::{Duration, Instant};

use super::clerk::{LedgerError, Publication};
use super::effects::Effects;
use super::state::{RunState, State};
use crate::event::{Event, Halt};

/// Time between two looks for room.
const LOOK: Duration = Duration::from_secs(5);

/// Longest wait of a run between two attempts.
const LONGEST_REST: Duration = Duration::from_secs(30);

/// The disk is full: nothing new is begun.
#[derive(Debug)]
pub(super) struct Pause {
    /// What could not be written, and why.
    message: String,
    since: Instant,
    /// When the ledger is asked for room next; `None` while it looks.
    next_look: Option<Instant>,
    /// Results that wait to be published.
    stuck: Vec<Publication>,
}

impl State {
    /// There was no room for something; `stuck` is the result that it was.
    pub(super) fn starve(&mut self, message: String, stuck: Option<Publication>, now: Instant, fx: &mut dyn Effects) {
        let (needed, look) = (self.limits.room, LOOK.min(self.limits.disk / 4));
        if self.pause.is_none() {
            // A disk that was full a moment ago, and on which nothing could be written since, has been full all the time.
            self.starved.get_or_insert(now);
            let patience = self.limits.disk.as_secs();
            fx.announce(Event::DiskFull { message: message.clone(), needed, patience });
        }
        let next_look = Some(now + look);
        let pause = self.pause.get_or_insert(Pause { message, since: now, next_look, stuck: Vec::new() });
        pause.stuck.extend(stuck);
    }

    /// Something of a run could not be written: the run waits, for room or for the next call.
    pub(super) fn unwritten(&mut self, run: usize, error: LedgerError, now: Instant, fx: &mut dyn Effects) {
        self.set(run, RunState::Waiting);
        self.waiting.push_front(run);
        if error.full {
            self.starve(error.message, None, now, fx);
        } else {
            self.halt(Halt::Disk { message: error.message }, now, fx);
        }
    }

    /// Asks for room from time to time, and gives up after a while.
    pub(super) fn look_for_room(&mut self, now: Instant, fx: &mut dyn Effects) {
        let Some(pause) = self.pause.as_mut().filter(|_| self.stop.is_none()) else {
            return;
        };
        let starved = self.starved.unwrap_or(pause.since);
        if now.saturating_duration_since(starved) >= self.limits.disk {
            let message = pause.message.clone();
            self.halt(Halt::Disk { message }, now, fx);
        } else if pause.next_look.is_some_and(|next| next <= now) {
            pause.next_look = None;
            fx.probe(self.limits.room);
        }
    }

    /// The ledger has looked for room.
    pub(super) fn probed(&mut self, answer: Result<(), LedgerError>, now: Instant, fx: &mut dyn Effects) {
        match answer {
            Ok(()) => {
                let Some(pause) = self.pause.take() else {
                    return;
                };
                let waited = now.saturating_duration_since(pause.since).as_secs();
                fx.announce(Event::DiskFree { waited });
                pause.stuck.into_iter().for_each(|publication| fx.publish(publication));
            }
            Err(error) if error.full => {
                let look = LOOK.min(self.limits.disk / 4);
                if let Some(pause) = &mut self.pause {
                    pause.next_look = Some(now + look);
                }
            }
            Err(error) => self.halt(Halt::Disk { message: error.message }, now, fx),
        }
    }

    /// The sweep stops: results that could not be published are made again from their last checkpoints.
    pub(super) fn drop_stuck(&mut self) {
        for publication in self.pause.take().into_iter().flat_map(|pause| pause.stuck) {
            self.set(publication.run, RunState::Waiting);
            self.waiting.push_front(publication.run);
        }
    }

    /// Lets a run that failed wait, the longer the more often it did.
    pub(super) fn rest(&mut self, run: usize, now: Instant) {
        let doublings = self.runs[run].tries.saturating_sub(1).min(16);
        let rest = self.limits.backoff.saturating_mul(1 << doublings).min(LONGEST_REST);
        self.resting.push((now + rest, run));
    }

    /// Puts runs that have waited long enough into the queue.
    pub(super) fn wake(&mut self, now: Instant) {
        let waiting = &mut self.waiting;
        self.resting.retain(|&(until, run)| {
            let awake = until <= now;
            if awake {
                waiting.push_back(run);
            }
            !awake
        });
    }
}
