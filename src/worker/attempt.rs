//! One attempt, from its assignment to its one end.

use std::any::Any;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use super::heart::Heart;
use super::link::Link;
use super::saving::{self, Saving};
use super::train::Trainer;
use crate::event::{Cause, Failure, Phase};
use crate::plan::{Mark, Marker};
use crate::protocol::{Assignment, End, FromWorker, Place};
use crate::run::{Ending, Outcome, Row};
use crate::store::{Context, LogWriter, StoreError, read_log};
use crate::trainer::Progress;

/// An attempt in hand. Sends its one `ended`, whichever way it is left.
pub(super) struct Attempt<'a> {
    link: &'a Link,
    heart: &'a Heart,
    place: Place,
    log: Option<LogWriter>,
    saving: Option<Saving<'a>>,
    end: Option<End>,
    /// Whether its end is told by that of the process.
    silent: bool,
    pub(super) cancelled: bool,
    /// Steps of the run.
    steps: u64,
    marker: Marker,
    /// Where it rests.
    mark: Option<Mark>,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.heart.end(self.place.lane);
        // The log is flushed to disk when the result is published, while this worker trains other runs.
        (self.log, self.saving) = (None, None);
        if self.silent {
            return;
        }
        // The worker is leaving because of something else that went wrong: no fault of the run, which is tried again.
        let end = self.end.take().unwrap_or_else(|| End::Failed {
            failure: Failure::new(Cause::Crashed, "the worker left it without an end"),
        });
        self.link.tell(&FromWorker::Ended { place: self.place, end });
    }
}

impl<'a> Attempt<'a> {
    /// An attempt that has only been assigned.
    pub(super) fn new(place: Place, link: &'a Link, heart: &'a Heart) -> Self {
        heart.begin(place);
        let (marker, mark) = (Marker::new(None), None);
        Self {
            link,
            heart,
            place,
            log: None,
            saving: None,
            end: None,
            silent: false,
            cancelled: false,
            steps: 0,
            marker,
            mark,
        }
    }

    /// Puts the attempt in its lane, where earlier attempts left it or at its beginning.
    pub(super) fn begin(&mut self, assignment: &Assignment, trainer: &mut impl Trainer) -> Result<(), Failure> {
        let mut earlier = match trainer.saves() {
            true => Some(saving::earlier(assignment)?),
            false => None,
        };
        let snapshot = earlier.as_mut().and_then(|earlier| earlier.snapshot.take());
        let steps = snapshot.as_ref().map(|snapshot| snapshot.progress.steps);
        trainer.begin(assignment, snapshot)?;
        self.log = Some(saving::log(assignment, earlier.as_ref())?);
        (self.steps, self.marker) = (assignment.settings.steps, Marker::new(assignment.rest));
        if assignment.rest.is_some() && steps.is_some() {
            // It may have been trained further than it is to go by now.
            let rows = read_log(&assignment.folder.join("log.csv")).map_err(disk)?.rows;
            rows.iter().for_each(|row| self.judge(row));
        }
        if let Some(earlier) = earlier {
            let refused = earlier.refused.clone();
            if steps.is_some() || !refused.is_empty() {
                note(&worker_log(assignment), &refused)?;
                self.link.tell(&FromWorker::Resumed { place: self.place, steps, refused });
            }
            self.saving = Some(Saving::new(assignment, earlier, steps.unwrap_or(0), self.link));
        }
        let first = steps.unwrap_or(0);
        self.heart.resumed(self.lane(), first);
        self.heart.enter(self.lane(), Phase::Training, trainer.work(self.lane(), first));
        Ok(())
    }

    pub(super) const fn place(&self) -> Place {
        self.place
    }

    pub(super) const fn lane(&self) -> u32 {
        self.place.lane
    }

    /// When it was saved last: who waited longest is saved first.
    pub(super) fn saved_at(&self) -> Option<Instant> {
        self.saving.as_ref().map(Saving::saved_at)
    }

