//! The one function that changes the state, and the inputs that are not about a worker's attempt.

use std::time::{Duration, Instant};

use super::effects::{Effects, Input};
use super::state::{Busy, DieState, Mood, RunState, State, Stop};
use crate::event::{Cause, Event, Failure, Halt};
use crate::protocol::ToWorker;

/// Ticks that are further apart than this mean that the controller itself stood still (a stopped process, a machine
/// that slept): nobody else is to blame for the silence.
const OWN_PAUSE: Duration = Duration::from_secs(5);

/// A process whose end is known but whose output does not end (a grandchild holds it) is waited for so long.
const LAST_LINES: Duration = Duration::from_millis(500);

/// Takes one input in, and acts on what it means.
pub(super) fn handle(state: &mut State, now: Instant, input: Input, fx: &mut dyn Effects) {
    match input {
        Input::Message(id, message) => {
            // A row or a beat changes nothing that could let anything else go on.
            if !state.hear(id, now, *message, fx) {
                return;
            }
        }
        Input::Broken(id, reason) => {
            if let Some(die) = state.die_of(id) {
                state.doom(die, Failure::new(Cause::Protocol, reason), fx);
            }
        }
        Input::Closed(id) => {
            if let Some(die) = state.die_of(id) {
                state.closed(die, now, fx);
            }
        }
        Input::Exited(id, exit) => {
            if let Some(die) = state.die_of(id) {
                state.exited(die, exit, now, fx);
            }
        }
        Input::Claimed(run, answer) => state.claimed(run, answer, now, fx),
        Input::Rested(run, mark, answer) => state.rested(run, mark, answer, now, fx),
        Input::Marks(run, marks) => state.marked(run, marks, fx),
        Input::Tended(answer) => state.tended(answer, fx),
        Input::Published(publication, answer) => state.published(*publication, answer, now, fx),
        Input::Probed(answer) => state.probed(answer, now, fx),
        Input::Signal(signal) => state.signalled(signal, now, fx),
        Input::Tick => state.tick(now, fx),
    }
    state.go_on(now, fx);
}

impl State {
    /// Does all that can be done now.
    fn go_on(&mut self, now: Instant, fx: &mut dyn Effects) {
        if self.stop.is_some() {
            return;
        }
        if self.settled() {
            self.dismiss_all(now, fx);
            return;
        }
        self.tell_of_waiting(fx);
        self.wake(now);
        if self.pause.is_none() {
            self.claim_more(fx);
            self.start_workers(now, fx);
            self.assign(fx);
        }
        if self.dies.iter().all(|die| matches!(die.state, DieState::Aside)) {
            self.halt(Halt::NoDies, now, fx);
        }
    }

    /// The first signal stops after the steps in hand; the second stops at once.
    fn signalled(&mut self, signal: i32, now: Instant, fx: &mut dyn Effects) {
        if self.stop.is_none() {
            self.halt(Halt::Signal { signal }, now, fx);
        } else if let Some(stop) = &mut self.stop {
            stop.at_once = true;
            stop.halt = Halt::Signal { signal };
            self.kill_all(fx);
        }
    }

    /// Stops the sweep: attempts end after their step, workers leave.
    pub(super) fn halt(&mut self, halt: Halt, now: Instant, fx: &mut dyn Effects) {
        if self.stop.is_some() {
            return;
        }
        fx.announce(Event::Stopping { halt: halt.clone() });
        self.stop = Some(Stop { halt, since: now, at_once: false });
        self.drop_stuck();
        while let Some((run, claim)) = self.ready.pop_back() {
            self.give_back(run, claim, fx);
        }
        for (_, worker) in self.workers() {
            for busy in worker.lanes.iter_mut().flatten() {
                busy.cancelled = true;
                fx.send(worker.id, ToWorker::Cancel { place: busy.place });
            }
        }
        self.dismiss_all(now, fx);
    }

    /// Tells all workers to leave as soon as they have nothing in hand.
    fn dismiss_all(&mut self, now: Instant, fx: &mut dyn Effects) {
        for (_, worker) in self.workers() {
            if matches!(worker.mood, Mood::Starting | Mood::Live) {
                worker.mood = Mood::Leaving { since: now };
                fx.send(worker.id, ToWorker::Shutdown);
            }
        }
    }

    /// Kills all workers because the sweep stops.
    fn kill_all(&mut self, fx: &mut dyn Effects) {
        for (_, worker) in self.workers() {
            if !matches!(worker.mood, Mood::Doomed { .. }) {
                worker.mood = Mood::Dismissed;
            }
            fx.kill(worker.id);
        }
    }

    /// Looks at all that time alone can change.
    fn tick(&mut self, now: Instant, fx: &mut dyn Effects) {
        let passed = now.saturating_duration_since(self.ticked);
        self.ticked = now;
        if passed > OWN_PAUSE {
            self.workers().for_each(|(_, worker)| worker.heard += passed);
            if let Some(stop) = &mut self.stop {
                stop.since += passed;
            }
        }
        self.tend(now, fx);
        self.look_for_room(now, fx);
        if let Some(limit) = self.limits.time_limit
            && now >= limit.stop_at
        {
            self.halt(Halt::TimeLimit { seconds: limit.given.as_secs() }, now, fx);
        }
        for die in 0..self.dies.len() {
            self.watch(die, now, fx);
        }
        let grace = self.limits.stop_grace;
        if self.stop.as_ref().is_some_and(|stop| now.saturating_duration_since(stop.since) >= grace) {
            self.kill_all(fx);
        }
    }

    /// Ends the wait for a worker that gives no sign of life, does not leave, or does not die.
    fn watch(&mut self, die: usize, now: Instant, fx: &mut dyn Effects) {
        let limits = self.limits;
        let Some(worker) = self.worker(die) else {
            return;
        };
        let since = |then: Instant| now.saturating_duration_since(then);
        if let Some((_, at)) = &worker.exit {
            if since(*at) >= LAST_LINES {
                self.lose(die, now, fx);
            }
        } else if worker.closed.is_some_and(|at| since(at) >= limits.leave) {
            let text = "it closed its output and did not end";
            self.doom(die, Failure::new(Cause::Protocol, text), fx);
        } else if since(worker.heard) >= limits.beat {
            let text = format!("no sign of life for {} s", limits.beat.as_secs());
            self.doom(die, Failure::new(Cause::Hung, text), fx);
        } else if let Mood::Leaving { since: then } = worker.mood
            && worker.lanes.iter().all(Option::is_none)
            && since(then) >= limits.leave
        {
            worker.mood = Mood::Dismissed;
            fx.kill(worker.id);
        }
    }

    /// Gives up a claim that no worker has used: the run waits again.
    pub(super) fn give_back(&mut self, run: usize, claim: super::Claim, fx: &mut dyn Effects) {
        self.set(run, RunState::Waiting);
        self.waiting.push_front(run);
        fx.release(run, claim);
    }

    /// The attempt in a lane, if the lane exists and the place is the very one that was assigned.
    pub(super) fn busy(&mut self, die: usize, place: crate::protocol::Place) -> Option<&mut Busy> {
        let lane = usize::try_from(place.lane).ok()?;
        self.worker(die)?.lanes.get_mut(lane)?.as_mut().filter(|busy| busy.place == place)
    }
}
