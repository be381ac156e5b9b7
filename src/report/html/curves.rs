//! The logs of a configuration's runs, joined by step.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::plan::Plan;
use crate::run::{Ending, Panel, Row};
use crate::stats::Summary;
use crate::store::{Loaded, StoreError, View, read_log};

/// Points of a curve that are drawn; of longer ones every n-th, and the last.
const MOST_POINTS: usize = 240;
/// Rows before the end of a diverged run that are drawn in any case: there its loss rises.
const LAST_ROWS: usize = 8;
/// Diverged runs of a configuration that are drawn.
const MOST_TRACES: usize = 8;

/// A logged quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    ValBpb,
    TrainBpb,
    ValAcc,
    Churn,
    Rail,
    Dead,
    Neg,
    Zero,
    Pos,
    ScaleMean,
    ScaleMin,
    ScaleMax,
}

impl Quantity {
    /// What a learning curve can show.
    pub(super) const LEARNING: [Self; 3] = [Self::ValBpb, Self::TrainBpb, Self::ValAcc];
    /// What shows the state of ternary weights.
    pub(super) const HEALTH: [Self; 9] = [
        Self::Churn,
        Self::Rail,
        Self::Dead,
        Self::Neg,
        Self::Zero,
        Self::Pos,
        Self::ScaleMean,
        Self::ScaleMin,
        Self::ScaleMax,
    ];
    const ALL: [Self; 12] = [
        Self::ValBpb,
        Self::TrainBpb,
        Self::ValAcc,
        Self::Churn,
        Self::Rail,
        Self::Dead,
        Self::Neg,
        Self::Zero,
        Self::Pos,
        Self::ScaleMean,
        Self::ScaleMin,
        Self::ScaleMax,
    ];

    /// Its column in the log.
    pub(super) fn column(self) -> &'static str {
        match self {
            Self::ValBpb => "val_bpb",
            Self::TrainBpb => "train_bpb",
            Self::ValAcc => "val_acc",
            Self::Churn => "churn",
            Self::Rail => "rail_pct",
            Self::Dead => "dead_pct",
            Self::Neg => "pct_neg",
            Self::Zero => "pct_zero",
            Self::Pos => "pct_pos",
            Self::ScaleMean => "scale_mean",
            Self::ScaleMin => "scale_min",
            Self::ScaleMax => "scale_max",
        }
    }

    /// What it is, with its unit.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::ValBpb => "validation loss, bits per byte",
            Self::TrainBpb => "training loss, bits per byte",
            Self::ValAcc => "validation accuracy, share of bytes",
            Self::Churn => "share of weights changed since the last logged step",
            Self::Rail => "share of accumulators at an end of their range",
            Self::Dead => "share of accumulators below the threshold",
            Self::Neg => "share of weights −1",
            Self::Zero => "share of weights 0",
            Self::Pos => "share of weights +1",
            Self::ScaleMean => "mean scale",
            Self::ScaleMin => "smallest scale",
            Self::ScaleMax => "largest scale",
        }
    }

    fn of(self, row: &Row) -> Option<f64> {
        let panel = |value: fn(&Panel) -> f64| row.panel.as_ref().map(value);
        match self {
            Self::ValBpb => Some(row.val_bpb),
            Self::TrainBpb => Some(row.train_bpb),
            Self::ValAcc => Some(row.val_acc),
            Self::Churn => panel(|p| p.churn),
            Self::Rail => panel(|p| p.rail_pct),
            Self::Dead => panel(|p| p.dead_pct),
            Self::Neg => panel(|p| p.pct_neg),
            Self::Zero => panel(|p| p.pct_zero),
            Self::Pos => panel(|p| p.pct_pos),
            Self::ScaleMean => panel(|p| p.scale_mean),
            Self::ScaleMin => panel(|p| p.scale_min),
            Self::ScaleMax => panel(|p| p.scale_max),
        }
    }
}

/// The mean over seeds at a step, with its 95% interval; NaN for what there is not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) step: f64,
    pub(super) mean: f64,
    pub(super) lo: f64,
    pub(super) hi: f64,
}

/// The rows of a run that diverged; of long ones every n-th and the last ones.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trace {
    pub(super) seed: u64,
    rows: Vec<Row>,
}

impl Trace {
    fn of(seed: u64, rows: Vec<Row>) -> Self {
        let (every, len) = (rows.len().div_ceil(MOST_POINTS).max(1), rows.len());
        let kept = rows.into_iter().enumerate().filter(|(i, _)| i % every == 0 || i + LAST_ROWS >= len);
        Self { seed, rows: kept.map(|(_, row)| row).collect() }
    }

