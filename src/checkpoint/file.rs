//! The file: its label, and the digest that seals it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use safetensors::{Dtype, SafeTensors, View};
use serde::{Deserialize, Serialize};

use super::CheckpointError;
use crate::run::{NUMERICS, RunId};
use crate::settings::{Settings, run_digest, run_id, without_neutral};
use crate::store::LogMark;
use crate::trainer::Progressed;

/// Version of the files.
const FORMAT: u32 = 2;
/// Key of the label in the file's metadata.
const KEY: &str = "diesweep";
/// What stands before the digest in the header: the label is JSON in a JSON string.
const BEFORE_DIGEST: &str = r#"\"digest\":\""#;
/// The digest while it is not known.
const NO_DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// A run between two steps.
    Checkpoint,
    /// A finished run's weights.
    Final,
}

/// Whose files these are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The run.
    pub run: RunId,
    /// Version of the arithmetic.
    pub numerics: u32,
    /// The whole digest of settings and corpus whose beginning is the run's id, hexadecimal.
    pub settings: String,
    /// The settings themselves, canonical; those that change no number, the corpus' path among them, are the defaults.
    pub configuration: Settings,
}

impl Identity {
    /// That of the run of these settings on the corpus of this digest.
    pub fn of(settings: &Settings, corpus_digest: &str) -> Self {
        Self {
            run: run_id(settings, corpus_digest),
            numerics: NUMERICS,
            settings: run_digest(settings, corpus_digest).to_string(),
            configuration: without_neutral(settings),
        }
    }
}

/// What a file says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// Version of the format.
    pub format: u32,
    /// What it holds.
    pub holds: Holds,
    /// Whose it is.
    pub identity: Identity,
    /// How far the run was; of a checkpoint.
    pub progress: Option<Progressed>,
    /// The attempt's log as it was; of a checkpoint.
    pub log: Option<LogMark>,
    /// blake3 of the file's bytes, with zeros in place of these 64 digits.
    pub digest: String,
}

impl Label {
    /// A label without its digest.
    pub(super) fn new(holds: Holds, identity: Identity, progress: Option<Progressed>, log: Option<LogMark>) -> Self {
        Self { format: FORMAT, holds, identity, progress, log, digest: NO_DIGEST.to_owned() }
    }
}

/// An array on its way into a file.
pub(super) struct Array<'a> {
    pub(super) shape: Vec<usize>,
    pub(super) values: Values<'a>,
}

/// An array's values.
#[derive(Clone, Copy)]
pub(super) enum Values<'a> {
    F32(&'a [f32]),
    I8(&'a [i8]),
}

impl View for Array<'_> {
    fn dtype(&self) -> Dtype {
        match self.values {
            Values::F32(_) => Dtype::F32,
            Values::I8(_) => Dtype::I8,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        match self.values {
            Values::F32(values) => {
                let mut bytes = vec![0; size_of_val(values)];
                for (to, x) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
                    *to = x.to_le_bytes();
                }
                bytes.into()
            }
            Values::I8(values) => values.iter().map(|x| x.cast_unsigned()).collect::<Vec<_>>().into(),
        }
    }

    fn data_len(&self) -> usize {
        match self.values {
            Values::F32(values) => size_of_val(values),
            Values::I8(values) => values.len(),
        }
    }
}

/// The bytes of a sealed file.
pub(super) fn seal(arrays: Vec<(String, Array<'_>)>, label: &Label) -> Result<Vec<u8>, CheckpointError> {
    let text = serde_json::to_string(label).map_err(|error| CheckpointError::Layout(error.to_string()))?;
    let metadata = HashMap::from([(KEY.to_owned(), text)]);
    let mut bytes =
        safetensors::serialize(arrays, Some(metadata)).map_err(|error| CheckpointError::Layout(error.to_string()))?;
    let at = digest_place(&bytes, NO_DIGEST)
        .ok_or_else(|| CheckpointError::Layout("the header has no place for the digest".to_owned()))?;
    let digest = blake3::hash(&bytes).to_hex();
    bytes[at..at + digest.len()].copy_from_slice(digest.as_bytes());
    Ok(bytes)
}

/// Where the digest stands in a file's bytes.
fn digest_place(bytes: &[u8], digest: &str) -> Option<usize> {
    let length = u64::from_le_bytes(*bytes.first_chunk()?);
    let header = bytes.get(8..)?.get(..usize::try_from(length).ok()?)?;
    let needle = [BEFORE_DIGEST.as_bytes(), digest.as_bytes()].concat();
    let found = header.windows(needle.len()).position(|window| window == needle)?;
    Some(8 + found + BEFORE_DIGEST.len())
}

/// A file that was read and found whole.
#[derive(Debug)]
pub struct Opened {
    /// What it says of itself.
    pub label: Label,
    bytes: Vec<u8>,
}

/// Reads a file and verifies its digest.
///
/// # Errors
/// It cannot be read, a byte of it has changed, or it is none of diesweep's.
pub fn open(path: &Path) -> Result<Opened, CheckpointError> {
    let bytes = std::fs::read(path).map_err(|source| {
        CheckpointError::Store(crate::store::StoreError::Io {
            action: "read".to_owned(),
            path: path.to_owned(),
            source,
        })
    })?;
    let label = verify(&bytes).map_err(|why| CheckpointError::Damaged { path: path.to_owned(), why })?;
    if label.format != FORMAT {
        let why = format!("it has format {}, not {FORMAT}", label.format);
        return Err(CheckpointError::Foreign { path: path.to_owned(), why });
    }
    Ok(Opened { label, bytes })
}

/// The label of a file whose bytes are those that were written; else what is wrong.
pub(super) fn verify(bytes: &[u8]) -> Result<Label, String> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let text = metadata.metadata().as_ref().and_then(|entries| entries.get(KEY));
    let text = text.ok_or_else(|| format!("its metadata has no entry `{KEY}`"))?;
    let label: Label = serde_json::from_str(text).map_err(|error| format!("its label cannot be read: {error}"))?;
    let at = digest_place(bytes, &label.digest).ok_or("its digest is not in its place")?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..at]).update(NO_DIGEST.as_bytes()).update(&bytes[at + label.digest.len()..]);
    if *hasher.finalize().to_hex() != *label.digest {
        return Err("its bytes do not have the digest that it names".to_owned());
    }
    Ok(label)
}

impl Opened {
    /// The arrays.
    ///
    /// # Errors
    /// Never: the file was verified.
    pub fn tensors(&self) -> Result<SafeTensors<'_>, CheckpointError> {
        SafeTensors::deserialize(&self.bytes).map_err(|error| CheckpointError::Layout(error.to_string()))
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has no bytes; no file that was opened is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
