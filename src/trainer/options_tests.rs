//! Options of a step against plain training.

use std::sync::Arc;

use super::{Progress, Run};
use crate::backend::cpu::simd::Level;
use crate::backend::cpu::team::Team;
use crate::data::Corpus;
use crate::settings::{Data, OnNonfinite, Settings};

fn run(settings: &Settings) -> Run {
    let team = Arc::new(Team::new(1, Level::PORTABLE).unwrap());
    Run::new(settings, Corpus::open(&Data::Builtin).unwrap(), team, None).unwrap()
}

fn first_row(run: &mut Run) -> crate::run::Row {
    match run.advance() {
        Progress::Logged(row) => row,
        other => panic!("{other:?}"),
    }
}

/// The gradient of the mean over two batches of one window is that over one batch of both, but for the order of the sums: each number is a
/// sum of 128 products a window, which binary32 forms to 128 roundings at the worst.
#[test]
fn accumulated_batches_are_one_larger_batch() {
    let base = crate::testing::settings(1, 1e-3);
    let mut whole = run(&Settings { batch: 2, ..base.clone() });
    let mut parts = run(&Settings { accum_steps: 2, ..base });
    let (a, b) = (first_row(&mut whole), first_row(&mut parts));
    assert!((a.train_bpb - b.train_bpb).abs() < 1e-6, "{} {}", a.train_bpb, b.train_bpb);
    let norm = a.grad_norm;
    let distance: f64 =
        whole.gradients().iter().zip(parts.gradients()).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
    assert!(distance < 128.0 * f64::from(f32::EPSILON) * norm, "{distance} of {norm}");
    assert!(distance > 0.0, "the sums are formed in another order");
}

/// With warm-up over W steps the first step has 1/W of the rate, and the W-th that of the cosine.
#[test]
fn a_warmed_up_run_logs_its_rates() {
    let settings = Settings { warmup_steps: 4, eval_every: 1, ..crate::testing::settings(1, 1e-3) };
    let plain = Settings { warmup_steps: 0, ..settings.clone() };
    let (mut warm, mut plain) = (run(&settings), run(&plain));
    for step in 0..6 {
        let (warm, plain) = (first_row(&mut warm), first_row(&mut plain));
        let expected = plain.lr * (f64::from(step + 1) / 4.0).min(1.0);
        assert!((warm.lr - expected).abs() < 1e-15, "step {step}: {} {expected}", warm.lr);
    }
}

/// A norm that clipping bounds is logged as it was before; the step is that of the bounded gradient.
#[test]
fn clipping_shortens_the_gradient_that_is_used() {
    let settings = Settings { grad_clip: 0.01, ..crate::testing::settings(1, 1e-3) };
    let mut clipped = run(&settings);
    let mut plain = run(&Settings { grad_clip: 0.0, ..settings });
    let (a, b) = (first_row(&mut clipped), first_row(&mut plain));
    assert_eq!(a.grad_norm, b.grad_norm);
    let norm = |run: &Run| run.gradients().iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
    assert!((norm(&clipped) - 0.01).abs() < 1e-6, "{}", norm(&clipped));
    assert!(norm(&plain) > 0.1);
}

/// A rate that ruins the weights at the second step: every later update is skipped or, by default, the run ends.
#[test]
fn a_loss_that_is_no_number_is_skipped_or_ends_the_run() {
    let base = Settings { lr: 0.0, lr_min: 1e30, steps: 6, eval_every: 100, ..crate::testing::settings(1, 0.0) };
    let outcome = |on_nonfinite| {
        let mut run = run(&Settings { on_nonfinite, ..base.clone() });
        loop {
            if let Progress::Ended(outcome) = run.advance() {
                return *outcome;
            }
        }
    };
    assert_eq!(outcome(OnNonfinite::Skip).skipped, 4);
    let ended = outcome(OnNonfinite::Diverged);
    assert!(matches!(ended.ending, crate::run::Ending::Diverged { step: 2, .. }), "{ended:?}");
    assert_eq!(ended.skipped, 0);
}
