//! An attempt's checkpoints: where it goes on from, and when it is saved.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::attempt::disk;
use super::link::Link;
use crate::checkpoint::{CheckpointError, Found, Identity, Saver, newest, save_final};
use crate::event::{Cause, Failure};
use crate::model::{ModelConfig, ModelParams};
use crate::plan::CheckpointEvery;
use crate::protocol::{Assignment, FromWorker, Place};
use crate::settings::Opt;
use crate::store::LogWriter;
use crate::trainer::Snapshot;

/// Saves an attempt's run.
pub(super) struct Saving<'a> {
    link: &'a Link,
    place: Place,
    saver: Saver,
    identity: Identity,
    params: Arc<ModelParams>,
    every: CheckpointEvery,
    save_final: bool,
    folder: PathBuf,
    /// Steps that are done.
    steps: u64,
    /// Steps of the last checkpoint that was begun, or gone on from.
    saved: u64,
    saved_at: Instant,
}

/// What earlier attempts left of a run.
pub(super) struct Earlier {
    /// The run as it was saved.
    pub(super) snapshot: Option<Snapshot>,
    /// Why newer checkpoints could not be used.
    pub(super) refused: Vec<String>,
    log: Option<(Vec<u8>, u64)>,
    older: Vec<PathBuf>,
    identity: Identity,
    params: Arc<ModelParams>,
}

/// Looks for the newest checkpoint of the run's earlier attempts.
pub(super) fn earlier(assignment: &Assignment) -> Result<Earlier, Failure> {
    let settings = &assignment.settings;
    let params = Arc::new(ModelParams::new(&ModelConfig::from(settings)));
    let identity = Identity::of(settings, &assignment.corpus.digest);
    let search = newest(&assignment.folder, &identity, &params, settings.opt == Opt::Sr4).map_err(failure)?;
    let refused = search.refused.iter().map(ToString::to_string).collect();
    let found = search.found.map(|Found { snapshot, log, rows, .. }| (snapshot, (log, rows)));
    let (snapshot, log) = found.unzip();
    Ok(Earlier { snapshot, refused, log, older: search.older, identity, params })
}

/// Opens an attempt's log: with the rows that were kept, if it goes on from an earlier attempt.
pub(super) fn log(assignment: &Assignment, earlier: Option<&Earlier>) -> Result<LogWriter, Failure> {
    let path = assignment.folder.join("log.csv");
    match earlier.and_then(|earlier| earlier.log.as_ref()) {
        Some((kept, rows)) => LogWriter::go_on(&path, kept, *rows),
        None => LogWriter::create(&path),
    }
    .map_err(disk)
}

impl<'a> Saving<'a> {
    /// Saves an attempt that begins after `steps` steps.
    pub(super) fn new(assignment: &Assignment, earlier: Earlier, steps: u64, link: &'a Link) -> Self {
        let Earlier { older, identity, params, .. } = earlier;
        let folder = assignment.folder.clone();
        Self {
            link,
            place: assignment.place,
            saver: Saver::new(&folder, identity.clone(), Arc::clone(&params), older),
            identity,
            params,
            every: assignment.checkpoint_every,
            save_final: assignment.settings.save_final,
            folder,
            steps,
            saved: steps,
            saved_at: Instant::now(),
        }
    }

    /// When the last checkpoint was begun.
    pub(super) const fn saved_at(&self) -> Instant {
        self.saved_at
    }

    /// Whether a finished run's weights are kept.
    pub(super) const fn keeps_weights(&self) -> bool {
        self.save_final
    }

    /// Whether something was trained that no checkpoint holds.
    pub(super) const fn is_behind(&self) -> bool {
        self.steps > self.saved
    }

    /// After a step: tells of what has been written meanwhile. Whether the run is to be saved now.
    pub(super) fn stepped(&mut self, steps: u64) -> Result<bool, Failure> {
        self.steps = steps;
        let written = self.saver.written();
        self.tell(written)?;
        // A disk that is slower than training gets fewer checkpoints, and training does not wait for it.
        Ok(self.is_due() && self.saver.is_idle())
    }

    fn is_due(&self) -> bool {
        match self.every {
            CheckpointEvery::Steps(steps) => self.steps / steps > self.saved / steps,
            CheckpointEvery::Milliseconds(ms) => {
                self.steps > self.saved && self.saved_at.elapsed() >= Duration::from_millis(ms)
            }
        }
    }

    /// Begins to write a checkpoint.
    pub(super) fn save(&mut self, snapshot: Snapshot, log: &LogWriter) -> Result<(), Failure> {
        let written = self.saver.save(snapshot, log);
        self.tell(written)?;
        self.saved = self.steps;
        self.saved_at = Instant::now();
        Ok(())
    }

    /// The run has ended: waits for what is being written, which nothing may be once the result is published, and keeps
    /// a finished run's weights where that is asked for.
    pub(super) fn end(&mut self, weights: Option<&[f32]>) -> Result<(), Failure> {
        self.wait()?;
        if let Some(weights) = weights.filter(|_| self.save_final) {
            save_final(&self.folder, self.identity.clone(), &self.params, weights).map_err(failure)?;
        }
        Ok(())
    }

    /// Waits for what is being written.
    pub(super) fn wait(&mut self) -> Result<(), Failure> {
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
                say!("diesweep worker: a checkpoint is missing: {}", failure.message);
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
