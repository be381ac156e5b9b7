//! `[stop]`: the rule by which runs are stopped early, and where a run is looked at.
//!
//! Runs are judged by the digits of their logs, so that a run judged while it trains and one judged from its published log are
//! judged alike.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Metric;
use crate::run::Best;
use crate::settings::Settings;

/// A rule of early stopping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopRule {
    /// What stops a run.
    pub kind: StopKind,
    /// By which value.
    pub metric: Metric,
}

/// What stops a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "rule", deny_unknown_fields)]
pub enum StopKind {
    /// At each rung those of an arm's configurations that are worse than the median stop.
    Median {
        /// Steps after which all are compared, ascending.
        rungs: Vec<u64>,
    },
    /// At each rung the best one in `factor` of an arm's configurations go on.
    Halving {
        /// Steps after which all are compared, ascending.
        rungs: Vec<u64>,
        /// Of so many configurations one goes on.
        factor: u64,
    },
    /// A run stops at the first row that has reached a value.
    Target {
        /// The value.
        #[serde(with = "crate::num")]
        value: f64,
    },
}

/// Where an attempt rests: it is saved there, its lane is free, and the sweep decides whether it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "at", deny_unknown_fields)]
pub enum Rest {
    /// After so many steps, the last of which is logged.
    Steps {
        /// How many.
        steps: u64,
    },
    /// After the first row that has reached a value.
    Value {
        /// Of what.
        metric: Metric,
        /// The value.
        #[serde(with = "crate::num")]
        value: f64,
    },
}

/// A run as it was after a logged step, to the digits of its log.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Steps done.
    pub steps: u64,
    /// Bits per byte of the last step's batch.
    #[serde(with = "crate::num")]
    pub train_bpb: f64,
    /// Validation bits per byte.
    #[serde(with = "crate::num")]
    pub val_bpb: f64,
    /// Validation accuracy.
    #[serde(with = "crate::num")]
    pub val_acc: f64,
    /// Smallest validation bits per byte so far.
    pub best_val_bpb: Option<Best>,
    /// Largest validation accuracy so far.
    pub best_val_acc: Option<Best>,
}

impl Mark {
    /// The value of a metric.
    pub fn value(&self, metric: Metric) -> f64 {
        let best = |best: Option<Best>| best.map_or(f64::NAN, |best| best.value);
        match metric {
            Metric::ValBpb => self.val_bpb,
            Metric::ValAcc => self.val_acc,
            Metric::TrainBpb => self.train_bpb,
            Metric::BestValBpb => best(self.best_val_bpb),
            Metric::BestValAcc => best(self.best_val_acc),
        }
    }

    /// Whether the metric is as good as `value`.
    pub fn reaches(&self, metric: Metric, value: f64) -> bool {
        cost(metric, self.value(metric)) <= cost(metric, value)
    }
}

/// A value of a metric as one of which less is better.
pub(super) fn cost(metric: Metric, value: f64) -> f64 {
    match metric {
        Metric::ValBpb | Metric::BestValBpb | Metric::TrainBpb => value,
        Metric::ValAcc | Metric::BestValAcc => -value,
    }
}

/// Goes along a run's rows, and finds where it rests.
#[derive(Clone, Debug)]
pub struct Marker {
    rest: Option<Rest>,
    best_val_bpb: Option<Best>,
    best_val_acc: Option<Best>,
}

impl Marker {
    /// Before the first row.
    pub const fn new(rest: Option<Rest>) -> Self {
        Self { rest, best_val_bpb: None, best_val_acc: None }
    }

    /// Takes the next row in; the mark, if the run rests behind it. A run whose loss is not finite does not rest: its next step tells
    /// that it has diverged.
    pub fn row(&mut self, step: u64, [train_bpb, val_bpb, val_acc]: [f64; 3]) -> Option<Mark> {
        let [train_bpb, val_bpb, val_acc] = [train_bpb, val_bpb, val_acc].map(as_logged);
        let better = |best: Option<Best>, value: f64, is: bool| {
            if best.is_none() && !value.is_nan() || is { Some(Best { value, step }) } else { best }
        };
        let is = self.best_val_bpb.is_some_and(|best| val_bpb < best.value);
        self.best_val_bpb = better(self.best_val_bpb, val_bpb, is);
        let is = self.best_val_acc.is_some_and(|best| val_acc > best.value);
        self.best_val_acc = better(self.best_val_acc, val_acc, is);
        let (best_val_bpb, best_val_acc) = (self.best_val_bpb, self.best_val_acc);
        let mark = Mark { steps: step + 1, train_bpb, val_bpb, val_acc, best_val_bpb, best_val_acc };
        let here = match self.rest? {
            Rest::Steps { steps } => mark.steps == steps,
            Rest::Value { metric, value } => mark.reaches(metric, value),
        };
        (here && val_bpb.is_finite()).then_some(mark)
    }
}

