//! From what is given to settings with no options left.

use super::setting::{Initial, Preset, Setting};
use super::table::TABLE;
use super::value::{Field, Value};
use super::{Data, Decay, EvalWeights, OnNonfinite, Opt, Precision, ScaleInit, ScaleLrMode, Settings, TestBatches};

/// The settings that the given values come to: what is not given takes its preset's default.
///
/// Of two values for one key the last holds. Values must be [accepted](super::Kind::accepts).
pub fn resolve(given: &[(&'static Setting, Value)]) -> Settings {
    let find = |key: &str| given.iter().rev().find(|(row, _)| row.key == key).map(|(_, value)| value);
    let preset = find("preset").and_then(Preset::from_value).unwrap_or(Preset::Standard);
    let mut settings = BLANK;
    let mut later = Vec::new();
    for row in TABLE {
        match (find(row.key), row.initial(preset)) {
            (Some(value), _) => {
                row.set(&mut settings, value);
            }
            (None, initial @ Initial::Same(_)) => later.push((row, initial)),
            (None, initial) => row.set_initial(&mut settings, initial),
        }
    }
    for (row, initial) in later {
        row.set_initial(&mut settings, initial);
    }
    settings.eval_every = settings.eval_every.max(1);
    settings
}

impl Default for Settings {
    /// The preset `standard` with nothing given.
    fn default() -> Self {
        resolve(&[])
    }
}

/// What [`resolve`] fills; no value in it survives, which a test holds.
const BLANK: Settings = Settings {
    c: 0,
    n_head: 0,
    head_size: 0,
    n_rwkv: 0,
    n_attn: 0,
    ffn: 0,
    lora: 0,
    seq_len: 0,
    batch: 0,
    accum_steps: 0,
    chunk_size: 0,
    moba_top_k: 0,
    recompute: 0,
    precision: Precision::Fp32,
    dies_per_run: 0,
    data: Data::Builtin,
    steps: 0,
    seed: 0,
    eval_every: 0,
    eval_batches: 0,
    test_batches: TestBatches::All,
    diverge_above: 0.0,
    on_nonfinite: OnNonfinite::Diverged,
    opt: Opt::AdamW,
    lr: 0.0,
    lr_min: 0.0,
    warmup_steps: 0,
    beta1: 0.0,
    beta2: 0.0,
    eps: 0.0,
    weight_decay: 0.0,
    decay: Decay::All,
    grad_clip: 0.0,
    target_step: 0.0,
    scale_lr: 0.0,
    scale_lr_mode: ScaleLrMode::Lr,
    scale_init: ScaleInit::FanIn,
    q_clamp: 0,
    theta: 0,
    dither: false,
    dither_seed: 0,
    eval_weights: EvalWeights::Fresh,
    speed_counts_eval: false,
    save_final: false,
};
