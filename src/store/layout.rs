//! Where everything is: the one place that forms the paths of a results folder.

use std::path::{Path, PathBuf};

use crate::run::RunId;

/// The four tables of a results folder.
pub const TABLES: [&str; 4] = ["comparison.csv", "summary.csv", "comparisons.csv", "curves.csv"];

/// Prefix of a lease, which a number follows.
const LEASE_PREFIX: &str = "lease.";
/// Ending of a controller's beat.
const BEAT_SUFFIX: &str = ".beat";
/// Names at the top of a results folder that is still being made.
pub(super) const FIRST_NAMES: [&str; 4] = ["sweep.toml", "runs", "events", "controllers"];

/// A results folder's paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    dir: PathBuf,
}

impl Layout {
    /// The layout of the results folder `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The sweep file as it was given.
    pub fn sweep_toml(&self) -> PathBuf {
        self.dir.join("sweep.toml")
    }

    /// The resolved plan.
    pub fn plan(&self) -> PathBuf {
        self.dir.join("plan.json")
    }

    /// The folder of the runs' folders.
    pub fn runs(&self) -> PathBuf {
        self.dir.join("runs")
    }

    /// The folder of the controllers' events.
    pub fn events(&self) -> PathBuf {
        self.dir.join("events")
    }

    /// The folder of the controllers' beats.
    pub fn controllers(&self) -> PathBuf {
        self.dir.join("controllers")
    }

    /// Where the controller of this name beats.
    pub fn beat(&self, controller: &str) -> PathBuf {
        self.controllers().join(format!("{controller}{BEAT_SUFFIX}"))
    }

    /// The events of the controller of this name.
    pub fn journal(&self, controller: &str) -> PathBuf {
        self.events().join(format!("{controller}.jsonl"))
    }

    /// The report for the browser.
    pub fn report(&self) -> PathBuf {
        self.dir.join("report.html")
    }

    /// The plots as files.
    pub fn plots(&self) -> PathBuf {
        self.dir.join("plots")
    }

    /// A table, by its name in [`TABLES`].
    pub fn table(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The folder of a run.
    pub fn run(&self, folder: &str) -> RunPaths {
        RunPaths::new(self.runs().join(folder))
    }
}

/// The paths of a run's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPaths {
    dir: PathBuf,
}

impl RunPaths {
    /// The layout of the run's folder `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What the run is.
    pub fn run_json(&self) -> PathBuf {
        self.dir.join("run.json")
    }

    /// The published log.
    pub fn log(&self) -> PathBuf {
        self.dir.join("log.csv")
    }

    /// The published result.
    pub fn result(&self) -> PathBuf {
        self.dir.join("result.json")
    }

    /// The published final weights.
    pub fn final_weights(&self) -> PathBuf {
        super::final_weights(&self.dir)
    }

    /// The folder of an attempt.
    pub fn attempt(&self, number: u32) -> PathBuf {
        self.dir.join(format!("attempt-{number}"))
    }

    /// A lease on the run.
    pub fn lease(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{LEASE_PREFIX}{number}"))
    }

    /// Where files that do not hold together are put.
    pub(super) fn damaged(&self, number: u32) -> PathBuf {
        self.dir.join(format!("damaged-{number}"))
    }
}

/// The number of an attempt's folder, if the name is one's.
pub(super) fn attempt_number(name: &str) -> Option<u32> {
    name.strip_prefix("attempt-")?.parse().ok()
}

/// The number of a lease, if the name is exactly that of one.
pub(super) fn lease_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(LEASE_PREFIX)?;
    digits.parse().ok().filter(|number: &u64| number.to_string() == digits)
}

/// The controller whose beat has this name.
pub(super) fn controller_of_beat(name: &str) -> Option<&str> {
    name.strip_suffix(BEAT_SUFFIX).filter(|name| !name.is_empty() && !name.starts_with('.'))
}

/// The id at the end of a run folder's name, `...-<id>`.
pub fn id_of_folder(name: &str) -> Option<RunId> {
    name.rsplit_once('-')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_by_the_suffix_alone() {
        let id = RunId::from_bits(0x0123_4567_89ab_cdef);
        assert_eq!(id_of_folder("sr4_lr0.001_s1234-0123456789abcdef"), Some(id));
        assert_eq!(id_of_folder("any-name-at-all-0123456789abcdef"), Some(id));
        assert_eq!(id_of_folder("-0123456789abcdef"), Some(id));
        for other in ["0123456789abcdef", "x-0123456789abcde", "x-0123456789ABCDEF", "x-0123456789abcdef.old", ""] {
            assert_eq!(id_of_folder(other), None, "{other}");
        }
        assert_eq!((attempt_number("attempt-12"), attempt_number("attempt-x")), (Some(12), None));
    }
}
