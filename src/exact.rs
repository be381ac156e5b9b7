//! Trains the same runs on every backend and code path at hand, and compares all of their state byte by byte.

use std::ffi::OsString;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use crate::backend::cpu::simd::Level;
use crate::backend::cpu::team::Team;
use crate::backend::cuda::code::FORCE_VARIABLE;
use crate::backend::cuda::die::{Die, DieError};
use crate::backend::cuda::lanes::{Lanes, LanesError};
use crate::backend::cuda::library::Host;
use crate::data::Corpus;
use crate::model::{ModelConfig, ModelParams};
use crate::optim::State;
use crate::settings::{Opt, Settings, TestBatches};
use crate::trainer::{Progress, Run, TrainError};

/// A way to compute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path {
    /// CPU cores with these vector instructions.
    Cpu(Level),
    /// A GPU die, with code for it or for a forced target such as `compute_37`.
    Cuda {
        /// Target, as the compiler names it.
        forced: Option<&'static str>,
    },
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu(level) => write!(f, "cpu, {level}"),
            Self::Cuda { forced: None } => f.write_str("cuda, the die's own code"),
            Self::Cuda { forced: Some(target) } => write!(f, "cuda, {target}"),
        }
    }
}

/// Why a path could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum ExactError {
    /// Threads.
    #[error("no threads to compute with")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The CPU run.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The die.
    #[error(transparent)]
    Die(#[from] DieError),
    /// The lanes.
    #[error(transparent)]
    Lanes(#[from] LanesError),
}

/// Digests of a run's state after a step: a name and a digest for each tensor's values and moments.
type Step = Vec<(String, blake3::Hash)>;

/// What is trained: both arms of a model, for a number of steps.
#[derive(Clone, Debug)]
pub struct Course {
    runs: Vec<Settings>,
    steps: u64,
    corpus: Corpus,
    threads: usize,
}

impl Course {
    /// Both arms of the model and options of `settings`, for `steps` steps.
    pub fn new(settings: &Settings, steps: u64, corpus: Corpus, threads: usize) -> Self {
        let run = |opt| Settings {
            opt,
            steps,
            eval_every: 1,
            eval_batches: 1,
            test_batches: TestBatches::Windows(1),
            ..settings.clone()
        };
        Self { runs: vec![run(Opt::AdamW), run(Opt::Sr4)], steps, corpus, threads }
    }

    /// The digests of every run after every step on one path.
    ///
    /// # Errors
    /// The path is not to be had here, or fails.
    pub fn digests(&self, path: &Path) -> Result<Vec<Vec<Step>>, ExactError> {
        match path {
            Path::Cpu(level) => {
                let team = Arc::new(Team::new(self.threads, *level)?);
                self.runs.iter().map(|settings| self.on_cpu(settings, &team)).collect()
            }
            Path::Cuda { forced } => self.on_cuda(*forced),
        }
    }

    fn on_cpu(&self, settings: &Settings, team: &Arc<Team>) -> Result<Vec<Step>, ExactError> {
        let params = ModelParams::new(&ModelConfig::from(settings));
        let mut run = Run::new(settings, self.corpus.clone(), Arc::clone(team), None)?;
        let mut steps = Vec::new();
        while !matches!(run.advance(), Progress::Ended(_)) {
            steps.push(digest(&params, run.state()));
        }
        Ok(steps)
    }

    /// Both arms at once, a lane each.
    fn on_cuda(&self, forced: Option<&'static str>) -> Result<Vec<Vec<Step>>, ExactError> {
        let own = Host::this();
        let env = |name: &str| match forced {
            Some(target) if name == FORCE_VARIABLE => Some(OsString::from(target)),
            _ => (own.env)(name),
        };
        let die = Rc::new(Die::open(&Host { env: &env, root: own.root.clone() }, 0)?);
        let team = Arc::new(Team::new(self.threads, Level::PORTABLE)?);
        let mut lanes = Lanes::new(die, &self.runs[0], self.corpus.clone(), self.runs.len(), team)?;
        let params = ModelParams::new(&ModelConfig::from(&self.runs[0]));
        for (lane, settings) in self.runs.iter().enumerate() {
            lanes.fill(lane, settings)?;
        }
        let mut all = vec![Vec::new(); self.runs.len()];
        loop {
            let progress = lanes.advance()?;
            if progress.is_empty() {
                return Ok(all);
            }
            for (lane, progress) in progress {
                if !matches!(progress, Progress::Ended(_)) {
                    all[lane].push(digest(&params, &lanes.state(lane).map_err(ExactError::Die)?));
                }
            }
        }
    }

    /// The first step and tensor in which two paths differ, in words; none where all bytes are equal.
    pub fn difference(&self, ours: &[Vec<Step>], theirs: &[Vec<Step>]) -> Option<String> {
        for ((ours, theirs), settings) in ours.iter().zip(theirs).zip(&self.runs) {
            let arm = match settings.opt {
                Opt::AdamW => "adamw",
                Opt::Sr4 => "sr4",
            };
            for (step, (a, b)) in ours.iter().zip(theirs).enumerate() {
                if let Some((tensor, _)) = a.iter().zip(b).find(|(a, b)| a != b).map(|(a, _)| a) {
                    return Some(format!("{arm}, step {step}: {tensor}"));
                }
            }
            if ours.len() != theirs.len() || ours.len() as u64 != self.steps {
                return Some(format!("{arm}: {} steps against {} of {}", ours.len(), theirs.len(), self.steps));
            }
        }
        None
    }
}

fn digest(params: &ModelParams, state: &State) -> Step {
    let floats = |values: &[f32]| {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_bits().to_le_bytes()).collect();
        blake3::hash(&bytes)
    };
    let mut all = Vec::new();
    for p in &params.table {
        for (what, arena) in [("", &state.weights), ("first moment of ", &state.m), ("second moment of ", &state.v)] {
            all.push((format!("{what}{}", p.name), floats(p.id.of(arena))));
        }
    }
    if let Some(sr4) = &state.sr4 {
        for (p, place) in params.ternary() {
            let q: Vec<u8> = sr4.q[place.base..place.base + p.id.len()].iter().map(|q| q.cast_unsigned()).collect();
            all.push((format!("accumulators of {}", p.name), blake3::hash(&q)));
            let span = place.scale..place.scale + p.id.cols();
            for (what, values) in
                [("scales", &sr4.scale), ("scales' first moment", &sr4.m), ("scales' second moment", &sr4.v)]
            {
                all.push((format!("{what} of {}", p.name), floats(&values[span.clone()])));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(steps: u64) -> Course {
        let settings = Settings {
            c: 16,
            n_head: 2,
            head_size: 8,
            n_rwkv: 1,
            n_attn: 1,
            ffn: 20,
            lora: 4,
            seq_len: 12,
            chunk_size: 12,
            ..Settings::default()
        };
        let corpus = Corpus::from_bytes("test", (0..4000u32).map(|i| (i * i % 251) as u8).collect());
        Course::new(&settings, steps, corpus, 1)
    }

    #[test]
    fn every_level_gives_the_same_bytes() {
        let course = course(3);
        let reference = course.digests(&Path::Cpu(Level::PORTABLE)).unwrap();
        assert_eq!((reference.len(), reference[0].len()), (2, 3));
        for level in Level::available() {
            let ours = course.digests(&Path::Cpu(level)).unwrap();
            assert_eq!(course.difference(&ours, &reference), None, "{level}");
        }
    }

    #[test]
    fn the_first_difference_is_named() {
        let course = course(2);
        let reference = course.digests(&Path::Cpu(Level::PORTABLE)).unwrap();
        let mut wrong = reference.clone();
        let place = wrong[1][1].iter().position(|(name, _)| name == "first moment of emb").unwrap();
        wrong[1][1][place].1 = blake3::hash(b"other");
        assert_eq!(course.difference(&wrong, &reference).as_deref(), Some("sr4, step 1: first moment of emb"));
        let mut short = reference.clone();
        short[0].pop();
        assert_eq!(course.difference(&short, &reference).as_deref(), Some("adamw: 1 steps against 2 of 2"));
    }
}
