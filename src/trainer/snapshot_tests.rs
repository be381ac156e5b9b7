use std::sync::Arc;

use super::*;
use crate::backend::cpu::simd::Level;
use crate::backend::cpu::team::Team;
use crate::data::Corpus;
use crate::run::{Outcome, Row, Timing};
use crate::settings::{Data, Decay, EvalWeights, OnNonfinite, Opt, ScaleLrMode, Settings};
use crate::trainer::Progress;

/// Every kind of block, an attention mask with chunks, and rows at some steps only.
fn small(opt: Opt) -> Settings {
    Settings {
        c: 16,
        n_head: 2,
        head_size: 8,
        ffn: 24,
        lora: 4,
        seq_len: 24,
        chunk_size: 8,
        moba_top_k: 1,
        steps: 9,
        eval_every: 3,
        opt,
        ..crate::testing::settings(3, 1e-3)
    }
}

fn options(opt: Opt) -> Settings {
    Settings {
        accum_steps: 2,
        batch: 2,
        grad_clip: 0.5,
        warmup_steps: 4,
        weight_decay: 0.1,
        decay: Decay::Matrices,
        scale_lr_mode: ScaleLrMode::Grad,
        eval_weights: EvalWeights::Stale,
        q_clamp: 9,
        theta: 3,
        dither: false,
        on_nonfinite: OnNonfinite::Skip,
        ..small(opt)
    }
}

fn start(settings: &Settings) -> Run {
    let team = Arc::new(Team::new(1, Level::PORTABLE).unwrap());
    Run::new(settings, Corpus::open(&Data::Builtin).unwrap(), team, None).unwrap()
}

/// What follows, times apart.
fn rest(run: &mut Run) -> (Vec<Row>, Outcome, State) {
    let mut rows = Vec::new();
    loop {
        match run.advance() {
            Progress::Stepped { .. } => {}
            Progress::Logged(row) => {
                let timing = Timing { step_sec: 0.0, tok_per_sec: 0.0, elapsed_sec: 0.0, eta_sec: 0.0 };
                rows.push(Row { timing, ..row });
            }
            Progress::Ended(outcome) => {
                let outcome = Outcome { wall_sec: 0.0, tok_per_sec: 0.0, ..*outcome };
                return (rows, outcome, run.state().clone());
            }
        }
    }
}

#[test]
fn a_restored_run_goes_on_to_the_last_bit_from_any_step() {
    for settings in [small(Opt::AdamW), small(Opt::Sr4), options(Opt::AdamW), options(Opt::Sr4)] {
        let (rows, outcome, state) = rest(&mut start(&settings));
        let mut run = start(&settings);
        for done in 0..=settings.steps {
            assert_eq!(run.steps(), done);
            let mut again = start(&settings);
            again.restore(run.snapshot());
            let (later, ending, last) = rest(&mut again);
            let expected: Vec<Row> = rows.iter().filter(|row| row.step >= done).copied().collect();
            assert_eq!(later, expected, "{:?} after {done} steps", settings.opt);
            assert_eq!((ending, last), (outcome.clone(), state.clone()), "{:?} after {done} steps", settings.opt);
            run.advance();
        }
    }
}

#[test]
fn a_run_that_is_about_to_diverge_still_does() {
    // Rates that lose the weights in the first update: its evaluation is the first to see it.
    let settings = Settings { lr: 1e30, lr_min: 1e30, eval_every: 1, ..small(Opt::AdamW) };
    let mut run = start(&settings);
    while run.snapshot().progress.bad.is_none() {
        assert!(!matches!(run.advance(), Progress::Ended(_)), "it ended before a row told of it");
    }
    let mut again = start(&settings);
    again.restore(run.snapshot());
    let outcome = rest(&mut again).1;
    assert!(matches!(outcome.ending, crate::run::Ending::Diverged { step: 0, .. }), "{outcome:?}");
    assert_eq!(format!("{outcome:?}"), format!("{:?}", rest(&mut run).1));
}

#[test]
fn the_pause_is_not_counted() {
    let settings = small(Opt::AdamW);
    let mut run = start(&settings);
    run.advance();
    let mut snapshot = run.snapshot();
    snapshot.progress.elapsed.total = std::time::Duration::from_secs(1000);
    let mut again = start(&settings);
    again.restore(snapshot);
    let total = again.snapshot().progress.elapsed.total;
    assert!((1000.0..1010.0).contains(&total.as_secs_f64()), "{total:?}");
}

/// How often a run is evaluated is a matter of what is seen of it: what it trains stays the same, to the last bit, and so does what
/// is evaluated at the steps in common, whether evaluation sees fresh weights or stale ones.
#[test]
fn how_often_is_evaluated_changes_nothing_that_is_trained() {
    for settings in [small(Opt::AdamW), small(Opt::Sr4), options(Opt::AdamW), options(Opt::Sr4)] {
        let every = |eval_every| rest(&mut start(&Settings { eval_every, ..settings.clone() }));
        let (often, _, trained) = every(1);
        assert_eq!(often.len(), 9);
        for eval_every in [2, 4, 100] {
            let (rows, _, state) = every(eval_every);
            assert!(state == trained, "{:?} {:?} every {eval_every}", settings.opt, settings.eval_weights);
            for row in rows {
                let same = often.iter().find(|other| other.step == row.step).unwrap();
                let seen =
                    |row: &Row| [row.train_bpb, row.val_bpb, row.val_acc, row.grad_norm, row.lr].map(f64::to_bits);
                assert_eq!(seen(&row), seen(same), "step {}", row.step);
            }
        }
    }
}
