//! What an attempt can go on from.

use std::path::{Path, PathBuf};

use super::CheckpointError;
use super::file::{Holds, Identity, open};
use super::tensors;
use crate::model::ModelParams;
use crate::store::earlier_checkpoints;
use crate::trainer::Snapshot;

/// A checkpoint that was read, verified, and fits.
#[derive(Debug)]
pub struct Found {
    /// The run as it was.
    pub snapshot: Snapshot,
    /// The log's bytes as they were, header included.
    pub log: Vec<u8>,
    /// Rows in them.
    pub rows: u64,
    /// The file.
    pub path: PathBuf,
}

/// What a search among the checkpoints of earlier attempts came to.
#[derive(Debug, Default)]
pub struct Search {
    /// The newest that can be gone on from.
    pub found: Option<Found>,
    /// Newer ones that cannot be used.
    pub refused: Vec<CheckpointError>,
    /// All from the found one on to the oldest, the oldest first.
    pub older: Vec<PathBuf>,
}

/// Finds the newest checkpoint of the earlier attempts at a run that is whole, is that run's, and whose rows are there.
///
/// # Errors
/// The run's folder cannot be read.
pub fn newest(attempt: &Path, identity: &Identity, params: &ModelParams, sr4: bool) -> Result<Search, CheckpointError> {
    let mut search = Search::default();
    let mut candidates = earlier_checkpoints(attempt)?.into_iter();
    for path in candidates.by_ref() {
        match read(&path, identity, params, sr4) {
            Ok(found) => {
                search.found = Some(found);
                search.older = candidates.collect();
                search.older.reverse();
                search.older.push(path);
                break;
            }
            Err(error) => search.refused.push(error),
        }
    }
    Ok(search)
}

fn read(path: &Path, identity: &Identity, params: &ModelParams, sr4: bool) -> Result<Found, CheckpointError> {
    let foreign = |why: String| CheckpointError::Foreign { path: path.to_owned(), why };
    let file = open(path)?;
    let label = &file.label;
    let (Holds::Checkpoint, Some(progress), Some(mark)) = (label.holds, &label.progress, &label.log) else {
        return Err(foreign("it is no checkpoint".to_owned()));
    };
    check_identity(&label.identity, identity).map_err(foreign)?;
    let snapshot = tensors::snapshot(params, sr4, progress.clone(), &file.tensors()?).map_err(foreign)?;
    let log = mark.kept(&path.with_file_name("log.csv"))?;
    Ok(Found { snapshot, log, rows: mark.rows, path: path.to_owned() })
}

/// Whether a file's run is ours; else how it is another.
pub(super) fn check_identity(theirs: &Identity, ours: &Identity) -> Result<(), String> {
    if theirs.numerics != ours.numerics {
        return Err(format!("its arithmetic is version {}, not {}", theirs.numerics, ours.numerics));
    }
    if theirs != ours {
        return Err(format!("it is of run {}", theirs.run));
    }
    Ok(())
}
