//! A corpus, its splits and windows.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::DataError;
use super::builtin::Builtin;
use super::source::Source;
use crate::rng::window_offset;
use crate::settings::{Data, TestBatches};

/// A part of the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// The first 90%.
    Train,
    /// The next 5%.
    Val,
    /// The rest.
    Test,
}

impl Split {
    /// All, in the corpus's order.
    pub const ALL: [Self; 3] = [Self::Train, Self::Val, Self::Test];

    /// Word of the random counter of its windows.
    pub const fn id(self) -> u32 {
        match self {
            Self::Train => 0,
            Self::Val => 1,
            Self::Test => 2,
        }
    }

    /// Where it lies in a corpus of `len` bytes.
    pub const fn range(self, len: usize) -> Range<usize> {
        // In 128 bits, where the product always fits.
        let train = (len as u128 * 90 / 100) as usize;
        let val = (len as u128 * 5 / 100) as usize;
        match self {
            Self::Train => 0..train,
            Self::Val => train..train + val,
            Self::Test => train + val..len,
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Train => "train",
            Self::Val => "val",
            Self::Test => "test",
        })
    }
}

/// Bytes to train and evaluate on. Clones share the bytes.
///
/// A window is `seq_len + 1` bytes: inputs are all but the last, targets all but the first.
#[derive(Clone, Debug)]
pub struct Corpus(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// As messages call it.
    name: String,
    bytes: Bytes,
    digest: OnceLock<blake3::Hash>,
}

#[derive(Debug)]
enum Bytes {
    Read(Source),
    Generated(Builtin),
}

impl Corpus {
    /// Opens the corpus of a run.
    ///
    /// A file is mapped; a folder's files, those whose name does not begin with a dot, are joined in the order of
    /// their names' bytes, with nothing between them; a folder in a corpus folder is an error. Symbolic links are followed.
    pub fn open(data: &Data) -> Result<Self, DataError> {
        match data {
            Data::Path(path) => Self::open_path(path),
            Data::Builtin => Ok(Self::new("builtin".to_owned(), Bytes::Generated(Builtin::generate()))),
        }
    }

    fn open_path(path: &Path) -> Result<Self, DataError> {
        Ok(Self::new(format!("`{}`", path.display()), Bytes::Read(Source::open(path)?)))
    }

    /// A corpus of bytes in memory, under a name for messages.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self::new(name.into(), Bytes::Read(Source::Owned(bytes)))
    }

    fn new(name: String, bytes: Bytes) -> Self {
        Self(Arc::new(Inner { name, bytes, digest: OnceLock::new() }))
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.0.bytes {
            Bytes::Read(source) => source,
            Bytes::Generated(text) => text.bytes(),
        }
    }

    /// Number of bytes.
    #[allow(clippy::len_without_is_empty)] // `open` refuses an empty corpus
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// The generator behind the built-in corpus, which knows the probability of every byte.
    pub fn generator(&self) -> Option<&Builtin> {
        match &self.0.bytes {
            Bytes::Read(_) => None,
            Bytes::Generated(text) => Some(text),
        }
    }

    /// BLAKE3 of all bytes; computed at the first call.
    pub fn digest(&self) -> blake3::Hash {
        *self.0.digest.get_or_init(|| blake3::hash(self.bytes()))
    }

    /// Whether every split has at least one window of `seq_len` inputs and a target.
    pub fn check(&self, seq_len: usize) -> Result<(), DataError> {
        let len = self.len();
        for split in Split::ALL {
            let split_len = split.range(len).len();
            if split_len <= seq_len {
                return Err(DataError::TooShort { name: self.0.name.clone(), len, split, split_len, seq_len });
            }
        }
        Ok(())
    }

    /// Whether a mapped file still is the one that was opened, by its length and time stamp.
    ///
    /// A program that shortens a mapped file ends its readers with SIGBUS; one that rewrites it changes their numbers in
    /// silence. So replace a corpus by renaming, and let a run ask here before it publishes a result.
    pub fn check_unchanged(&self) -> Result<(), DataError> {
        match &self.0.bytes {
            Bytes::Read(source) => source.check_unchanged(),
            Bytes::Generated(_) => Ok(()),
        }
    }

    /// Where window number `i` of a split lies in the corpus; `seq_len + 1` bytes.
    ///
    /// # Panics
    /// When the split has no window of that length ([`Corpus::check`]).
    pub fn window(&self, split: Split, seed: u64, i: u64, seq_len: usize) -> Range<usize> {
        let range = split.range(self.len());
        let offset = window_offset(seed, split.id(), i, range.len() as u64, seq_len as u64);
        let start = range.start + offset as usize;
        start..start + seq_len + 1
    }

    /// Training window number `i`.
    pub fn train_window(&self, seed: u64, i: u64, seq_len: usize) -> &[u8] {
        &self.bytes()[self.window(Split::Train, seed, i, seq_len)]
    }

    /// Validation window number `i`.
    pub fn val_window(&self, seed: u64, i: u64, seq_len: usize) -> &[u8] {
        &self.bytes()[self.window(Split::Val, seed, i, seq_len)]
    }

    /// The test windows, the same for every seed: so many random ones, or consecutive ones from the split's
    /// start, the rest dropped.
    pub fn test_windows(&self, which: TestBatches, seq_len: usize) -> impl ExactSizeIterator<Item = &[u8]> {
        self.test_ranges(which, seq_len).map(|range| &self.bytes()[range])
    }

    /// Where the test windows lie in the corpus.
    pub fn test_ranges(&self, which: TestBatches, seq_len: usize) -> impl ExactSizeIterator<Item = Range<usize>> {
        /// One seed for every run: all are tested on the same bytes.
        const SEED: u64 = 0;
        let split = Split::Test.range(self.len());
        let count = match which {
            TestBatches::Windows(n) => usize::try_from(n).expect("fewer test windows than memory addresses"),
            TestBatches::All => split.len().saturating_sub(1) / seq_len,
        };
        (0..count).map(move |i| match which {
            TestBatches::Windows(_) => self.window(Split::Test, SEED, i as u64, seq_len),
            TestBatches::All => {
                let start = split.start + i * seq_len;
                start..start + seq_len + 1
            }
        })
    }
}

#[cfg(test)]
#[path = "corpus_tests.rs"]
mod tests;
