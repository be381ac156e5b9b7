//! Whole training runs.

use std::sync::Arc;

use serde::Deserialize;

use super::CaseError;
use super::file::{Arrays, Case};
use super::model::GRADIENT_TOLERANCE;
use super::report::{Report, difference};
use super::settings::{CaseConfig, CaseTraining};
use crate::backend::cpu::engine::Engine;
use crate::backend::cpu::team::Team;
use crate::data::{Corpus, Split};
use crate::model::ModelParams;
use crate::optim::PanelState;
use crate::optim::lr::ScaleRate;
use crate::optim::sr4::Sr4;
use crate::run::{Panel, Row};
use crate::settings::{Opt, ScaleInit, Settings};
use crate::trainer::{Progress, Run};

#[derive(Deserialize)]
struct TrainCase {
    config: CaseConfig,
    train: CaseTraining,
    corpus: String,
    windows_step0: Vec<(u64, usize)>,
    val_before: Score,
    val_after: Score,
    log: Vec<LogRow>,
    #[serde(default)]
    float32_reference: Float32Run,
}

/// How the oracle's own binary32 run compares with its float64 run.
#[derive(Deserialize, Default)]
struct Float32Run {
    /// Accumulators that differ at the end: a move that lies within an error of its rounding's edge.
    #[serde(default)]
    q_mismatch_final: u64,
}

#[derive(Deserialize)]
struct Score {
    bpb: f64,
    acc: f64,
}

#[derive(Deserialize)]
struct LogRow {
    step: u64,
    loss: f64,
    grad_norm: f64,
    lr: f64,
    panel: Option<Panel>,
}

/// Absolute, nats; a plain binary32 run is within 1e-6.
const LOSS_TOLERANCE: f64 = 1e-5;
/// Absolute, nats, of the later steps of a badly conditioned run.
const LOOSE_LOSS_TOLERANCE: f64 = 5e-2;
/// Steps of a badly conditioned run to which the other tolerances still apply.
const GOOD_STEPS: u64 = 3;
/// Error of a parameter after a few steps in units of its learning rate: 2e-5 at a rate of 1e-3.
const PARAM_TOLERANCE: f64 = 2e-2;
/// Adam turns a gradient near zero into a step of order lr: such entries may be off by so many rates ...
const STRAY_TOLERANCE: f64 = 2.0;
/// ... if they are few: this share of the case's entries, or this many.
const STRAY_SHARE: f64 = 1e-4;
const STRAY_COUNT: f64 = 5.0;
/// Quotients of the same whole numbers, rounded once or twice.
const SHARE_TOLERANCE: f64 = 1e-15;

/// A run with what its comparison needs to know.
struct Trained<'a> {
    settings: &'a Settings,
    team: &'a Team,
    run: Run,
    panel: PanelState,
    sr4: Sr4,
    /// Unit scales make residual values of hundreds, and group norms that are nearly sign functions: errors of
    /// binary32 grow a thousandfold in single steps.
    badly_conditioned: bool,
    /// Whether the oracle's own binary32 run ends with other accumulators than its float64 run.
    q_drifts: bool,
}

pub(super) fn run(case: &Case, team: &Arc<Team>) -> Result<Report, CaseError> {
    let known: TrainCase = case.parse()?;
    let bytes = case.read_arrays()?;
    let arrays = case.arrays(&bytes)?;
    if known.corpus.contains(['/', '\\']) {
        return Err(CaseError::Values(format!("the corpus `{}` is not beside the case", known.corpus)));
    }
    let settings = known.train.settings(&known.config.model()?, case.dir.join(&known.corpus))?;
    if known.log.len() as u64 > settings.steps {
        return Err(CaseError::Values(format!("{} rows of {} steps", known.log.len(), settings.steps)));
    }
    let corpus = Corpus::open(&settings.data)?;
    let mut trained = Trained {
        run: Run::new(&settings, corpus.clone(), Arc::clone(team), None)?,
        panel: PanelState::default(),
        sr4: Sr4::from(&settings),
        badly_conditioned: settings.opt == Opt::Sr4 && settings.scale_init == ScaleInit::Unit,
        q_drifts: known.float32_reference.q_mismatch_final > 0,
        settings: &settings,
        team,
    };
    let mut report = Report::default();
    let windows: Vec<_> = known.windows_step0.iter().map(|&(i, _)| (i, offset(&corpus, &settings, i))).collect();
    report.equal("windows of step 0", &windows, &known.windows_step0);
    trained.before(&mut report, &corpus, (&known.val_before, team));
    for expected in &known.log {
        let row = trained.step(&mut report, expected)?;
        trained.after(&mut report, &arrays, expected.step + 1)?;
        if expected.step + 1 == settings.steps {
            trained.validation(&mut report, "after", (row.val_bpb, row.val_acc), &known.val_after);
        }
    }
    Ok(report)
}

