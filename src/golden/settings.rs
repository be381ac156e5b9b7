//! Settings of golden cases, in the oracle's words.

use std::path::PathBuf;

use serde::Deserialize;

use super::CaseError;
use crate::model::ModelConfig;
use crate::settings::{
    Data, Decay, EvalWeights, OnNonfinite, Opt, Precision, ScaleInit, ScaleLrMode, Settings, TestBatches,
};

/// The sizes of a case's model; a `chunk_size` of 0 stands for `seq_len`.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct CaseConfig(ModelConfig);

impl CaseConfig {
    /// The model, with sizes that fit each other.
    pub(super) fn model(&self) -> Result<ModelConfig, CaseError> {
        let mut model = self.0.clone();
        if model.chunk_size == 0 {
            model.chunk_size = model.seq_len;
        }
        // A longer chunk sees the same as one of the whole window.
        model.chunk_size = model.chunk_size.min(model.seq_len);
        let sizes = [model.c, model.n_head, model.head_size, model.ffn, model.lora, model.seq_len, model.blocks()];
        if sizes.contains(&0) {
            return Err(CaseError::Values("a size in `config` is 0".to_owned()));
        }
        if model.n_head * model.head_size != model.c {
            return Err(CaseError::Values(format!(
                "{} heads of {} channels do not make {} channels",
                model.n_head, model.head_size, model.c
            )));
        }
        Ok(model)
    }
}

/// A training case's settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseTraining {
    arm: Arm,
    batch: usize,
    world: usize,
    steps: u64,
    seed: u64,
    lr0: f64,
    lr_min: f64,
    warmup: u64,
    wd: f64,
    target_step: f64,
    scale_lr: f64,
    scale_mode: ScaleMode,
    scale_init: StartScale,
    sr4_seed: u64,
    dither: bool,
    eval_batches: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Arm {
    AdamW,
    Sr4,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ScaleMode {
    Lr,
    Grad,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StartScale {
    One,
    FanIn,
}

impl CaseTraining {
    /// A run's settings. The windows of all ranks are one batch: their gradients are averaged either way.
    pub(super) fn settings(&self, model: &ModelConfig, corpus: PathBuf) -> Result<Settings, CaseError> {
        if self.batch == 0 || self.world == 0 || self.steps == 0 || self.eval_batches == 0 {
            return Err(CaseError::Values("a count in `train` is 0".to_owned()));
        }
        Ok(Settings {
            c: model.c,
            n_head: model.n_head,
            head_size: model.head_size,
            n_rwkv: model.n_rwkv,
            n_attn: model.n_attn,
            ffn: model.ffn,
            lora: model.lora,
            seq_len: model.seq_len,
            chunk_size: model.chunk_size,
            moba_top_k: model.top_k,
            batch: self.batch * self.world,
            data: Data::Path(corpus),
            steps: self.steps,
            seed: self.seed,
            eval_batches: self.eval_batches,
            opt: match self.arm {
                Arm::AdamW => Opt::AdamW,
                Arm::Sr4 => Opt::Sr4,
            },
            lr: self.lr0,
            lr_min: self.lr_min,
            warmup_steps: self.warmup,
            weight_decay: self.wd,
            target_step: self.target_step,
            scale_lr: self.scale_lr,
            scale_lr_mode: match self.scale_mode {
                ScaleMode::Lr => ScaleLrMode::Lr,
                ScaleMode::Grad => ScaleLrMode::Grad,
            },
            scale_init: match self.scale_init {
                StartScale::One => ScaleInit::Unit,
                StartScale::FanIn => ScaleInit::FanIn,
            },
            dither: self.dither,
            dither_seed: self.sr4_seed,
            ..baseline()
        })
    }
}

/// What the oracle has no word for: neutral values, and its default sizes.
pub(crate) fn baseline() -> Settings {
    Settings {
        c: 128,
        n_head: 4,
        head_size: 32,
        n_rwkv: 3,
        n_attn: 1,
        ffn: 512,
        lora: 32,
        seq_len: 512,
        batch: 1,
        accum_steps: 1,
        chunk_size: 512,
        moba_top_k: 0,
        recompute: 0,
        precision: Precision::Fp32,
        dies_per_run: 1,
        data: Data::Builtin,
        steps: 1000,
        seed: 1234,
        eval_every: 1,
        eval_batches: 8,
        test_batches: TestBatches::Windows(1),
        diverge_above: f64::INFINITY,
        on_nonfinite: OnNonfinite::Diverged,
        opt: Opt::AdamW,
        lr: 1e-3,
        lr_min: 1e-4,
        warmup_steps: 0,
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weight_decay: 0.0,
        decay: Decay::All,
        grad_clip: 0.0,
        target_step: 0.003,
        scale_lr: 1e-2,
        scale_lr_mode: ScaleLrMode::Lr,
        scale_init: ScaleInit::FanIn,
        q_clamp: 7,
        theta: 2,
        dither: true,
        dither_seed: 42,
        eval_weights: EvalWeights::Fresh,
        speed_counts_eval: false,
        save_final: false,
    }
}
