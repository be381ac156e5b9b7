//! How far runs are, at a glance: what a status needs, without reading what it does not show.

use rayon::prelude::*;

use super::attempt::{last_attempt, last_failure};
use super::durable::read_if_there;
use super::error::StoreError;
use super::load::RunState;
use super::log::last_row;
use super::record::StoredResult;
use super::view::View;
use crate::plan::{Plan, PlannedRun};
use crate::run::Row;

impl View {
    /// The states of all runs of the plan. Unlike [`View::load`] this takes a result's word for its log, which is not read; a
    /// result that cannot be read itself counts as none.
    ///
    /// # Errors
    /// The system refuses.
    pub fn glance(&self, plan: &Plan) -> Result<Vec<RunState>, StoreError> {
        let states: Result<Vec<_>, StoreError> = plan.runs.par_iter().map(|run| self.glance_at(run)).collect();
        let mut states = states?;
        self.settle(plan, &mut states)?;
        Ok(states)
    }

    fn glance_at(&self, run: &PlannedRun) -> Result<RunState, StoreError> {
        if !self.folders().contains_key(&run.id) {
            return Ok(RunState::Unfinished);
        }
        let paths = self.run_paths(run);
        if let Some(bytes) = read_if_there(&paths.result())?
            && let Ok(result) = StoredResult::read(&bytes, run.id)
        {
            return Ok(RunState::Ended(Box::new(result)));
        }
        Ok(match last_failure(&paths)? {
            Some((attempt, failure)) => RunState::Failed { attempt, failure },
            None => RunState::Unfinished,
        })
    }

    /// The number of a run's last attempt, 0 for none, and the last row of its log, if it has logged one.
    ///
    /// # Errors
    /// The system refuses.
    pub fn last_logged(&self, run: &PlannedRun) -> Result<(u32, Option<Row>), StoreError> {
        let paths = self.run_paths(run);
        let attempt = last_attempt(&paths)?;
        Ok((attempt, last_row(&paths.attempt(attempt).join("log.csv"))?))
    }
}
