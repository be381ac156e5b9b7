//! The worker's loop: orders, attempts in lanes, steps.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crossbeam_channel::{Receiver, TryRecvError};

use super::attempt::{Attempt, open_worker_log, panic_message, worker_log};
use super::heart::Heart;
use super::link::{Errors, Link};
use super::train::Trainer;
use super::vigil::Vigil;
use super::{Order, WorkerError};
use crate::event::{Cause, Failure};
use crate::protocol::{Assignment, End, FromWorker, ToWorker};

/// Attempts that are being saved at once when the worker stops: more would want memory for as many copies.
const SAVED_AT_ONCE: usize = 8;

/// What a worker works with, and what it has in hand.
pub(super) struct Work<'a, T> {
    link: &'a Link,
    heart: &'a Heart,
    errors: &'a Errors,
    vigil: &'a Vigil,
    inbox: &'a Receiver<Order>,
    trainer: T,
    hand: Vec<Attempt<'a>>,
    /// Assigned, and not begun yet.
    waiting: Vec<Assignment>,
    /// Leaves as soon as nothing is in hand.
    leaving: bool,
}

impl<'a, T: Trainer> Work<'a, T> {
    pub(super) const fn new(
        link: &'a Link,
        heart: &'a Heart,
        errors: &'a Errors,
        vigil: &'a Vigil,
        inbox: &'a Receiver<Order>,
        trainer: T,
    ) -> Self {
        Self { link, heart, errors, vigil, inbox, trainer, hand: Vec::new(), waiting: Vec::new(), leaving: false }
    }

    /// Trains what is assigned until the worker is told to leave.
    ///
    /// # Errors
    /// The controller broke the protocol, or the trainer can train nothing any more. How an attempt ended is the controller's to
    /// know, not this function's.
    pub(super) fn run(mut self) -> Result<(), WorkerError> {
        loop {
            let orders = self.take_orders();
            if let Err(error) = if self.vigil.is_alone() { Err(WorkerError::Alone) } else { orders } {
                self.hand.iter_mut().for_each(|attempt| attempt.cancelled = true);
                self.stop_cancelled()?;
                return Err(error);
            }
            if self.leaving && self.is_idle() {
                return Ok(());
            }
            self.stop_cancelled()?;
            self.begin_waiting();
            self.advance()?;
        }
    }

    fn is_idle(&self) -> bool {
        self.hand.is_empty() && self.waiting.is_empty()
    }

    /// Takes in what was ordered meanwhile; waits for an order where there is nothing to do.
    fn take_orders(&mut self) -> Result<(), WorkerError> {
        if self.is_idle() && !self.leaving {
            match self.inbox.recv() {
                Ok(order) => self.take(order)?,
                Err(_) => return Err(WorkerError::Nonsense("the orders ended")),
            }
        }
        loop {
            match self.inbox.try_recv() {
                Ok(order) => self.take(order)?,
                // After `shutdown` nobody sends any more.
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return Ok(()),
            }
        }
    }

    fn take(&mut self, order: Order) -> Result<(), WorkerError> {
        match order? {
            ToWorker::Assign { assignment } => {
                let lane = assignment.place.lane;
                let taken = self.hand.iter().any(|attempt| attempt.lane() == lane)
                    || self.waiting.iter().any(|waiting| waiting.place.lane == lane);
                if taken {
                    return Err(WorkerError::Nonsense("an attempt for a lane that is not free"));
                }
                self.waiting.push(*assignment);
            }
            // One for an attempt that is not here crossed its end.
            ToWorker::Cancel { place } => {
                if let Some(at) = self.waiting.iter().position(|waiting| waiting.place == place) {
                    self.waiting.remove(at);
                    self.link.tell(&FromWorker::Ended { place, end: End::Cancelled { step: None } });
                }
                self.hand
                    .iter_mut()
                    .filter(|attempt| attempt.place() == place)
                    .for_each(|attempt| attempt.cancelled = true);
            }
            ToWorker::Shutdown => self.leaving = true,
            // It was heard where it was read.
            ToWorker::Beat => {}
        }
        Ok(())
    }

    /// Begins what waits and fits beside what is in hand.
    fn begin_waiting(&mut self) {
        for assignment in std::mem::take(&mut self.waiting) {
            let ready = if self.hand.is_empty() { self.prepare(&assignment) } else { Ok(()) };
            let place = assignment.place;
            match ready {
                Err(failure) => self.link.tell(&FromWorker::Ended { place, end: End::Failed { failure } }),
                Ok(()) if place.lane >= self.trainer.lanes() => {
                    self.link.tell(&FromWorker::Ended { place, end: End::Returned });
                }
                Ok(()) if self.hand.is_empty() || self.trainer.fits(&assignment) => self.begin(&assignment),
                Ok(()) => self.waiting.push(assignment),
            }
        }
    }

