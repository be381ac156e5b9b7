//! The table of settings. A new setting is a field of [`Settings`] and one row here.

use std::ops::Bound::{Excluded, Included, Unbounded};

use super::setting::{Access, Group, Initial, Preset, Setting};
use super::value::{Field, Kind, Words};
use super::{Decay, EvalWeights};
use super::{OnNonfinite, Opt, Precision, ScaleInit, ScaleLrMode, Settings};

const fn always(_: &Settings) -> bool {
    true
}

fn sr4(s: &Settings) -> bool {
    s.opt == Opt::Sr4
}

const fn size(max: u64) -> Kind {
    Kind::Int { min: 1, max }
}

/// A side of a matrix. Two at least: initial values divide by C - 1, and a matrix of one row or column is no use.
const fn side(max: u64) -> Kind {
    Kind::Int { min: 2, max }
}

const NOT_NEGATIVE: Kind = Kind::Float(Included(0.0), Unbounded);
const POSITIVE: Kind = Kind::Float(Excluded(0.0), Unbounded);
const MOMENT: Kind = Kind::Float(Included(0.0), Excluded(1.0));
/// Most windows of an evaluation: more than any corpus needs, and few enough to end.
const MOST_WINDOWS: u64 = 1_000_000;
/// Longest schedule; keeps the number of any window (`steps * batch * accum_steps`) inside 64 bits.
const MOST_STEPS: u64 = 1_000_000_000;

macro_rules! row {
    ($key:literal, $field:ident, $group:ident, $kind:expr, $default:expr, $help:literal $(, $part:ident: $value:expr)*) => {
        row!(@ $key, Some(Access {
            get: |s| s.$field.to_value(),
            set: |s, v| Field::from_value(v).map(|v| s.$field = v).is_some(),
        }), $group, $kind, $default, $help $(, $part: $value)*)
    };
    (@ $key:literal, $access:expr, $group:ident, $kind:expr, $default:expr, $help:literal $(, $part:ident: $value:expr)*) => {
        Setting {
            $($part: $value,)*
            ..Setting {
                key: $key,
                group: Group::$group,
                kind: $kind,
                standard: $default,
                reference: None,
                changes_numbers: true,
                is_read: always,
                help: $help,
                access: $access,
            }
        }
    };
}

use Initial::{Bool, Float, Int, Same, Text};

