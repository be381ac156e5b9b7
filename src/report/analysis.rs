//! From the states of runs to configurations with their values.

use super::confounding::Devices;
use super::devices::Kinds;
use super::metric::{test_value_of, value_of};
use super::verdict::{Verdict, verdict_on};
use crate::plan::{Configuration, Metric, Plan};
use crate::run::Ending;
use crate::stats::Summary;
use crate::store::{Loaded, RunState};

/// How a run of a configuration ended, as far as a comparison goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SeedState {
    /// With finite values.
    Finished {
        /// The metric, on validation or training data.
        value: f64,
        /// Its counterpart on the test split, if there is one.
        test: Option<f64>,
    },
    /// As diverged; also a run that trained all steps and ended with a value that is not finite.
    Diverged,
    /// Its last attempt failed.
    Failed,
    /// The rule of early stopping has it trained no further.
    Stopped,
    /// Not yet.
    Unfinished,
}

/// A run of a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeedResult {
    /// Seed.
    pub seed: u64,
    /// How it ended.
    pub state: SeedState,
}

/// A configuration's runs, by ascending seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigurationResults {
    /// Its runs.
    pub seeds: Vec<SeedResult>,
}

impl ConfigurationResults {
    /// The metric of the finished runs, with their seeds.
    pub fn values(&self) -> Vec<(u64, f64)> {
        let finished = self.seeds.iter().filter_map(|run| match run.state {
            SeedState::Finished { value, .. } => Some((run.seed, value)),
            _ => None,
        });
        finished.collect()
    }

    /// The test values of the finished runs that have one, with their seeds.
    pub fn test_values(&self) -> Vec<(u64, f64)> {
        let finished = self.seeds.iter().filter_map(|run| match run.state {
            SeedState::Finished { test: Some(test), .. } => Some((run.seed, test)),
            _ => None,
        });
        finished.collect()
    }

    /// The finished runs' metric described; `None` if there is none.
    pub fn summary(&self) -> Option<Summary> {
        describe(&self.values())
    }

    /// The test values described; `None` if there is none.
    pub fn test_summary(&self) -> Option<Summary> {
        describe(&self.test_values())
    }

    /// How many runs finished.
    pub fn finished(&self) -> usize {
        self.values().len()
    }

    /// How many runs diverged.
    pub fn diverged(&self) -> usize {
        self.count(SeedState::Diverged)
    }

    /// How many runs failed.
    pub fn failed(&self) -> usize {
        self.count(SeedState::Failed)
    }

    /// How many runs were stopped early.
    pub fn stopped(&self) -> usize {
        self.count(SeedState::Stopped)
    }

    /// How many runs have not ended.
    pub fn unfinished(&self) -> usize {
        self.count(SeedState::Unfinished)
    }

    fn count(&self, state: SeedState) -> usize {
        self.seeds.iter().filter(|run| run.state == state).count()
    }
}

/// A sweep's results, ready to be printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// The results of each of the plan's configurations, in its order.
    pub configurations: Vec<ConfigurationResults>,
    /// Which arm is better, and how sure that is.
    pub verdict: Verdict,
    /// Folders of runs that are not in the plan.
    pub strangers: Vec<String>,
    /// What was found damaged.
    pub warnings: Vec<String>,
}

/// Gathers the configurations' results and compares them. Of an arm whose runs were made on other kinds of device than the baseline's there is no
/// verdict, see `Devices`.
pub fn analyse(plan: &Plan, loaded: &Loaded) -> Analysis {
    analyse_on(plan, loaded, &Devices::of(plan, loaded), false)
}

/// The same, with a verdict even where arm and kind of device coincide.
pub fn analyse_forced(plan: &Plan, loaded: &Loaded) -> Analysis {
    analyse_on(plan, loaded, &Devices::of(plan, loaded), true)
}

fn analyse_on(plan: &Plan, loaded: &Loaded, devices: &Devices, forced: bool) -> Analysis {
    let metric = plan.compare.metric;
    let gather = |configuration: &Configuration| {
        let seeds = configuration
            .runs
            .iter()
            .map(|run| SeedResult { seed: plan.runs[*run].seed, state: seed_state(&loaded.states[*run], metric) });
        ConfigurationResults { seeds: seeds.collect() }
    };
    let configurations: Vec<_> = plan.configurations.iter().map(gather).collect();
    let confounded = |arm: &str| devices.confounded(arm, &plan.compare.baseline).filter(|_| !forced);
    let mut verdict = verdict_on(plan, &configurations, &confounded);
    verdict.notes.extend(super::stops::notes(plan, loaded));
    verdict.notes.extend(Kinds::of(plan, loaded).notes(plan, &verdict));
    Analysis { configurations, verdict, strangers: loaded.strangers.clone(), warnings: loaded.warnings.clone() }
}

fn seed_state(state: &RunState, metric: Metric) -> SeedState {
    let result = match state {
        RunState::Ended(result) => result,
        RunState::Failed { .. } => return SeedState::Failed,
        RunState::Stopped { .. } => return SeedState::Stopped,
        RunState::Unfinished => return SeedState::Unfinished,
    };
    if let Ending::Diverged { .. } = result.outcome.ending {
        return SeedState::Diverged;
    }
    let test = test_value_of(&result.outcome, metric);
    match value_of(&result.outcome, metric) {
        Some(value) if value.is_finite() && test.is_none_or(f64::is_finite) => SeedState::Finished { value, test },
        _ => SeedState::Diverged,
    }
}

fn describe(values: &[(u64, f64)]) -> Option<Summary> {
    let values: Vec<f64> = values.iter().map(|(_, x)| *x).collect();
    Summary::of(&values)
}