    /// Makes the trainer ready for such an attempt, and tells how many lanes there are now.
    fn prepare(&mut self, assignment: &Assignment) -> Result<(), Failure> {
        let before = self.trainer.lanes();
        let prepared = catch_unwind(AssertUnwindSafe(|| self.trainer.prepare(assignment)));
        let why = prepared.unwrap_or_else(|panic| Err(Failure::new(Cause::Bug, panic_message(panic.as_ref()))));
        let count = self.trainer.lanes();
        if count != before {
            let why = why.as_ref().ok().cloned().flatten().unwrap_or_default();
            self.link.tell(&FromWorker::Lanes { count, why });
        }
        why.map(drop)
    }

    fn begin(&mut self, assignment: &Assignment) {
        let mut attempt = Attempt::new(assignment.place, self.link, self.heart);
        let begun = self.redirect(assignment).and_then(|()| {
            let begin = AssertUnwindSafe(|| attempt.begin(assignment, &mut self.trainer));
            catch_unwind(begin).unwrap_or_else(|panic| Err(Failure::new(Cause::Bug, panic_message(panic.as_ref()))))
        });
        match begun {
            Ok(()) => self.hand.push(attempt),
            Err(failure) => self.over(|| attempt.fail(failure)),
        }
    }

    /// Sends what is printed to the attempt's `worker.log`, where it can be no other's.
    fn redirect(&self, assignment: &Assignment) -> Result<(), Failure> {
        if self.trainer.lanes() > 1 {
            return Ok(());
        }
        let path = worker_log(assignment);
        let redirected = open_worker_log(&path).map(|file| self.errors.to(file))?;
        redirected.map_err(|error| Failure::new(Cause::Disk, format!("{} cannot be opened: {error}", path.display())))
    }

    /// Ends an attempt, after which what is printed is no attempt's any more.
    fn over(&self, end: impl FnOnce()) {
        if let Err(error) = self.errors.back() {
            say!("diesweep worker: standard error cannot be restored: {error}");
        }
        end();
    }

    /// Saves what is cancelled, the longest unsaved first, and ends it.
    fn stop_cancelled(&mut self) -> Result<(), WorkerError> {
        let (mut cancelled, hand): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.hand).into_iter().partition(|attempt| attempt.cancelled);
        self.hand = hand;
        cancelled.sort_by_key(Attempt::saved_at);
        let mut cancelled = cancelled.into_iter().peekable();
        while cancelled.peek().is_some() {
            let mut stopping = Vec::new();
            for mut attempt in cancelled.by_ref().take(SAVED_AT_ONCE) {
                match attempt.stop(&mut self.trainer) {
                    Ok(()) => stopping.push(attempt),
                    Err(failure) => self.over(|| attempt.fail(failure)),
                }
            }
            stopping.into_iter().for_each(|attempt| self.over(|| attempt.stopped()));
        }
        Ok(())
    }

    /// Moves all attempts on.
    fn advance(&mut self) -> Result<(), WorkerError> {
        if self.hand.is_empty() {
            return Ok(());
        }
        let moved = match catch_unwind(AssertUnwindSafe(|| self.trainer.advance())) {
            Ok(Ok(moved)) => moved,
            Ok(Err(failure)) => return Err(self.lost(failure)),
            Err(panic) => {
                let failure = Failure::new(Cause::Bug, panic_message(panic.as_ref()));
                let alone = if self.hand.len() == 1 { self.hand.pop() } else { None };
                match alone {
                    Some(attempt) => {
                        self.over(|| attempt.fail(failure));
                        return Ok(());
                    }
                    // Nobody can tell which of the attempts is at fault.
                    None => return Err(self.lost(failure)),
                }
            }
        };
        for (lane, progress) in moved {
            let Some(at) = self.hand.iter().position(|attempt| attempt.lane() == lane) else { continue };
            match self.hand[at].take(progress, &mut self.trainer) {
                Ok(false) => {}
                Ok(true) => {
                    let attempt = self.hand.swap_remove(at);
                    self.over(|| drop(attempt));
                }
                Err(failure) => {
                    let attempt = self.hand.swap_remove(at);
                    let emptied = self.trainer.empty(lane);
                    self.over(|| attempt.fail(failure));
                    emptied.map_err(|failure| self.lost(failure))?;
                }
            }
        }
        Ok(())
    }

    /// All attempts are lost together: the process ends, and so tells of all at once.
    fn lost(&mut self, failure: Failure) -> WorkerError {
        // What is printed from here on is the worker's last word, whatever attempt it was redirected to.
        self.over(|| ());
        std::mem::take(&mut self.hand).into_iter().for_each(Attempt::leave);
        WorkerError::Trainer(failure)
    }
}
