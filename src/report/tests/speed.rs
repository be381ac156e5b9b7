//! How long the tables of a large sweep take. By hand: `cargo test --release -- --ignored --nocapture speed`.
//!
//! `DIESWEEP_FOLDER=DIR cargo test --lib a_folder_to_measure -- --ignored` leaves such a folder for `scripts/time_tables.py`.

use std::time::Instant;

use crate::plan::{Plan, PlannedRun};
use crate::report::{analyse, write_tables};
use crate::run::{Panel, Row};
use crate::store::{LogWriter, Results};
use crate::testing::{execution, finished, plan, row};

/// A row with as many digits as a real one.
fn full_row(run: &PlannedRun, step: u64) -> Row {
    let x = super::noise(run.seed, step) + run.settings.lr;
    let panel = Panel {
        churn: 0.01 + x / 100.0,
        pct_neg: 0.28 + x / 7.0,
        pct_zero: 0.43 - x / 3.0,
        pct_pos: 0.29 + x / 5.0,
        rail_pct: x.abs() / 11.0,
        dead_pct: 0.2 + x / 13.0,
        scale_mean: 0.12 + x / 17.0,
        scale_min: 0.05 + x / 19.0,
        scale_max: 0.25 + x / 23.0,
    };
    let plain = row(5 * step, 8.0 / (1.0 + step as f64) + x, 37.9 + x);
    Row {
        train_bpb: plain.val_bpb + x / 3.0,
        val_acc: 0.25 + x,
        grad_norm: 1.0 + x,
        lr: 1e-3 - x * 1e-5,
        panel: (run.arm == "sr4").then_some(panel),
        ..plain
    }
}

fn fill(results: &Results, plan: &Plan, rows: u64) {
    use rayon::prelude::*;
    plan.runs.par_iter().for_each(|run| {
        let attempt = crate::testing::attempt(results, run);
        let mut log = LogWriter::create(&attempt.log()).unwrap();
        for step in 0..rows {
            log.row(&full_row(run, step)).unwrap();
        }
        let value = 2.0 + super::noise(run.seed, run.settings.lr.to_bits());
        results.publish(run, &attempt, &finished(value, Some(value)), &execution(1, "0")).unwrap();
    });
}

/// 100 configurations of two arms.
fn large_plan(seeds: u64) -> Plan {
    let rates: Vec<String> = (1..=50).map(|i| format!("0.{i:03}")).collect();
    let rates: Vec<&str> = rates.iter().map(String::as_str).collect();
    plan(&[("adamw", &rates), ("sr4", &rates)], &(1..=seeds).collect::<Vec<_>>())
}

fn measure(seeds: u64, rows: u64) {
    let root = tempfile::tempdir().unwrap();
    let plan = large_plan(seeds);
    let results = Results::open_or_create(root.path(), &plan, "").unwrap().results;
    let start = Instant::now();
    fill(&results, &plan, rows);
    println!("{} runs attempted and published in {:.2?}", plan.runs.len(), start.elapsed());
    for _ in 0..3 {
        let start = Instant::now();
        let loaded = results.load(&plan).unwrap();
        let read = start.elapsed();
        analyse(&plan, &loaded);
        let analysed = start.elapsed();
        write_tables(&results, &plan, &loaded).unwrap();
        let all = start.elapsed() - (analysed - read);
        println!(
            "{} runs x {rows} rows: read in {read:.2?}, analysed in {:.2?}, all in {all:.2?}",
            plan.runs.len(),
            analysed - read
        );
    }
}

#[test]
#[ignore = "takes long; prints times"]
fn speed_of_2000_runs() {
    measure(20, 200);
}

#[test]
#[ignore = "takes long; prints times"]
fn speed_of_10000_runs() {
    measure(100, 200);
}

#[test]
#[ignore = "writes a folder of 300 MB where DIESWEEP_FOLDER says"]
fn a_folder_to_measure() {
    let root = std::env::var_os("DIESWEEP_FOLDER").expect("DIESWEEP_FOLDER names the folder to be made");
    let plan = large_plan(100);
    let results = Results::open_or_create(std::path::Path::new(&root), &plan, "").unwrap().results;
    fill(&results, &plan, 200);
}
