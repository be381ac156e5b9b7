//! Times the trainer: the phases of a training step, and evaluation, as medians over many steps.

pub mod cuda;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::backend::cpu::simd::Level;
use crate::backend::cpu::team::Team;
use crate::data::{Corpus, DataError};
use crate::settings::Settings;
use crate::trainer::{Progress, Run, TrainError};

/// What to time.
#[derive(Clone, Debug)]
pub struct Request {
    /// Model, arm and corpus. `steps` and `eval_every` are overridden.
    pub settings: Settings,
    /// Threads of the die.
    pub threads: usize,
    /// Steps before the first that counts.
    pub warm_up: u64,
    /// Steps that count.
    pub steps: u64,
    /// Validation windows whose evaluation is timed, one by one.
    pub windows: u64,
}

/// A benchmark cannot run.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The corpus.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The run.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The threads.
    #[error("cannot start threads")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The run diverged, so that there is nothing to time.
    #[error("the run diverged at step {0}: choose other settings")]
    Diverged(u64),
}

/// Milliseconds of one phase.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// A tenth of the samples are shorter.
    pub p10: f64,
    /// A tenth of the samples are longer.
    pub p90: f64,
}

impl Spread {
    fn of(samples: &mut [Duration]) -> Self {
        samples.sort();
        let at = |share: f64| samples[((samples.len() - 1) as f64 * share).round() as usize].as_secs_f64() * 1e3;
        Self { median: at(0.5), p10: at(0.1), p90: at(0.9) }
    }
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Model name of the processor, as the system tells it.
    pub processor: String,
    /// SIMD level.
    pub simd: &'static str,
    /// Threads.
    pub threads: usize,
    /// Arm.
    pub opt: crate::settings::Opt,
    /// Bytes of a training step.
    pub bytes_per_step: usize,
    /// Steps measured.
    pub steps: u64,
    /// A whole training step, without logging.
    pub step_ms: Spread,
    /// Its forward pass and loss.
    pub forward_ms: Spread,
    /// Its backward pass.
    pub backward_ms: Spread,
    /// Its update, weights made ready for the next step included.
    pub optimizer_ms: Spread,
    /// Evaluation of one window.
    pub evaluation_ms: Spread,
}

/// Runs the benchmark.
///
/// # Errors
/// The corpus or the settings do not allow a run, or it diverged.
pub fn run(request: &Request, level: Level) -> Result<Report, BenchError> {
    let total = request.warm_up + request.steps;
    // One step more, since the last step is always logged.
    let settings = Settings { steps: total + 2, eval_every: total + 2, ..request.settings.clone() };
    let corpus = Corpus::open(&settings.data)?;
    let team = Arc::new(Team::new(request.threads, level)?);
    let mut run = Run::new(&settings, corpus, team, None)?;
    let mut samples: [Vec<Duration>; 4] = Default::default();
    // Step 0 is logged.
    for step in 0..=total {
        let began = Instant::now();
        let progress = run.advance();
        let took = began.elapsed();
        if let Progress::Ended(_) = progress {
            return Err(BenchError::Diverged(step));
        }
        if step > request.warm_up {
            let times = run.engine().times();
            for (samples, time) in samples.iter_mut().zip([took, times.forward, times.backward, run.update_time()]) {
                samples.push(time);
            }
        }
    }
    let mut evaluations = Vec::new();
    for _ in 0..request.windows {
        let began = Instant::now();
        run.validate(1);
        evaluations.push(began.elapsed());
    }
    let [step_ms, forward_ms, backward_ms, optimizer_ms] = samples.each_mut().map(|s| Spread::of(s));
    Ok(Report {
        processor: processor(),
        simd: level.name(),
        threads: request.threads,
        opt: settings.opt,
        bytes_per_step: settings.batch * settings.accum_steps * settings.seq_len,
        steps: request.steps,
        step_ms,
        forward_ms,
        backward_ms,
        optimizer_ms,
        evaluation_ms: Spread::of(&mut evaluations),
    })
}

/// The processor's model name, or `unknown`.
pub(crate) fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| "unknown".to_owned(), |(_, name)| name.trim().to_owned())
}