    /// Its steps.
    pub(super) fn steps(&self) -> impl Iterator<Item = f64> + '_ {
        self.rows.iter().map(|row| row.step as f64)
    }

    /// Seconds at its steps.
    pub(super) fn seconds(&self) -> impl Iterator<Item = f64> + '_ {
        self.rows.iter().map(|row| row.timing.elapsed_sec)
    }

    /// A quantity over the steps.
    pub(super) fn points(&self, quantity: Quantity) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        self.rows.iter().filter_map(move |row| Some((row.step as f64, quantity.of(row)?)))
    }
}

/// A configuration's curves.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) struct Curve {
    /// Index of the configuration in the plan.
    pub(super) configuration: usize,
    /// Finished runs that the means are over.
    pub(super) runs: usize,
    /// Every so many of the logged steps is drawn.
    pub(super) every: usize,
    /// By place in [`Quantity::ALL`]; empty for what was not logged.
    points: Vec<Vec<Point>>,
    /// Training tokens of a step.
    pub(super) tokens: usize,
    /// Seconds at each step that is drawn, mean over the runs.
    pub(super) seconds: Vec<f64>,
    /// Runs that diverged, the first few.
    pub(super) diverged: Vec<Trace>,
}

impl Curve {
    /// A quantity over the steps; empty if the runs do not have it.
    pub(super) fn points(&self, quantity: Quantity) -> &[Point] {
        let place = Quantity::ALL.iter().position(|q| *q == quantity);
        place.map_or(&[], |place| &self.points[place])
    }

    /// Whether its runs have ternary weights.
    pub(super) fn has_panel(&self) -> bool {
        !self.points(Quantity::Churn).is_empty()
    }
}

/// Reads the logs of configurations, one configuration's at a time on each thread: that bounds the memory.
pub(in crate::report) fn gather(
    view: &View,
    plan: &Plan,
    loaded: &Loaded,
    configurations: &[usize],
) -> Result<Vec<Curve>, StoreError> {
    configurations.par_iter().map(|index| curve(view, plan, loaded, *index)).collect()
}

fn curve(view: &View, plan: &Plan, loaded: &Loaded, index: usize) -> Result<Curve, StoreError> {
    let (mut finished, mut diverged) = (Vec::new(), Vec::new());
    for run in &plan.configurations[index].runs {
        let Some(result) = loaded.states[*run].result() else {
            continue;
        };
        let planned = &plan.runs[*run];
        let rows = || read_log(&view.run_paths(planned).log()).map(|log| log.rows);
        match result.outcome.ending {
            Ending::Finished(_) => finished.push(rows()?),
            Ending::Diverged { .. } if diverged.len() < MOST_TRACES => {
                diverged.push(Trace::of(planned.seed, rows()?));
            }
            Ending::Diverged { .. } => {}
        }
    }
    let mut by_step: BTreeMap<u64, Vec<&Row>> = BTreeMap::new();
    for row in finished.iter().flatten() {
        by_step.entry(row.step).or_default().push(row);
    }
    let every = by_step.len().div_ceil(MOST_POINTS).max(1);
    let last = by_step.len().saturating_sub(1);
    let drawn: Vec<(u64, Vec<&Row>)> =
        by_step.into_iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last).map(|(_, step)| step).collect();
    let points =
        Quantity::ALL.map(|quantity| drawn.iter().filter_map(|(step, rows)| point(quantity, *step, rows)).collect());
    let seconds = drawn.iter().map(|(_, rows)| {
        let sum: f64 = rows.iter().map(|row| row.timing.elapsed_sec).sum();
        sum / rows.len() as f64
    });
    let settings = plan.configurations[index].runs.first().map(|run| &plan.runs[*run].settings);
    Ok(Curve {
        configuration: index,
        runs: finished.len(),
        every,
        tokens: settings.map_or(0, |s| s.batch * s.accum_steps * s.seq_len),
        seconds: seconds.collect(),
        points: points.into(),
        diverged,
    })
}

fn point(quantity: Quantity, step: u64, rows: &[&Row]) -> Option<Point> {
    let values: Vec<f64> = rows.iter().filter_map(|row| quantity.of(row)).collect();
    let step = step as f64;
    // One value that is not finite leaves no mean: a gap tells that better than the mean of the others.
    if values.iter().any(|x| !x.is_finite()) {
        return Some(Point { step, mean: f64::NAN, lo: f64::NAN, hi: f64::NAN });
    }
    let summary = Summary::of(&values)?;
    let (lo, hi) = summary.ci95.map_or((f64::NAN, f64::NAN), |i| (i.lo, i.hi));
    Some(Point { step, mean: summary.mean, lo, hi })
}
