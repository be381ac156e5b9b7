//! What the host knows of a lane's run.

use std::time::Duration;

use crate::backend::cuda::engine::optimizer::{LaneOptimizer, LaneStep};
use crate::data::{Corpus, Split};
use crate::optim::adamw::AdamW;
use crate::optim::lr::ScaleRate;
use crate::optim::{Optimizer, State};
use crate::run::{Ending, Outcome, Panel};
use crate::settings::{Decay, EvalWeights, Opt, Settings};
use crate::trainer::clock::Clock;
use crate::trainer::ledger::{Ledger, Logged, Score, finals};
use crate::trainer::{BadStep, Progress, Progressed, Snapshot};

/// A run in a lane.
pub struct LaneRun {
    pub(super) settings: Settings,
    pub(super) optimizer: Optimizer,
    ledger: Ledger,
    clock: Clock,
    /// Steps done.
    pub(super) step: u64,
    pub(super) skipped: u64,
    /// First step whose rates do not lie on the die yet.
    pub(super) table_until: u64,
    /// Whether the panel has been measured before.
    measured: bool,
    /// Windows of a logged evaluation, and of the last one, as first bytes in the corpus.
    val: Vec<u64>,
    last: Vec<u64>,
}

/// What a logged step read from the die.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Loss of the step in nats.
    pub loss: f64,
    /// Gradient's norm.
    pub norm: f64,
    /// Sums of squares of the gradient's pieces.
    pub pieces: Vec<f64>,
    /// Sum of losses of each window of the evaluation.
    pub losses: Vec<f64>,
    /// Hits of each.
    pub hits: Vec<u32>,
    /// Changed, negative, positive, at the rail, dead.
    pub counts: [u32; 5],
    /// Sum, least and largest of the scales.
    pub scales: [f64; 3],
}

impl LaneRun {
    /// A run before its first step.
    pub fn new(settings: &Settings, optimizer: Optimizer, corpus: &Corpus) -> Self {
        let s = settings;
        let first = |range: std::ops::Range<usize>| range.start as u64;
        let val = |n: u64| (0..n).map(|i| first(corpus.window(Split::Val, s.seed, i, s.seq_len)));
        let seen = s.steps * (s.batch * s.accum_steps) as u64;
        let probe = first(corpus.window(Split::Train, s.seed, seen, s.seq_len));
        let last = std::iter::once(probe)
            .chain(val(2 * s.eval_batches))
            .chain(corpus.test_ranges(s.test_batches, s.seq_len).map(first))
            .collect();
        Self {
            ledger: Ledger::default(),
            clock: Clock::start(s.steps, s.batch * s.accum_steps * s.seq_len, s.speed_counts_eval),
            step: 0,
            skipped: 0,
            table_until: 0,
            measured: false,
            val: val(s.eval_batches).collect(),
            last,
            settings: s.clone(),
            optimizer,
        }
    }

