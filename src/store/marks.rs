//! Where runs rested for the sake of early stopping: `mark-<steps>.json`, or `mark-<metric>-<target>.json`, in a run's folder, written once.

use std::fs;
use std::path::PathBuf;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::durable;
use super::error::{Context, StoreError};
use super::layout::RunPaths;
use super::load::RunState;
use super::log::read_log;
use super::results::{Results, to_json};
use super::view::View;
use crate::plan::{Course, CourseEnd, Decisions, Fate, Mark, Marker, Plan, PlannedRun, Rest, StopRule, decide};
use crate::run::{Ending, NUMERICS, RunId};

/// Version of these files.
const FORMAT: u32 = 1;

/// A mark as a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MarkFile {
    format: u32,
    run_id: RunId,
    numerics: u32,
    mark: Mark,
    /// blake3 of the mark's JSON, so that a change of any value is seen.
    digest: String,
}

impl MarkFile {
    fn new(run_id: RunId, mark: Mark) -> Self {
        Self { format: FORMAT, run_id, numerics: NUMERICS, mark, digest: digest(&mark) }
    }

    /// The mark that the bytes hold, if they are a whole file of this run.
    fn read(bytes: &[u8], run: RunId) -> Option<Mark> {
        let file: Self = serde_json::from_slice(bytes).ok()?;
        let holds = file.format == FORMAT && file.run_id == run && file.numerics == NUMERICS;
        (holds && file.digest == digest(&file.mark)).then_some(file.mark)
    }
}

fn digest(mark: &Mark) -> String {
    // A mark is numbers alone: it always has a JSON.
    blake3::hash(&serde_json::to_vec(mark).unwrap_or_default()).to_string()
}

/// The mark of a rest. One of a target is not one of another target, which may have been reached earlier.
fn path(paths: &RunPaths, rest: &Rest) -> PathBuf {
    paths.dir().join(match rest {
        Rest::Steps { steps } => format!("mark-{steps}.json"),
        Rest::Value { metric, value } => format!("mark-{}-{value}.json", metric.key()),
    })
}

impl Results {
    /// Notes where a run rests by a rule, and gives the run back. What differs from a mark that was there before is told: that must never be.
    ///
    /// # Errors
    /// The system refuses.
    pub fn rest(&self, rule: &StopRule, run: &PlannedRun, mark: &Mark) -> Result<Option<String>, StoreError> {
        let path = path(&self.run_paths(run), &rule.rest_of(mark));
        let json = to_json(&MarkFile::new(run.id, *mark), &path)?;
        let mut differs = None;
        if !durable::create_first(&path, &json)? {
            let bytes = fs::read(&path).context("read", &path)?;
            match MarkFile::read(&bytes, run.id) {
                Some(before) if before == *mark => {}
                Some(_) => differs = Some(format!("a later attempt has other values than {}", path.display())),
                // It was damaged.
                None => durable::replace(&path, &json)?,
            }
        }
        self.give_back(run.id)?;
        Ok(differs)
    }
}

impl View {
    /// The marks of a run by a rule that are whole.
    fn marks(&self, rule: &StopRule, run: &PlannedRun) -> Result<Vec<Mark>, StoreError> {
        let paths = self.run_paths(run);
        let mut marks = Vec::new();
        for rest in rule.rests(&run.settings) {
            let bytes = durable::read_if_there(&path(&paths, &rest))?;
            let mark = bytes.and_then(|bytes| MarkFile::read(&bytes, run.id));
            marks.extend(mark.filter(|mark| rule.rest_of(mark) == rest));
        }
        Ok(marks)
    }

    /// What is known of each run of a plan that stops runs early; of a run that has a result by its log.
    ///
    /// # Errors
    /// The system refuses.
    pub fn courses(&self, plan: &Plan, states: &[RunState]) -> Result<Vec<Course>, StoreError> {
        if plan.stop.is_none() {
            return Ok(vec![Course::default(); plan.runs.len()]);
        }
        plan.runs.par_iter().zip(states).map(|(run, state)| self.course(plan, run, state)).collect()
    }

    fn course(&self, plan: &Plan, run: &PlannedRun, state: &RunState) -> Result<Course, StoreError> {
        let (end, log) = match state {
            RunState::Ended(result) => match result.outcome.ending {
                Ending::Finished(_) => (Some(CourseEnd::Finished), true),
                Ending::Diverged { .. } => (Some(CourseEnd::Diverged), true),
            },
            RunState::Failed { failure, .. } if failure.for_good => (Some(CourseEnd::Failed), false),
            RunState::Failed { .. } | RunState::Unfinished | RunState::Stopped { .. } => (None, false),
        };
        let marks = match &plan.stop {
            Some(rule) if log => self.marks_of_log(rule, run)?,
            Some(rule) => self.marks(rule, run)?,
            None => Vec::new(),
        };
        Ok(Course { marks, end })
    }

    /// Where a run has rested, as it is now, or would have if it has a result.
    ///
    /// # Errors
    /// The system refuses.
    pub fn marks_by(&self, rule: &StopRule, run: &PlannedRun) -> Result<Vec<Mark>, StoreError> {
        if self.run_paths(run).result().exists() { self.marks_of_log(rule, run) } else { self.marks(rule, run) }
    }

