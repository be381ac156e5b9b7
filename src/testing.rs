//! Plans and results for tests.

use crate::plan::{AxisValue, Compare, Configuration, CorpusInfo, Metric, Plan, PlannedRun, RunOptions};
use crate::run::{Best, Ending, Finals, Outcome, Row, RunId, Timing};
use crate::settings::{
    Data, Decay, EvalWeights, OnNonfinite, Opt, Precision, ScaleInit, ScaleLrMode, Settings, TestBatches,
};
use crate::store::{Attempt, Claim, Execution, LogWriter, Results};

/// Settings of a small model.
pub(crate) fn settings(seed: u64, lr: f64) -> Settings {
    Settings {
        c: 32,
        n_head: 2,
        head_size: 16,
        n_rwkv: 1,
        n_attn: 1,
        ffn: 64,
        lora: 8,
        seq_len: 64,
        batch: 1,
        accum_steps: 1,
        chunk_size: 64,
        moba_top_k: 0,
        recompute: 0,
        precision: Precision::Fp32,
        dies_per_run: 1,
        data: Data::Builtin,
        steps: 100,
        seed,
        eval_every: 50,
        eval_batches: 2,
        test_batches: TestBatches::Windows(4),
        diverge_above: 1e3,
        on_nonfinite: OnNonfinite::Diverged,
        opt: Opt::AdamW,
        lr,
        lr_min: 1e-4,
        warmup_steps: 0,
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weight_decay: 0.0,
        decay: Decay::All,
        grad_clip: 0.0,
        target_step: 0.003,
        scale_lr: 1e-3,
        scale_lr_mode: ScaleLrMode::Lr,
        scale_init: ScaleInit::FanIn,
        q_clamp: 7,
        theta: 2,
        dither: true,
        dither_seed: seed,
        eval_weights: EvalWeights::Fresh,
        speed_counts_eval: false,
        save_final: false,
    }
}

/// A plan named `test` of arms that each have an axis `lr` with these values, or none; the first arm is the baseline.
pub(crate) fn plan(arms: &[(&str, &[&str])], seeds: &[u64]) -> Plan {
    let mut configurations = Vec::new();
    for (arm, rates) in arms {
        let axis = |rate: &&str| AxisValue { axis: "lr".to_owned(), value: (*rate).to_owned() };
        let mut points: Vec<Vec<AxisValue>> = rates.iter().map(|rate| vec![axis(rate)]).collect();
        if points.is_empty() {
            points.push(Vec::new());
        }
        configurations.extend(points.into_iter().map(|axes| Configuration {
            arm: (*arm).to_owned(),
            axes,
            runs: Vec::new(),
        }));
    }
    let mut runs = Vec::new();
    for seed in seeds {
        for (number, configuration) in configurations.iter_mut().enumerate() {
            configuration.runs.push(runs.len());
            let lr = configuration.axes.first().map_or(1e-3, |a| a.value.parse().unwrap());
            let id = RunId::from_bits((number as u64 + 0xa0) << 32 | *seed);
            runs.push(PlannedRun {
                id,
                folder: format!("{}_s{seed}-{id}", configuration.arm),
                arm: configuration.arm.clone(),
                axes: configuration.axes.clone(),
                seed: *seed,
                shape: 0,
                settings: settings(*seed, lr),
            });
        }
    }
    Plan {
        name: "test".to_owned(),
        axes: if arms.iter().any(|(_, rates)| !rates.is_empty()) { vec!["lr".to_owned()] } else { Vec::new() },
        runs,
        configurations,
        compare: Compare { baseline: arms[0].0.to_owned(), metric: Metric::ValBpb },
        corpora: vec![CorpusInfo { path: None, bytes: 1 << 20, digest: "c0ffee".to_owned(), entropy: None }],
        options: RunOptions::default(),
        stop: None,
        notes: Vec::new(),
    }
}

/// A run that trained all its steps.
pub(crate) fn finished(val_bpb: f64, test_bpb: Option<f64>) -> Outcome {
    Outcome {
        ending: Ending::Finished(Finals {
            train_bpb: val_bpb - 0.1,
            val_bpb,
            val_acc: 0.25,
            test_bpb,
            test_acc: test_bpb.map(|_| 0.25),
        }),
        steps: 100,
        skipped: 0,
        best_val_bpb: Some(Best { value: val_bpb - 0.01, step: 50 }),
        best_val_acc: Some(Best { value: 0.26, step: 99 }),
        wall_sec: 1.5,
        tok_per_sec: 4266.666,
    }
}

/// A run that diverged.
pub(crate) fn diverged(step: u64) -> Outcome {
    Outcome {
        ending: Ending::Diverged { step, loss: f64::NAN },
        steps: step,
        best_val_bpb: None,
        best_val_acc: None,
        ..finished(0.0, None)
    }
}

/// A row of a log; `speed` changes only what is volatile.
pub(crate) fn row(step: u64, val_bpb: f64, speed: f64) -> Row {
    Row {
        step,
        train_bpb: val_bpb,
        val_bpb,
        val_acc: 0.25,
        grad_norm: 1.0,
        grad_norms: None,
        lr: 1e-3,
        panel: None,
        timing: Timing {
            step_sec: 1.0 / speed,
            tok_per_sec: 64.0 * speed,
            elapsed_sec: step as f64 / speed,
            eta_sec: 0.0,
        },
    }
}

/// An execution on a die.
pub(crate) fn execution(attempts: u32, die: &str) -> Execution {
    Execution {
        attempts,
        die: die.to_owned(),
        host: "host".to_owned(),
        device: "cpu".to_owned(),
        lane: 0,
        gpu: None,
        started: "2026-11-30T19:00:00Z".to_owned(),
        ended: "2026-11-30T19:00:02Z".to_owned(),
    }
}

/// Writes the log of an attempt, three rows.
pub(crate) fn write_log(attempt: &Attempt, speed: f64) {
    let mut log = LogWriter::create(&attempt.log()).unwrap();
    for step in [0, 50, 99] {
        log.row(&row(step, 8.0 - step as f64 / 100.0, speed)).unwrap();
    }
    log.finish().unwrap();
}

/// Claims a run that nobody else has, and begins an attempt at it.
pub(crate) fn attempt(results: &Results, run: &PlannedRun) -> Attempt {
    match results.claim(run).unwrap() {
        Claim::Ours(attempt) => attempt,
        other => panic!("{other:?}"),
    }
}

/// Attempts and publishes a run.
pub(crate) fn publish(results: &Results, run: &PlannedRun, outcome: &Outcome, speed: f64) {
    let attempt = attempt(results, run);
    write_log(&attempt, speed);
    results.publish(run, &attempt, outcome, &execution(attempt.number, "0")).unwrap();
}
