//! A run's time by the monotonic clock: the volatile columns of its log.

use std::time::{Duration, Instant};

use crate::run::Timing;

/// Measures steps and evaluations.
#[derive(Clone, Debug)]
pub struct Clock {
    /// When this attempt began, less what earlier attempts took.
    began: Instant,
    /// Time in evaluation since the previous row.
    evaluating: Duration,
    /// Time in evaluation over the run.
    evaluated: Duration,
    last_row: Duration,
    last_row_steps: u64,
    steps: u64,
    tokens_per_step: f64,
    counts_evaluation: bool,
}

impl Clock {
    /// A clock that starts now, for a run of `steps` steps of `tokens_per_step` bytes.
    pub fn start(steps: u64, tokens_per_step: usize, counts_evaluation: bool) -> Self {
        Self {
            began: Instant::now(),
            evaluating: Duration::ZERO,
            evaluated: Duration::ZERO,
            last_row: Duration::ZERO,
            last_row_steps: 0,
            steps,
            tokens_per_step: tokens_per_step as f64,
            counts_evaluation,
        }
    }

    /// Runs an evaluation and counts its time apart.
    pub fn evaluation<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let from = Instant::now();
        let result = work();
        self.evaluating += from.elapsed();
        result
    }

    /// Counts the time of an evaluation that was measured elsewhere.
    pub fn evaluated(&mut self, took: Duration) {
        self.evaluating += took;
    }

    /// The timing of the row that is logged after `step`.
    pub fn row(&mut self, step: u64) -> Timing {
        let elapsed = self.began.elapsed();
        let done = step + 1;
        let since = done.saturating_sub(self.last_row_steps);
        let mut spent = elapsed.saturating_sub(self.last_row);
        if !self.counts_evaluation {
            spent = spent.saturating_sub(self.evaluating);
        }
        let step_sec = match since {
            0 => elapsed.as_secs_f64() / done as f64,
            n => spent.as_secs_f64() / n as f64,
        };
        (self.last_row, self.last_row_steps) = (elapsed, done);
        self.evaluated += std::mem::take(&mut self.evaluating);
        Timing {
            step_sec,
            tok_per_sec: self.tokens_per_step / step_sec,
            elapsed_sec: elapsed.as_secs_f64(),
            eta_sec: self.steps.saturating_sub(done) as f64 * elapsed.as_secs_f64() / done as f64,
        }
    }

    /// Seconds since the start, and bytes trained on a second over `steps` steps.
    pub fn total(&self, steps: u64) -> (f64, f64) {
        let wall = self.began.elapsed();
        let training =
            if self.counts_evaluation { wall } else { wall.saturating_sub(self.evaluated + self.evaluating) };
        (wall.as_secs_f64(), self.tokens_per_step * steps as f64 / training.as_secs_f64())
    }
}
