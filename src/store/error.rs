//! What can go wrong with a results folder.

use std::io;
use std::path::{Path, PathBuf};

/// A results folder could not be used. Nothing that was there is lost.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// `write 120 bytes to`, `read`, `create`.
        action: String,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something else stands where a folder is meant.
    #[error("{} is not a folder", .0.display())]
    NotAFolder(PathBuf),
    /// The folder has another sweep's results.
    #[error("{} holds the results of the sweep `{theirs}`, not of `{ours}`", dir.display())]
    OtherSweep {
        /// Results folder.
        dir: PathBuf,
        /// Name in its plan.
        theirs: String,
        /// Name of the sweep at hand.
        ours: String,
    },
    /// The folder is no results folder.
    #[error("{} is not a results folder: it holds `{entry}` and no plan.json of diesweep", dir.display())]
    Foreign {
        /// The folder.
        dir: PathBuf,
        /// First entry that does not belong.
        entry: String,
    },
    /// A folder without a plan.
    #[error("{} is not a results folder: it has no plan.json", .0.display())]
    NoPlan(PathBuf),
    /// The folder's plan cannot be understood.
    #[error("{} is not a plan of diesweep: {why}", path.display())]
    BadPlan {
        /// Path of plan.json.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another controller works on the folder.
    #[error(
        "{} is in use by {holder}; wait for it to end or, if you know that it is gone, remove {}",
        dir.display(), lock.display()
    )]
    Held {
        /// Results folder.
        dir: PathBuf,
        /// Who: process and host.
        holder: String,
        /// The lock's file.
        lock: PathBuf,
    },
    /// A log is not whole.
    #[error("{} is not a whole log: {why}", path.display())]
    BrokenLog {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl StoreError {
    /// Whether it comes from a full disk or quota: waiting for space may help.
    pub fn is_disk_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
    }

    /// The message with its cause, on one line.
    pub fn full_text(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }
}

/// Gives a system's error its context.
pub(crate) trait Context<T> {
    fn context(self, action: &str, path: &Path) -> Result<T, StoreError>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, action: &str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::Io { action: action.to_owned(), path: path.to_owned(), source })
    }
}
