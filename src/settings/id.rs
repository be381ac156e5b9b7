//! A run's identity.

use std::fmt::Write as _;

use super::table::TABLE;
use super::{Settings, canonical};
use crate::run::{NUMERICS, RunId};

/// The id of the run that trains with `settings` on the corpus of this digest.
///
/// The first 64 bits, as a big-endian number, of blake3 over the lines `diesweep run`, `key=value` of every
/// setting that changes numbers, by key in byte order and in its canonical form, `corpus=<digest>` and
/// `numerics=<n>`, each ended by a line feed.
pub fn run_id(settings: &Settings, corpus_digest: &str) -> RunId {
    let digest = run_digest(settings, corpus_digest);
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_bytes()[..8]);
    RunId::from_bits(u64::from_be_bytes(first))
}

/// The whole digest whose first 64 bits are the run's id.
pub fn run_digest(settings: &Settings, corpus_digest: &str) -> blake3::Hash {
    blake3::hash(encoding(settings, corpus_digest).as_bytes())
}

fn encoding(settings: &Settings, corpus_digest: &str) -> String {
    static ROWS: std::sync::LazyLock<Vec<&super::Setting>> = std::sync::LazyLock::new(|| {
        let mut rows: Vec<_> = TABLE.iter().filter(|row| row.changes_numbers).collect();
        rows.sort_unstable_by_key(|row| row.key);
        rows
    });
    let settings = canonical(settings);
    let mut text = String::with_capacity(1024);
    text.push_str("diesweep run\n");
    for row in ROWS.iter() {
        if let Some(value) = row.get(&settings) {
            let _ = writeln!(text, "{}={value}", row.key);
        }
    }
    let _ = writeln!(text, "corpus={corpus_digest}\nnumerics={NUMERICS}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Data, Opt};

    /// Pins the encoding: results folders are found by it. Change it only together with `NUMERICS`.
    #[test]
    fn the_encoding_is_pinned() {
        let expected = "diesweep run\nC=128\naccum_steps=1\nbatch=1\nbeta1=0.9\nbeta2=0.999\nchunk_size=512\n\
            decay=all\ndies_per_run=1\ndither=true\ndither_seed=1234\ndiverge_above=1000\neps=1e-8\neval_batches=8\n\
            eval_every=5\neval_weights=fresh\nffn=512\ngrad_clip=0\nhead_size=32\nlora=32\nlr=0.001\nlr_min=0.0001\n\
            moba_top_k=0\nn_attn=1\nn_head=4\nn_rwkv=3\non_nonfinite=diverged\nopt=adamw\nprecision=fp32\nq_clamp=7\n\
            scale_init=fan_in\nscale_lr=0.001\nscale_lr_mode=lr\nseed=1234\nseq_len=512\nsteps=1000\ntarget_step=0.003\n\
            test_batches=64\ntheta=2\nwarmup_steps=0\nweight_decay=0\ncorpus=00ff\nnumerics=1\n";
        assert_eq!(encoding(&Settings::default(), "00ff"), expected);
        assert_eq!(run_id(&Settings::default(), "00ff").to_string(), "07f20a17a29d4a2f");
    }

    #[test]
    fn numbers_are_in_the_id_and_paths_are_not() {
        let base = Settings::default();
        let id = |s: Settings| run_id(&s, "00ff");
        let moved = Settings { data: Data::Builtin, save_final: true, speed_counts_eval: true, ..base.clone() };
        assert_eq!(id(moved), id(base.clone()));
        assert_eq!(id(Settings { target_step: 1.0, ..base.clone() }), id(base.clone()));
        assert_ne!(id(Settings { lr: 2e-3, ..base.clone() }), id(base.clone()));
        assert_ne!(id(Settings { seed: 2, ..base.clone() }), id(base.clone()));
        assert_ne!(id(Settings { opt: Opt::Sr4, ..base.clone() }), id(base.clone()));
        assert_ne!(run_id(&base, "00fe"), id(base));
    }
}
