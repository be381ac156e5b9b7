//! Pins the bytes that `diesweep::run::NUMERICS` stands for: a 20-step run of each arm, at every SIMD level and number of threads.
//!
//! When a digest changes, results of this version differ from those that people have: raise `NUMERICS` in the same change, and only then
//! put the new digests here.

use std::sync::Arc;

use diesweep::backend::cpu::simd::Level;
use diesweep::backend::cpu::team::Team;
use diesweep::data::Corpus;
use diesweep::run::{NUMERICS, Row};
use diesweep::settings::{Data, Decay, EvalWeights, Opt, ScaleLrMode, Settings};
use diesweep::trainer::{Progress, Run};

/// A small model with every kind of block, sizes that fill no register evenly, and both kinds of attention mask.
fn small(opt: Opt) -> Settings {
    Settings {
        c: 20,
        n_head: 2,
        head_size: 10,
        n_rwkv: 2,
        n_attn: 1,
        ffn: 36,
        lora: 6,
        seq_len: 70,
        chunk_size: 16,
        moba_top_k: 1,
        batch: 2,
        data: Data::Builtin,
        steps: 20,
        eval_every: 7,
        eval_batches: 3,
        test_batches: diesweep::settings::TestBatches::Windows(3),
        opt,
        ..Settings::default()
    }
}

/// The same with the settings that the first leaves alone.
fn options(opt: Opt) -> Settings {
    Settings {
        accum_steps: 2,
        batch: 1,
        grad_clip: 0.5,
        warmup_steps: 5,
        weight_decay: 0.1,
        decay: Decay::Matrices,
        scale_lr_mode: ScaleLrMode::Grad,
        eval_weights: EvalWeights::Stale,
        q_clamp: 9,
        theta: 3,
        dither: false,
        ..small(opt)
    }
}

/// Everything that a run yields but its times: rows, final values, weights, moments, accumulators, scales.
fn digest(settings: &Settings, team: &Arc<Team>) -> String {
    let corpus = Corpus::open(&settings.data).expect("the built-in corpus");
    let mut run = Run::new(settings, corpus, Arc::clone(team), None).expect("a run");
    let mut hash = blake3::Hasher::new();
    loop {
        match run.advance() {
            Progress::Stepped { .. } => {}
            Progress::Logged(Row { step, train_bpb, val_bpb, val_acc, grad_norm, lr, panel, .. }) => {
                hash.update(&step.to_le_bytes());
                for value in [train_bpb, val_bpb, val_acc, grad_norm, lr] {
                    hash.update(&value.to_le_bytes());
                }
                hash.update(format!("{panel:?}").as_bytes());
            }
            Progress::Ended(outcome) => {
                hash.update(format!("{:?} {:?}", outcome.ending, outcome.best_val_bpb).as_bytes());
                break;
            }
        }
    }
    let state = run.state();
    let sr4 = state.sr4.iter().flat_map(|s| [&s.scale, &s.m, &s.v]);
    for arena in [&state.weights, &state.m, &state.v].into_iter().chain(sr4) {
        for value in arena {
            hash.update(&value.to_le_bytes());
        }
    }
    for q in state.sr4.iter().flat_map(|s| &s.q) {
        hash.update(&q.to_le_bytes());
    }
    hash.finalize().to_hex()[..16].to_owned()
}

#[test]
fn twenty_steps_give_the_pinned_bytes_everywhere() {
    let runs = [
        ("adamw", small(Opt::AdamW)),
        ("sr4", small(Opt::Sr4)),
        ("adamw with options", options(Opt::AdamW)),
        ("sr4 with options", options(Opt::Sr4)),
    ];
    let pinned = ["cf968f40858261bd", "b1e365fe5abaf15f", "26f524d3bb1d90aa", "bc08594b85dd1d9a"];
    for level in Level::available() {
        // Without fused multiply-adds in hardware, one number of threads takes long enough.
        let threads = if level == Level::PORTABLE { &[2][..] } else { &[1, 2, 3][..] };
        for &threads in threads {
            let team = Arc::new(Team::new(threads, level).expect("threads"));
            let got = runs.each_ref().map(|(_, settings)| digest(settings, &team));
            let names = runs.each_ref().map(|(name, _)| name);
            assert_eq!(got, pinned, "{names:?} on {level} with {threads} threads, numerics {NUMERICS}");
        }
    }
}
