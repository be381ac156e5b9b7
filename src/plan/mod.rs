//! What a sweep file comes down to: the ordered list of runs, and the configurations whose tables they fill.
//!
//! The plan is made once, counted, and written before the first launch; nothing after it adds or drops a run.
//!
//! [`build()`] makes it from a [`request`]: each arm's axes are crossed (`expand`), every point is resolved and checked
//! (`build`), equal points are merged (`merge`), and the runs are put in order (`order`).

mod build;
mod corpus;
mod decide;
mod exclude;
mod expand;
mod fault;
mod lanes;
mod merge;
mod names;
mod notes;
mod order;
pub mod request;
mod stop;
pub mod work;

pub use build::{Resolver, build, faults};
pub use corpus::open as open_corpus;
pub use decide::{Course, CourseEnd, Decision, Decisions, Fate, Standing, decide};
pub use fault::{Fault, Span};
pub use lanes::{BadLanes, LanesAsked, MOST_LANES};
pub use names::is_plain;
pub use notes::power;
pub use order::{ShapeKey, shape_key};
pub use stop::{Mark, Marker, Rest, StopKind, StopRule};

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::run::RunId;
use crate::settings::Settings;

/// An axis and its value in one configuration, as printed in names and tables (`lr`, `0.001`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AxisValue {
    /// Key of the setting.
    pub axis: String,
    /// Canonical text: the shortest that reads back as the same value.
    pub value: String,
}

/// A run of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Identity.
    pub id: RunId,
    /// Name of its folder under `runs/`, at most 64 bytes, ending in `-<id>`.
    pub folder: String,
    /// Arm that named it first.
    pub arm: String,
    /// Values of that arm's axes.
    pub axes: Vec<AxisValue>,
    /// Seed.
    pub seed: u64,
    /// Number of its shape key: runs with equal ones can share a worker's lanes.
    pub shape: usize,
    /// What the trainer reads.
    pub settings: Settings,
}

impl PlannedRun {
    /// The run in words: `sr4 target_step=0.003 seed=1234`.
    pub fn label(&self) -> String {
        let axes: String = self.axes.iter().map(|axis| format!("{}={} ", axis.axis, axis.value)).collect();
        format!("{} {axes}seed={}", self.arm, self.seed)
    }
}

/// An arm with one value of each of its axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Arm.
    pub arm: String,
    /// Its axes, in the order of [`Plan::axes`]; an axis of another arm is absent.
    pub axes: Vec<AxisValue>,
    /// Its runs, as indexes into [`Plan::runs`], by ascending seed.
    pub runs: Vec<usize>,
}

/// The value by which configurations are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Final validation bits per byte.
    ValBpb,
    /// Smallest logged validation bits per byte.
    BestValBpb,
    /// Final validation accuracy.
    ValAcc,
    /// Largest logged validation accuracy.
    BestValAcc,
    /// Final training bits per byte.
    TrainBpb,
}

impl Metric {
    /// Every metric with its name in sweep files and tables.
    pub const NAMES: [(&str, Self); 5] = [
        ("val_bpb", Self::ValBpb),
        ("best_val_bpb", Self::BestValBpb),
        ("val_acc", Self::ValAcc),
        ("best_val_acc", Self::BestValAcc),
        ("train_bpb", Self::TrainBpb),
    ];

    /// Its name.
    pub fn key(self) -> &'static str {
        Self::NAMES.iter().find(|(_, metric)| *metric == self).map_or("", |(name, _)| name)
    }
}

/// What `[compare]` asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compare {
    /// Arm that the others are compared with.
    pub baseline: String,
    /// Metric of selection.
    pub metric: Metric,
}

/// A corpus that runs of the plan read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorpusInfo {
    /// Absolute path; absent for the built-in generator.
    pub path: Option<PathBuf>,
    /// Length in bytes.
    pub bytes: u64,
    /// blake3 of the bytes, hexadecimal.
    pub digest: String,
    /// True entropy, bits a byte, where it is known: the built-in generator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy: Option<f64>,
}

/// What to do about the machine: the `[run]` table, which changes no number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOptions {
    /// Attempts that a run gets.
    pub attempts: u32,
    /// How often a run is saved.
    pub checkpoint_every: CheckpointEvery,
    /// Whether checkpoints outlive their run.
    pub keep_checkpoints: bool,
    /// Runs that a worker trains at once, on a GPU.
    #[serde(default)]
    pub lanes: LanesAsked,
    /// Milliseconds after which the report is made anew while the sweep is at work; only at its end where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_every: Option<u64>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            attempts: 3,
            checkpoint_every: CheckpointEvery::Milliseconds(60_000),
            keep_checkpoints: false,
            lanes: LanesAsked::Auto,
            report_every: None,
        }
    }
}

/// How often a run is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckpointEvery {
    /// After so many steps.
    Steps(u64),
    /// After so much time.
    Milliseconds(u64),
}

/// A resolved sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the sweep and of its results folder.
    pub name: String,
    /// Every axis of every arm, in the order of first mention.
    pub axes: Vec<String>,
    /// Runs in the order in which they are to start: seed-major, balanced over arms.
    pub runs: Vec<PlannedRun>,
    /// Configurations in the order of the sweep file.
    pub configurations: Vec<Configuration>,
    /// Comparison.
    pub compare: Compare,
    /// Corpora read, by number of first use.
    pub corpora: Vec<CorpusInfo>,
    /// Options that change no number.
    pub options: RunOptions,
    /// Rule of early stopping; none where all runs are trained to their ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopRule>,
    /// Notes for the user: merged points, power warning.
    pub notes: Vec<String>,
}
