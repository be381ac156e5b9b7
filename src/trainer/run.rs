//! A run on the CPU backend.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend::cpu::engine::Engine;
use crate::backend::cpu::rows;
use crate::backend::cpu::team::Team;
use crate::data::{Corpus, DataError};
use crate::model::ModelConfig;
use crate::optim::{Optimizer, PanelState, State, StepReport};
use crate::run::{Ending, Outcome};
use crate::settings::{EvalWeights, OnNonfinite, Precision, Settings};

use super::Progress;
use super::clock::Clock;
use super::ledger::{Ledger, Logged, Score, finals};
use super::profile::{Profile, Profiling};
use super::snapshot::{BadStep, Progressed, Snapshot};

/// A run cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The corpus does not fit the settings.
    #[error(transparent)]
    Corpus(#[from] DataError),
    /// The backend lacks what a setting asks.
    #[error("the cpu backend has no {0}")]
    Unsupported(&'static str),
}

/// A run: its configuration, and everything that its future depends on.
pub struct Run {
    settings: Settings,
    corpus: Corpus,
    team: Arc<Team>,
    engine: Engine,
    optimizer: Optimizer,
    state: State,
    grads: Vec<f32>,
    /// One micro-batch's gradients, where several are accumulated.
    part: Vec<f32>,
    panel: PanelState,
    /// Steps done.
    step: u64,
    skipped: u64,
    ledger: Ledger,
    clock: Clock,
    /// Time of the last update.
    update_time: Duration,
    profile: Option<Profiling>,
    inputs: Vec<u8>,
    targets: Vec<u8>,
}

impl Run {
    /// A run before its first step. `spare` is the engine of an earlier run, whose buffers are used again where the shape is the same.
    ///
    /// # Errors
    /// The corpus is too short for the windows, or a setting asks what this backend lacks.
    pub fn new(
        settings: &Settings,
        corpus: Corpus,
        team: Arc<Team>,
        spare: Option<Engine>,
    ) -> Result<Self, TrainError> {
        corpus.check(settings.seq_len)?;
        if settings.precision != Precision::Fp32 {
            return Err(TrainError::Unsupported("precision but fp32"));
        }
        if settings.recompute != 0 {
            return Err(TrainError::Unsupported("recomputation of activations"));
        }
        if settings.dies_per_run != 1 {
            return Err(TrainError::Unsupported("runs over several dies"));
        }
        let config = ModelConfig::from(settings);
        let mut engine = match spare {
            Some(engine) if engine.fits(&config, settings.batch) => engine,
            _ => Engine::new(&config, settings.batch, Arc::clone(&team)),
        };
        let optimizer = Optimizer::new(settings, engine.params());
        let state = team.enter(|| optimizer.start(&team, &config, engine.params(), settings.seed));
        engine.load(&state.weights, true);
        let arena = engine.params().arena_len;
        let tokens = settings.batch * settings.accum_steps * settings.seq_len;
        Ok(Self {
            clock: Clock::start(settings.steps, tokens, settings.speed_counts_eval),
            settings: settings.clone(),
            corpus,
            team,
            engine,
            optimizer,
            state,
            grads: vec![0.0; arena],
            part: vec![0.0; if settings.accum_steps > 1 { arena } else { 0 }],
            panel: PanelState::default(),
            step: 0,
            skipped: 0,
            ledger: Ledger::default(),
            update_time: Duration::ZERO,
            profile: None,
            inputs: Vec::new(),
            targets: Vec::new(),
        })
    }

    /// The engine, for the next run.
    pub fn into_engine(self) -> Engine {
        self.engine
    }

    /// What the run is configured by.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Weights, moments, accumulators and scales.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// The ternary weights that the next churn is measured from.
    pub const fn panel(&self) -> &PanelState {
        &self.panel
    }

    /// Steps done.
    pub const fn steps(&self) -> u64 {
        self.step
    }

    /// How far the run is.
    pub fn progress(&self) -> Progressed {
        Progressed {
            steps: self.step,
            skipped: self.skipped,
            best_val_bpb: self.ledger.best_val_bpb,
            best_val_acc: self.ledger.best_val_acc,
            bad: self.ledger.bad,
            elapsed: self.clock.elapsed(),
        }
    }

    /// Goes on from a snapshot of a run of the same settings and corpus: what follows is, timing apart, what followed
    /// there, to the last bit.
    ///
    /// # Panics
    /// Its arrays are not of this run's lengths.
    pub fn restore(&mut self, snapshot: Snapshot) {
        let Snapshot { progress, state, panel } = snapshot;
        let lengths = |state: &State| {
            let sr4 = state.sr4.as_ref().map(|s| [s.q.len(), s.scale.len(), s.m.len(), s.v.len()]);
            ([state.weights.len(), state.m.len(), state.v.len()], sr4)
        };
        assert_eq!(lengths(&state), lengths(&self.state), "a snapshot of another shape");
        self.state = state;
        self.panel = panel;
        self.step = progress.steps;
        self.skipped = progress.skipped;
        self.ledger = Ledger::go_on_from(&progress);
        self.clock.go_on_from(progress.elapsed);
        self.engine.load(&self.state.weights, true);
    }

    /// Gradients of the last step, an arena.
    pub fn gradients(&self) -> &[f32] {
        &self.grads
    }

    /// Time of the last step's update, weights made ready for the next step included.
    pub const fn update_time(&self) -> Duration {
        self.update_time
    }

    /// Evaluates `windows` validation windows, outside of the run's log: (bits per byte, accuracy).
    pub fn validate(&mut self, windows: u64) -> (f64, f64) {
        let score = self.evaluate_val(windows);
        (score.bpb(), score.accuracy)
    }

    /// The engine that computes it.
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Times the phases of the next `steps` steps. No number changes.
    pub fn profile(&mut self, steps: u64) {
        self.engine.count_phases(true);
        self.profile = Some(Profiling::begin(steps));
    }

    /// The profile, once its steps are trained or the run has ended; once.
    pub fn profiled(&mut self) -> Option<Profile> {
        let over = self.step == self.settings.steps || self.ledger.bad.is_some();
        let profiling = self.profile.take_if(|profiling| profiling.is_over() || over)?;
        let phases = self.engine.count_phases(false).unwrap_or_default();
        let order = &self.engine.params().order;
        Some(profiling.end(&self.settings, order, phases, (self.team.level(), self.team.threads())))
    }

    /// Trains and, where a row is due, evaluates one step; after the last, evaluates for good and ends.
    pub fn advance(&mut self) -> Progress {
        if let Some(BadStep { step, loss }) = self.ledger.bad {
            return self.end(Ending::Diverged { step, loss });
        }
        if self.step == self.settings.steps {
            return self.finish();
        }
        let step = self.step;
        if let Some(profiling) = &mut self.profile {
            profiling.step();
        }
        let loss = self.forward_backward(step);
        let skip = self.settings.on_nonfinite == OnNonfinite::Skip;
        if (!loss.is_finite() && !skip) || loss > self.settings.diverge_above {
            return self.end(Ending::Diverged { step, loss });
        }
        let team = Arc::clone(&self.team);
        let began = Instant::now();
        let report = team.enter(|| self.update(step, loss, skip));
        self.update_time = began.elapsed();
        self.step += 1;
        let progress = if !step.is_multiple_of(self.settings.eval_every) && self.step != self.settings.steps {
            self.settle();
            Progress::Stepped { step }
        } else {
            self.log(step, loss, &report)
        };
        if let Some(profiling) = &mut self.profile {
            profiling.stepped(self.update_time);
        }
        progress
    }

    /// Loss of the step's windows, and their gradients in `grads`.
    fn forward_backward(&mut self, step: u64) -> f64 {
        let (batch, parts) = (self.settings.batch as u64, self.settings.accum_steps as u64);
        let mut loss = 0.0;
        for part in 0..parts {
            let first = (step * parts + part) * batch;
            let grads = if part == 0 { &mut self.grads } else { &mut self.part };
            self.inputs.clear();
            self.targets.clear();
            for i in first..first + batch {
                let window = self.corpus.train_window(self.settings.seed, i, self.settings.seq_len);
                self.inputs.extend_from_slice(&window[..window.len() - 1]);
                self.targets.extend_from_slice(&window[1..]);
            }
            if let Some(profiling) = &mut self.profile {
                profiling.gathered();
            }
            let share = 1.0 / parts as f64;
            self.engine.gradients(&self.state.weights, (&self.inputs, &self.targets), share, grads);
            loss += self.engine.batch_loss(self.settings.batch);
            if part > 0 {
                rows::add(self.team.level(), &self.part, &mut self.grads);
            }
            if let Some(profiling) = &mut self.profile {
                profiling.passed();
            }
        }
        loss / parts as f64
    }

    /// Takes the step's update and gives its learning rate and gradient norms. Afterwards the engine holds the weights that a logged
    /// evaluation sees.
    fn update(&mut self, step: u64, loss: f64, skip: bool) -> StepReport {
        if skip {
            let report = self.optimizer.measure(&self.team, &self.grads, step);
            if !loss.is_finite() || !report.grad_norm.is_finite() {
                self.skipped += 1;
                return report;
            }
        }
        let report = self.optimizer.apply(&self.team, &mut self.state, &mut self.grads, step);
        if self.settings.eval_weights == EvalWeights::Fresh {
            self.optimizer.refresh(&self.team, &mut self.state);
        }
        self.engine.load(&self.state.weights, true);
        report
    }

    fn log(&mut self, step: u64, loss: f64, report: &StepReport) -> Progress {
        let began = Instant::now();
        let val = self.evaluate_val(self.settings.eval_batches);
        if let Some(profiling) = &mut self.profile {
            profiling.evaluated(began.elapsed());
        }
        self.settle();
        let panel = match (&self.state.sr4, self.optimizer.sr4()) {
            (Some(state), Some(by)) => Some(self.panel.measure(self.team.level(), &state.q, &state.scale, by)),
            _ => None,
        };
        let StepReport { lr, grad_norm, grad_norms } = *report;
        let logged = Logged { step, loss, grad_norm, grad_norms, lr, val, panel };
        Progress::Logged(self.ledger.log(logged, self.clock.row(step)))
    }

    /// Brings the ternary weights up to date where a logged evaluation saw stale ones.
    fn settle(&mut self) {
        if self.settings.eval_weights == EvalWeights::Stale && self.state.sr4.is_some() {
            let team = Arc::clone(&self.team);
            team.enter(|| {
                self.optimizer.refresh(&team, &mut self.state);
                self.engine.load(&self.state.weights, true);
            });
        }
    }

    fn finish(&mut self) -> Progress {
        let settings = &self.settings;
        let seen = settings.steps * (settings.batch * settings.accum_steps) as u64;
        let train = self.corpus.window(crate::data::Split::Train, settings.seed, seen, settings.seq_len);
        let test: Vec<_> = self.corpus.test_ranges(settings.test_batches, settings.seq_len).collect();
        let twice = 2 * settings.eval_batches;
        let train = self.evaluate(std::iter::once(train));
        let val = self.evaluate_val(twice);
        let test = (!test.is_empty()).then(|| self.evaluate(test.into_iter()));
        self.end(match finals(train, val, test) {
            Ok(finals) => Ending::Finished(finals),
            Err(loss) => Ending::Diverged { step: self.settings.steps - 1, loss },
        })
    }

    fn end(&self, ending: Ending) -> Progress {
        let (wall_sec, tok_per_sec) = self.clock.total(self.step);
        Progress::Ended(Box::new(Outcome {
            ending,
            steps: self.step,
            skipped: self.skipped,
            best_val_bpb: self.ledger.best_val_bpb,
            best_val_acc: self.ledger.best_val_acc,
            wall_sec,
            tok_per_sec,
        }))
    }

    fn evaluate_val(&mut self, windows: u64) -> Score {
        let (corpus, seed, seq_len) = (self.corpus.clone(), self.settings.seed, self.settings.seq_len);
        self.evaluate((0..windows).map(move |i| corpus.window(crate::data::Split::Val, seed, i, seq_len)))
    }

    /// Mean over windows of their mean losses, windows in the order given.
    fn evaluate(&mut self, windows: impl Iterator<Item = std::ops::Range<usize>>) -> Score {
        let windows: Vec<_> = windows.collect();
        let (mut losses, mut hits) = (Vec::with_capacity(windows.len()), 0);
        let Self { clock, engine, corpus, state, inputs, targets, .. } = self;
        clock.evaluation(|| {
            for group in windows.chunks(engine.capacity()) {
                inputs.clear();
                targets.clear();
                for window in group {
                    let bytes = &corpus.bytes()[window.clone()];
                    inputs.extend_from_slice(&bytes[..bytes.len() - 1]);
                    targets.extend_from_slice(&bytes[1..]);
                }
                let scores = engine.score(&state.weights, inputs, targets);
                losses.extend_from_slice(&scores.loss);
                hits += scores.hits.iter().sum::<u64>();
            }
        });
        Score::of(&losses, hits, self.settings.seq_len)
    }
}
