//! The trainer's settings: what a run is configured by, resolved.
//!
//! [`Settings`] is the meaning of a point of a sweep, with no options left: presets applied, defaults
//! filled in, ranges checked. One table ([`table::TABLE`]) says of every setting its key, type, range,
//! defaults and whether it changes numbers; sweep files, flags, documentation and ids are driven by it.

mod canonical;
mod check;
mod docs;
mod id;
mod resolve;
mod setting;
pub mod table;
mod value;

pub use canonical::{canonical, without_neutral};
pub use check::{Conflict, conflicts};
pub use docs::markdown;
pub use id::{run_digest, run_id};
pub use resolve::resolve;
pub use setting::{Group, Initial, Preset, Setting, setting};
pub use value::{Kind, Value};

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Which optimizer trains the ternary tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Opt {
    /// AdamW on every tensor.
    AdamW,
    /// SR4 on the ternary tensors, AdamW on the rest and on the scales.
    Sr4,
}

/// Which tensors weight decay shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decay {
    /// Every continuous tensor, scales included.
    All,
    /// Tensors of two dimensions only (not scales, not norms, not biases).
    Matrices,
}

/// How the scales of ternary tensors start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScaleInit {
    /// 1.0.
    Unit,
    /// `1/sqrt(rows * 4/7)`: unit variance of the product for the initial share of non-zero weights.
    FanIn,
}

/// How the scales' learning rate is formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScaleLrMode {
    /// AdamW with rate `scale_lr * lr(s) / lr(0)`.
    Lr,
    /// AdamW with rate `lr(s)` on the gradient times `scale_lr / lr(s)`.
    Grad,
}

/// Which ternary weights a logged evaluation sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvalWeights {
    /// Rebuilt from the accumulators and scales after the update.
    Fresh,
    /// Those of the step's forward pass, as the reference driver does.
    Stale,
}

/// The arithmetic of matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// The one arithmetic: the same bytes on every backend.
    Fp32,
    /// TF32 products.
    Tf32,
    /// Three TF32 products for one.
    Tf32x3,
    /// bfloat16 products.
    Bf16,
}

/// What a non-finite loss does to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnNonfinite {
    /// The run ends as diverged.
    Diverged,
    /// The step's update is skipped and counted.
    Skip,
}

/// How many windows of the test split are evaluated at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TestBatches {
    /// So many random windows, the same for every seed.
    Windows(u64),
    /// Consecutive windows from the split's start; the rest is dropped.
    All,
}

/// Where the corpus comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Data {
    /// A file, or a folder whose files are joined in the order of their names.
    Path(PathBuf),
    /// The built-in generator of markup-like text.
    Builtin,
}

/// Everything a run is configured by. Field names are the keys of sweep files, but for `c` (`C`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    // Model
    /// Channels C.
    #[serde(rename = "C")]
    pub c: usize,
    /// Heads H; `n_head * head_size == C`.
    pub n_head: usize,
    /// Channels of a head N.
    pub head_size: usize,
    /// RWKV-7 blocks.
    pub n_rwkv: usize,
    /// Attention blocks.
    pub n_attn: usize,
    /// Width of the channel mix F.
    pub ffn: usize,
    /// Rank of the low-rank projections D.
    pub lora: usize,
    /// Tokens of a window T.
    pub seq_len: usize,
    /// Windows of a step B.
    pub batch: usize,
    /// Batches whose gradients are averaged into one step.
    pub accum_steps: usize,
    /// Positions of an attention chunk (`seq_len`: dense).
    pub chunk_size: usize,
    /// Earlier chunks that a query sees.
    pub moba_top_k: usize,
    /// Blocks of an activation-recomputation segment; 0 keeps all activations.
    pub recompute: usize,
    /// Arithmetic of matrix products.
    pub precision: Precision,
    /// Dies that one run is spread over.
    pub dies_per_run: usize,

    // Data and schedule
    /// Corpus.
    pub data: Data,
    /// Training steps.
    pub steps: u64,
    /// Seed of data order and initial weights; not 0.
    pub seed: u64,
    /// A row is logged every so many steps, and at the last.
    pub eval_every: u64,
    /// Validation windows of a logged evaluation; the final one takes twice as many.
    pub eval_batches: u64,
    /// Test windows at the end.
    pub test_batches: TestBatches,
    /// Loss in nats above which a run is diverged.
    pub diverge_above: f64,
    /// What a non-finite loss does.
    pub on_nonfinite: OnNonfinite,

    // Optimizer
    /// Optimizer.
    pub opt: Opt,
    /// Peak learning rate.
    pub lr: f64,
    /// Final learning rate of the cosine.
    pub lr_min: f64,
    /// Steps of linear warm-up; 0 = none.
    pub warmup_steps: u64,
    /// AdamW's decay of the first moment.
    pub beta1: f64,
    /// AdamW's decay of the second moment.
    pub beta2: f64,
    /// AdamW's epsilon.
    pub eps: f64,
    /// AdamW's decoupled weight decay.
    pub weight_decay: f64,
    /// Which tensors decay.
    pub decay: Decay,
    /// Largest global L2 norm of the gradient; 0 = no clipping.
    pub grad_clip: f64,

    // SR4
    /// Mean absolute step of the accumulators.
    pub target_step: f64,
    /// Learning rate of the scales.
    pub scale_lr: f64,
    /// How `scale_lr` acts.
    pub scale_lr_mode: ScaleLrMode,
    /// Initial scales.
    pub scale_init: ScaleInit,
    /// Accumulators live in `[-q_clamp, q_clamp]`.
    pub q_clamp: u8,
    /// Accumulators below this magnitude are weight zero.
    pub theta: u8,
    /// Stochastic rounding of the accumulators' steps; off = round half up.
    pub dither: bool,
    /// Seed of the accumulators' start and of the dither.
    pub dither_seed: u64,
    /// Weights of a logged evaluation.
    pub eval_weights: EvalWeights,
    /// Whether `tok_per_sec` counts evaluation time, as the reference driver does.
    pub speed_counts_eval: bool,

    // Changes no number
    /// Keep the final weights as safetensors.
    pub save_final: bool,
}
