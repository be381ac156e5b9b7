//! A run outside of a sweep: one file, wherever the user wants it.

use std::path::Path;

use super::CheckpointError;
use super::file::{Holds, Identity, Label, Opened, seal};
use super::resume::check_identity;
use super::tensors;
use crate::model::ModelParams;
use crate::store::replace;
use crate::trainer::Snapshot;

/// Writes a checkpoint in place of the file that may be there. It counts on no log.
///
/// # Errors
/// The file cannot be written.
pub fn save(path: &Path, identity: Identity, params: &ModelParams, snapshot: &Snapshot) -> Result<(), CheckpointError> {
    let label = Label::new(Holds::Checkpoint, identity, Some(snapshot.progress.clone()), None);
    let bytes = seal(tensors::arrays(params, snapshot), &label)?;
    Ok(replace(path, &bytes)?)
}

impl Opened {
    /// The run as it was.
    ///
    /// # Errors
    /// It is no checkpoint, or of another run.
    pub fn snapshot(
        &self,
        path: &Path,
        identity: &Identity,
        params: &ModelParams,
        sr4: bool,
    ) -> Result<Snapshot, CheckpointError> {
        let foreign = |why: String| CheckpointError::Foreign { path: path.to_owned(), why };
        check_identity(&self.label.identity, identity).map_err(foreign)?;
        let Some(progress) = &self.label.progress else {
            return Err(foreign("it holds final weights, and no run can go on from them".to_owned()));
        };
        tensors::snapshot(params, sr4, progress.clone(), &self.tensors()?).map_err(foreign)
    }

    /// The weights alone, an arena.
    ///
    /// # Errors
    /// They are of another model.
    pub fn weights(&self, path: &Path, params: &ModelParams) -> Result<Vec<f32>, CheckpointError> {
        let foreign = |why: String| CheckpointError::Foreign { path: path.to_owned(), why };
        tensors::read_weights(params, &self.tensors()?).map_err(foreign)
    }
}
