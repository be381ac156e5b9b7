//! One attempt, from its assignment to its one end.

use std::any::Any;
use std::fs::OpenOptions;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crossbeam_channel::{Receiver, TryRecvError};

use super::heart::Heart;
use super::link::{Errors, Link};
use super::saving::{self, Saving};
use super::train::Trainers;
use super::vigil::Vigil;
use super::{Order, WorkerError};
use crate::event::{Cause, Failure, Phase};
use crate::protocol::{Assignment, End, FromWorker, ORPHANED, Place, ToWorker};
use crate::store::StoreError;
use crate::trainer::Progress;

/// What a worker trains with.
pub(super) struct Bench<'a, T> {
    pub(super) link: &'a Link,
    pub(super) heart: &'a Heart,
    pub(super) errors: &'a Errors,
    pub(super) vigil: &'a Vigil,
    pub(super) trainers: T,
}

/// What a worker does after an attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    GoOn,
    Leave,
}

/// Sends the attempt's one `ended`, whichever way it is left.
struct Attempt<'a> {
    link: &'a Link,
    heart: &'a Heart,
    place: Place,
    end: Option<End>,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.heart.end();
        let end = self.end.take().unwrap_or_else(|| End::Failed {
            failure: Failure::new(Cause::Bug, "the attempt was left without an end"),
        });
        self.link.tell(&FromWorker::Ended { place: self.place, end });
    }
}

impl<T: Trainers> Bench<'_, T> {
    /// Trains an attempt to its end.
    ///
    /// # Errors
    /// The controller broke the protocol meanwhile. How the attempt ended is the controller's to know, not this
    /// function's.
    pub(super) fn train(&mut self, assignment: &Assignment, inbox: &Receiver<Order>) -> Result<After, WorkerError> {
        let place = assignment.place;
        self.heart.begin(place);
        let mut attempt = Attempt { link: self.link, heart: self.heart, place, end: None };
        let mut orders = Orders { inbox, vigil: self.vigil, place, after: After::GoOn, error: None };
        let end = catch_unwind(AssertUnwindSafe(|| self.steps(assignment, &mut orders)));
        if let Err(error) = self.errors.back() {
            eprintln!("diesweep worker: standard error cannot be restored: {error}");
        }
        attempt.end = Some(match end {
            Ok(Ok(end)) => end,
            Ok(Err(failure)) => End::Failed { failure },
            Err(panic) => End::Failed { failure: Failure::new(Cause::Bug, panic_message(panic.as_ref())) },
        });
        drop(attempt);
        if self.vigil.is_alone() {
            // What could be saved is saved.
            std::process::exit(ORPHANED);
        }
        orders.error.map_or(Ok(orders.after), Err)
    }

    fn steps(&mut self, assignment: &Assignment, orders: &mut Orders<'_>) -> Result<End, Failure> {
        self.redirect(assignment)?;
        let mut trainer = self.trainers.begin(assignment)?;
        let (mut log, mut saving) = saving::begin(assignment, trainer.built_in(), self.link)?;
        let first = saving.as_ref().map_or(0, Saving::steps);
        self.heart.resumed(first);
        self.heart.enter(Phase::Training, trainer.work(first));
        loop {
            if orders.stop() {
                self.heart.enter(Phase::Closing, 1.0);
                if let (Some(saving), Some(run)) = (&mut saving, trainer.built_in()) {
                    saving.stop(run, &log)?;
                }
                return Ok(End::Cancelled { step: self.heart.step() });
            }
            match trainer.advance()? {
                Progress::Stepped { step } => self.heart.stepped(step, trainer.work(step + 1)),
                Progress::Logged(row) => {
                    self.heart.stepped(row.step, trainer.work(row.step + 1));
                    log.row(&row).map_err(disk)?;
                    self.link.tell(&FromWorker::Row { place: assignment.place, row });
                }
                Progress::Ended(outcome) => {
                    self.heart.enter(Phase::Closing, 1.0);
                    if let (Some(saving), Some(run)) = (&mut saving, trainer.built_in()) {
                        saving.end(run, &outcome)?;
                    }
                    // It is flushed to disk when the result is published, while this worker trains the next run.
                    drop(log);
                    return Ok(End::Result { outcome });
                }
            }
            if let (Some(saving), Some(run)) = (&mut saving, trainer.built_in()) {
                saving.stepped(run, &log)?;
            }
        }
    }

    /// Sends what is printed during the attempt to its `worker.log`.
    fn redirect(&self, assignment: &Assignment) -> Result<(), Failure> {
        let path = assignment.folder.join("worker.log");
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|file| self.errors.to(file))
            .map_err(|error| Failure::new(Cause::Disk, format!("{} cannot be opened: {error}", path.display())))
    }
}

/// The controller's orders as an attempt sees them between two steps.
struct Orders<'a> {
    inbox: &'a Receiver<Order>,
    vigil: &'a Vigil,
    place: Place,
    after: After,
    error: Option<WorkerError>,
}

impl Orders<'_> {
    /// Whether the attempt is to stop now.
    fn stop(&mut self) -> bool {
        if self.vigil.is_alone() {
            return true;
        }
        loop {
            match self.inbox.try_recv() {
                Ok(Ok(ToWorker::Cancel { place })) if place == self.place => return true,
                // It crossed the end of an earlier attempt.
                Ok(Ok(ToWorker::Cancel { .. } | ToWorker::Beat)) => {}
                Ok(Ok(ToWorker::Shutdown)) => self.after = After::Leave,
                Ok(Ok(ToWorker::Assign { .. })) => {
                    self.error = Some(WorkerError::Nonsense("an attempt for a lane that is not free"));
                    return true;
                }
                Ok(Err(error)) => {
                    self.error = Some(error.into());
                    return true;
                }
                // After `shutdown` nobody sends any more.
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return false,
            }
        }
    }
}

pub(super) fn disk(error: StoreError) -> Failure {
    Failure::new(Cause::Disk, error.full_text())
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    format!("the trainer panicked: {}", text.as_deref().unwrap_or("no message"))
}
