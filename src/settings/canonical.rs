//! The canonical form of settings: two runs that read the same values have equal canonical settings.

use super::Settings;
use super::setting::Preset;
use super::table::TABLE;

/// Settings in which what the run does not read stands at its standard default, and values that mean the same are one.
///
/// A run of canonical settings computes the same bytes as one of the settings they were made from.
pub fn canonical(settings: &Settings) -> Settings {
    let mut s = settings.clone();
    s.eval_every = s.eval_every.max(1);
    // One chunk covers the window however long it is; there are no more earlier chunks to see than there are.
    s.chunk_size = s.chunk_size.min(s.seq_len);
    let earlier_chunks = s.seq_len.div_ceil(s.chunk_size.max(1)).saturating_sub(1);
    s.moba_top_k = s.moba_top_k.min(earlier_chunks);
    // A warm-up of one step multiplies the first rate by 1.
    if s.warmup_steps == 1 {
        s.warmup_steps = 0;
    }
    let read_as_given = s.clone();
    for row in TABLE.iter().filter(|row| !(row.is_read)(&read_as_given)) {
        row.set_initial(&mut s, row.initial(Preset::Standard));
    }
    for v in floats(&mut s) {
        // Adding zero turns -0 into 0 and leaves every other number as it is.
        *v += 0.0;
    }
    s
}

/// The canonical form with every setting that changes no number at its default: equal for runs of equal numbers on one corpus.
pub fn without_neutral(settings: &Settings) -> Settings {
    let mut s = canonical(settings);
    for row in TABLE.iter().filter(|row| !row.changes_numbers) {
        row.set_initial(&mut s, row.initial(Preset::Standard));
    }
    s
}

fn floats(s: &mut Settings) -> [&mut f64; 10] {
    [
        &mut s.diverge_above,
        &mut s.lr,
        &mut s.lr_min,
        &mut s.beta1,
        &mut s.beta2,
        &mut s.eps,
        &mut s.weight_decay,
        &mut s.grad_clip,
        &mut s.target_step,
        &mut s.scale_lr,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{EvalWeights, Kind, Opt, Value};

    #[test]
    fn adamw_reads_nothing_of_sr4() {
        let plain = Settings::default();
        let odd = Settings {
            target_step: 0.5,
            scale_lr: 0.5,
            q_clamp: 9,
            theta: 5,
            dither: false,
            dither_seed: 77,
            eval_weights: EvalWeights::Stale,
            ..plain.clone()
        };
        assert_eq!(canonical(&odd), canonical(&plain));
        let odd = Settings { opt: Opt::Sr4, ..odd };
        assert_eq!(canonical(&odd), odd);
    }

    #[test]
    fn one_chunk_makes_top_k_unread_and_top_k_is_bounded_by_the_chunks() {
        let base = Settings::default();
        let with = |chunk_size, moba_top_k| canonical(&Settings { chunk_size, moba_top_k, ..base.clone() });
        assert_eq!(with(512, 3), canonical(&base));
        assert_eq!(with(9_999, 3), canonical(&base));
        assert_eq!(with(128, 3), with(128, 8));
        assert_ne!(with(128, 2), with(128, 3));
        // 512 positions in chunks of 200: two chunks are earlier than the last, which is short.
        assert_eq!(with(200, 2), with(200, 3));
        assert_ne!(with(200, 1), with(200, 2));
        let no_attention = |chunk_size| canonical(&Settings { n_attn: 0, chunk_size, ..base.clone() });
        assert_eq!(no_attention(64), no_attention(512));
    }

    #[test]
    fn decay_warm_up_and_signed_zeros() {
        use crate::settings::Decay;
        let base = Settings::default();
        let of = |s: Settings| canonical(&s);
        assert_eq!(of(Settings { decay: Decay::Matrices, ..base.clone() }), of(base.clone()));
        assert_eq!(of(Settings { warmup_steps: 1, ..base.clone() }), of(base.clone()));
        let minus = of(Settings { lr_min: -0.0, ..base.clone() });
        assert!(minus.lr_min.is_sign_positive());
        assert_eq!(of(Settings { n_rwkv: 0, lora: 8, ..base.clone() }), of(Settings { n_rwkv: 0, ..base.clone() }));
    }

    /// `floats` names its fields by hand: a new setting of type float must join it.
    #[test]
    fn every_float_is_freed_of_its_signed_zero() {
        let mut s = Settings { opt: Opt::Sr4, weight_decay: 1.0, ..Settings::default() };
        let rows = TABLE.iter().filter(|row| matches!(row.kind, Kind::Float(..)));
        for row in rows.clone() {
            row.set(&mut s, &Value::Float(-0.0));
        }
        let s = canonical(&s);
        for row in rows {
            assert_eq!(row.get(&s).map(|v| v.to_string()).as_deref(), Some("0"), "{}", row.key);
        }
    }

    #[test]
    fn the_canonical_form_is_its_own() {
        let odd = Settings { chunk_size: 100, moba_top_k: 99, warmup_steps: 1, ..Settings::default() };
        assert_eq!(canonical(&canonical(&odd)), canonical(&odd));
    }
}
