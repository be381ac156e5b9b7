//! The facts behind a run, a configuration or a comparison.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::super::analysis::{Analysis, SeedState, analyse};
use super::super::metric::{metric_name, test_name};
use super::super::verdict::Split;
use super::super::wording::label;
use super::rows::{ComparisonRow, of_comparisons, of_curves};
use super::target::{NotFound, Target};
use crate::plan::Plan;
use crate::run::Ending;
use crate::store::{AttemptFailure, Loaded, RunFile, RunPaths, RunState, StoreError, View};

/// A file with its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileFacts {
    /// Its path.
    pub path: PathBuf,
    /// blake3 of its bytes, hexadecimal.
    pub blake3: String,
    /// Its length in bytes.
    pub bytes: usize,
}

/// One execution of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AttemptFacts {
    /// Number, from 1.
    pub number: u32,
    /// Rows that it logged, if its log is there.
    pub rows: Option<usize>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// Where a run or a configuration stands in the tables; the header is row 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Places {
    /// Row of comparison.csv.
    pub comparison: Option<usize>,
    /// Row of summary.csv.
    pub summary: Vec<usize>,
    /// Rows of comparisons.csv, those in which it is the baseline included.
    pub comparisons: Vec<usize>,
    /// First and last row of curves.csv.
    pub curves: Option<(usize, usize)>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunFacts {
    /// Its id.
    pub run_id: String,
    /// Its name: arm, axes, seed.
    pub name: String,
    /// `finished`, `diverged at step 17`, `failed`, `unfinished`.
    pub status: String,
    /// Seed.
    pub seed: u64,
    /// The metric.
    #[serde(with = "crate::num")]
    pub value: Option<f64>,
    /// The test value.
    #[serde(with = "crate::num")]
    pub test: Option<f64>,
    /// Its folder.
    pub folder: PathBuf,
    /// The published log.
    pub log: Option<FileFacts>,
    /// Whether the log has the digest that result.json names.
    pub log_is_as_published: Option<bool>,
    /// The published result.
    pub result: Option<FileFacts>,
    /// Version of the arithmetic.
    pub numerics: Option<u32>,
    /// blake3 of the corpus.
    pub corpus: Option<String>,
    /// Kind of device.
    pub device: Option<String>,
    /// Die.
    pub die: Option<String>,
    /// Host.
    pub host: Option<String>,
    /// When the attempt that gave the result started.
    pub started: Option<String>,
    /// When it ended.
    pub ended: Option<String>,
    /// Its attempts.
    pub attempts: Vec<AttemptFacts>,
    /// Where it stands in the tables.
    pub places: Places,
}

/// A configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfigurationFacts {
    /// Arm and axes.
    pub name: String,
    /// Name of the metric.
    pub metric: &'static str,
    /// Runs over which the mean is.
    pub n: usize,
    /// Mean of the metric.
    pub mean: Option<f64>,
    /// Mean on the test split.
    pub test_mean: Option<f64>,
    /// Whether it is its arm's best.
    pub is_best: bool,
    /// Where it stands in the tables.
    pub places: Places,
    /// Its runs.
    pub runs: Vec<RunFacts>,
}

/// A pair of runs of one seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairFacts {
    /// Seed.
    pub seed: u64,
    /// Value of the baseline's run.
    pub baseline: f64,
    /// Value of the other run.
    pub other: f64,
    /// Other less baseline.
    pub difference: f64,
}

/// A row of comparisons.csv.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonFacts {
    /// Row of comparisons.csv.
    pub row: usize,
    /// Whether it is part of the verdict.
    pub verdict: bool,
    /// What was compared, `test_bpb` or `val_bpb`.
    pub values: &'static str,
    /// The pairs.
    pub pairs: Vec<PairFacts>,
    /// The mean of their differences.
    pub mean_difference: Option<f64>,
    /// Seeds that only one side has.
    pub seeds_unpaired: Vec<u64>,
    /// The baseline's best configuration.
    pub baseline: ConfigurationFacts,
    /// The other one.
    pub other: ConfigurationFacts,
}

/// What stands behind a number.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Explanation {
    /// A run.
    Run(Box<RunFacts>),
    /// Configurations.
    Configurations(Vec<ConfigurationFacts>),
    /// A comparison.
    Comparison(Box<ComparisonFacts>),
    /// A logged step.
    Step {
        /// Row of the log; its header is row 1.
        log_row: usize,
        /// The row.
        text: String,
        /// Its run.
        run: Box<RunFacts>,
    },
}