fn offset(corpus: &Corpus, settings: &Settings, i: u64) -> usize {
    corpus.window(Split::Train, settings.seed, i, settings.seq_len).start
}

impl Trained<'_> {
    /// The panel of the run's state now.
    fn measure(&mut self) -> Option<Panel> {
        let state = self.run.state().sr4.as_ref()?;
        Some(self.panel.measure(self.team.level(), &state.q, &state.scale, &self.sr4))
    }

    /// Validation of the untrained weights; also notes their ternary values, against which the first row's churn counts.
    fn before(&mut self, report: &mut Report, corpus: &Corpus, (expected, team): (&Score, &Arc<Team>)) {
        self.measure();
        let (settings, weights) = (self.settings, &self.run.state().weights);
        let config = (settings).into();
        let mut engine = Engine::new(&config, 1, Arc::clone(team));
        engine.load(weights, false);
        let (mut loss, mut hits) = (0.0, 0);
        for i in 0..settings.eval_batches {
            let window = corpus.val_window(settings.seed, i, settings.seq_len);
            let scores = engine.score(weights, &window[..settings.seq_len], &window[1..]);
            loss += scores.loss[0];
            hits += scores.hits[0];
        }
        let n = settings.eval_batches as f64;
        let got = (loss / n / std::f64::consts::LN_2, hits as f64 / (n * settings.seq_len as f64));
        self.validation(report, "before", got, expected);
    }

    fn validation(&self, report: &mut Report, when: &str, (bpb, acc): (f64, f64), expected: &Score) {
        let loose = self.badly_conditioned && when == "after";
        let nats = if loose { LOOSE_LOSS_TOLERANCE } else { LOSS_TOLERANCE };
        report.number(format!("validation bpb {when}"), bpb, expected.bpb, nats / std::f64::consts::LN_2);
        // One byte may be a near tie; after a badly conditioned run, as many as the loss may move.
        let bytes = self.settings.eval_batches as f64 * self.settings.seq_len as f64;
        let tolerance = if loose { LOOSE_LOSS_TOLERANCE } else { 1.0 / bytes };
        report.number(format!("validation accuracy {when}"), acc, expected.acc, tolerance);
    }

    /// Trains one step and compares its row.
    fn step(&mut self, report: &mut Report, expected: &LogRow) -> Result<Row, CaseError> {
        let row = match self.run.advance() {
            Progress::Logged(row) => row,
            other => return Err(CaseError::Values(format!("step {} ended with {other:?}", expected.step))),
        };
        let step = expected.step;
        report.equal("number of the row", &[row.step], &[step]);
        report.number(format!("learning rate of step {step}"), row.lr, expected.lr, 1e-12 * expected.lr);
        let good = !self.badly_conditioned || step <= GOOD_STEPS;
        let tolerance = if good { LOSS_TOLERANCE } else { LOOSE_LOSS_TOLERANCE };
        let loss = row.train_bpb * std::f64::consts::LN_2;
        report.number(format!("loss of step {step}"), loss, expected.loss, tolerance);
        if good {
            let tolerance = GRADIENT_TOLERANCE * expected.grad_norm;
            report.number(format!("gradient norm of step {step}"), row.grad_norm, expected.grad_norm, tolerance);
        }
        match (self.measure(), &expected.panel) {
            (Some(got), Some(expected)) if good => self.panel_of(report, step, &got, expected),
            (Some(_), Some(_)) | (None, None) => {}
            (got, expected) => {
                report.equal(format!("panels at step {step}"), &[got.is_some()], &[expected.is_some()]);
            }
        }
        Ok(row)
    }

    /// Shares are quotients of counts, and exact; scales are parameters.
    fn panel_of(&self, report: &mut Report, step: u64, got: &Panel, expected: &Panel) {
        let share = |report: &mut Report, name: &str, got: f64, expected: f64| {
            report.number(format!("{name} of step {step}"), got, expected, SHARE_TOLERANCE);
        };
        share(report, "churn", got.churn, expected.churn);
        share(report, "pct_neg", got.pct_neg, expected.pct_neg);
        share(report, "pct_zero", got.pct_zero, expected.pct_zero);
        share(report, "pct_pos", got.pct_pos, expected.pct_pos);
        share(report, "rail_pct", got.rail_pct, expected.rail_pct);
        share(report, "dead_pct", got.dead_pct, expected.dead_pct);
        let tolerance = PARAM_TOLERANCE * self.scale_rate();
        report.number(format!("scale_mean of step {step}"), got.scale_mean, expected.scale_mean, tolerance);
        report.number(format!("scale_min of step {step}"), got.scale_min, expected.scale_min, tolerance);
        report.number(format!("scale_max of step {step}"), got.scale_max, expected.scale_max, tolerance);
    }

    /// Learning rate of the scales at the first step.
    fn scale_rate(&self) -> f64 {
        let s = self.settings;
        ScaleRate::new(s.scale_lr_mode, s.scale_lr, s.lr, s.lr).lr
    }

    /// Compares what the case has of the state after `steps` steps.
    fn after(&mut self, report: &mut Report, arrays: &Arrays<'_>, steps: u64) -> Result<(), CaseError> {
        let params = self.run.engine().params().clone();
        let prefix = format!("after{steps}.");
        let good = !self.badly_conditioned || steps <= GOOD_STEPS;
        let mut strays = Strays::default();
        for name in arrays.names() {
            let Some((sort, tensor)) = name.strip_prefix(&prefix).and_then(|rest| rest.split_once('.')) else {
                continue;
            };
            match sort {
                "q" if good && (!self.q_drifts || steps <= GOOD_STEPS) => {
                    self.accumulators(report, arrays, &params, (&name, tensor))?;
                }
                "q" => {} // No binary32 run could hold to them.
                "param" | "scale" => {
                    let (got, expected, rate) = self.values(arrays, &params, (&name, sort, tensor))?;
                    strays.compare(report, &name, &got, &expected, rate);
                }
                _ => return Err(CaseError::Values(format!("`{name}` is of no known sort"))),
            }
        }
        strays.count(report, steps);
        Ok(())
    }

    fn accumulators(
        &self,
        report: &mut Report,
        arrays: &Arrays<'_>,
        params: &ModelParams,
        (name, tensor): (&str, &str),
    ) -> Result<(), CaseError> {
        let no_tensor = || CaseError::Values(format!("`{name}` is of no ternary tensor"));
        let p = params.by_name(tensor).ok_or_else(no_tensor)?;
        let state = self.run.state().sr4.as_ref().ok_or_else(no_tensor)?;
        let base = p.ternary.ok_or_else(no_tensor)?.base;
        report.equal(name, &state.q[base..base + p.id.len()], &arrays.i8(name, &p.shape)?);
        Ok(())
    }

    /// A tensor's values or its scales, those expected, and the learning rate they move at.
    fn values(
        &self,
        arrays: &Arrays<'_>,
        params: &ModelParams,
        (name, sort, tensor): (&str, &str, &str),
    ) -> Result<(Vec<f32>, Vec<f64>, f64), CaseError> {
        let unknown = || CaseError::Values(format!("`{name}` is of no tensor"));
        let p = params.by_name(tensor).ok_or_else(unknown)?;
        let state = self.run.state();
        if sort == "param" {
            return Ok((p.id.of(&state.weights).to_vec(), arrays.f64(name, &p.shape)?, self.settings.lr));
        }
        let (sr4, place) = state.sr4.as_ref().zip(p.ternary).ok_or_else(unknown)?;
        let got = sr4.scale[place.scale..place.scale + p.id.cols()].to_vec();
        Ok((got, arrays.f64(name, &[p.id.cols()])?, self.scale_rate()))
    }
}

/// Entries that are off by more than the tolerance.
#[derive(Default)]
struct Strays {
    entries: usize,
    stray: usize,
}

impl Strays {
    fn compare(&mut self, report: &mut Report, name: &str, got: &[f32], expected: &[f64], rate: f64) {
        let errors = || got.iter().zip(expected).map(|(&a, &b)| difference(f64::from(a), b));
        let within = |e: &f64| *e <= PARAM_TOLERANCE * rate;
        self.entries += got.len();
        self.stray += errors().filter(|e| !within(e)).count();
        let worst = |errors: &mut dyn Iterator<Item = f64>| {
            errors.fold(0.0, |w: f64, e| if e > w || e.is_nan() { e } else { w })
        };
        report.add(name, worst(&mut errors().filter(within)), PARAM_TOLERANCE * rate);
        report.add(format!("{name} (strays)"), worst(&mut errors().filter(|e| !within(e))), STRAY_TOLERANCE * rate);
    }

    fn count(&self, report: &mut Report, steps: u64) {
        if self.entries > 0 {
            let allowed = (STRAY_SHARE * self.entries as f64).max(STRAY_COUNT);
            report.add(format!("stray entries after {steps} steps"), self.stray as f64, allowed);
        }
    }
}
