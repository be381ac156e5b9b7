//! What a run is and what it yields: the words that every other module shares.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Raised only when a result's bytes change; part of every run's id. A test pins the digests it stands for.
pub const NUMERICS: u32 = 1;

/// A run's identity: a hash of the settings that change numbers, the corpus digest and [`NUMERICS`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct RunId(u64);

impl RunId {
    /// An id from its 64 bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.to_string()
    }
}

/// A text is not sixteen lower-case hexadecimal digits.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a run id (16 hexadecimal digits)")]
pub struct BadRunId(String);

impl TryFrom<String> for RunId {
    type Error = BadRunId;

    fn try_from(s: String) -> Result<Self, BadRunId> {
        s.parse()
    }
}

impl std::str::FromStr for RunId {
    type Err = BadRunId;

    fn from_str(s: &str) -> Result<Self, BadRunId> {
        let plain = s.len() == 16 && s.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        match u64::from_str_radix(s, 16) {
            Ok(bits) if plain => Ok(Self(bits)),
            _ => Err(BadRunId(s.to_owned())),
        }
    }
}

/// The state of the ternary weights at a logged step. Shares are fractions in `[0, 1]` over all ternary weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// Share whose ternary value differs from that of the previous logged step; 0 at the first.
    #[serde(with = "crate::num")]
    pub churn: f64,
    /// Share of -1.
    #[serde(with = "crate::num")]
    pub pct_neg: f64,
    /// Share of 0.
    #[serde(with = "crate::num")]
    pub pct_zero: f64,
    /// Share of +1.
    #[serde(with = "crate::num")]
    pub pct_pos: f64,
    /// Share of accumulators at either end of their range.
    #[serde(with = "crate::num")]
    pub rail_pct: f64,
    /// Share of accumulators below the ternary threshold.
    #[serde(with = "crate::num")]
    pub dead_pct: f64,
    /// Mean over all scale entries.
    #[serde(with = "crate::num")]
    pub scale_mean: f64,
    /// Smallest scale.
    #[serde(with = "crate::num")]
    pub scale_min: f64,
    /// Largest scale.
    #[serde(with = "crate::num")]
    pub scale_max: f64,
}

/// How long a logged step took: the volatile part of a row, by the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Seconds a step since the previous row.
    #[serde(with = "crate::num")]
    pub step_sec: f64,
    /// Training tokens a second since the previous row.
    #[serde(with = "crate::num")]
    pub tok_per_sec: f64,
    /// Seconds since the run began, pauses not counted.
    #[serde(with = "crate::num")]
    pub elapsed_sec: f64,
    /// Seconds to go at the mean speed so far.
    #[serde(with = "crate::num")]
    pub eta_sec: f64,
}

/// L2 norms of the gradient over groups of tensors, before clipping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupNorms {
    /// The embedding.
    #[serde(with = "crate::num")]
    pub embedding: f64,
    /// All tensors of all blocks.
    #[serde(with = "crate::num")]
    pub blocks: f64,
    /// The last norm and the head.
    #[serde(with = "crate::num")]
    pub head: f64,
}

/// A logged step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Step, from 0.
    pub step: u64,
    /// Bits per byte of the step's batch, before the update.
    #[serde(with = "crate::num")]
    pub train_bpb: f64,
    /// Bits per byte on the validation windows, after the update.
    #[serde(with = "crate::num")]
    pub val_bpb: f64,
    /// Share of validation bytes predicted right.
    #[serde(with = "crate::num")]
    pub val_acc: f64,
    /// L2 norm of the gradient over all weights.
    #[serde(with = "crate::num")]
    pub grad_norm: f64,
    /// The same by groups of tensors; absent where a log was read, which has no columns for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grad_norms: Option<GroupNorms>,
    /// Learning rate of the step.
    #[serde(with = "crate::num")]
    pub lr: f64,
    /// Ternary weights; absent in the AdamW arm.
    pub panel: Option<Panel>,
    /// Volatile.
    pub timing: Timing,
}

/// A best value and the step of the row that holds it. Strict: the first row with the value wins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The value.
    #[serde(with = "crate::num")]
    pub value: f64,
    /// Step of the row.
    pub step: u64,
}

/// What a run that trained all its steps ends with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finals {
    /// Bits per byte of the first training window that was never trained on.
    #[serde(with = "crate::num")]
    pub train_bpb: f64,
    /// Bits per byte on twice `eval_batches` validation windows.
    #[serde(with = "crate::num")]
    pub val_bpb: f64,
    /// Accuracy on the same.
    #[serde(with = "crate::num")]
    pub val_acc: f64,
    /// Bits per byte on the test windows; absent for trainers that have no test split.
    #[serde(with = "crate::num")]
    pub test_bpb: Option<f64>,
    /// Accuracy on the same.
    #[serde(with = "crate::num")]
    pub test_acc: Option<f64>,
}

/// How a run ended, as a result. (A failure is not a result.)
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum Ending {
    /// All steps trained.
    Finished(Finals),
    /// The loss became NaN, infinite or larger than `diverge_above`.
    Diverged {
        /// First bad step.
        step: u64,
        /// The bad loss in nats; may be NaN or infinite.
        #[serde(with = "crate::num")]
        loss: f64,
    },
}

/// All that a run's tables need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Steps whose update was applied or skipped.
    pub steps: u64,
    /// Steps skipped because of a non-finite loss or gradient.
    pub skipped: u64,
    /// Smallest logged validation bits per byte.
    pub best_val_bpb: Option<Best>,
    /// Largest logged validation accuracy.
    pub best_val_acc: Option<Best>,
    /// Volatile: seconds in training and evaluation.
    #[serde(with = "crate::num")]
    pub wall_sec: f64,
    /// Volatile: training tokens a second over the run.
    #[serde(with = "crate::num")]
    pub tok_per_sec: f64,
}
