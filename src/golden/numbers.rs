//! Random numbers, windows and learning rates.

use serde::Deserialize;

use super::CaseError;
use super::file::Case;
use super::report::Report;
use crate::backend::cpu::simd::Level;
use crate::data::Split;
use crate::optim::lr::Schedule;
use crate::optim::sr4::{self, Sr4};
use crate::rng::{first_word, philox as words, unit24, window_offset};

/// 64-bit numbers come as decimal texts, since JSON readers take numbers for floats.
#[derive(Deserialize)]
#[serde(try_from = "NumberOrText")]
struct Wide(u64);

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(u64),
    Text(String),
}

impl TryFrom<NumberOrText> for Wide {
    type Error = std::num::ParseIntError;

    fn try_from(value: NumberOrText) -> Result<Self, Self::Error> {
        Ok(Self(match value {
            NumberOrText::Number(n) => n,
            NumberOrText::Text(text) => text.parse()?,
        }))
    }
}

#[derive(Deserialize)]
struct Philox {
    known_answers: Vec<KnownAnswer>,
    dither: Vec<Dither>,
    #[serde(flatten)]
    starts: std::collections::BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct KnownAnswer {
    counter: [u32; 4],
    seed: Wide,
    out: [u32; 4],
}

#[derive(Deserialize)]
struct Dither {
    seed: Wide,
    idx: Wide,
    step: Wide,
    out0: u32,
    u: f64,
}

/// Seed and base of `q_init_seed<S>_base<B>_first<N>`.
fn start_of(name: &str) -> Option<(u64, u64)> {
    let (seed, rest) = name.strip_prefix("q_init_seed")?.split_once("_base")?;
    let (base, _) = rest.split_once("_first")?;
    Some((seed.parse().ok()?, base.parse().ok()?))
}

pub(super) fn philox(case: &Case) -> Result<Report, CaseError> {
    let known: Philox = case.parse()?;
    let mut report = Report::default();
    for (i, k) in known.known_answers.iter().enumerate() {
        report.equal(format!("known answer {i}"), &words(k.counter, k.seed.0), &k.out);
    }
    for d in &known.dither {
        let word = first_word(d.seed.0, d.idx.0, d.step.0);
        let name = format!("dither of weight {} at step {}", d.idx.0, d.step.0);
        report.equal(name.clone(), &[word], &[d.out0]);
        report.number(name, f64::from(unit24(word)), d.u, 0.0);
    }
    for (name, expected) in &known.starts {
        let Some((seed, base)) = start_of(name) else { continue };
        let expected: Vec<i8> = serde_json::from_value(expected.clone())
            .map_err(|e| CaseError::Values(format!("`{name}` is no list of accumulators: {e}")))?;
        let by = Sr4 { target_step: 0.0, clamp: 7, theta: 2, dither: true, seed };
        for level in Level::available() {
            let mut q = vec![0; expected.len()];
            sr4::start(level, &mut q, base, &by);
            report.equal(format!("{name} ({level})"), &q, &expected);
        }
    }
    Ok(report)
}

#[derive(Deserialize)]
struct Windows {
    cases: Vec<WindowCase>,
    batch_ids: Option<BatchIds>,
}

#[derive(Deserialize)]
struct WindowCase {
    total: usize,
    seq_len: u64,
    split: String,
    range: [usize; 2],
    seed: u64,
    index: Vec<u64>,
    offset_in_split: Vec<u64>,
}

#[derive(Deserialize)]
struct BatchIds {
    step: u64,
    batch: u64,
    world: u64,
    rank1: Vec<u64>,
}

pub(super) fn windows(case: &Case) -> Result<Report, CaseError> {
    let known: Windows = case.parse()?;
    let mut report = Report::default();
    for w in &known.cases {
        let named = Split::ALL.into_iter().find(|s| s.to_string() == w.split);
        let split = named.ok_or_else(|| CaseError::Values(format!("`{}` is no split", w.split)))?;
        let name = format!("{} of {} bytes, seq_len {}", w.split, w.total, w.seq_len);
        let range = split.range(w.total);
        report.equal(name.clone(), &[range.start, range.end], &w.range);
        if range.len() as u64 <= w.seq_len {
            return Err(CaseError::Values(format!("{name}: the split has no window")));
        }
        let offset = |&i: &u64| window_offset(w.seed, split.id(), i, range.len() as u64, w.seq_len);
        let offsets: Vec<_> = w.index.iter().map(offset).collect();
        report.equal(name, &offsets, &w.offset_in_split);
    }
    if let Some(ids) = known.batch_ids {
        let first = ids.step * ids.batch * ids.world + ids.batch;
        let got: Vec<_> = (first..first + ids.batch).collect();
        report.equal("windows of rank 1", &got, &ids.rank1);
    }
    Ok(report)
}

#[derive(Deserialize)]
struct Lr {
    cases: Vec<LrCase>,
}

#[derive(Deserialize)]
struct LrCase {
    total: u64,
    lr0: f64,
    lr_min: f64,
    warmup: u64,
    step: Vec<u64>,
    lr: Vec<f64>,
}

/// Relative to the rate.
const LR_TOLERANCE: f64 = 1e-12;

pub(super) fn lr(case: &Case) -> Result<Report, CaseError> {
    let known: Lr = case.parse()?;
    let mut report = Report::default();
    for c in &known.cases {
        if c.step.len() != c.lr.len() {
            return Err(CaseError::Values(format!("{} steps and {} rates", c.step.len(), c.lr.len())));
        }
        let schedule = Schedule { lr: c.lr0, lr_min: c.lr_min, warmup_steps: c.warmup, steps: c.total };
        for (&step, &expected) in c.step.iter().zip(&c.lr) {
            let name = format!("rate of step {step} of {}", c.total);
            // The cosine of another library may differ in its last bit, which near the end weighs more than the rate.
            let cosine = f64::EPSILON * (c.lr0 - c.lr_min).abs();
            report.number(name, schedule.at(step), expected, LR_TOLERANCE * expected.abs() + cosine);
        }
    }
    Ok(report)
}
