//! Runs: from the queue to a lane, and from a lane to a result or back.

use std::time::Instant;

use super::clerk::{Claim, Claimed, LedgerError, Publication, Published};
use super::effects::Effects;
use super::state::{Busy, Die, DieState, Early, Mood, RunState, State, Worker};
use super::workers::stray;
use crate::event::{Cause, Event, Failure, Halt};
use crate::plan::{CorpusInfo, CourseEnd};
use crate::protocol::{Assignment, End, Place, ToWorker};
use crate::settings::{Data, Settings};

/// A worker of many lanes has one run claimed ahead for so many of them.
const AHEAD: usize = 4;

/// Failures that are alike, and nothing but them, that stop a sweep at its beginning.
const ALIKE: usize = 3;

impl State {
    /// Runs that are claimed, or being claimed, and have no lane.
    pub(super) fn claims(&self) -> usize {
        self.ready.len() + self.claiming
    }

    /// Claims ahead: one run for each free lane, and a few more for each die, so that lanes that become free do
    /// not wait for a disk. Near the end none is claimed ahead: another controller may have a lane for it now.
    pub(super) fn claim_more(&mut self, fx: &mut dyn Effects) {
        let lanes = |die: &Die| if let DieState::Up(worker) = &die.state { worker.open } else { 1 };
        let ahead = usize::from(self.waiting.len() > self.dies.iter().map(lanes).sum());
        let mut wanted = 0;
        for die in &self.dies {
            wanted += match &die.state {
                DieState::Up(worker) => ahead * (1 + worker.open / AHEAD) + worker.free(),
                DieState::Down { .. } => ahead + 1,
                DieState::Aside => 0,
            };
        }
        while self.claims() < wanted {
            let Some(run) = self.waiting.pop_front() else {
                return;
            };
            self.set(run, RunState::Claiming);
            self.claiming += 1;
            fx.claim(run);
        }
    }

    /// The ledger's answer to a claim.
    pub(super) fn claimed(
        &mut self,
        run: usize,
        answer: Result<Claimed, LedgerError>,
        now: Instant,
        fx: &mut dyn Effects,
    ) {
        self.claiming -= 1;
        match answer {
            Ok(Claimed::Ours(claim)) if self.stop.is_some() => self.give_back(run, claim, fx),
            Ok(Claimed::Ours(claim)) if !self.goes_on(run) => self.claimed_in_vain(run, claim, fx),
            Ok(Claimed::Ours(claim)) => {
                self.set(run, RunState::Ready);
                self.ready.push_back((run, claim));
            }
            Ok(Claimed::Finished(outcome)) => self.finished_elsewhere(run, outcome, fx),
            Ok(Claimed::Elsewhere { holder }) => {
                fx.announce(Event::RunElsewhere { run: self.run(run).id, holder: holder.clone() });
                self.set(run, RunState::Elsewhere { holder });
            }
            Ok(Claimed::Unusable { failure }) => {
                self.set(run, RunState::Failed(failure.clone()));
                self.end_course(run, CourseEnd::Failed, fx);
                let (id, label) = (self.run(run).id, self.run(run).label());
                fx.announce(Event::RunFailed { run: id, label, attempts: 0, failure });
            }
            Err(error) => self.unwritten(run, error, now, fx),
        }
    }

    /// Fills free lanes with claimed runs, those of the least busy worker first.
    pub(super) fn assign(&mut self, fx: &mut dyn Effects) {
        while let Some((die, lane, at)) = self.next_place() {
            if let Some((run, claim)) = self.ready.remove(at) {
                self.assign_to(die, lane, run, claim, fx);
            }
        }
    }

    /// A die with a free lane, the lane, and the place in the queue of the run that can go there.
    fn next_place(&mut self) -> Option<(usize, usize, usize)> {
        if self.ready.is_empty() {
            return None;
        }
        let takes = |worker: &Worker| worker.mood == Mood::Live && worker.closed.is_none() && worker.free() > 0;
        let mut free: Vec<(usize, usize)> =
            self.workers().filter(|(_, w)| takes(w)).map(|(die, w)| (w.in_hand(), die)).collect();
        free.sort_unstable();
        free.into_iter().find_map(|(_, die)| {
            let at = self.ready_for(die)?;
            let lane = self.worker(die)?.lanes.iter().position(Option::is_none)?;
            Some((die, lane, at))
        })
    }

    /// The first claimed run that can be trained beside what a die's worker has in hand: only runs of one shape and one corpus share
    /// lanes.
    fn ready_for(&mut self, die: usize) -> Option<usize> {
        let beside = self.worker(die)?.lanes.iter().flatten().next().map(|busy| busy.run);
        let runs = &self.plan.runs;
        let alike = |run: usize, other: usize| {
            runs[run].shape == runs[other].shape && runs[run].settings.data == runs[other].settings.data
        };
        match beside {
            Some(beside) => self.ready.iter().position(|&(run, _)| alike(run, beside)),
            None => (!self.ready.is_empty()).then_some(0),
        }
    }

