//! The files of a case.

use std::fs;
use std::path::{Path, PathBuf};

use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::CaseError;

/// What a case tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Philox,
    Windows,
    Lr,
    Init,
    InitDigest,
    AdamW,
    Sr4,
    Model,
    Train,
}

impl Kind {
    fn named(name: &str) -> Result<Self, CaseError> {
        Ok(match name {
            "philox" => Self::Philox,
            "windows" => Self::Windows,
            "lr" => Self::Lr,
            "init" => Self::Init,
            "init_digest" => Self::InitDigest,
            "adamw" => Self::AdamW,
            "sr4" => Self::Sr4,
            "model" => Self::Model,
            "train" => Self::Train,
            other => return Err(CaseError::UnknownKind(other.to_owned())),
        })
    }
}

/// A case's texts and arrays as they lie on disk.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) kind: Kind,
    pub(super) dir: PathBuf,
    json_path: PathBuf,
    json: Vec<u8>,
    arrays_path: PathBuf,
}

#[derive(Deserialize)]
struct KindOnly {
    kind: String,
}

fn read(path: &Path) -> Result<Vec<u8>, CaseError> {
    fs::read(path).map_err(|source| CaseError::Unreadable { path: path.to_owned(), source })
}

/// Names of a folder's cases, sorted.
pub(super) fn list(dir: &Path) -> Result<Vec<String>, CaseError> {
    let unreadable = |source| CaseError::Unreadable { path: dir.to_owned(), source };
    let mut names = Vec::new();
    let mut arrays = Vec::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let Some(name) = path.file_stem().and_then(|n| n.to_str()).filter(|n| !n.starts_with('.')) else { continue };
        match path.extension().and_then(|e| e.to_str()) {
            Some("json") => names.push(name.to_owned()),
            Some("safetensors") => arrays.push((name.to_owned(), path)),
            _ => {} // corpora, notes
        }
    }
    if let Some((name, path)) = arrays.into_iter().find(|(name, _)| !names.contains(name)) {
        return Err(CaseError::Orphan { path, name });
    }
    if names.is_empty() {
        return Err(CaseError::NoCases(dir.to_owned()));
    }
    names.sort();
    Ok(names)
}

impl Case {
    pub(super) fn read(dir: &Path, name: &str) -> Result<Self, CaseError> {
        let json_path = dir.join(format!("{name}.json"));
        let json = read(&json_path)?;
        let KindOnly { kind } = parse(&json_path, &json)?;
        let arrays_path = dir.join(format!("{name}.safetensors"));
        Ok(Self { kind: Kind::named(&kind)?, dir: dir.to_owned(), json_path, json, arrays_path })
    }

    /// The JSON as what its kind asks for.
    pub(super) fn parse<T: DeserializeOwned>(&self) -> Result<T, CaseError> {
        parse(&self.json_path, &self.json)
    }

    /// The bytes of the arrays' file, for [`Arrays::new`].
    pub(super) fn read_arrays(&self) -> Result<Vec<u8>, CaseError> {
        read(&self.arrays_path)
    }

    /// The arrays.
    pub(super) fn arrays<'a>(&self, bytes: &'a [u8]) -> Result<Arrays<'a>, CaseError> {
        let path = || self.arrays_path.clone();
        let arrays =
            SafeTensors::deserialize(bytes).map_err(|source| CaseError::Safetensors { path: path(), source })?;
        Ok(Arrays(arrays))
    }
}

fn parse<T: DeserializeOwned>(path: &Path, json: &[u8]) -> Result<T, CaseError> {
    serde_json::from_slice(json).map_err(|source| CaseError::Json { path: path.to_owned(), source })
}

/// The arrays of a case, by name.
#[derive(Debug)]
pub(super) struct Arrays<'a>(SafeTensors<'a>);

impl Arrays<'_> {
    /// Names of all arrays, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.names().into_iter().map(ToString::to_string).collect();
        names.sort();
        names
    }

    /// Bytes of an array of a type and shape, `N` to an element.
    fn elements<const N: usize>(&self, name: &str, dtype: Dtype, shape: &[usize]) -> Result<Vec<[u8; N]>, CaseError> {
        let problem = |problem: String| CaseError::Array { name: name.to_owned(), problem };
        let view = self.0.tensor(name).map_err(|_| problem("is missing".to_owned()))?;
        if view.dtype() != dtype {
            return Err(problem(format!("has type {:?}, not {dtype:?}", view.dtype())));
        }
        if view.shape() != shape {
            return Err(problem(format!("has shape {:?}, not {shape:?}", view.shape())));
        }
        Ok(view.data().as_chunks().0.to_vec())
    }

    pub(super) fn f32(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, CaseError> {
        Ok(self.elements(name, Dtype::F32, shape)?.into_iter().map(f32::from_le_bytes).collect())
    }

    pub(super) fn f64(&self, name: &str, shape: &[usize]) -> Result<Vec<f64>, CaseError> {
        Ok(self.elements(name, Dtype::F64, shape)?.into_iter().map(f64::from_le_bytes).collect())
    }

    pub(super) fn i8(&self, name: &str, shape: &[usize]) -> Result<Vec<i8>, CaseError> {
        Ok(self.elements(name, Dtype::I8, shape)?.into_iter().map(i8::from_le_bytes).collect())
    }

    /// Bytes stored as 32-bit integers.
    pub(super) fn tokens(&self, name: &str, shape: &[usize]) -> Result<Vec<u8>, CaseError> {
        let wide = self.elements(name, Dtype::I32, shape)?.into_iter().map(i32::from_le_bytes);
        wide.map(|token| {
            u8::try_from(token).map_err(|_| CaseError::Array {
                name: name.to_owned(),
                problem: format!("holds {token}, which is no byte"),
            })
        })
        .collect()
    }

    /// Shape of an array.
    pub(super) fn shape(&self, name: &str) -> Result<Vec<usize>, CaseError> {
        let view = self.0.tensor(name);
        let view = view.map_err(|_| CaseError::Array { name: name.to_owned(), problem: "is missing".to_owned() })?;
        Ok(view.shape().to_vec())
    }
}
