//! Why a corpus cannot be used.

use std::io;
use std::path::PathBuf;

use super::Split;

/// A corpus cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// Nothing is at the path.
    #[error("the corpus `{}` does not exist (data = \"builtin\" needs no file)", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The file or folder cannot be read.
    #[error("the corpus `{}` cannot be read: {source}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A device, pipe or socket.
    #[error("the corpus `{}` is neither a file nor a folder", path.display())]
    Special {
        /// The path.
        path: PathBuf,
    },
    /// The file has no bytes.
    #[error("the corpus `{}` is empty", path.display())]
    Empty {
        /// The path.
        path: PathBuf,
    },
    /// The folder holds no file that counts.
    #[error("the corpus folder `{}` holds no files (hidden ones do not count)", path.display())]
    NoFiles {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds a folder.
    #[error("the corpus folder `{}` holds the folder `{}`: only files directly in a corpus folder are read", path.display(), inner.display())]
    Nested {
        /// The folder.
        path: PathBuf,
        /// The folder in it.
        inner: PathBuf,
    },
    /// A split has no window.
    #[error("the corpus {name} of {len} bytes is too short: its {split} split has {split_len} bytes, but seq_len = {seq_len} needs {}", seq_len + 1)]
    TooShort {
        /// The corpus, as messages call it.
        name: String,
        /// Bytes of the corpus.
        len: usize,
        /// The split that is too short; the first in the order train, val, test.
        split: Split,
        /// Its bytes.
        split_len: usize,
        /// Tokens of a window.
        seq_len: usize,
    },
    /// Another program wrote to the file while it was in use.
    #[error("the corpus `{}` was changed while it was in use", path.display())]
    Changed {
        /// The path.
        path: PathBuf,
    },
}