    fn assign_to(&mut self, die: usize, lane: usize, run: usize, claim: Claim, fx: &mut dyn Effects) {
        let planned = self.run(run);
        let settings = planned.settings.clone();
        let corpus = self.corpus(&settings);
        let checkpoint_every = self.plan.options.checkpoint_every;
        let rest = self.rest_of(run);
        let place = Place { lane: u32::try_from(lane).unwrap_or(u32::MAX), run: planned.id, attempt: claim.attempt };
        let started = Event::AttemptStarted {
            at: self.at(run, claim.attempt, die),
            steps: settings.steps,
            tokens_per_step: (settings.batch * settings.seq_len * settings.accum_steps) as u64,
            shape: planned.shape,
        };
        self.set(run, RunState::Running);
        let Some(worker) = self.worker(die) else {
            return;
        };
        let Claim { folder, .. } = claim;
        let busy = Busy {
            run,
            place,
            folder: folder.clone(),
            started: crate::clock::now(),
            logged: None,
            cancelled: false,
            lost: None,
        };
        worker.lanes[lane] = Some(busy);
        let assignment = Box::new(Assignment { place, folder, settings, corpus, checkpoint_every, rest });
        fx.send(worker.id, ToWorker::Assign { assignment });
        fx.announce(started);
    }

    /// The corpus that a run was planned with.
    fn corpus(&self, settings: &Settings) -> CorpusInfo {
        let path = match &settings.data {
            Data::Path(path) => Some(path),
            Data::Builtin => None,
        };
        let found = self.plan.corpora.iter().find(|corpus| corpus.path.as_ref() == path);
        // A plan names the corpus of each of its runs; one that does not is caught by the digest.
        found.cloned().unwrap_or_else(|| CorpusInfo {
            path: path.cloned(),
            bytes: 0,
            digest: String::new(),
            entropy: None,
        })
    }

    /// A worker says that an attempt ended.
    pub(super) fn ended(
        &mut self,
        die: usize,
        place: Place,
        end: End,
        now: Instant,
        fx: &mut dyn Effects,
    ) -> Result<(), String> {
        let Some(busy) = self.busy(die, place).cloned() else {
            return Err(stray("an end", place));
        };
        let steps = self.run(busy.run).settings.steps;
        match &end {
            End::Result { outcome } if outcome.steps > steps => {
                return Err(format!("a result after {} steps of {steps}", outcome.steps));
            }
            End::Rested { mark } => self.rests(busy.run, mark)?,
            End::Cancelled { .. } if !busy.cancelled => {
                return Err("a cancelled attempt that nobody cancelled".to_owned());
            }
            // Its other attempts cannot go on either: all fail when the worker is gone.
            End::Failed { failure } if failure.cause.blames_die() || failure.cause == Cause::OutOfMemory => {
                self.doom(die, failure.clone(), fx);
                return Ok(());
            }
            End::Result { .. } | End::Cancelled { .. } | End::Failed { .. } | End::Returned => {}
        }
        if let Some(worker) = self.worker(die) {
            worker
                .lanes
                .iter_mut()
                .filter(|lane| lane.as_ref().is_some_and(|busy| busy.place == place))
                .for_each(|lane| *lane = None);
        }
        match end {
            End::Result { outcome } => {
                self.early = Early::Over;
                self.dies[die].faults.clear();
                let at = self.at(busy.run, place.attempt, die);
                fx.publish(Publication {
                    run: busy.run,
                    claim: busy.claim(),
                    outcome: (*outcome).clone(),
                    die,
                    lane: place.lane,
                    started: busy.started,
                    ended: crate::clock::now(),
                });
                self.set(busy.run, RunState::Publishing { at, outcome });
            }
            End::Rested { .. } if busy.lost.is_some() => self.abandon(die, &busy, fx),
            End::Rested { mark } => {
                self.early = Early::Over;
                self.dies[die].faults.clear();
                self.set(busy.run, RunState::Resting);
                fx.announce(Event::RunRests { at: self.at(busy.run, place.attempt, die), steps: mark.steps });
                fx.rest(busy.run, mark);
            }
            End::Cancelled { .. } => self.abandon(die, &busy, fx),
            End::Failed { failure } => {
                self.failed(die, &busy, &failure, now, fx);
                self.weigh(die, Some(busy.run), &failure, now, fx);
            }
            // Nothing was tried, so no attempt is counted.
            End::Returned if self.stop.is_some() || busy.lost.is_some() => self.abandon(die, &busy, fx),
            End::Returned => {
                fx.announce(Event::AttemptAbandoned { at: self.at(busy.run, place.attempt, die) });
                self.give_back(busy.run, busy.claim(), fx);
            }
        }
        Ok(())
    }

