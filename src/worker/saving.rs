//! An attempt's checkpoints: where it goes on from, and when it is saved.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::attempt::disk;
use super::link::Link;
use crate::checkpoint::{CheckpointError, Found, Identity, Saver, newest, save_final};
use crate::event::{Cause, Failure};
use crate::model::{ModelConfig, ModelParams};
use crate::plan::CheckpointEvery;
use crate::protocol::{Assignment, FromWorker, Place};
use crate::run::{Ending, Outcome};
use crate::settings::Opt;
use crate::store::LogWriter;
use crate::trainer::Run;

/// Saves an attempt's run.
pub(super) struct Saving<'a> {
    link: &'a Link,
    place: Place,
    saver: Saver,
    identity: Identity,
    params: Arc<ModelParams>,
    every: CheckpointEvery,
    save_final: bool,
    folder: std::path::PathBuf,
    /// Steps that are done.
    steps: u64,
    /// Steps of the last checkpoint that was begun, or gone on from.
    saved: u64,
    saved_at: Instant,
}

/// Begins an attempt's log and checkpoints: where an earlier attempt was saved, if there was one. A trainer that cannot
/// be saved starts at the beginning.
pub(super) fn begin<'a>(
    assignment: &Assignment,
    run: Option<&mut Run>,
    link: &'a Link,
) -> Result<(LogWriter, Option<Saving<'a>>), Failure> {
    let (folder, place) = (&assignment.folder, assignment.place);
    let path = folder.join("log.csv");
    let Some(run) = run else {
        return Ok((LogWriter::create(&path).map_err(disk)?, None));
    };
    let settings = &assignment.settings;
    let params = Arc::new(ModelParams::new(&ModelConfig::from(settings)));
    let identity = Identity::of(settings, &assignment.corpus.digest);
    let search = newest(folder, &identity, &params, settings.opt == Opt::Sr4).map_err(failure)?;
    let steps = search.found.as_ref().map(|found| found.snapshot.progress.steps);
    if steps.is_some() || !search.refused.is_empty() {
        let refused: Vec<_> = search.refused.iter().map(ToString::to_string).collect();
        refused.iter().for_each(|why| eprintln!("diesweep worker: {why}"));
        link.tell(&FromWorker::Resumed { place, steps, refused });
    }
    let log = match search.found {
        Some(Found { snapshot, log, rows, .. }) => {
            run.restore(snapshot);
            LogWriter::go_on(&path, &log, rows)
        }
        None => LogWriter::create(&path),
    };
    let saving = Saving {
        link,
        place,
        saver: Saver::new(folder, identity.clone(), Arc::clone(&params), search.older),
        identity,
        params,
        every: assignment.checkpoint_every,
        save_final: settings.save_final,
        folder: folder.clone(),
        steps: steps.unwrap_or(0),
        saved: steps.unwrap_or(0),
        saved_at: Instant::now(),
    };
    Ok((log.map_err(disk)?, Some(saving)))
}

impl Saving<'_> {
    /// Steps that are done.
    pub(super) const fn steps(&self) -> u64 {
        self.steps
    }

    /// After a step: saves the run where that is due, and tells of what has been written meanwhile.
    pub(super) fn stepped(&mut self, run: &Run, log: &LogWriter) -> Result<(), Failure> {
        self.steps = run.steps();
        let written = self.saver.written();
        self.tell(written)?;
        // A disk that is slower than training gets fewer checkpoints, and training does not wait for it.
        if self.is_due() && self.saver.is_idle() { self.save(run, log) } else { Ok(()) }
    }

    fn is_due(&self) -> bool {
        match self.every {
            CheckpointEvery::Steps(steps) => self.steps / steps > self.saved / steps,
            CheckpointEvery::Milliseconds(ms) => {
                self.steps > self.saved && self.saved_at.elapsed() >= Duration::from_millis(ms)
            }
        }
    }

    fn save(&mut self, run: &Run, log: &LogWriter) -> Result<(), Failure> {
        let written = self.saver.save(run.snapshot(), log);
        self.tell(written)?;
        self.saved = self.steps;
        self.saved_at = Instant::now();
        Ok(())
    }

    /// The attempt stops: saves the run as it is, and waits for the disk.
    pub(super) fn stop(&mut self, run: &Run, log: &LogWriter) -> Result<(), Failure> {
        if self.steps > self.saved {
            self.save(run, log)?;
        }
        self.wait()
    }

    /// The run has ended: waits for what is being written, which nothing may be once the result is published, and keeps
    /// a finished run's weights where that is asked for.
    pub(super) fn end(&mut self, run: &Run, outcome: &Outcome) -> Result<(), Failure> {
        self.wait()?;
        if self.save_final && matches!(outcome.ending, Ending::Finished(_)) {
            save_final(&self.folder, self.identity.clone(), &self.params, &run.state().weights).map_err(failure)?;
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Failure> {
        let written = self.saver.wait();
        self.tell(written)
    }

    /// Tells what became of a checkpoint. One that there was no room for costs the run nothing but that: the one before
    /// is still there, and the next is written when it is due.
    fn tell(&self, written: Result<Option<u64>, CheckpointError>) -> Result<(), Failure> {
        let place = self.place;
        match written.map_err(failure) {
            Ok(written) => {
                if let Some(step) = written.and_then(|steps| steps.checked_sub(1)) {
                    self.link.tell(&FromWorker::Checkpointed { place, step });
                }
                Ok(())
            }
            Err(failure) if failure.cause == Cause::DiskFull => {
                eprintln!("diesweep worker: a checkpoint is missing: {}", failure.message);
                self.link.tell(&FromWorker::NotSaved { place, message: failure.message });
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }
}

fn failure(error: CheckpointError) -> Failure {
    let cause = match &error {
        CheckpointError::Store(error) if error.is_disk_full() => Cause::DiskFull,
        CheckpointError::Store(_) => Cause::Disk,
        CheckpointError::Thread(_) => Cause::OutOfMemory,
        CheckpointError::Damaged { .. }
        | CheckpointError::Foreign { .. }
        | CheckpointError::Layout(_)
        | CheckpointError::Panicked => Cause::Bug,
    };
    Failure::new(cause, error.to_string())
}
