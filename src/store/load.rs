//! What a folder has of a plan.

use std::path::Path;

use rayon::prelude::*;

use super::attempt::last_failure;
use super::durable::read_if_there;
use super::error::StoreError;
use super::marks::Stops;
use super::record::{AttemptFailure, StoredResult};
use super::view::View;
use crate::plan::{Mark, Plan, PlannedRun};

/// How far a planned run is.
#[derive(Clone, Debug, PartialEq)]
pub enum RunState {
    /// It has a result: finished, or diverged.
    Ended(Box<StoredResult>),
    /// Its last attempt failed.
    Failed {
        /// Number of that attempt.
        attempt: u32,
        /// Why.
        failure: AttemptFailure,
    },
    /// The plan's rule of early stopping has it trained no further.
    Stopped {
        /// The run as it was when it was judged.
        mark: Mark,
    },
    /// It has not been started, or its last attempt was broken off.
    Unfinished,
}

impl RunState {
    /// The result, if there is one.
    pub fn result(&self) -> Option<&StoredResult> {
        match self {
            Self::Ended(result) => Some(result),
            _ => None,
        }
    }
}

/// What a folder has of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// The state of each run of the plan, in its order.
    pub states: Vec<RunState>,
    /// Folders of runs that are not in the plan: kept, and left out of the tables.
    pub strangers: Vec<String>,
    /// Early stopping, where the plan asks for it.
    pub stops: Option<Stops>,
    /// Published files that do not hold together, one line each; their runs count as unfinished.
    pub warnings: Vec<String>,
}

/// Reads a published file; a folder in its place is a fault of this run alone, which the inner error names.
fn read_published(path: &Path) -> Result<Result<Option<Vec<u8>>, String>, StoreError> {
    match read_if_there(path) {
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::IsADirectory => {
            let name = path.file_name().unwrap_or_default().display();
            Ok(Err(format!("{name} is a folder")))
        }
        read => read.map(Ok),
    }
}

impl View {
    /// Reads the states of all runs of the plan.
    ///
    /// A result counts only if it holds together: result.json is readable and of that run, and log.csv has the digest
    /// that it names. If not, the run is unfinished and a warning names the file and the fault; when it is attempted
    /// again, the files are put aside, never removed.
    pub fn load(&self, plan: &Plan) -> Result<Loaded, StoreError> {
        let read: Result<Vec<_>, StoreError> = plan.runs.par_iter().map(|run| self.state(run)).collect();
        let (mut states, mut warnings) = (Vec::new(), Vec::new());
        for (state, warning) in read? {
            states.push(state);
            warnings.extend(warning);
        }
        let planned: std::collections::BTreeSet<_> = plan.runs.iter().map(|run| run.id).collect();
        let strangers = self.folders().iter().filter(|(id, _)| !planned.contains(id));
        let mut strangers: Vec<String> = strangers.map(|(_, name)| name.clone()).collect();
        strangers.sort();
        let stops = self.settle(plan, &mut states)?;
        Ok(Loaded { states, strangers, stops, warnings })
    }

    /// The result of a run, if it has one that holds together.
    pub fn finished(&self, run: &PlannedRun) -> Result<Option<StoredResult>, StoreError> {
        if !self.run_paths(run).result().exists() {
            return Ok(None);
        }
        Ok(self.check_result(run)?.ok())
    }

    /// The failure on record of a run's last attempt, if that failed, and the attempt's number.
    pub fn failure(&self, run: &PlannedRun) -> Result<Option<(u32, AttemptFailure)>, StoreError> {
        last_failure(&self.run_paths(run))
    }

    fn state(&self, run: &PlannedRun) -> Result<(RunState, Option<String>), StoreError> {
        let paths = self.run_paths(run);
        let warning = if paths.result().exists() {
            match self.check_result(run)? {
                Ok(result) => return Ok((RunState::Ended(Box::new(result)), None)),
                Err(why) => Some(format!("{}: {why}; the run counts as unfinished", paths.dir().display())),
            }
        } else {
            None
        };
        Ok(match last_failure(&paths) {
            Ok(Some((attempt, failure))) => (RunState::Failed { attempt, failure }, warning),
            Ok(None) => (RunState::Unfinished, warning),
            // It is told again, and the run fails, when it is claimed.
            Err(error) if error.concerns_one_run() => (RunState::Unfinished, Some(error.full_text())),
            Err(error) => return Err(error),
        })
    }

    /// The result.json that is there, held against its run and log; the inner error says what does not fit.
    pub(super) fn check_result(&self, run: &PlannedRun) -> Result<Result<StoredResult, String>, StoreError> {
        let paths = self.run_paths(run);
        // The log second: it is published first, so where there is a result there is its log.
        let bytes = match read_published(&paths.result())? {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(Err("result.json is missing".to_owned())),
            Err(why) => return Ok(Err(why)),
        };
        Ok(match read_published(&paths.log())? {
            Ok(log) => StoredResult::check(&bytes, run.id, log.as_deref()),
            Err(why) => Err(why),
        })
    }
}
