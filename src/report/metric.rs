//! The metrics of a comparison.

use crate::plan::Metric;
use crate::run::{Ending, Outcome};
use crate::stats::Better;

/// The metric's name in sweep files and tables.
pub fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::ValBpb => "val_bpb",
        Metric::BestValBpb => "best_val_bpb",
        Metric::ValAcc => "val_acc",
        Metric::BestValAcc => "best_val_acc",
        Metric::TrainBpb => "train_bpb",
    }
}

/// The value on the test split that stands for the metric.
pub fn test_name(metric: Metric) -> &'static str {
    match better(metric) {
        Better::Lower => "test_bpb",
        Better::Higher => "test_acc",
    }
}

/// Which values of the metric are the better ones.
pub fn better(metric: Metric) -> Better {
    match metric {
        Metric::ValBpb | Metric::BestValBpb | Metric::TrainBpb => Better::Lower,
        Metric::ValAcc | Metric::BestValAcc => Better::Higher,
    }
}

/// The metric of a run that finished; `None` of one that did not, or that logged no such value.
pub fn value_of(outcome: &Outcome, metric: Metric) -> Option<f64> {
    let Ending::Finished(finals) = &outcome.ending else {
        return None;
    };
    match metric {
        Metric::ValBpb => Some(finals.val_bpb),
        Metric::ValAcc => Some(finals.val_acc),
        Metric::TrainBpb => Some(finals.train_bpb),
        Metric::BestValBpb => outcome.best_val_bpb.map(|best| best.value),
        Metric::BestValAcc => outcome.best_val_acc.map(|best| best.value),
    }
}

/// The test value of a run that finished, if its trainer has a test split.
pub(super) fn test_value_of(outcome: &Outcome, metric: Metric) -> Option<f64> {
    let Ending::Finished(finals) = &outcome.ending else {
        return None;
    };
    match better(metric) {
        Better::Lower => finals.test_bpb,
        Better::Higher => finals.test_acc,
    }
}
