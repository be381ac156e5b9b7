//! Bytes of a file or folder.

use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use memmap2::Mmap;

use super::DataError;

/// The bytes of a corpus, wherever they live.
#[derive(Debug)]
pub(super) enum Source {
    /// A mapped file.
    Mapped { path: PathBuf, map: Mmap, stamp: Stamp },
    /// In memory.
    Owned(Vec<u8>),
}

impl Deref for Source {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped { map, .. } => map,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// What changes when somebody writes to a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
}

impl From<&Metadata> for Stamp {
    fn from(m: &Metadata) -> Self {
        Self { len: m.len(), modified: m.modified().ok() }
    }
}

impl Source {
    /// Opens a file, or joins a folder's files.
    pub(super) fn open(path: &Path) -> Result<Self, DataError> {
        let meta = fs::metadata(path).map_err(|e| unreadable(path, e))?;
        // Asked before opening: to open a pipe would wait for its writer.
        if meta.is_dir() {
            join_folder(path).map(Self::Owned)
        } else if meta.is_file() {
            map_file(path)
        } else {
            Err(DataError::Special { path: path.to_owned() })
        }
    }

    /// Whether a mapped file still has the length and time stamp that it had when it was opened.
    pub(super) fn check_unchanged(&self) -> Result<(), DataError> {
        let Self::Mapped { path, stamp, .. } = self else {
            return Ok(());
        };
        let now = fs::metadata(path).map_err(|e| unreadable(path, e))?;
        if Stamp::from(&now) == *stamp { Ok(()) } else { Err(DataError::Changed { path: path.clone() }) }
    }
}

fn unreadable(path: &Path, source: io::Error) -> DataError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound => DataError::Missing { path },
        _ => DataError::Unreadable { path, source },
    }
}

fn map_file(path: &Path) -> Result<Source, DataError> {
    let file = File::open(path).map_err(|e| unreadable(path, e))?;
    let meta = file.metadata().map_err(|e| unreadable(path, e))?;
    if meta.len() == 0 {
        return Err(DataError::Empty { path: path.to_owned() });
    }
    // SAFETY: the map is private and read-only, so nothing here writes to it. That no other program shortens or
    // rewrites the file meanwhile cannot be enforced on Linux. A rewrite would change bytes under a `&[u8]`, which are
    // only ever read as numbers; a cut-off page ends the process with SIGBUS, which a controller sees as a crashed
    // worker. `Corpus::check_unchanged` finds both.
    let map = unsafe { Mmap::map(&file) }.map_err(|e| unreadable(path, e))?;
    Ok(Source::Mapped { path: path.to_owned(), map, stamp: Stamp::from(&meta) })
}

fn join_folder(folder: &Path) -> Result<Vec<u8>, DataError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|e| unreadable(folder, e))? {
        let entry = entry.map_err(|e| unreadable(folder, e))?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            files.push(entry.path());
        }
    }
    if files.is_empty() {
        return Err(DataError::NoFiles { path: folder.to_owned() });
    }
    // By the names' bytes: the same order in every locale.
    files.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    let mut bytes = Vec::new();
    for path in &files {
        let meta = fs::metadata(path).map_err(|e| unreadable(path, e))?;
        if meta.is_dir() {
            return Err(DataError::Nested { path: folder.to_owned(), inner: path.clone() });
        }
        if !meta.is_file() {
            return Err(DataError::Special { path: path.clone() });
        }
        bytes.extend(fs::read(path).map_err(|e| unreadable(path, e))?);
    }
    if bytes.is_empty() {
        return Err(DataError::Empty { path: folder.to_owned() });
    }
    Ok(bytes)
}
