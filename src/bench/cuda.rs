//! Times training steps on a GPU, for several numbers of lanes.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::backend::cpu::simd::Level;
use crate::backend::cpu::team::Team;
use crate::backend::cuda::die::{Die, DieError};
use crate::backend::cuda::lanes::{Lanes, LanesError};
use crate::backend::cuda::library::Host;
use crate::data::{Corpus, DataError};
use crate::plan::work::step_flops;
use crate::settings::{Opt, Settings};

/// Steps before the first that counts, and steps of a round.
const BEFORE: u32 = 5;

/// Rounds of which the median counts.
const ROUNDS: usize = 5;

/// The GPU cannot be timed.
#[derive(Debug, thiserror::Error)]
pub enum CudaBenchError {
    /// The corpus.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The die.
    #[error(transparent)]
    Die(#[from] DieError),
    /// The lanes.
    #[error(transparent)]
    Lanes(#[from] LanesError),
    /// The threads.
    #[error("cannot start threads")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

/// What to time.
#[derive(Clone, Debug)]
pub struct CudaRequest {
    /// Model and corpus; both arms are timed.
    pub settings: Settings,
    /// Numbers of lanes.
    pub lanes: Vec<usize>,
    /// Steps of a round.
    pub steps: u32,
}

/// Times of one arm in one number of lanes.
#[derive(Clone, Debug, Serialize)]
pub struct CudaTimes {
    /// Arm.
    pub opt: &'static str,
    /// Lanes.
    pub lanes: usize,
    /// Median milliseconds of a training step of all lanes.
    pub step_ms: f64,
    /// Training steps of one run a second, over all lanes.
    pub lane_steps_per_sec: f64,
    /// Arithmetic of the steps (forward and backward, without the optimizer) in 10^12 operations a second.
    pub tflops: f64,
    /// Kernels of a step.
    pub nodes: usize,
    /// Memory in bytes that all buffers of these lanes take, over their number.
    pub bytes_per_lane: usize,
}

/// The times of all.
#[derive(Clone, Debug, Serialize)]
pub struct CudaReport {
    /// GPU.
    pub device: String,
    /// What its code was compiled for.
    pub code: String,
    /// Bytes trained on in a step of a lane.
    pub bytes_per_step: usize,
    /// Arms and lanes.
    pub times: Vec<CudaTimes>,
}

/// Times both arms in every number of lanes, as far as memory goes.
///
/// # Errors
/// There is no usable GPU, or the settings cannot be trained on it.
pub fn run(request: &CudaRequest) -> Result<CudaReport, CudaBenchError> {
    let die = Rc::new(Die::open(&Host::this(), 0)?);
    let corpus = Corpus::open(&request.settings.data)?;
    let team = Arc::new(Team::new(1, Level::PORTABLE)?);
    let mut times = Vec::new();
    for (opt, name) in [(Opt::AdamW, "adamw"), (Opt::Sr4, "sr4")] {
        let settings = Settings { opt, ..request.settings.clone() };
        for &count in &request.lanes {
            let (free, _) = die.memory_info()?;
            let mut lanes = Lanes::new(Rc::clone(&die), &settings, corpus.clone(), count, Arc::clone(&team))?;
            let taken = free.saturating_sub(die.memory_info()?.0);
            lanes.fill_alike(&settings)?;
            let mut rounds: Vec<Duration> = Vec::with_capacity(ROUNDS);
            for round in 0..ROUNDS {
                let before = if round == 0 { BEFORE } else { 0 };
                rounds.push(lanes.time_steps(before, request.steps)?);
            }
            rounds.sort();
            let step = rounds[ROUNDS / 2].as_secs_f64();
            let rate = count as f64 / step;
            times.push(CudaTimes {
                opt: name,
                lanes: count,
                step_ms: step * 1e3,
                lane_steps_per_sec: rate,
                tflops: rate * step_flops(&settings) as f64 / 1e12,
                nodes: lanes.step_nodes(),
                bytes_per_lane: taken / count.max(1),
            });
        }
    }
    let s = &request.settings;
    Ok(CudaReport {
        device: die.name()?,
        code: die.image().target.to_string(),
        bytes_per_step: s.batch * s.accum_steps * s.seq_len,
        times,
    })
}
