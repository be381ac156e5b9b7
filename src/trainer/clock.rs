//! A run's time by the monotonic clock: the volatile columns of its log.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::run::Timing;

/// What a clock showed when it was saved: a run that goes on does not count the pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elapsed {
    /// Time in training and evaluation since the run began.
    pub total: Duration,
    /// Time in evaluation, of that.
    pub evaluated: Duration,
    /// Time in evaluation since the previous row.
    pub evaluating: Duration,
    /// The total at the previous row.
    pub last_row: Duration,
    /// Steps done at the previous row.
    pub last_row_steps: u64,
}

/// Measures steps and evaluations.
#[derive(Clone, Debug)]
pub struct Clock {
    /// When this attempt began.
    began: Instant,
    /// What earlier attempts took.
    before: Duration,
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
            before: Duration::ZERO,
            evaluating: Duration::ZERO,
            evaluated: Duration::ZERO,
            last_row: Duration::ZERO,
            last_row_steps: 0,
            steps,
            tokens_per_step: tokens_per_step as f64,
            counts_evaluation,
        }
    }

    /// What it shows now.
    pub fn elapsed(&self) -> Elapsed {
        Elapsed {
            total: self.now(),
            evaluated: self.evaluated,
            evaluating: self.evaluating,
            last_row: self.last_row,
            last_row_steps: self.last_row_steps,
        }
    }

    /// Goes on from what an earlier attempt's clock showed.
    pub fn go_on_from(&mut self, elapsed: Elapsed) {
        self.began = Instant::now();
        self.before = elapsed.total;
        (self.evaluated, self.evaluating) = (elapsed.evaluated, elapsed.evaluating);
        (self.last_row, self.last_row_steps) = (elapsed.last_row, elapsed.last_row_steps);
    }

    fn now(&self) -> Duration {
        self.before + self.began.elapsed()
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
        let elapsed = self.now();
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
        let wall = self.now();
        let training =
            if self.counts_evaluation { wall } else { wall.saturating_sub(self.evaluated + self.evaluating) };
        (wall.as_secs_f64(), self.tokens_per_step * steps as f64 / training.as_secs_f64())
    }
}
