//! Initial weights.

use std::collections::BTreeMap;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::CaseError;
use super::file::Case;
use super::report::{Report, difference};
use super::settings::CaseConfig;
use crate::model::{Init, ModelConfig, ModelParams, Param, init_params};

#[derive(Deserialize)]
struct Values {
    seed: u64,
    config: CaseConfig,
    order: Vec<String>,
}

#[derive(Deserialize)]
struct Digests {
    seed: u64,
    config: CaseConfig,
    exec_order: Vec<String>,
    total_params: usize,
    ternary_params: usize,
    idx_base: BTreeMap<String, usize>,
    tensors: Vec<TensorDigest>,
}

#[derive(Deserialize)]
struct TensorDigest {
    name: String,
    shape: Vec<usize>,
    sha256: String,
    sum: f64,
    first4: Vec<f64>,
}

fn initialised(config: &ModelConfig, seed: u64) -> (ModelParams, Vec<f32>) {
    let params = ModelParams::new(config);
    let mut arena = vec![0.0; params.arena_len];
    init_params(config, &params, seed, &mut arena);
    (params, arena)
}

/// Whether a tensor's rule has a power, which is not correctly rounded everywhere.
fn has_power(p: &Param) -> bool {
    matches!(p.init, Init::Mix(_) | Init::ChannelMix | Init::Decay | Init::Depth)
}

/// One unit in the last place of the largest value that rules with a power give (the decay's -5.5 to 2.5: below 8).
const POWER_ULP: f64 = 4.0 * f32::EPSILON as f64;

/// Units in the last place between two numbers of one sign.
fn ulps(a: f32, b: f32) -> f64 {
    if a == b { 0.0 } else { (f64::from(a.to_bits()) - f64::from(b.to_bits())).abs() }
}

/// The same where one minus a power may have left less than the power's own last place: such differences are none.
fn ulps_of_power(a: f32, b: f32) -> f64 {
    if difference(a.into(), b.into()) <= f64::EPSILON { 0.0 } else { ulps(a, b) }
}

pub(super) fn values(case: &Case) -> Result<Report, CaseError> {
    let known: Values = case.parse()?;
    let bytes = case.read_arrays()?;
    let arrays = case.arrays(&bytes)?;
    let (params, arena) = initialised(&known.config.model()?, known.seed);
    let mut report = Report::default();
    let names: Vec<_> = params.table.iter().map(|p| p.name.clone()).collect();
    report.equal("order of the tensors", &names, &known.order);
    for p in &params.table {
        let expected = arrays.f32(&p.name, &p.shape)?;
        let pairs = p.id.of(&arena).iter().zip(&expected);
        let (error, allowed): (fn(f32, f32) -> f64, f64) =
            if has_power(p) { (ulps_of_power, 1.0) } else { (ulps, 0.0) };
        let worst = pairs.fold(0.0, |w: f64, (&a, &b)| w.max(error(a, b)));
        report.add(format!("{} (last places)", p.name), worst, allowed);
    }
    Ok(report)
}

pub(super) fn digests(case: &Case) -> Result<Report, CaseError> {
    let known: Digests = case.parse()?;
    let config = known.config.model()?;
    let (params, arena) = initialised(&config, known.seed);
    let mut report = Report::default();
    let order: Vec<_> = params.order.iter().map(ToString::to_string).collect();
    report.equal("execution order", &order, &known.exec_order);
    report.equal("weights", &[params.total(), params.ternary_len], &[known.total_params, known.ternary_params]);
    let bases: BTreeMap<_, _> = params.ternary().map(|(p, place)| (p.name.clone(), place.base)).collect();
    report.equal("bases of the ternary tensors", &[bases], &[known.idx_base]);
    let shapes: Vec<_> = params.table.iter().map(|p| (&p.name, &p.shape)).collect();
    let expected: Vec<_> = known.tensors.iter().map(|t| (&t.name, &t.shape)).collect();
    report.equal("tensors and shapes", &shapes, &expected);
    for t in &known.tensors {
        let Some(p) = params.by_name(&t.name) else { continue }; // counted above
        tensor(&mut report, p, p.id.of(&arena), t);
    }
    Ok(report)
}

/// Compares digests; where one differs and the rule has a power, the sum and first values instead.
fn tensor(report: &mut Report, p: &Param, got: &[f32], known: &TensorDigest) {
    let bytes: Vec<u8> = got.iter().flat_map(|x| x.to_le_bytes()).collect();
    let digest: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    if digest == known.sha256 || !has_power(p) {
        report.equal(format!("digest of {}", p.name), &[digest], std::slice::from_ref(&known.sha256));
        return;
    }
    let sum: f64 = got.iter().map(|&x| f64::from(x)).sum();
    report.number(format!("sum of {}", p.name), sum, known.sum, got.len() as f64 * POWER_ULP);
    let first = got.iter().zip(&known.first4).fold(0.0, |w: f64, (&a, &b)| w.max(difference(f64::from(a), b)));
    report.add(format!("first values of {}", p.name), first, POWER_ULP);
}