    /// Takes in what the trainer did. Whether the attempt is over.
    pub(super) fn take(
        &mut self,
        progress: Result<Progress, Failure>,
        trainer: &mut impl Trainer,
    ) -> Result<bool, Failure> {
        match progress? {
            Progress::Stepped { step } => self.stepped(step, trainer)?,
            Progress::Logged(row) => {
                self.row(row)?;
                self.stepped(row.step, trainer)?;
            }
            Progress::Ended(outcome) => {
                self.result(outcome, trainer)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn row(&mut self, row: Row) -> Result<(), Failure> {
        if let Some(log) = &mut self.log {
            log.row(&row).map_err(disk)?;
        }
        self.link.tell(&FromWorker::Row { place: self.place, row });
        self.judge(&row);
        Ok(())
    }

    /// Finds out whether it rests behind a row.
    fn judge(&mut self, row: &Row) {
        let mark = self.marker.row(row.step, [row.train_bpb, row.val_bpb, row.val_acc]);
        // At its last step it is over.
        self.mark = self.mark.or(mark.filter(|mark| mark.steps < self.steps));
    }

    /// Whether it is to be taken out of its lane.
    pub(super) const fn is_to_stop(&self) -> bool {
        self.cancelled || self.mark.is_some()
    }

    fn stepped(&mut self, step: u64, trainer: &mut impl Trainer) -> Result<(), Failure> {
        self.heart.stepped(self.lane(), step, trainer.work(self.lane(), step + 1));
        let due = self.saving.as_mut().map_or(Ok(false), |saving| saving.stepped(step + 1))?;
        if due { self.save(trainer) } else { Ok(()) }
    }

    /// Begins to write a checkpoint.
    fn save(&mut self, trainer: &mut impl Trainer) -> Result<(), Failure> {
        if let (Some(saving), Some(log)) = (&mut self.saving, &self.log)
            && let Some(snapshot) = trainer.snapshot(self.place.lane)?
        {
            saving.save(snapshot, log)?;
        }
        Ok(())
    }

    fn result(&mut self, outcome: Box<Outcome>, trainer: &mut impl Trainer) -> Result<(), Failure> {
        self.heart.enter(self.lane(), Phase::Closing, 1.0);
        if let Some(saving) = &mut self.saving {
            let kept = saving.keeps_weights() && matches!(outcome.ending, Ending::Finished(_));
            let weights = if kept { Some(trainer.weights(self.place.lane)?) } else { None };
            saving.end(weights.as_deref())?;
        }
        self.end = Some(End::Result { outcome });
        Ok(())
    }

    /// The attempt stops: begins to save it as it is, and takes it out of its lane.
    pub(super) fn stop(&mut self, trainer: &mut impl Trainer) -> Result<(), Failure> {
        self.heart.enter(self.lane(), Phase::Closing, 1.0);
        if self.saving.as_ref().is_some_and(Saving::is_behind) {
            self.save(trainer)?;
        }
        trainer.empty(self.lane())
    }

    /// Waits for the disk, after [`Attempt::stop`].
    pub(super) fn stopped(mut self) {
        let written = self.saving.as_mut().map_or(Ok(()), Saving::wait);
        self.end = Some(match written {
            Ok(()) => match self.mark {
                Some(mark) => End::Rested { mark },
                None => End::Cancelled { step: self.heart.step(self.lane()) },
            },
            Err(failure) => End::Failed { failure },
        });
    }

    /// The attempt fails.
    pub(super) fn fail(mut self, failure: Failure) {
        self.end = Some(End::Failed { failure });
    }

    /// The process ends with the attempt in hand: its controller learns both at once.
    pub(super) fn leave(mut self) {
        self.silent = true;
    }
}

/// Where what is printed during an attempt goes.
pub(super) fn worker_log(assignment: &Assignment) -> PathBuf {
    assignment.folder.join("worker.log")
}

/// Opens an attempt's `worker.log`.
pub(super) fn open_worker_log(path: &std::path::Path) -> Result<std::fs::File, Failure> {
    OpenOptions::new().append(true).create(true).open(path).context("open", path).map_err(disk)
}

fn note(path: &std::path::Path, lines: &[String]) -> Result<(), Failure> {
    let mut file = open_worker_log(path)?;
    for line in lines {
        // What is said here is told to the controller too.
        let _ = writeln!(file, "diesweep worker: {line}");
    }
    Ok(())
}

pub(super) fn disk(error: StoreError) -> Failure {
    Failure::new(if error.is_disk_full() { Cause::DiskFull } else { Cause::Disk }, error.full_text())
}

pub(super) fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    format!("the trainer panicked: {}", text.as_deref().unwrap_or("no message"))
}
