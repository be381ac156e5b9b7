//! What can go wrong with a checkpoint.

use std::io;
use std::path::PathBuf;

use crate::store::StoreError;

/// A checkpoint cannot be written or used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// It cannot be read, or written.
    #[error("{}", .0.full_text())]
    Store(StoreError),
    /// Its bytes are not those that were written.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How that is known.
        why: String,
    },
    /// It is whole, and of something else.
    #[error("{} does not fit: {why}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What of it does not fit.
        why: String,
    },
    /// The arrays cannot be laid out as a file.
    #[error("a checkpoint cannot be laid out: {0}")]
    Layout(String),
    /// The thread that writes could not be started.
    #[error("the thread that writes checkpoints cannot be started: {0}")]
    Thread(io::Error),
    /// The thread that writes panicked.
    #[error("the thread that writes checkpoints panicked")]
    Panicked,
}

impl From<StoreError> for CheckpointError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