    /// An attempt is given up and no failure: the sweep stops, the run was taken over, or its worker had not heard of this
    /// controller.
    pub(super) fn abandon(&mut self, die: usize, busy: &Busy, fx: &mut dyn Effects) {
        match &busy.lost {
            Some(holder) => {
                self.set(busy.run, RunState::Elsewhere { holder: holder.clone() });
            }
            None => {
                self.set(busy.run, RunState::Waiting);
                self.waiting.push_front(busy.run);
            }
        }
        fx.announce(Event::AttemptAbandoned { at: self.at(busy.run, busy.place.attempt, die) });
    }

    /// An attempt failed: its run waits for the next one, or is given up.
    pub(super) fn failed(&mut self, die: usize, busy: &Busy, failure: &Failure, now: Instant, fx: &mut dyn Effects) {
        if busy.lost.is_some() {
            self.abandon(die, busy, fx);
            return;
        }
        let run = busy.run;
        let entry = &mut self.runs[run];
        entry.tries += 1;
        entry.failures += u32::from(failure.cause.counts());
        let attempts = entry.failures;
        let left = !failure.cause.counts() || attempts < self.plan.options.attempts.max(1);
        let again = failure.cause.retried() && left;
        // On a full disk it would be one more file that there is no room for.
        if failure.cause != Cause::DiskFull {
            fx.failed(busy.claim(), failure.clone(), !again);
        }
        let at = self.at(run, busy.place.attempt, die);
        fx.announce(Event::AttemptFailed { at, failure: failure.clone(), again });
        if again {
            self.set(run, RunState::Waiting);
            self.rest(run, now);
        } else {
            self.set(run, RunState::Failed(failure.clone()));
            let (id, label) = (self.run(run).id, self.run(run).label());
            fx.announce(Event::RunFailed { run: id, label, attempts, failure: failure.clone() });
            fx.give_up(run);
            self.end_course(run, CourseEnd::Failed, fx);
        }
        if !again && self.limits.fail_fast {
            let label = self.run(run).label();
            self.halt(Halt::FailFast { label, failure: failure.clone() }, now, fx);
        }
    }

    /// What a failure means for the sweep and for the die; once for a worker that was lost, however many runs it had in hand. `run` is
    /// the one that it speaks against, if there was but one.
    pub(super) fn weigh(
        &mut self,
        die: usize,
        run: Option<usize>,
        failure: &Failure,
        now: Instant,
        fx: &mut dyn Effects,
    ) {
        match failure.cause {
            Cause::DiskFull => self.starve(failure.message.clone(), None, now, fx),
            Cause::Disk => self.halt(Halt::Disk { message: failure.message.clone() }, now, fx),
            _ if run.is_some_and(|run| self.failed_alike(run, failure)) => {
                self.halt(Halt::FailedAlike { failure: failure.clone() }, now, fx);
            }
            _ => {}
        }
        self.fault(die, run, failure, now, fx);
    }

    /// Whether the first three runs failed, and alike.
    fn failed_alike(&mut self, run: usize, failure: &Failure) -> bool {
        let Early::Watching(seen) = &mut self.early else {
            return false;
        };
        if seen.iter().any(|(_, before)| before != failure) {
            self.early = Early::Over;
            return false;
        }
        if seen.iter().all(|&(before, _)| before != run) {
            seen.push((run, failure.clone()));
        }
        seen.len() >= ALIKE
    }

    /// The ledger's answer to a publication.
    pub(super) fn published(
        &mut self,
        publication: Publication,
        answer: Result<Published, LedgerError>,
        now: Instant,
        fx: &mut dyn Effects,
    ) {
        let run = publication.run;
        match answer {
            Ok(Published::Done { differs }) => {
                self.tell_of_difference(run, differs, fx);
                self.starved = None;
                if let RunState::Publishing { at, outcome } = self.set(run, RunState::Finished) {
                    self.others.published += 1;
                    let ended = (*outcome).clone();
                    fx.announce(Event::RunFinished { at, outcome });
                    self.course_ended(run, &ended, fx);
                }
            }
            Ok(Published::LeaseLost { holder, differs }) => {
                self.tell_of_difference(run, differs, fx);
                self.tell_of_loss(run, &holder, fx);
                self.set(run, RunState::Elsewhere { holder });
            }
            Err(error) if error.full && self.stop.is_none() => {
                self.starve(error.message, Some(publication), now, fx);
            }
            Err(error) => {
                self.set(run, RunState::Waiting);
                self.waiting.push_front(run);
                self.halt(Halt::Disk { message: error.message }, now, fx);
            }
        }
    }
}