    /// Goes on from a snapshot of a run of the same settings and corpus.
    pub fn go_on_from(&mut self, snapshot: &Snapshot) {
        let progress = &snapshot.progress;
        self.ledger = Ledger::go_on_from(progress);
        self.clock.go_on_from(progress.elapsed);
        (self.step, self.skipped) = (progress.steps, progress.skipped);
        self.measured = snapshot.panel.previous.is_some();
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

    /// Whether the ternary weights of an earlier logged step lie on the die.
    pub const fn has_measured(&self) -> bool {
        self.measured
    }

    /// Most windows of an evaluation of such a run.
    pub fn windows(settings: &Settings, corpus: &Corpus) -> usize {
        let tests = corpus.test_ranges(settings.test_batches, settings.seq_len).len();
        1 + 2 * settings.eval_batches as usize + tests
    }

    /// The run's optimizer as the die takes it.
    pub fn lane_optimizer(&self) -> LaneOptimizer {
        let s = &self.settings;
        LaneOptimizer {
            opt: s.opt,
            grad_clip: s.grad_clip,
            target_step: s.target_step,
            clamp: s.q_clamp,
            theta: s.theta,
            dither: s.dither,
            seed: s.dither_seed,
        }
    }

    /// A step's numbers.
    pub fn lane_step(&self, step: u64) -> LaneStep {
        let s = &self.settings;
        let (adamw, schedule) = (AdamW::from(s), self.optimizer.schedule());
        let lr = schedule.at(step);
        let scale = ScaleRate::new(s.scale_lr_mode, s.scale_lr, lr, schedule.lr);
        let decays = s.decay == Decay::All;
        LaneStep {
            step,
            matrices: adamw.step(step, lr, true),
            vectors: adamw.step(step, lr, decays),
            scales: adamw.step(step, scale.lr, decays),
            scale_factor: scale.factor as f32,
        }
    }

    /// Whether all steps are done, so that the last evaluation is due, or the run has diverged in an evaluation.
    pub fn is_trained(&self) -> bool {
        self.step == self.settings.steps || self.ledger.bad.is_some()
    }

    /// Whether it diverged in an evaluation: then nothing more is evaluated.
    pub const fn bad(&self) -> Option<BadStep> {
        self.ledger.bad
    }

    /// Steps from here to the end of the next one that is logged.
    pub fn steps_to_log(&self) -> u64 {
        let (step, every) = (self.step, self.settings.eval_every);
        let next = step.next_multiple_of(every).min(self.settings.steps - 1);
        next - step + 1
    }

    /// Whether step `step` is logged.
    pub fn is_logged(&self, step: u64) -> bool {
        step.is_multiple_of(self.settings.eval_every) || step + 1 == self.settings.steps
    }

    /// Windows of the evaluation that is due.
    pub fn evaluation(&self) -> &[u64] {
        if self.is_trained() { &self.last } else { &self.val }
    }

    /// Windows of a logged evaluation.
    pub fn val(&self) -> &[u64] {
        &self.val
    }

    /// Whether a logged evaluation sees the weights as the update left them.
    pub fn sees_fresh(&self) -> bool {
        self.settings.eval_weights == EvalWeights::Fresh
    }

    /// The state before the first step.
    pub fn start(&self, team: &crate::backend::cpu::team::Team, params: &crate::model::ModelParams) -> State {
        let config = crate::model::ModelConfig::from(&self.settings);
        self.optimizer.start(team, &config, params, self.settings.seed)
    }

    fn score(&self, losses: &[f64], hits: &[u32]) -> Score {
        let tokens = self.settings.seq_len;
        let means: Vec<f64> = losses.iter().map(|sum| sum / tokens as f64).collect();
        Score::of(&means, hits.iter().map(|&h| u64::from(h)).sum(), tokens)
    }

    fn panel(&mut self, reading: &Reading, weights: usize, scales: usize) -> Option<Panel> {
        if self.settings.opt != Opt::Sr4 {
            return None;
        }
        let share = |count: u32| f64::from(count) / weights as f64;
        let [changed, negative, positive, rail, dead] = reading.counts;
        let first = !std::mem::replace(&mut self.measured, true);
        let zero = weights as u64 - u64::from(negative) - u64::from(positive);
        let [sum, least, largest] = reading.scales;
        Some(Panel {
            churn: if first { 0.0 } else { share(changed) },
            pct_neg: share(negative),
            pct_zero: zero as f64 / weights as f64,
            pct_pos: share(positive),
            rail_pct: share(rail),
            dead_pct: share(dead),
            scale_mean: sum / scales as f64,
            scale_min: least,
            scale_max: largest,
        })
    }

    /// Takes in a logged step, the last one done; `evaluated` is how long its evaluation took.
    pub fn log(&mut self, reading: &Reading, (weights, scales): (usize, usize), evaluated: Duration) -> Progress {
        let step = self.step - 1;
        let val = self.score(&reading.losses, &reading.hits);
        let panel = self.panel(reading, weights, scales);
        let lr = self.optimizer.schedule().at(step);
        self.clock.evaluated(evaluated);
        let grad_norms = self.optimizer.group_norms(&reading.pieces);
        let logged = Logged { step, loss: reading.loss, grad_norm: reading.norm, grad_norms, lr, val, panel };
        Progress::Logged(self.ledger.log(logged, self.clock.row(step)))
    }

    /// The outcome of the last evaluation, or of a row whose evaluation was not finite.
    pub fn finish(&mut self, reading: &Reading, evaluated: Duration) -> Progress {
        if let Some(BadStep { step, loss }) = self.ledger.bad {
            return self.diverged(step, loss);
        }
        self.clock.evaluated(evaluated);
        let val = 1 + 2 * self.settings.eval_batches as usize;
        let part = |from: usize, to: usize| self.score(&reading.losses[from..to], &reading.hits[from..to]);
        let end = reading.losses.len();
        let test = (end > val).then(|| part(val, end));
        match finals(part(0, 1), part(1, val), test) {
            Ok(finals) => self.end(Ending::Finished(finals)),
            Err(loss) => self.diverged(self.settings.steps - 1, loss),
        }
    }

    /// The outcome of a run whose loss was bad.
    pub fn diverged(&self, step: u64, loss: f64) -> Progress {
        self.end(Ending::Diverged { step, loss })
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
}
