//! One forward and backward pass of a whole model.

use std::sync::Arc;

use serde::Deserialize;

use super::CaseError;
use super::file::{Arrays, Case};
use super::report::{Report, largest_difference, magnitude};
use super::settings::CaseConfig;
use crate::backend::cpu::engine::Engine;
use crate::backend::cpu::team::Team;
use crate::model::{ModelParams, VOCAB};

#[derive(Deserialize)]
struct ModelCase {
    config: CaseConfig,
    batch: usize,
    loss: f64,
    top1: f64,
    grad_norm: f64,
    exec_order: Vec<String>,
}

/// Absolute; a plain binary32 run is within 2.4e-6.
const LOGITS_TOLERANCE: f64 = 2e-5;
/// Absolute, nats; a plain binary32 run is within 5e-7.
const LOSS_TOLERANCE: f64 = 2e-6;
/// Relative to the tensor's largest gradient; a plain binary32 run is within 1.2e-5.
pub(super) const GRADIENT_TOLERANCE: f64 = 1e-4;

pub(super) fn run(case: &Case, team: &Arc<Team>) -> Result<Report, CaseError> {
    let known: ModelCase = case.parse()?;
    let config = known.config.model()?;
    if known.batch == 0 {
        return Err(CaseError::Values("a batch of 0 windows".to_owned()));
    }
    let bytes = case.read_arrays()?;
    let arrays = case.arrays(&bytes)?;
    let mut engine = Engine::new(&config, known.batch, Arc::clone(team));
    engine.keep_taps();
    let params = engine.params().clone();
    let weights = load(&arrays, &params)?;
    let shape = [known.batch, config.seq_len];
    let (inputs, targets) = (arrays.tokens("tokens", &shape)?, arrays.tokens("targets", &shape)?);

    let mut report = Report::default();
    let order: Vec<_> = params.order.iter().map(ToString::to_string).collect();
    report.equal("execution order", &order, &known.exec_order);

    engine.load(&weights, true);
    let scores = engine.score(&weights, &inputs, &targets);
    let logits = arrays.f64("logits", &[known.batch, config.seq_len, VOCAB])?;
    report.add("logits", largest_difference(engine.logits(), &logits), LOGITS_TOLERANCE);
    report.number("loss", engine.batch_loss(known.batch), known.loss, LOSS_TOLERANCE);
    let rows = inputs.len() as f64;
    let accuracy = scores.hits.iter().sum::<u64>() as f64 / rows;
    report.number("top1", accuracy, known.top1, close_calls(&logits) / rows);
    taps(&mut report, &arrays, &engine, &[known.batch, config.seq_len, config.c])?;

    let mut grads = vec![0.0; params.arena_len];
    engine.gradients(&weights, (&inputs, &targets), 1.0, &mut grads);
    gradients(&mut report, &arrays, &params, &grads)?;
    let norm = grads.iter().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>().sqrt();
    report.number("gradient norm", norm, known.grad_norm, GRADIENT_TOLERANCE * known.grad_norm);
    Ok(report)
}

/// An arena of the case's weights.
fn load(arrays: &Arrays<'_>, params: &ModelParams) -> Result<Vec<f32>, CaseError> {
    let mut weights = vec![0.0; params.arena_len];
    for p in &params.table {
        p.id.of_mut(&mut weights).copy_from_slice(&arrays.f32(&format!("param.{}", p.name), &p.shape)?);
    }
    Ok(weights)
}

/// Rows whose two largest logits are so near each other that either may win within the logits' tolerance.
fn close_calls(logits: &[f64]) -> f64 {
    let close = |row: &&[f64]| {
        let mut sorted = row.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted[VOCAB - 1] - sorted[VOCAB - 2] <= 2.0 * LOGITS_TOLERANCE
    };
    logits.chunks_exact(VOCAB).filter(close).count() as f64
}

/// Intermediate values, relative to the largest of each: they are sums like the logits, of other magnitudes.
fn taps(report: &mut Report, arrays: &Arrays<'_>, engine: &Engine, shape: &[usize]) -> Result<(), CaseError> {
    for name in arrays.names() {
        let Some(tap) = name.strip_prefix("tap.") else { continue };
        let got = engine.taps().and_then(|taps| taps.get(tap));
        let got = got.ok_or_else(|| CaseError::Values(format!("`{name}` is of no block")))?;
        let expected = arrays.f64(&name, shape)?;
        let tolerance = LOGITS_TOLERANCE * magnitude(&expected).max(1.0);
        report.add(name, largest_difference(got, &expected), tolerance);
    }
    Ok(())
}

fn gradients(report: &mut Report, arrays: &Arrays<'_>, params: &ModelParams, grads: &[f32]) -> Result<(), CaseError> {
    let mut known = Vec::with_capacity(params.table.len());
    for p in &params.table {
        let name = format!("grad.{}", p.name);
        let expected = arrays.f64(&name, &p.shape)?;
        known.push((p, name, magnitude(&expected), expected));
    }
    // A gradient that is zero because its terms cancel (keys of a window of one token) keeps the rounding of its terms.
    let largest = known.iter().fold(0.0, |m: f64, (_, _, size, _)| m.max(*size));
    let floor = largest * params.head.rows() as f64 * f64::from(f32::EPSILON) / 2.0;
    for (p, name, size, expected) in known {
        let cancelled = if size < floor { floor } else { 0.0 };
        let tolerance = GRADIENT_TOLERANCE * size + cancelled;
        report.add(name, largest_difference(p.id.of(grads), &expected), tolerance);
    }
    Ok(())
}
