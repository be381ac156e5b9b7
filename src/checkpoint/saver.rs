//! Writing while training goes on.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::CheckpointError;
use super::file::{Holds, Identity, Label, seal};
use super::tensors;
use crate::model::ModelParams;
use crate::store::{LogWriter, checkpoint_file, final_weights, remove_if_there, replace, sync};
use crate::trainer::Snapshot;

/// Checkpoints of a run that are kept.
const KEPT: usize = 2;

/// Writes the checkpoints of one attempt.
#[derive(Debug)]
pub struct Saver {
    folder: PathBuf,
    identity: Identity,
    params: Arc<ModelParams>,
    /// The run's checkpoints that are on disk, the oldest first, those of earlier attempts included.
    kept: VecDeque<PathBuf>,
    /// The checkpoint that is being written.
    job: Option<JoinHandle<Result<Written, CheckpointError>>>,
}

/// A checkpoint that is on disk.
#[derive(Debug)]
struct Written {
    steps: u64,
    path: PathBuf,
    /// Oldest checkpoints that were removed for it.
    removed: usize,
}

impl Saver {
    /// Writes into an attempt's folder. `kept` are the checkpoints of earlier attempts that new ones make needless, the
    /// oldest first.
    pub fn new(folder: &Path, identity: Identity, params: Arc<ModelParams>, kept: Vec<PathBuf>) -> Self {
        Self { folder: folder.to_owned(), identity, params, kept: kept.into(), job: None }
    }

    /// Whether nothing is being written.
    pub fn is_idle(&self) -> bool {
        self.job.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Begins to write a checkpoint with the log as it is now; the older one than the two newest is removed once it is
    /// on disk. What was being written before is waited for.
    ///
    /// # Errors
    /// The earlier one could not be written, or no thread can be started.
    pub fn save(&mut self, snapshot: Snapshot, log: &LogWriter) -> Result<Option<u64>, CheckpointError> {
        let before = self.wait()?;
        let steps = snapshot.progress.steps;
        let path = checkpoint_file(&self.folder, steps);
        let excess = (self.kept.len() + 1).saturating_sub(KEPT);
        let job = Job {
            label: Label::new(
                Holds::Checkpoint,
                self.identity.clone(),
                Some(snapshot.progress.clone()),
                Some(log.mark()),
            ),
            log: log.path().to_owned(),
            params: Arc::clone(&self.params),
            needless: self.kept.iter().take(excess).cloned().collect(),
            snapshot,
            path,
        };
        let thread = std::thread::Builder::new().name("checkpoint".to_owned());
        self.job = Some(thread.spawn(move || job.write(steps)).map_err(CheckpointError::Thread)?);
        Ok(before)
    }

    /// The steps of a checkpoint that has been written since this was asked last.
    ///
    /// # Errors
    /// It could not be written.
    pub fn written(&mut self) -> Result<Option<u64>, CheckpointError> {
        if self.is_idle() { self.wait() } else { Ok(None) }
    }

    /// Waits for what is being written: the steps of the checkpoint.
    ///
    /// # Errors
    /// It could not be written.
    pub fn wait(&mut self) -> Result<Option<u64>, CheckpointError> {
        let Some(job) = self.job.take() else { return Ok(None) };
        // What could not be written leaves the list as it is: what it was to replace is still there.
        let written = job.join().map_err(|_| CheckpointError::Panicked)??;
        self.kept.drain(..written.removed);
        self.kept.push_back(written.path);
        Ok(Some(written.steps))
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        // The attempt failed otherwise; what is written must not go on behind the next one's back.
        let _ = self.wait();
    }
}

/// A checkpoint to write.
struct Job {
    label: Label,
    log: PathBuf,
    params: Arc<ModelParams>,
    snapshot: Snapshot,
    path: PathBuf,
    needless: Vec<PathBuf>,
}

impl Job {
    fn write(self, steps: u64) -> Result<Written, CheckpointError> {
        let bytes = seal(tensors::arrays(&self.params, &self.snapshot), &self.label)?;
        // A checkpoint is of no use without the rows that it counts on.
        sync(&self.log)?;
        replace(&self.path, &bytes)?;
        for path in &self.needless {
            remove_if_there(path)?;
        }
        Ok(Written { steps, path: self.path, removed: self.needless.len() })
    }
}

/// Writes a finished run's weights into its attempt's folder.
///
/// # Errors
/// The file cannot be written.
pub fn save_final(
    folder: &Path,
    identity: Identity,
    params: &ModelParams,
    weights: &[f32],
) -> Result<(), CheckpointError> {
    // Nothing volatile: every attempt at a run writes the same bytes.
    let label = Label::new(Holds::Final, identity, None, None);
    let bytes = seal(tensors::weights(params, weights), &label)?;
    Ok(replace(&final_weights(folder), &bytes)?)
}
