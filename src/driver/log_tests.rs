use std::time::{Duration, SystemTime};

use super::*;
use crate::model::ModelConfig;
use crate::run::{Ending, Panel, Timing};

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn head(settings: &Settings, device: &Device) -> String {
    let params = ModelParams::new(&ModelConfig::from(settings));
    heading(Heading { settings, params: &params, device, started: at(1_796_068_094) })
}

const COLUMNS: &str = "step,train_bpb,val_bpb,val_acc,grad_norm,lr,step_sec,tok_per_sec,elapsed_sec,ETA_sec,churn,pct_neg,\
    pct_zero,pct_pos,rail_pct,dead_pct,scale_mean,scale_min,scale_max";

#[test]
fn the_heading_of_the_adamw_arm() {
    let cpu = Device { name: "A Processor".into(), capability: (0, 0), gpu: false };
    let expected = format!(
        "# start=2026-11-30T19:48:14\n\
         # device=A Processor cc 0.0  (CPU driver)\n\
         === RWKV-x 1M smoke on enwik8 (AdamW arm) [CPU] ===\n\
         config: C=128 heads=4 hs=32 ffn=512 lora=32  layers: 3 RWKV + 1 attn (interleave)\n\
         vocab=256 seq_len=512 batch=1 steps=1000 eval_every=5 eval_batches=8 seed=1234\n\
         PARAM COUNT: total=958464  (ternary=786432, continuous=172032)\n\
         AdamW lr=0.001->0.0001 (cosine)\n\
         random-init reference bpb = ln(256)/ln2 = 8.0000\n\
         {COLUMNS}\n"
    );
    assert_eq!(head(&Settings::default(), &cpu), expected);
}

#[test]
fn the_heading_of_the_sr4_arm() {
    let gpu = Device { name: "Tesla K80".into(), capability: (3, 7), gpu: true };
    let settings = Settings { opt: Opt::Sr4, batch: 2, lr: 3e-5, seed: u64::MAX, ..Settings::default() };
    let expected = format!(
        "# start=2026-11-30T19:48:14\n\
         # device=Tesla K80 cc 3.7  (GPU driver)\n\
         === RWKV-x 1M smoke on enwik8 (SR4 arm) [GPU] ===\n\
         config: C=128 heads=4 hs=32 ffn=512 lora=32  layers: 3 RWKV + 1 attn (interleave)\n\
         vocab=256 seq_len=512 batch=2 steps=1000 eval_every=5 eval_batches=8 seed=18446744073709551615\n\
         PARAM COUNT: total=958464  (ternary=786432, continuous=172032)\n\
         SR4 target_step=0.003 scale_lr=0.001 cont_lr=3e-05->0.0001  (Q_CLAMP=7 THETA=2)\n\
         random-init reference bpb = ln(256)/ln2 = 8.0000\n\
         # SR4: 24 ternary matrices, 90 continuous params\n\
         {COLUMNS}\n"
    );
    assert_eq!(head(&settings, &gpu), expected);
    assert_eq!(graph_note(&settings), "");
    let expected = "# opt#3: CUDA graph captured (full B=1 step on the per-thread stream); replaying per step.\n";
    assert_eq!(graph_note(&Settings::default()), expected);
}

fn a_row(panel: Option<Panel>) -> Row {
    Row {
        step: 120,
        train_bpb: 2.123_456_789,
        val_bpb: f64::NAN,
        val_acc: 0.333_333_333,
        grad_norm: 12_345.678,
        grad_norms: None,
        lr: 0.000_987_654,
        panel,
        timing: Timing { step_sec: 0.012_345, tok_per_sec: 41_474.28, elapsed_sec: 1.5, eta_sec: 1e3 },
    }
}

#[test]
fn rows_of_both_arms() {
    let start = "120,2.12346,nan,0.33333,1.235e+04,0.0009877,0.0123,41474.3,1.50,1000.00,";
    assert_eq!(row(&a_row(None)), format!("{start}-,-,-,-,-,-,-,-,-\n"));
    let panel = Panel {
        churn: 0.01,
        pct_neg: 0.25,
        pct_zero: 0.5,
        pct_pos: 0.25,
        rail_pct: 1.0 / 3.0,
        dead_pct: 0.0,
        scale_mean: 0.117_86,
        scale_min: 1.0,
        scale_max: f64::INFINITY,
    };
    assert_eq!(
        row(&a_row(Some(panel))),
        format!("{start}0.01000,0.25000,0.50000,0.25000,0.33333,0.00000,0.1179,1.0000,inf\n")
    );
}

#[test]
fn best_values_with_and_without_any() {
    let best_at = |value, step| Some(Best { value, step });
    assert_eq!(
        best(best_at(2.5, 10), best_at(0.375, 995)),
        "# BEST: val_bpb=2.50000 (step 10) val_acc=0.37500 (step 995)\n"
    );
    assert_eq!(best(None, None), "# BEST: val_bpb=nan (step -1) val_acc=nan (step -1)\n");
}

#[test]
fn the_end_of_a_run() {
    let last = Finals { train_bpb: 2.25, val_bpb: 2.5, val_acc: 0.5, test_bpb: Some(9.0), test_acc: None };
    let outcome = Outcome {
        ending: Ending::Finished(last),
        steps: 1000,
        skipped: 0,
        best_val_bpb: None,
        best_val_acc: None,
        wall_sec: 12.345,
        tok_per_sec: 1.0,
    };
    assert_eq!(
        finals(&last, &outcome),
        "# FINAL: train_bpb=2.25000 val_bpb=2.50000 val_acc=0.50000  wall=12.35s  (0.012s/step over 1000 steps)\n"
    );
    assert_eq!(
        summary(&Settings { batch: 2, ..Settings::default() }, &outcome, at(1_796_068_094)),
        "# ===== END-OF-RUN SUMMARY (extrapolate future-run wall-time from these) =====\n\
         # end=2026-11-30T19:48:14\n\
         # total_wall_sec=12.35  total_steps=1000  avg_step_sec=0.0123  tok_per_sec=82948.6  total_tokens=1024000  \
         (batch=2 seq_len=512)\n"
    );
    assert_eq!(diverged(7, f64::INFINITY), "# DIVERGED: step=7 loss=inf\n");
}
