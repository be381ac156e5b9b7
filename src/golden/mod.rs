//! Golden cases: known answers of an independent float64 model, and how far diesweep is from them.
//!
//! A case is a JSON file, whose `kind` says what it tests, and where it needs arrays a safetensors file of the same
//! name. Integers, random numbers and SR4's moves must match bit for bit; the rest to tolerances that its module
//! states, derived from what binary32 can hold or from how far a plain binary32 run of the same model is from float64.

mod error;
mod file;
mod init;
mod model;
mod numbers;
mod report;
mod settings;
mod train;
mod updates;

use std::path::Path;
use std::sync::Arc;

pub use error::CaseError;
pub use report::{Check, Report};

use crate::backend::cpu::team::Team;
use file::{Case, Kind};

#[cfg(test)]
pub(crate) use settings::baseline;

/// A case's name, and how far diesweep is from it or why that cannot be said.
#[derive(Debug)]
pub struct Outcome {
    /// File name without its ending.
    pub name: String,
    /// What running it found.
    pub result: Result<Report, CaseError>,
}

/// Names of the cases of a folder, sorted.
///
/// # Errors
/// The folder cannot be read, has no cases, or holds arrays without their case.
pub fn cases(dir: &Path) -> Result<Vec<String>, CaseError> {
    file::list(dir)
}

/// Runs a case of a folder on the CPU backend.
pub fn run(dir: &Path, name: &str, team: &Arc<Team>) -> Outcome {
    let result = Case::read(dir, name).and_then(|case| match case.kind {
        Kind::Philox => numbers::philox(&case),
        Kind::Windows => numbers::windows(&case),
        Kind::Lr => numbers::lr(&case),
        Kind::Init => init::values(&case),
        Kind::InitDigest => init::digests(&case),
        Kind::AdamW => updates::adamw(&case, team.level()),
        Kind::Sr4 => updates::sr4(&case, team.level()),
        Kind::Model => model::run(&case, team),
        Kind::Train => train::run(&case, team),
    });
    Outcome { name: name.to_owned(), result }
}

#[cfg(test)]
mod tests;
