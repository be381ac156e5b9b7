//! Attempts and what comes of them: a published result, or a failure on record.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::durable;
use super::error::{Context, StoreError};
use super::layout::{RunPaths, attempt_number};
use super::log::{rows_of, same_but_for_timing};
use super::record::{AttemptFailure, Execution, RunFile, StoredResult};
use super::results::{Results, to_json};
use crate::fault::{self, Moment};
use crate::plan::PlannedRun;
use crate::run::Outcome;

/// One execution of a run, in a folder of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Number, from 1.
    pub number: u32,
    /// Its folder, absolute; nothing else writes there.
    pub folder: PathBuf,
}

impl Attempt {
    /// Where the worker writes the log.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log.csv")
    }

    /// Where what the worker prints goes.
    pub fn worker_log(&self) -> PathBuf {
        self.folder.join("worker.log")
    }

    /// Where the worker writes the final weights, if they are kept.
    pub fn final_weights(&self) -> PathBuf {
        super::final_weights(&self.folder)
    }

    pub(super) fn failure(&self) -> PathBuf {
        self.folder.join("failure.json")
    }
}

/// What came of a publication.
#[derive(Clone, Debug, PartialEq)]
pub enum Published {
    /// The run has its result.
    Done {
        /// The result that counts: this attempt's, or one that was there before.
        result: Box<StoredResult>,
        /// What is not the same in this attempt's and the one that was there before, volatile parts apart. That must never be.
        differs: Option<String>,
    },
    /// Nothing was published: the run is another controller's by now.
    LeaseLost {
        /// Who holds it, in words.
        holder: String,
        /// As above, where the run has got a result meanwhile.
        differs: Option<String>,
    },
}

impl Results {
    /// Starts an attempt at a run that this controller holds: makes run.json if need be, and a new attempt's folder.
    ///
    /// Published files that do not hold together (see [`View::load`](super::View::load)) are put aside first, into `damaged-<n>`.
    pub(super) fn begin_attempt(&self, run: &PlannedRun) -> Result<Attempt, StoreError> {
        let paths = self.run_paths(run);
        if !paths.run_json().exists() {
            let file = RunFile::new(run.id, &run.settings, self.corpus_digest(&run.settings.data));
            durable::create_first(&paths.run_json(), &to_json(&file, &paths.run_json())?)?;
        }
        if paths.result().exists() && self.check_result(run)?.is_err() {
            put_aside(&paths)?;
        }
        let mut number = last_attempt(&paths)? + 1;
        loop {
            let folder = paths.attempt(number);
            match fault::before(Moment::Create, &folder).and_then(|()| fs::create_dir(&folder)) {
                Ok(()) => {
                    fault::before(Moment::Done, &folder).context("create the folder", &folder)?;
                    return Ok(Attempt { number, folder });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error).context("create the folder", &folder),
            }
        }
    }

    /// Takes back an attempt that nothing was written for; one with files stays.
    pub fn release(&self, attempt: &Attempt) {
        // A folder that is not empty refuses, which is meant.
        let _ = fs::remove_dir(&attempt.folder);
    }

    /// Records why an attempt gave no result.
    pub fn record_failure(&self, attempt: &Attempt, failure: &AttemptFailure) -> Result<(), StoreError> {
        let path = attempt.failure();
        durable::replace(&path, &to_json(failure, &path)?)
    }

    /// Publishes a run's log and result, durably and the result last, if this controller still holds the run. The first
    /// publication wins: if there is a result by now, it stays, and this attempt's is held against it.
    ///
    /// Between the look at the lease and the link of the result another controller may take the run over and publish as well; that
    /// does no harm, since the bytes are equal but for volatile parts. For the same reason it does none that a network file
    /// system may show a list of leases that is some seconds old.
    ///
    /// # Errors
    /// The attempt's log is not whole, or the system refuses. The run is then unfinished, and this can be called again.
    pub fn publish(
        &self,
        run: &PlannedRun,
        attempt: &Attempt,
        outcome: &Outcome,
        execution: &Execution,
    ) -> Result<Published, StoreError> {
        let ours = fs::read(attempt.log()).context("read", &attempt.log())?;
        rows_of(&attempt.log(), &ours)?;
        durable::sync(&attempt.log())?;
        let differs = |stored: &StoredResult| self.differs(run, attempt, &ours, outcome, stored);
        if let Some(holder) = self.lost(run)? {
            let differs = match self.finished(run)? {
                Some(stored) => differs(&stored)?,
                None => None,
            };
            return Ok(Published::LeaseLost { holder, differs });
        }
        let result = |log: &[u8]| StoredResult::new(run.id, outcome, execution, log);
        let (first, stored) = self.publish_first(run, attempt, &ours, result)?;
        let differs = if first { None } else { differs(&stored)? };
        if !self.keeps_checkpoints() {
            self.remove_checkpoints(run)?;
        }
        self.remove_leases(run)?;
        Ok(Published::Done { result: Box::new(stored), differs })
    }

