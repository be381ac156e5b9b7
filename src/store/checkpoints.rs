//! Where checkpoints and final weights are.

use std::fs;
use std::path::{Path, PathBuf};

use super::durable;
use super::error::{Context, StoreError};
use super::layout::attempt_number;
use super::results::Results;
use crate::plan::PlannedRun;

const PREFIX: &str = "checkpoint-";
const SUFFIX: &str = ".safetensors";

/// The final weights in an attempt's or a run's folder.
pub fn final_weights(folder: &Path) -> PathBuf {
    folder.join("final.safetensors")
}

/// The checkpoint of so many steps in an attempt's folder.
pub fn checkpoint_file(attempt: &Path, steps: u64) -> PathBuf {
    attempt.join(format!("{PREFIX}{steps}{SUFFIX}"))
}

fn steps_of(name: &str) -> Option<u64> {
    name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()
}

/// The checkpoints of all other attempts at the run whose attempt has this folder: those of most steps first, of equal
/// ones the later attempt's.
///
/// # Errors
/// A folder cannot be read.
pub fn earlier_checkpoints(attempt: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let Some(run) = attempt.parent() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (number, folder) in attempts(run)? {
        if folder.file_name() == attempt.file_name() {
            continue;
        }
        for (name, path) in entries(&folder)? {
            found.extend(steps_of(&name).map(|steps| (steps, number, path)));
        }
    }
    found.sort_by_key(|&(steps, number, _)| std::cmp::Reverse((steps, number)));
    Ok(found.into_iter().map(|(_, _, path)| path).collect())
}

impl Results {
    /// Removes the checkpoints of all attempts at a run, and what killed processes left half-written beside them.
    pub(super) fn remove_checkpoints(&self, run: &PlannedRun) -> Result<(), StoreError> {
        remove_checkpoints_in(self.run_paths(run).dir())
    }
}

/// The same in the run's folder `run`.
pub(super) fn remove_checkpoints_in(run: &Path) -> Result<(), StoreError> {
    for (_, folder) in attempts(run)? {
        for (name, path) in entries(&folder)? {
            if steps_of(&name).is_some() || durable::is_temporary(&name) {
                durable::remove_if_there(&path)?;
            }
        }
    }
    Ok(())
}

/// Numbers and folders of a run's attempts.
fn attempts(run: &Path) -> Result<Vec<(u32, PathBuf)>, StoreError> {
    let numbered = |(name, path): (String, PathBuf)| Some((attempt_number(&name)?, path));
    Ok(entries(run)?.into_iter().filter_map(numbered).collect())
}

fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, StoreError> {
    let read = fs::read_dir(folder).context("read", folder)?;
    read.map(|entry| {
        let entry = entry.context("read", folder)?;
        Ok((entry.file_name().to_string_lossy().into_owned(), entry.path()))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_most_steps_come_first() {
        let run = tempfile::tempdir().unwrap();
        for (attempt, steps) in [(1, 100), (2, 90), (10, 90), (2, 1000), (11, 5000)] {
            let folder = run.path().join(format!("attempt-{attempt}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(checkpoint_file(&folder, steps), "").unwrap();
        }
        for other in ["checkpoint-7.safetensors.old", ".checkpoint-8.safetensors.1-0.tmp", "checkpoint-x.safetensors"] {
            fs::write(run.path().join("attempt-1").join(other), "").unwrap();
        }
        fs::create_dir(run.path().join("damaged-1")).unwrap();
        let found = earlier_checkpoints(&run.path().join("attempt-11")).unwrap();
        let names: Vec<_> = found.iter().map(|path| path.strip_prefix(run.path()).unwrap().to_str().unwrap()).collect();
        assert_eq!(
            names,
            [
                "attempt-2/checkpoint-1000.safetensors",
                "attempt-1/checkpoint-100.safetensors",
                "attempt-10/checkpoint-90.safetensors",
                "attempt-2/checkpoint-90.safetensors",
            ]
        );
    }
}