/// A folder that was read, to be asked.
pub struct Explainer<'a> {
    view: &'a View,
    plan: &'a Plan,
    loaded: Loaded,
    analysis: Analysis,
    curves: Vec<Option<(usize, usize)>>,
    comparisons: Vec<ComparisonRow>,
}

impl<'a> Explainer<'a> {
    /// Reads the folder.
    pub fn new(view: &'a View, plan: &'a Plan) -> Result<Self, StoreError> {
        let loaded = view.load(plan)?;
        let analysis = analyse(plan, &loaded);
        let curves = of_curves(view, plan, &loaded)?;
        let comparisons = of_comparisons(&analysis);
        Ok(Self { view, plan, loaded, analysis, curves, comparisons })
    }

    /// Explains what was found.
    pub fn explain(&self, target: &Target) -> Result<Explanation, NotFound> {
        match target {
            Target::Run(run) => Ok(Explanation::Run(Box::new(self.run(*run)))),
            Target::Configurations(list) => {
                Ok(Explanation::Configurations(list.iter().map(|i| self.configuration(*i)).collect()))
            }
            Target::Row { table, row } => self.row(table, *row),
        }
    }

    fn row(&self, table: &'static str, row: usize) -> Result<Explanation, NotFound> {
        let within = |last: usize| if row <= last { Ok(row - 2) } else { Err(NotFound::PastEnd { table, row, last }) };
        match table {
            "comparison.csv" => Ok(Explanation::Run(Box::new(self.run(within(self.plan.runs.len() + 1)?)))),
            "summary.csv" => {
                let i = within(self.plan.configurations.len() + 1)?;
                Ok(Explanation::Configurations(vec![self.configuration(i)]))
            }
            "comparisons.csv" => {
                let i = within(self.comparisons.len() + 1)?;
                Ok(Explanation::Comparison(Box::new(self.comparison(i))))
            }
            _ => {
                let last = self.curves.iter().flatten().map(|(first, n)| first + n - 1).max().unwrap_or(1);
                within(last)?;
                let holds =
                    |place: &Option<(usize, usize)>| place.is_some_and(|(first, n)| (first..first + n).contains(&row));
                let run = self.curves.iter().position(holds).unwrap_or(0);
                let log_row = row - self.curves[run].map_or(0, |(first, _)| first) + 2;
                let log = fs::read_to_string(self.view.run_paths(&self.plan.runs[run]).log()).unwrap_or_default();
                let text = log.lines().nth(log_row - 1).unwrap_or_default().to_owned();
                Ok(Explanation::Step { log_row, text, run: Box::new(self.run(run)) })
            }
        }
    }

    fn run(&self, index: usize) -> RunFacts {
        let run = &self.plan.runs[index];
        let paths = self.view.run_paths(run);
        let state = &self.loaded.states[index];
        let result = state.result();
        let log = file(&paths.log());
        let of_run: Vec<usize> = (0..self.plan.configurations.len())
            .filter(|i| self.plan.configurations[*i].runs.contains(&index))
            .collect();
        let (value, test) = of_run.first().map_or((None, None), |i| self.values(*i, run.seed));
        let run_file = fs::read(paths.run_json()).ok().and_then(|bytes| serde_json::from_slice::<RunFile>(&bytes).ok());
        let execution = result.map(|r| &r.execution);
        RunFacts {
            run_id: run.id.to_string(),
            name: run.label(),
            status: status(state),
            seed: run.seed,
            value,
            test,
            log_is_as_published: result.zip(log.as_ref()).map(|(result, log)| result.log_digest == log.blake3),
            log,
            result: file(&paths.result()),
            numerics: result.map(|r| r.numerics),
            corpus: run_file.and_then(|file| file.corpus_digest),
            device: execution.map(|e| e.device.clone()),
            die: execution.map(|e| e.die.clone()),
            host: execution.map(|e| e.host.clone()),
            started: execution.map(|e| e.started.clone()),
            ended: execution.map(|e| e.ended.clone()),
            attempts: attempts(&paths),
            folder: paths.dir().to_owned(),
            places: Places {
                comparison: Some(index + 2),
                curves: self.curves[index].filter(|(_, n)| *n > 0).map(|(first, n)| (first, first + n - 1)),
                ..self.places(&of_run)
            },
        }
    }