    /// Where a run that has a result would have rested.
    fn marks_of_log(&self, rule: &StopRule, run: &PlannedRun) -> Result<Vec<Mark>, StoreError> {
        let log = self.run_paths(run).log();
        let rows = if log.exists() { read_log(&log)?.rows } else { Vec::new() };
        let first = |rest| {
            let mut marker = Marker::new(Some(rest));
            rows.iter().find_map(|row| marker.row(row.step, [row.train_bpb, row.val_bpb, row.val_acc]))
        };
        Ok(rule.rests(&run.settings).into_iter().filter_map(first).collect())
    }

    /// What the plan's rule of early stopping comes to, and with it the states of the runs that it stops.
    ///
    /// # Errors
    /// The system refuses.
    pub fn settle(&self, plan: &Plan, states: &mut [RunState]) -> Result<Option<Stops>, StoreError> {
        if plan.stop.is_none() {
            return Ok(None);
        }
        let courses = self.courses(plan, states)?;
        let decisions = decide(plan, &courses);
        for ((state, course), fate) in states.iter_mut().zip(&courses).zip(&decisions.fates) {
            let Fate::Stopped { steps } = fate else { continue };
            let mark = course.marks.iter().find(|mark| mark.steps == *steps);
            if let (None, Some(mark)) = (course.end, mark) {
                *state = RunState::Stopped { mark: *mark };
            }
        }
        Ok(Some(Stops { courses, decisions }))
    }
}

/// Early stopping, as far as a sweep has got.
#[derive(Clone, Debug, PartialEq)]
pub struct Stops {
    /// What is known of each run of the plan.
    pub courses: Vec<Course>,
    /// What follows.
    pub decisions: Decisions,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Metric, StopKind};
    use crate::testing;

    fn mark(steps: u64, value: f64) -> Mark {
        Mark { steps, train_bpb: value, val_bpb: value, val_acc: 0.25, best_val_bpb: None, best_val_acc: None }
    }

    #[test]
    fn marks_are_kept_once_and_damage_is_seen() {
        let root = tempfile::tempdir().unwrap();
        let plan = testing::plan(&[("a", &[])], &[1]);
        let results = Results::open_or_create(root.path(), &plan, "").unwrap().results;
        let run = &plan.runs[0];
        let rule = StopRule { kind: StopKind::Median { rungs: vec![40] }, metric: Metric::ValBpb };
        let rest = |mark: &Mark| results.rest(&rule, run, mark).unwrap();
        assert_eq!(results.marks(&rule, run).unwrap(), []);
        testing::attempt(&results, run);
        assert_eq!(rest(&mark(51, 2.0)), None);
        assert_eq!(rest(&mark(51, 2.0)), None);
        assert!(rest(&mark(51, 2.5)).unwrap().contains("has other values"));
        assert_eq!(results.marks(&rule, run).unwrap(), [mark(51, 2.0)]);
        let target = |value| StopRule { kind: StopKind::Target { value }, metric: Metric::ValBpb };
        assert_eq!(results.rest(&target(2.0), run, &mark(51, 2.0)).unwrap(), None);
        assert_eq!(results.marks(&target(2.0), run).unwrap(), [mark(51, 2.0)]);
        assert_eq!(results.marks(&target(2.5), run).unwrap(), [], "a nearer target was reached earlier");
        let file = path(&results.run_paths(run), &Rest::Steps { steps: 51 });
        let text = fs::read_to_string(&file).unwrap().replace("\"val_bpb\": 2.0", "\"val_bpb\": 1.0");
        fs::write(&file, text).unwrap();
        assert_eq!(results.marks(&rule, run).unwrap(), [], "a changed value is seen");
        assert_eq!(rest(&mark(51, 2.0)), None);
        assert_eq!(results.marks(&rule, run).unwrap(), [mark(51, 2.0)]);
    }

    #[test]
    fn runs_that_the_rule_stops_are_told_apart_and_finished_ones_are_judged_by_their_logs() {
        let root = tempfile::tempdir().unwrap();
        let mut plan = testing::plan(&[("a", &["1", "2", "3"])], &[1]);
        plan.stop = Some(StopRule { kind: StopKind::Median { rungs: vec![40] }, metric: Metric::ValBpb });
        let results = Results::open_or_create(root.path(), &plan, "").unwrap().results;
        // Its log has 7.5 after 51 steps.
        testing::publish(&results, &plan.runs[0], &testing::finished(1.0, None), 1.0);
        for (run, value) in [(1, 7.0), (2, 8.0)] {
            testing::attempt(&results, &plan.runs[run]);
            results.rest(plan.stop.as_ref().unwrap(), &plan.runs[run], &mark(51, value)).unwrap();
        }
        let loaded = results.load(&plan).unwrap();
        assert!(matches!(loaded.states[0], RunState::Ended(_)), "a result stands whatever the rule says");
        assert_eq!(loaded.states[1..], [RunState::Unfinished, RunState::Stopped { mark: mark(51, 8.0) }]);
        let stops = loaded.stops.unwrap();
        assert_eq!(stops.decisions.rungs[0].standings[0].value, Some(7.5));
        plan.stop = None;
        assert_eq!(results.load(&plan).unwrap().states[2], RunState::Unfinished, "without the rule it goes on");
    }
}
