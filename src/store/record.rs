//! What is written about a run.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::results::to_json;
use crate::run::{NUMERICS, Outcome, RunId};
use crate::settings::Settings;

/// Version of these files.
const FORMAT: u32 = 1;

/// How a result came about: volatile, nothing but tables and reports reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    /// Attempts of the run so far, this one included.
    pub attempts: u32,
    /// Die that it ran on.
    pub die: String,
    /// Host that it ran on.
    pub host: String,
    /// Kind of device: a GPU's name, or `cpu`.
    pub device: String,
    /// Lane of the worker.
    #[serde(default)]
    pub lane: u32,
    /// The GPU as it was when the result was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuState>,
    /// When the attempt started, UTC, RFC 3339.
    pub started: String,
    /// When it ended, UTC, RFC 3339.
    pub ended: String,
}

/// A GPU's identity, and readings of it. A reading that the driver does not give is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuState {
    /// UUID, of an instance where one was used.
    pub uuid: String,
    /// PCI bus.
    pub pci: String,
    /// Version of the driver.
    pub driver: Option<String>,
    /// Whether ECC is on.
    pub ecc: Option<bool>,
    /// Uncorrected ECC errors since the driver was loaded.
    pub ecc_errors: Option<u64>,
    /// Clock of the multiprocessors.
    pub sm_clock_mhz: Option<u32>,
    /// The highest that is allowed.
    pub sm_clock_allowed_mhz: Option<u32>,
    /// Clock of the memory.
    pub memory_clock_mhz: Option<u32>,
    /// What holds the clocks down.
    pub throttling: Vec<String>,
}

/// result.json: a run's result, at full precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredResult {
    format: u32,
    /// The run.
    pub run_id: RunId,
    /// Version of the arithmetic that made it.
    pub numerics: u32,
    /// How it ended, and with what.
    pub outcome: Outcome,
    /// How it came about.
    pub execution: Execution,
    /// blake3 of log.csv, hexadecimal.
    pub log_digest: String,
    /// blake3 of the file's bytes with zeros in place of these 64 digits, so that a change of any byte is seen; zeros
    /// in a result that is not written yet.
    file_digest: String,
}

/// What stands in place of a digest while it is computed.
const NO_DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

impl StoredResult {
    pub(super) fn new(run_id: RunId, outcome: &Outcome, execution: &Execution, log: &[u8]) -> Self {
        Self {
            format: FORMAT,
            run_id,
            numerics: NUMERICS,
            outcome: outcome.clone(),
            execution: execution.clone(),
            log_digest: blake3::hash(log).to_string(),
            file_digest: NO_DIGEST.to_owned(),
        }
    }

    /// The file, and this result sealed with the file's digest.
    pub(super) fn seal(self, path: &Path) -> Result<(Self, Vec<u8>), StoreError> {
        let open = to_json(&self, path)?;
        let sealed = Self { file_digest: blake3::hash(&open).to_string(), ..self };
        let json = to_json(&sealed, path)?;
        Ok((sealed, json))
    }

    /// Whether the bytes that this was read from have the digest that stands in them.
    fn is_sealed(&self, bytes: &[u8]) -> bool {
        let digest = self.file_digest.as_bytes();
        let Some(at) = bytes.windows(NO_DIGEST.len()).rposition(|window| window == digest) else { return false };
        let mut open = bytes.to_vec();
        open[at..at + NO_DIGEST.len()].copy_from_slice(NO_DIGEST.as_bytes());
        *blake3::hash(&open).to_hex() == *self.file_digest
    }

    /// Whether an attempt's outcome is this one but for its speed.
    pub(super) fn is_same_outcome(&self, outcome: &Outcome) -> bool {
        let stable = |outcome: &Outcome| {
            // As text, in which a value that is no number equals itself.
            serde_json::to_string(&Outcome { wall_sec: 0.0, tok_per_sec: 0.0, ..outcome.clone() }).ok()
        };
        stable(&self.outcome) == stable(outcome)
    }

    /// Reads result.json and holds it against its run; the error says what does not fit.
    pub(super) fn read(bytes: &[u8], id: RunId) -> Result<Self, String> {
        let result: Self = serde_json::from_slice(bytes).map_err(|e| format!("result.json cannot be read: {e}"))?;
        if result.format != FORMAT {
            return Err(format!("result.json has format {}, not {FORMAT}", result.format));
        }
        if !result.is_sealed(bytes) {
            return Err("result.json does not have the digest that it names: it was changed".to_owned());
        }
        if result.run_id != id {
            return Err(format!("result.json is of run {}", result.run_id));
        }
        Ok(result)
    }

    /// Reads result.json and holds it against its run and its log; the error says what does not fit.
    pub(super) fn check(bytes: &[u8], id: RunId, log: Option<&[u8]>) -> Result<Self, String> {
        let result = Self::read(bytes, id)?;
        let log = log.ok_or("log.csv is missing")?;
        if *blake3::hash(log).to_hex() != *result.log_digest {
            return Err("log.csv is not the one whose digest result.json holds".to_owned());
        }
        Ok(result)
    }
}

/// run.json: what a run is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFile {
    format: u32,
    /// The run.
    pub run_id: RunId,
    /// Version of the arithmetic.
    pub numerics: u32,
    /// blake3 of the corpus, hexadecimal.
    pub corpus_digest: Option<String>,
    /// What it is configured by.
    pub settings: Settings,
}

impl RunFile {
    pub(super) fn new(run_id: RunId, settings: &Settings, corpus_digest: Option<String>) -> Self {
        Self { format: FORMAT, run_id, numerics: NUMERICS, corpus_digest, settings: settings.clone() }
    }
}

/// An attempt's failure.json: why an attempt gave no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptFailure {
    /// Kind of the failure, one word.
    pub cause: String,
    /// What happened.
    pub message: String,
    /// When, UTC, RFC 3339.
    pub ended: String,
    /// Whether the run was given up with it.
    #[serde(default)]
    pub for_good: bool,
}