/// A value to the digits of a log.
fn as_logged(value: f64) -> f64 {
    format!("{value:.5}").parse().unwrap_or(value)
}

impl StopRule {
    /// The rungs, ascending; none of a target.
    pub fn rungs(&self) -> &[u64] {
        match &self.kind {
            StopKind::Median { rungs } | StopKind::Halving { rungs, .. } => rungs,
            StopKind::Target { .. } => &[],
        }
    }

    /// The rest that a mark is of.
    pub fn rest_of(&self, mark: &Mark) -> Rest {
        match self.kind {
            StopKind::Target { value } => Rest::Value { metric: self.metric, value },
            StopKind::Median { .. } | StopKind::Halving { .. } => Rest::Steps { steps: mark.steps },
        }
    }

    /// Every place at which a run of these settings may rest.
    pub fn rests(&self, settings: &Settings) -> Vec<Rest> {
        match self.kind {
            StopKind::Target { value } => vec![Rest::Value { metric: self.metric, value }],
            _ => self
                .rungs()
                .iter()
                .filter_map(|&rung| steps_at(settings, rung))
                .map(|steps| Rest::Steps { steps })
                .collect(),
        }
    }
}

/// Steps after which a run of these settings rests for a rung: those up to the first row at or behind it. None where the run is
/// over by then.
pub(super) fn steps_at(settings: &Settings, rung: u64) -> Option<u64> {
    let steps = rung.saturating_sub(1).checked_next_multiple_of(settings.eval_every)?.checked_add(1)?;
    (steps < settings.steps).then_some(steps)
}

impl fmt::Display for StopRule {
    /// The rule in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metric = self.metric.key();
        let rungs = |rungs: &[u64]| rungs.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        match &self.kind {
            StopKind::Median { rungs: at } => write!(
                f,
                "after {} steps those of an arm's configurations stop whose mean {metric} over the seeds is worse than the median",
                rungs(at)
            ),
            StopKind::Halving { rungs: at, factor } => write!(
                f,
                "after {} steps the best 1 in {factor} of an arm's configurations go on, by their mean {metric} over the seeds",
                rungs(at)
            ),
            StopKind::Target { value } => write!(f, "a run stops when its {metric} has reached {value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(steps: u64, eval_every: u64) -> Settings {
        Settings { steps, eval_every, ..Settings::default() }
    }

    #[test]
    fn a_run_rests_behind_the_first_row_at_or_behind_a_rung() {
        let at = |rung| steps_at(&settings(100, 5), rung);
        assert_eq!([1, 2, 6, 7, 50].map(at), [Some(1), Some(6), Some(6), Some(11), Some(51)]);
        assert_eq!([95, 96, 97, 100, u64::MAX].map(at), [Some(96), Some(96), None, None, None]);
    }

    #[test]
    fn the_first_row_that_reaches_the_target_is_marked() {
        let mut marker = Marker::new(Some(Rest::Value { metric: Metric::ValBpb, value: 2.0 }));
        assert_eq!(marker.row(0, [3.0, 2.5, 0.1]), None);
        assert_eq!(marker.row(5, [3.0, 2.000_01, 0.3]), None);
        let mark = marker.row(10, [1.9, 2.000_004, 0.2]).unwrap();
        assert_eq!((mark.steps, mark.val_bpb), (11, 2.0), "to the digits of the log");
        assert_eq!(mark.best_val_acc, Some(Best { value: 0.3, step: 5 }));
        let mut marker = Marker::new(Some(Rest::Value { metric: Metric::ValAcc, value: 0.5 }));
        assert_eq!(marker.row(0, [1.0, f64::NAN, 0.9]), None, "it has diverged");
        assert_eq!(marker.row(1, [1.0, 1.0, 0.4]), None);
        assert_eq!(marker.row(2, [1.0, 1.0, 0.5]).map(|mark| mark.steps), Some(3));
    }

    #[test]
    fn a_rung_is_marked_at_its_row_alone() {
        let mut marker = Marker::new(Some(Rest::Steps { steps: 6 }));
        assert_eq!(marker.row(0, [1.0; 3]), None);
        assert_eq!(marker.row(5, [1.0; 3]).map(|mark| mark.steps), Some(6));
        assert_eq!(marker.row(10, [1.0; 3]), None);
        assert_eq!(Marker::new(None).row(0, [1.0; 3]), None);
    }
}
