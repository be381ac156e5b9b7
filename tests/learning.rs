//! Real training: both arms learn, and neither does better than is possible.

use std::sync::Arc;

use diesweep::backend::cpu::simd::Level;
use diesweep::backend::cpu::team::Team;
use diesweep::data::{Corpus, Split};
use diesweep::run::Ending;
use diesweep::settings::{Data, Opt, Settings};
use diesweep::trainer::{Progress, Run};

const WINDOWS: u64 = 32;

fn settings(opt: Opt) -> Settings {
    Settings {
        c: 64,
        n_head: 2,
        n_rwkv: 2,
        ffn: 256,
        lora: 16,
        seq_len: 128,
        chunk_size: 128,
        data: Data::Builtin,
        steps: 300,
        eval_every: 100,
        eval_batches: WINDOWS / 2,
        test_batches: diesweep::settings::TestBatches::Windows(8),
        lr: 3e-3,
        lr_min: 3e-4,
        opt,
        ..Settings::default()
    }
}

/// Bits per byte of the validation windows at the end.
fn train(settings: &Settings, corpus: &Corpus) -> f64 {
    let level = Level::current().expect("a SIMD level");
    let team = Arc::new(Team::new(2, level).expect("threads"));
    let mut run = Run::new(settings, corpus.clone(), team, None).expect("a run");
    loop {
        if let Progress::Ended(outcome) = run.advance() {
            match outcome.ending {
                Ending::Finished(finals) => return finals.val_bpb,
                Ending::Diverged { step, loss } => panic!("diverged at step {step} with {loss}"),
            }
        }
    }
}

/// The mean over the final evaluation's windows of the generator's own bits per byte, and its standard error.
fn generators_own(corpus: &Corpus, settings: &Settings) -> (f64, f64) {
    let generator = corpus.generator().expect("the built-in corpus");
    let bits: Vec<f64> = (0..WINDOWS)
        .map(|i| {
            let window = corpus.window(Split::Val, settings.seed, i, settings.seq_len);
            -generator.log2_p(window.start + 1..window.end) / settings.seq_len as f64
        })
        .collect();
    let n = bits.len() as f64;
    let mean = bits.iter().sum::<f64>() / n;
    let variance = bits.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

#[test]
fn both_arms_learn_and_neither_beats_the_generator() {
    let corpus = Corpus::open(&Data::Builtin).expect("the built-in corpus");
    for (opt, learned) in [(Opt::AdamW, 2.0), (Opt::Sr4, 3.0)] {
        let settings = settings(opt);
        let bpb = train(&settings, &corpus);
        let (own, error) = generators_own(&corpus, &settings);
        println!("{opt:?}: {bpb:.4} bits a byte; the generator's own {own:.4} ± {error:.4} (standard error)");
        // Untrained, the model is near 8 bits a byte.
        assert!(bpb < learned, "{opt:?} has not learned: {bpb}");
        assert!(bpb > own - 3.0 * error, "{opt:?} does better than is possible: {bpb}, {own} ± {error}");
    }
}