/// Every setting, in the order of the documentation.
pub static TABLE: &[Setting] = &[
    row!(@ "preset", None, Model, Kind::Word(Preset::WORDS), Text("standard"),
        "Which defaults hold; a setting that is given wins over them.", changes_numbers: false),
    // Model
    row!("C", c, Model, side(65_536), Int(128), "Channels; `n_head * head_size` must equal it."),
    row!("n_head", n_head, Model, size(4_096), Int(4), "Heads of a block."),
    row!("head_size", head_size, Model, size(4_096), Int(32), "Channels of a head."),
    row!("n_rwkv", n_rwkv, Model, Kind::Int { min: 0, max: 1_024 }, Int(3), "RWKV-7 blocks."),
    row!(
        "n_attn",
        n_attn,
        Model,
        Kind::Int { min: 0, max: 1_024 },
        Int(1),
        "Attention blocks, spread evenly behind the RWKV-7 blocks."
    ),
    row!("ffn", ffn, Model, side(1 << 20), Int(512), "Width of the channel mix."),
    row!("lora", lora, Model, side(65_536), Int(32), "Rank of the low-rank projections of RWKV-7 blocks.",
        is_read: |s| s.n_rwkv > 0),
    row!("seq_len", seq_len, Model, size(1 << 20), Int(512), "Tokens (bytes) of a window."),
    row!("chunk_size", chunk_size, Model, size(1 << 20), Same("seq_len"),
        "Positions of an attention chunk; `seq_len` or more is dense causal attention.", is_read: |s| s.n_attn > 0),
    row!("moba_top_k", moba_top_k, Model, Kind::Int { min: 0, max: 1 << 20 }, Int(0),
        "Earlier chunks that a query sees besides its own.", is_read: |s| s.n_attn > 0 && s.chunk_size < s.seq_len),
    row!("precision", precision, Model, Kind::Word(Precision::WORDS), Text("fp32"), "Arithmetic of matrix products."),
    // Data, schedule, evaluation
    row!("data", data, Schedule, Kind::Path, Text("data/enwik8"),
        "Corpus: a file, a folder whose files are joined, or `builtin`, a generator of markup-like text. \
         Its bytes, not its path, are part of a run's id.", changes_numbers: false),
    row!("steps", steps, Schedule, size(MOST_STEPS), Int(1_000), "Training steps."),
    row!("batch", batch, Schedule, size(65_536), Int(1), "Windows of a batch."),
    row!(
        "accum_steps",
        accum_steps,
        Schedule,
        size(65_536),
        Int(1),
        "Batches whose gradients are averaged into one step."
    ),
    row!(
        "seed",
        seed,
        Schedule,
        Kind::Int { min: 1, max: u64::MAX },
        Int(1_234),
        "Seed of initial weights and of the order of the data; a sweep file gives it as `seeds`."
    ),
    row!(
        "eval_every",
        eval_every,
        Schedule,
        Kind::IntFromOne { max: MOST_STEPS },
        Int(5),
        "A row is logged every so many steps, and at the last."
    ),
    row!(
        "eval_batches",
        eval_batches,
        Schedule,
        size(MOST_WINDOWS),
        Int(8),
        "Validation windows of a logged evaluation; the final one takes twice as many."
    ),
    row!(
        "test_batches",
        test_batches,
        Schedule,
        Kind::IntOr { min: 1, max: MOST_WINDOWS, word: "all" },
        Int(64),
        "Windows of the test split, the same for every seed, evaluated once at the end; `all`: the whole split."
    ),
    row!(
        "diverge_above",
        diverge_above,
        Schedule,
        POSITIVE,
        Float(1e3),
        "Loss in nats above which a run has diverged."
    ),
    row!(
        "on_nonfinite",
        on_nonfinite,
        Schedule,
        Kind::Word(OnNonfinite::WORDS),
        Text("diverged"),
        "What a loss that is not finite does: end the run as diverged, or skip the update."
    ),
    row!("dies_per_run", dies_per_run, Schedule, size(1_024), Int(1), "Dies that one run is spread over."),
    // Optimizer
    row!(
        "opt",
        opt,
        Optimizer,
        Kind::Word(Opt::WORDS),
        Text("adamw"),
        "Optimizer of the ternary matrices; all else is trained by AdamW."
    ),
    row!("lr", lr, Optimizer, NOT_NEGATIVE, Float(1e-3), "Learning rate at the start of the cosine."),
    row!("lr_min", lr_min, Optimizer, NOT_NEGATIVE, Float(1e-4), "Learning rate at the end of the cosine."),
    row!(
        "warmup_steps",
        warmup_steps,
        Optimizer,
        Kind::Int { min: 0, max: MOST_STEPS },
        Int(0),
        "Steps over which the learning rate rises to the cosine's; 0 for none."
    ),
    row!("beta1", beta1, Optimizer, MOMENT, Float(0.9), "AdamW's decay of the first moment."),
    row!("beta2", beta2, Optimizer, MOMENT, Float(0.999), "AdamW's decay of the second moment."),
    row!("eps", eps, Optimizer, POSITIVE, Float(1e-8), "AdamW's epsilon."),
    row!("weight_decay", weight_decay, Optimizer, NOT_NEGATIVE, Float(0.0), "AdamW's decoupled weight decay."),
    row!("decay", decay, Optimizer, Kind::Word(Decay::WORDS), Text("all"),
        "Which tensors decay: all that AdamW trains, or those of two dimensions.", is_read: |s| s.weight_decay > 0.0),
    row!(
        "grad_clip",
        grad_clip,
        Optimizer,
        NOT_NEGATIVE,
        Float(0.0),
        "Largest L2 norm of the whole gradient; 0 for no clipping."
    ),
    // SR4
    row!("target_step", target_step, Sr4, NOT_NEGATIVE, Float(3e-3), "Mean absolute step of the accumulators.", is_read: sr4),
    row!("scale_lr", scale_lr, Sr4, NOT_NEGATIVE, Float(1e-3), "Learning rate of the scales.",
        reference: Some(Float(1e-2)), is_read: sr4),
    row!("scale_lr_mode", scale_lr_mode, Sr4, Kind::Word(ScaleLrMode::WORDS), Text("lr"),
        "How `scale_lr` acts: as the scales' own rate on the common schedule, or as a factor of their gradient, \
         which AdamW all but cancels.", reference: Some(Text("grad")), is_read: sr4),
    row!("scale_init", scale_init, Sr4, Kind::Word(ScaleInit::WORDS), Text("fan_in"),
        "Initial scales: 1, or `1/sqrt(rows * 4/7)`.", reference: Some(Text("unit")), is_read: sr4),
    row!("q_clamp", q_clamp, Sr4, Kind::Int { min: 3, max: 127 }, Int(7),
        "Accumulators live in `[-q_clamp, q_clamp]`; they start in `[-3, 3]`.", is_read: sr4),
    row!("theta", theta, Sr4, Kind::Int { min: 1, max: 127 }, Int(2),
        "Accumulators below this magnitude are weight zero; at most `q_clamp`.", is_read: sr4),
    row!("dither", dither, Sr4, Kind::Bool, Bool(true),
        "Whether the accumulators' steps are rounded at random; off, halves round up.", is_read: sr4),
    row!("dither_seed", dither_seed, Sr4, Kind::Int { min: 0, max: u64::MAX }, Same("seed"),
        "Seed of the accumulators' start and of the dither.", reference: Some(Int(42)), is_read: sr4),
    row!("eval_weights", eval_weights, Sr4, Kind::Word(EvalWeights::WORDS), Text("fresh"),
        "Ternary weights of a logged evaluation: those after the update, or those of the step's forward pass.",
        reference: Some(Text("stale")), is_read: sr4),
    // Neutral
    row!("speed_counts_eval", speed_counts_eval, Neutral, Kind::Bool, Bool(false),
        "Whether `tok_per_sec` counts the time of evaluation.", reference: Some(Bool(true)), changes_numbers: false),
    row!("recompute", recompute, Neutral, Kind::Int { min: 0, max: 1_024 }, Int(0),
        "Blocks of a segment whose activations are computed again in the backward pass; 0 keeps all.",
        changes_numbers: false),
    row!("save_final", save_final, Neutral, Kind::Bool, Bool(false), "Whether the final weights are kept.",
        changes_numbers: false),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Value, resolve, setting};

    fn given(pairs: &[(&str, Value)]) -> Settings {
        resolve(&pairs.iter().map(|(key, value)| (setting(key).unwrap(), value.clone())).collect::<Vec<_>>())
    }

    fn text(word: &str) -> Value {
        Value::Text(word.to_owned())
    }

    #[test]
    fn every_field_has_a_row_and_every_row_a_field() {
        let json = serde_json::to_value(Settings::default()).unwrap();
        let mut fields: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let mut rows: Vec<&str> = TABLE.iter().filter(|r| r.access.is_some()).map(|r| r.key).collect();
        fields.sort_unstable();
        rows.sort_unstable();
        assert_eq!(fields, rows);
    }

    /// Each row writes its own field: what is set under a key is read under it, and under no other.
    #[test]
    fn rows_reach_their_own_fields() {
        let other = |row: &Setting| match row.kind {
            Kind::Int { max, .. } | Kind::IntFromOne { max } | Kind::IntOr { max, .. } => Value::Int(max),
            Kind::Float(..) => Value::Float(0.625),
            Kind::Bool => Value::Bool(row.standard != Bool(true)),
            Kind::Word(words) => text(words.iter().find(|w| row.standard != Text(w)).unwrap()),
            Kind::Path => text("elsewhere"),
        };
        for row in TABLE.iter().filter(|r| r.access.is_some()) {
            let (before, mut after) = (Settings::default(), Settings::default());
            assert!(row.kind.accepts(&other(row)), "{}", row.key);
            assert!(row.set(&mut after, &other(row)), "{}", row.key);
            for check in TABLE.iter().filter(|r| r.access.is_some()) {
                if check.key == row.key {
                    assert_ne!(check.get(&before), check.get(&after), "{}", row.key);
                    assert_eq!(check.get(&after), Some(other(row)), "{}", row.key);
                } else {
                    assert_eq!(check.get(&before), check.get(&after), "{} changed by {}", check.key, row.key);
                }
            }
        }
    }

    #[test]
    fn defaults_are_accepted() {
        for row in TABLE {
            for preset in [Preset::Standard, Preset::Reference] {
                let value = match row.initial(preset) {
                    Int(v) => Value::Int(v),
                    Float(v) => Value::Float(v),
                    Bool(v) => Value::Bool(v),
                    Text(v) => text(v),
                    Same(key) => setting(key).unwrap().get(&Settings::default()).unwrap(),
                };
                assert!(row.kind.accepts(&value), "{}", row.key);
            }
        }
    }

    #[test]
    fn presets_differ_where_the_reference_driver_has_quirks() {
        let standard = Settings::default();
        assert_eq!((standard.scale_lr, standard.dither_seed, standard.seed), (1e-3, 1234, 1234));
        assert_eq!((standard.scale_init, standard.eval_weights), (ScaleInit::FanIn, EvalWeights::Fresh));
        let reference = given(&[("preset", text("reference"))]);
        assert_eq!((reference.scale_lr, reference.dither_seed), (1e-2, 42));
        assert_eq!((reference.scale_init, reference.scale_lr_mode), (ScaleInit::Unit, ScaleLrMode::Grad));
        assert_eq!((reference.eval_weights, reference.speed_counts_eval), (EvalWeights::Stale, true));
    }

    #[test]
    fn what_is_given_wins_over_the_preset_wherever_it_stands() {
        let settings =
            given(&[("scale_init", text("fan_in")), ("dither_seed", Value::Int(7)), ("preset", text("reference"))]);
        assert_eq!((settings.scale_init, settings.dither_seed), (ScaleInit::FanIn, 7));
        assert_eq!(settings.scale_lr_mode, ScaleLrMode::Grad);
    }

    #[test]
    fn defaults_follow_the_setting_they_are_the_same_as() {
        let settings = given(&[("seq_len", Value::Int(64)), ("seed", Value::Int(9)), ("eval_every", Value::Int(0))]);
        assert_eq!((settings.chunk_size, settings.dither_seed, settings.eval_every), (64, 9, 1));
    }
}
