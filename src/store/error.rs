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
    /// The folder of this user on this host cannot be trusted.
    #[error("{} is not this user's alone", .0.display())]
    NotOurs(PathBuf),
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

    /// Whether it comes from what stands in one run's folder, such as a folder in a file's place or another user's file: other
    /// runs are not concerned, and waiting does not help.
    pub fn concerns_one_run(&self) -> bool {
        use io::ErrorKind::{AlreadyExists, InvalidInput, IsADirectory, NotADirectory, PermissionDenied};
        let odd = [AlreadyExists, InvalidInput, IsADirectory, NotADirectory, PermissionDenied];
        match self {
            Self::Io { path, source, .. } => odd.contains(&source.kind()) && is_in_run(path),
            Self::NotAFolder(path) | Self::BrokenLog { path, .. } => is_in_run(path),
            Self::NotOurs(_)
            | Self::OtherSweep { .. }
            | Self::Foreign { .. }
            | Self::NoPlan(_)
            | Self::BadPlan { .. } => false,
        }
    }

    /// The message with its cause, on one line.
    pub fn full_text(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }
}

/// Whether a path is that of a run's folder or lies in one.
fn is_in_run(path: &Path) -> bool {
    let names = path.iter().filter_map(std::ffi::OsStr::to_str);
    names.into_iter().any(|name| super::layout::id_of_folder(name).is_some())
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