    /// The rows of summary.csv and comparisons.csv into which configurations go.
    fn places(&self, configurations: &[usize]) -> Places {
        let is_baseline = self.analysis.verdict.baseline.is_some_and(|base| configurations.contains(&base));
        let compared = |row: &ComparisonRow| is_baseline || configurations.contains(&row.configuration);
        Places {
            summary: configurations.iter().map(|i| i + 2).collect(),
            comparisons: (2..).zip(&self.comparisons).filter(|(_, row)| compared(row)).map(|(row, _)| row).collect(),
            ..Places::default()
        }
    }

    fn values(&self, configuration: usize, seed: u64) -> (Option<f64>, Option<f64>) {
        let run = self.analysis.configurations[configuration].seeds.iter().find(|run| run.seed == seed);
        match run.map(|run| run.state) {
            Some(SeedState::Finished { value, test }) => (Some(value), test),
            _ => (None, None),
        }
    }

    fn configuration(&self, index: usize) -> ConfigurationFacts {
        let (configuration, results) = (&self.plan.configurations[index], &self.analysis.configurations[index]);
        ConfigurationFacts {
            name: label(configuration),
            metric: metric_name(self.plan.compare.metric),
            n: results.finished(),
            mean: results.summary().map(|s| s.mean),
            test_mean: results.test_summary().map(|s| s.mean),
            is_best: self.analysis.verdict.best.iter().any(|(_, best)| *best == index),
            places: self.places(&[index]),
            runs: configuration.runs.iter().map(|run| self.run(*run)).collect(),
        }
    }

    fn comparison(&self, index: usize) -> ComparisonFacts {
        let row = &self.comparisons[index];
        let on_test = row.verdict && self.analysis.verdict.split == Split::Test;
        let values = |i: usize| {
            let results = &self.analysis.configurations[i];
            if on_test { results.test_values() } else { results.values() }
        };
        let base = self.analysis.verdict.baseline.unwrap_or(0);
        let pairing = crate::stats::pair_by_seed(&values(base), &values(row.configuration));
        let pairs = pairing.seeds.iter().zip(&pairing.values);
        let pairs: Vec<PairFacts> =
            pairs.map(|(seed, (a, b))| PairFacts { seed: *seed, baseline: *a, other: *b, difference: b - a }).collect();
        let metric = self.plan.compare.metric;
        ComparisonFacts {
            row: index + 2,
            verdict: row.verdict,
            values: if on_test { test_name(metric) } else { metric_name(metric) },
            mean_difference: crate::stats::mean(&pairs.iter().map(|p| p.difference).collect::<Vec<_>>()),
            pairs,
            seeds_unpaired: pairing.unpaired,
            baseline: self.configuration(base),
            other: self.configuration(row.configuration),
        }
    }
}

fn status(state: &RunState) -> String {
    match state {
        RunState::Ended(result) => match result.outcome.ending {
            Ending::Finished(_) => "finished".to_owned(),
            Ending::Diverged { step, .. } => format!("diverged at step {step}"),
        },
        RunState::Failed { failure, .. } => format!("failed: {} ({})", failure.cause, failure.message),
        RunState::Stopped { mark } => format!("stopped early after {} steps", mark.steps),
        RunState::Unfinished => "unfinished".to_owned(),
    }
}

fn file(path: &Path) -> Option<FileFacts> {
    let bytes = fs::read(path).ok()?;
    Some(FileFacts { path: path.to_owned(), blake3: blake3::hash(&bytes).to_string(), bytes: bytes.len() })
}

fn attempts(paths: &RunPaths) -> Vec<AttemptFacts> {
    let mut attempts = Vec::new();
    for entry in fs::read_dir(paths.dir()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(number) = name.strip_prefix("attempt-").and_then(|n| n.parse().ok()) else { continue };
        let log = fs::read(entry.path().join("log.csv")).ok();
        let failure = fs::read(entry.path().join("failure.json")).ok();
        let failure = failure.and_then(|bytes| serde_json::from_slice::<AttemptFailure>(&bytes).ok());
        attempts.push(AttemptFacts {
            number,
            rows: log.map(|log| log.iter().filter(|b| **b == b'\n').count().saturating_sub(1)),
            failure: failure.map(|f| format!("{}: {}", f.cause, f.message)),
        });
    }
    attempts.sort_by_key(|attempt| attempt.number);
    attempts
}