    /// What an attempt has that is not the same in the published result, volatile parts apart.
    fn differs(
        &self,
        run: &PlannedRun,
        attempt: &Attempt,
        ours: &[u8],
        outcome: &Outcome,
        stored: &StoredResult,
    ) -> Result<Option<String>, StoreError> {
        let paths = self.run_paths(run);
        let log = fs::read(paths.log()).context("read", &paths.log())?;
        let what = if !same_but_for_timing(&log, ours) {
            "log"
        } else if !stored.is_same_outcome(outcome) {
            "result"
        } else {
            return Ok(None);
        };
        let (folder, published) = (attempt.folder.display(), paths.dir().display());
        Ok(Some(format!("the {what} of {folder} is not the one that was published in {published}")))
    }

    /// Publishes, unless there is a result that holds together; whether it did, and the result that counts.
    fn publish_first(
        &self,
        run: &PlannedRun,
        attempt: &Attempt,
        ours: &[u8],
        result: impl Fn(&[u8]) -> StoredResult,
    ) -> Result<(bool, StoredResult), StoreError> {
        let paths = self.run_paths(run);
        loop {
            if paths.result().exists() {
                match self.check_result(run)? {
                    Ok(stored) => return Ok((false, stored)),
                    Err(_) => put_aside(&paths)?,
                }
            }
            if attempt.final_weights().exists() {
                durable::link_first(&attempt.final_weights(), &paths.final_weights())?;
            }
            let log = match durable::link_first(&attempt.log(), &paths.log())? {
                true => ours.to_vec(),
                // A log without a result: an earlier attempt ended between the two. It is as good as ours, if it is
                // whole.
                false => fs::read(paths.log()).context("read", &paths.log())?,
            };
            if !same_but_for_timing(&log, ours) {
                put_aside(&paths)?;
                continue;
            }
            let (result, json) = result(&log).seal(&paths.result())?;
            if durable::create_first(&paths.result(), &json)? {
                return Ok((true, result));
            }
        }
    }
}

/// Moves a run's published files into a new folder `damaged-<n>`.
fn put_aside(paths: &RunPaths) -> Result<(), StoreError> {
    let mut number = 1;
    let folder = loop {
        let folder = paths.damaged(number);
        match fs::create_dir(&folder) {
            Ok(()) => break folder,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error).context("create the folder", &folder),
        }
    };
    // The result first: while it stands, the log is taken for its log.
    for path in [paths.result(), paths.log(), paths.final_weights()] {
        let target = folder.join(path.file_name().unwrap_or_default());
        match fs::rename(&path, &target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).context("move", &path);
            }
            _ => {}
        }
    }
    durable::sync(paths.dir())
}

/// The highest number of an attempt, 0 for none.
pub(super) fn last_attempt(paths: &RunPaths) -> Result<u32, StoreError> {
    let mut last = 0;
    for entry in fs::read_dir(paths.dir()).context("read", paths.dir())? {
        let name = entry.context("read", paths.dir())?.file_name();
        last = last.max(attempt_number(&name.to_string_lossy()).unwrap_or(0));
    }
    Ok(last)
}

/// The failure on record of a run's last attempt, and the attempt's number.
pub(super) fn last_failure(paths: &RunPaths) -> Result<Option<(u32, AttemptFailure)>, StoreError> {
    let exists = Path::is_dir(paths.dir());
    let number = if exists { last_attempt(paths)? } else { 0 };
    let attempt = Attempt { number, folder: paths.attempt(number) };
    let Some(bytes) = durable::read_if_there(&attempt.failure())? else {
        return Ok(None);
    };
    let failure = serde_json::from_slice(&bytes).unwrap_or_else(|error| AttemptFailure {
        cause: "unknown".to_owned(),
        message: format!("failure.json cannot be read: {error}"),
        ended: String::new(),
        for_good: false,
    });
    Ok(Some((number, failure)))
}
