//! Why a golden case cannot be run.

use std::io;
use std::path::PathBuf;

/// A golden case, or a folder of them, is unusable.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// A file or folder cannot be read.
    #[error("`{}` cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A folder without cases.
    #[error("`{}` holds no golden cases (*.json)", .0.display())]
    NoCases(PathBuf),
    /// Arrays that no case speaks of.
    #[error("`{}` has no case beside it (`{name}.json`)", path.display())]
    Orphan {
        /// The arrays' file.
        path: PathBuf,
        /// Name of the missing case.
        name: String,
    },
    /// A kind that this version does not know.
    #[error("unknown kind `{0}` (known: philox, windows, lr, init, init_digest, adamw, sr4, model, train)")]
    UnknownKind(String),
    /// The case's JSON is not what its kind asks for.
    #[error("`{}` is malformed: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The arrays' file is not a safetensors file.
    #[error("`{}` is malformed: {source}", path.display())]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// Why.
        source: safetensors::SafeTensorError,
    },
    /// An array is missing, or not what the case asks for.
    #[error("array `{name}` {problem}")]
    Array {
        /// The array.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Values that make no sense together.
    #[error("{0}")]
    Values(String),
    /// Training could not start.
    #[error(transparent)]
    Train(#[from] crate::trainer::TrainError),
    /// The corpus could not be opened.
    #[error(transparent)]
    Corpus(#[from] crate::data::DataError),
}
