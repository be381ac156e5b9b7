//! What a run's log and outcome are made of, whatever backend trains it.

use super::snapshot::{BadStep, Progressed};
use crate::run::{Best, Finals, GroupNorms, Panel, Row, Timing};

/// Mean loss (nats a byte) and accuracy over windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Mean over the windows of their mean losses.
    pub loss: f64,
    /// Share of bytes predicted right.
    pub accuracy: f64,
}

impl Score {
    /// From each window's mean loss and hits, in order.
    pub fn of(losses: &[f64], hits: u64, tokens: usize) -> Self {
        let loss = losses.iter().fold(0.0, |sum, loss| sum + loss) / losses.len() as f64;
        Self { loss, accuracy: hits as f64 / (losses.len() * tokens) as f64 }
    }

    /// Bits per byte.
    pub fn bpb(self) -> f64 {
        bits(self.loss)
    }
}

/// Nats as bits.
pub fn bits(nats: f64) -> f64 {
    nats / std::f64::consts::LN_2
}

/// A logged step's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Logged {
    /// Step, from 0.
    pub step: u64,
    /// Loss of the step's batch in nats.
    pub loss: f64,
    /// Gradient's norm.
    pub grad_norm: f64,
    /// The same by groups of tensors.
    pub grad_norms: GroupNorms,
    /// Learning rate.
    pub lr: f64,
    /// On the validation windows.
    pub val: Score,
    /// Ternary weights.
    pub panel: Option<Panel>,
}

/// The best rows so far, and whether an evaluation was not finite.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ledger {
    /// Smallest validation bits per byte.
    pub best_val_bpb: Option<Best>,
    /// Largest validation accuracy.
    pub best_val_acc: Option<Best>,
    /// A row whose evaluation was not finite: the run ends as diverged.
    pub bad: Option<BadStep>,
}

impl Ledger {
    /// As an earlier attempt left it.
    pub fn go_on_from(progress: &Progressed) -> Self {
        let Progressed { best_val_bpb, best_val_acc, bad, .. } = *progress;
        Self { best_val_bpb, best_val_acc, bad }
    }

    /// Takes a logged step in, and makes its row.
    pub fn log(&mut self, logged: Logged, timing: Timing) -> Row {
        let Logged { step, val, .. } = logged;
        if !val.loss.is_finite() {
            self.bad = Some(BadStep { step, loss: val.loss });
        }
        self.best_val_bpb = better(self.best_val_bpb, |a, b| a < b, Best { value: val.bpb(), step });
        self.best_val_acc = better(self.best_val_acc, |a, b| a > b, Best { value: val.accuracy, step });
        Row {
            step,
            train_bpb: bits(logged.loss),
            val_bpb: val.bpb(),
            val_acc: val.accuracy,
            grad_norm: logged.grad_norm,
            grad_norms: Some(logged.grad_norms),
            lr: logged.lr,
            panel: logged.panel,
            timing,
        }
    }
}

/// The better of two; the earlier where they are equal, and what is not a number never.
pub(crate) fn better(best: Option<Best>, is: fn(f64, f64) -> bool, new: Best) -> Option<Best> {
    match best {
        Some(best) if !is(new.value, best.value) => Some(best),
        _ if new.value.is_nan() => best,
        _ => Some(new),
    }
}

/// What a run ends with, or the loss that is not finite.
///
/// # Errors
/// The first of the losses that is not finite.
pub fn finals(train: Score, val: Score, test: Option<Score>) -> Result<Finals, f64> {
    match [Some(train), Some(val), test].iter().flatten().find(|s| !s.loss.is_finite()) {
        Some(bad) => Err(bad.loss),
        None => Ok(Finals {
            train_bpb: train.bpb(),
            val_bpb: val.bpb(),
            val_acc: val.accuracy,
            test_bpb: test.map(Score::bpb),
            test_acc: test.map(|s| s.accuracy),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ledger: &mut Ledger, step: u64, loss: f64, accuracy: f64) {
        let val = Score { loss, accuracy };
        let timing = Timing { step_sec: 0.0, tok_per_sec: 0.0, elapsed_sec: 0.0, eta_sec: 0.0 };
        let grad_norms = GroupNorms::default();
        ledger.log(Logged { step, loss: 1.0, grad_norm: 1.0, grad_norms, lr: 1.0, val, panel: None }, timing);
    }

    #[test]
    fn the_first_of_equal_rows_is_best_and_what_is_no_number_never() {
        let mut ledger = Ledger::default();
        row(&mut ledger, 0, f64::NAN, 0.1);
        assert_eq!(ledger.best_val_bpb, None);
        for (step, loss, accuracy) in [(1, 2.0, 0.2), (2, 2.0, 0.2), (3, 1.0, 0.1), (4, 1.5, 0.3)] {
            row(&mut ledger, step, loss, accuracy);
        }
        assert_eq!(ledger.best_val_bpb.map(|b| b.step), Some(3));
        assert_eq!(ledger.best_val_acc.map(|b| b.step), Some(4));
        assert!(matches!(ledger.bad, Some(BadStep { step: 0, loss }) if loss.is_nan()));
    }

    #[test]
    fn a_final_loss_that_is_not_finite_is_no_result() {
        let good = Score { loss: 1.0, accuracy: 0.5 };
        let bad = Score { loss: f64::INFINITY, accuracy: 0.5 };
        assert_eq!(finals(good, good, Some(bad)), Err(f64::INFINITY));
        assert_eq!(finals(good, good, None).map(|f| f.test_bpb), Ok(None));
    }
}
