//! AdamW's and SR4's updates of one tensor.

use serde::Deserialize;

use super::CaseError;
use super::file::{Arrays, Case};
use super::report::{Report, largest_difference, magnitude};
use crate::backend::cpu::simd::Level;
use crate::optim::adamw::{AdamW, adamw_chunk};
use crate::optim::sr4::{self, Move, Sr4, gradients};

#[derive(Deserialize)]
struct AdamWCase {
    b1: f64,
    b2: f64,
    eps: f64,
    wd: f64,
    lr: Vec<f64>,
}

/// Absolute, of parameters of order one: three steps of roundings to 2^-24.
const PARAM_TOLERANCE: f64 = 2e-7;
/// Relative to the largest moment, for each step: two roundings and those of the constants, 2^-24 each.
const MOMENT_TOLERANCE: f64 = 1.0 / (1u32 << 22) as f64;

pub(super) fn adamw(case: &Case, level: Level) -> Result<Report, CaseError> {
    let known: AdamWCase = case.parse()?;
    let bytes = case.read_arrays()?;
    let arrays = case.arrays(&bytes)?;
    let by = AdamW { beta1: known.b1, beta2: known.b2, eps: known.eps, weight_decay: known.wd };
    let shape = arrays.shape("param0")?;
    let mut p = arrays.f32("param0", &shape)?;
    let (mut m, mut v) = (vec![0.0; p.len()], vec![0.0; p.len()]);
    let mut report = Report::default();
    for (step, &lr) in known.lr.iter().enumerate() {
        let t = step + 1;
        let g = arrays.f32(&format!("grad{t}"), &shape)?;
        adamw_chunk(level, &mut p, &g, &mut m, &mut v, &by.step(step as u64, lr, true));
        for (name, got) in [("param", &p), ("m", &m), ("v", &v)] {
            let expected = arrays.f64(&format!("{name}{t}"), &shape)?;
            let size = magnitude(&expected);
            let tolerance = match name {
                "param" => PARAM_TOLERANCE * size.max(1.0),
                _ => MOMENT_TOLERANCE * t as f64 * size,
            };
            report.add(format!("{name} after step {t}"), largest_difference(got, &expected), tolerance);
        }
    }
    Ok(report)
}

#[derive(Deserialize)]
struct Sr4Case {
    rows: usize,
    cols: usize,
    idx_base: String,
    seed: u64,
    target_step: f64,
    dither: bool,
    #[serde(default = "default_clamp")]
    q_clamp: u8,
    #[serde(default = "default_theta")]
    theta: u8,
    steps: Vec<Sr4Step>,
}

const fn default_clamp() -> u8 {
    7
}

const fn default_theta() -> u8 {
    2
}

#[derive(Deserialize)]
struct Sr4Step {
    step: u64,
    mean_abs_bits: String,
    s_bits: String,
    changed: u64,
}

fn bits(text: &str) -> Result<u64, CaseError> {
    u64::from_str_radix(text, 16).map_err(|e| CaseError::Values(format!("`{text}` is no hexadecimal number: {e}")))
}

/// Bits of a number; all that are not numbers count as one, since their bits differ between processors.
fn one_nan(x: f64) -> u64 {
    if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }
}

/// Values of one step, all in the order of the weights.
struct Tensor<'a> {
    shape: [usize; 2],
    scale: &'a [f32],
    grad: Vec<f32>,
}

pub(super) fn sr4(case: &Case, level: Level) -> Result<Report, CaseError> {
    let known: Sr4Case = case.parse()?;
    let base = known.idx_base.parse();
    let base: u64 = base.map_err(|e| CaseError::Values(format!("idx_base `{}`: {e}", known.idx_base)))?;
    if known.rows == 0 || known.cols == 0 || known.q_clamp > 127 {
        return Err(CaseError::Values("rows and cols must be positive, and q_clamp fit a signed byte".to_owned()));
    }
    let by = Sr4 {
        target_step: known.target_step,
        clamp: known.q_clamp.into(),
        theta: known.theta.into(),
        dither: known.dither,
        seed: known.seed,
    };
    let bytes = case.read_arrays()?;
    let arrays = case.arrays(&bytes)?;
    let shape = [known.rows, known.cols];
    let scale = arrays.f32("scale", &[known.cols])?;
    let mut q = arrays.i8("q0", &shape)?;
    let mut report = Report::default();
    for (k, step) in known.steps.iter().enumerate() {
        let tensor = Tensor { shape, scale: &scale, grad: arrays.f32(&format!("grad{k}"), &shape)? };
        let rate = sr4_gradients(&mut report, &arrays, (k, step), &tensor, &q, &by, level)?;
        let before = q.clone();
        if let Some(rate) = rate {
            let to = Move { rate, step: step.step, base };
            sr4::accumulate(level, &mut q, &tensor.grad, &scale, &to, &by);
        }
        report.equal(format!("q{}", k + 1), &q, &arrays.i8(&format!("q{}", k + 1), &shape)?);
        let changed = q.iter().zip(&before).filter(|(a, b)| a != b).count() as u64;
        report.equal(format!("accumulators changed by step {k}"), &[changed], &[step.changed]);
    }
    Ok(report)
}

/// Compares what a step makes of the gradient, and gives its rate.
fn sr4_gradients(
    report: &mut Report,
    arrays: &Arrays<'_>,
    (k, step): (usize, &Sr4Step),
    tensor: &Tensor<'_>,
    q: &[i8],
    by: &Sr4,
    level: Level,
) -> Result<Option<f64>, CaseError> {
    let cols = tensor.scale.len();
    let mut columns = vec![0.0; cols];
    let sum = gradients(level, &tensor.grad, q, tensor.scale, by.theta, &mut columns);
    let n = tensor.grad.len();
    let rate = by.rate(sum, n);
    report.equal(
        format!("bits of M of step {k}"),
        &[one_nan(sum / n as f64)],
        &[one_nan(f64::from_bits(bits(&step.mean_abs_bits)?))],
    );
    report.equal(format!("bits of s of step {k}"), &[rate.unwrap_or(0.0).to_bits()], &[bits(&step.s_bits)?]);
    let gq: Vec<f32> = tensor.grad.iter().enumerate().map(|(i, g)| g * tensor.scale[i % cols]).collect();
    let expected = arrays.f32(&format!("gq{k}"), &tensor.shape)?;
    report.equal(format!("gq{k}"), &bits_of(&gq), &bits_of(&expected));
    // Sums in f64 in the same order, so that both round to the same f32.
    let sgrad: Vec<f32> = columns.iter().map(|&x| x as f32).collect();
    let expected: Vec<f32> = arrays.f64(&format!("sgrad{k}"), &[cols])?.into_iter().map(|x| x as f32).collect();
    report.equal(format!("sgrad{k}"), &sgrad, &expected);
    Ok(rate)
}

fn bits_of(x: &[f32]) -> Vec<u64> {
    x.iter().map(|&x| one_nan(x.into())).collect()
}
