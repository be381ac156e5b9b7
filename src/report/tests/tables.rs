//! The four tables, to the byte.

use std::fs;
use std::path::Path;

use crate::plan::Plan;
use crate::report::{VOLATILE, write_tables};
use crate::run::Ending;
use crate::store::{AttemptFailure, Results, TABLES};
use crate::testing::{diverged, finished, plan, publish};

fn open(root: &Path, plan: &Plan) -> Results {
    Results::open_or_create(root, plan, "").unwrap().results
}

fn write(results: &Results, plan: &Plan) {
    write_tables(results, plan, &results.load(plan).unwrap()).unwrap();
}

fn table(results: &Results, name: &str) -> String {
    fs::read_to_string(results.layout().table(name)).unwrap()
}

/// adamw finished, sr4 diverged and failed, the last not started.
fn mixed(root: &Path) -> (Plan, Results) {
    let plan = plan(&[("adamw", &[]), ("sr4", &["0.01"])], &[1, 2, 3]);
    let results = open(root, &plan);
    publish(&results, &plan.runs[0], &finished(2.25, Some(2.5)), 10.0);
    publish(&results, &plan.runs[1], &diverged(17), 10.0);
    publish(&results, &plan.runs[2], &finished(2.75, Some(3.0)), 10.0);
    let attempt = crate::testing::attempt(&results, &plan.runs[3]);
    let failure = AttemptFailure {
        cause: "crashed".to_owned(),
        message: "signal 9".to_owned(),
        ended: String::new(),
        for_good: true,
    };
    results.record_failure(&attempt, &failure).unwrap();
    publish(&results, &plan.runs[4], &finished(2.0, Some(2.0)), 10.0);
    (plan, results)
}

#[test]
fn comparison_csv() {
    let root = tempfile::tempdir().unwrap();
    let (plan, results) = mixed(root.path());
    write(&results, &plan);
    assert_eq!(
        table(&results, "comparison.csv"),
        "arm,lr,seed,status,steps,final_train_bpb,final_val_bpb,final_val_acc,best_val_bpb,best_val_bpb_step,best_val_acc,\
         best_val_acc_step,test_bpb,test_acc,diverged_step,precision,run_id,wall_sec,tok_per_sec,attempts,die,host,started,ended\n\
         adamw,NaN,1,finished,100.0,2.15,2.25,0.25,2.24,50.0,0.26,99.0,2.5,0.25,NaN,fp32,000000a000000001,1.5,4266.666,1.0,0,host,\
         2026-11-30T19:00:00Z,2026-11-30T19:00:02Z\n\
         sr4,0.01,1,diverged,17.0,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,17.0,fp32,000000a100000001,1.5,4266.666,1.0,0,host,2026-11-30T19:00:00Z,2026-11-30T19:00:02Z\n\
         adamw,NaN,2,finished,100.0,2.65,2.75,0.25,2.74,50.0,0.26,99.0,3.0,0.25,NaN,fp32,000000a000000002,1.5,4266.666,1.0,0,host,\
         2026-11-30T19:00:00Z,2026-11-30T19:00:02Z\n\
         sr4,0.01,2,failed,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,fp32,000000a100000002,NaN,NaN,1.0,,,,\n\
         adamw,NaN,3,finished,100.0,1.9,2.0,0.25,1.99,50.0,0.26,99.0,2.0,0.25,NaN,fp32,000000a000000003,1.5,4266.666,1.0,0,host,\
         2026-11-30T19:00:00Z,2026-11-30T19:00:02Z\n\
         sr4,0.01,3,unfinished,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,fp32,000000a100000003,NaN,NaN,NaN,,,,\n"
    );
}

#[test]
fn summary_csv_counts_what_is_in_no_mean() {
    let root = tempfile::tempdir().unwrap();
    let (plan, results) = mixed(root.path());
    write(&results, &plan);
    let text = table(&results, "summary.csv");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "arm,lr,n,n_diverged,n_failed,metric,mean,sd,sem,ci95_lo,ci95_hi,median,iqm,min,max,test_mean,test_ci95_lo,test_ci95_hi"
    );
    // mean 7/3, sd sqrt(7/48), t(2) = 4.302652729749462
    let cells: Vec<&str> = lines[1].split(',').collect();
    assert_eq!(cells[..6], ["adamw", "NaN", "3", "0", "0", "val_bpb"]);
    let sd = (7.0_f64 / 48.0).sqrt();
    let half = 4.302652729749462 * sd / 3.0_f64.sqrt();
    let want =
        [7.0 / 3.0, sd, sd / 3.0_f64.sqrt(), 7.0 / 3.0 - half, 7.0 / 3.0 + half, 2.25, 7.0 / 3.0, 2.0, 2.75, 2.5];
    for (cell, want) in cells[6..].iter().zip(want) {
        assert!((cell.parse::<f64>().unwrap() - want).abs() < 1e-12, "{cell} for {want}");
    }
    assert_eq!(lines[2], "sr4,0.01,0,1,1,val_bpb,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN");
}

#[test]
fn comparisons_csv_has_the_verdict_first() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &["0.1", "0.2"]), ("sr4", &["0.1"])], &[1, 2, 3]);
    let results = open(root.path(), &plan);
    for run in &plan.runs {
        let base = if run.arm == "sr4" { 2.0 } else { 2.5 + run.settings.lr };
        if (run.arm.as_str(), run.seed) != ("sr4", 2) {
            publish(&results, run, &finished(base + run.seed as f64 / 8.0, Some(base)), 1.0);
        }
    }
    write(&results, &plan);
    let text = table(&results, "comparisons.csv");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "arm,lr,baseline,n_pairs,seeds_unpaired,mean_diff,ci95_lo,ci95_hi,bca_lo,bca_hi,sign_flip_p,wilcoxon_p,t_p,holm_p,\
         cohen_dz,prob_improvement,split,role"
    );
    assert_eq!(lines.len(), 4);
    let start = |line: &str| line.split(',').take(5).collect::<Vec<_>>().join(",");
    assert_eq!(start(lines[1]), "sr4,0.1,adamw lr=0.1,2,[2]");
    assert!(lines[1].ends_with(",1.0,test,verdict"), "{}", lines[1]);
    assert_eq!(start(lines[2]), "adamw,0.2,adamw lr=0.1,3,[]");
    assert!(lines[2].ends_with("validation,exploratory"), "{}", lines[2]);
    assert_eq!(start(lines[3]), "sr4,0.1,adamw lr=0.1,2,[2]");
}

#[test]
fn curves_csv_copies_every_row_and_no_name_twice() {
    let root = tempfile::tempdir().unwrap();
    let (plan, results) = mixed(root.path());
    write(&results, &plan);
    let text = table(&results, "curves.csv");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "arm,axis_lr,seed,run_id,step,train_bpb,val_bpb,val_acc,grad_norm,lr,step_sec,tok_per_sec,elapsed_sec,ETA_sec,churn,\
         pct_neg,pct_zero,pct_pos,rail_pct,dead_pct,scale_mean,scale_min,scale_max"
    );
    assert_eq!(lines.len(), 1 + 4 * 3);
    assert_eq!(
        lines[5],
        "sr4,0.01,1,000000a100000001,50,7.50000,7.50000,0.25000,1.0,0.001,0.1000,640.0,5.00,0.00,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN"
    );
    for name in TABLES {
        let text = table(&results, name);
        let width = text.lines().next().unwrap().split(',').count();
        assert!(text.lines().all(|line| line.split(',').count() == width), "{name}");
    }
}

#[test]
fn what_has_not_begun_has_tables_too() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[]), ("sr4", &[])], &[1]);
    let results = open(root.path(), &plan);
    write(&results, &plan);
    let counts = TABLES.map(|name| table(&results, name).lines().count());
    assert_eq!(counts, [3, 3, 1, 1]);
}

#[test]
fn a_finished_run_with_a_value_that_is_not_finite_counts_as_diverged() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1, 2]);
    let results = open(root.path(), &plan);
    publish(&results, &plan.runs[0], &finished(2.0, Some(2.0)), 1.0);
    publish(&results, &plan.runs[1], &finished(f64::NAN, Some(f64::INFINITY)), 1.0);
    write(&results, &plan);
    let summary = table(&results, "summary.csv");
    assert!(summary.contains("adamw,1,1,0,val_bpb,2.0,NaN,NaN,NaN,NaN,2.0,2.0,2.0,2.0,2.0,NaN,NaN\n"), "{summary}");
    assert!(table(&results, "comparison.csv").contains(",NaN,NaN,0.25,NaN,50.0,"));
    let stored = results.finished(&plan.runs[1]).unwrap().unwrap();
    assert!(matches!(stored.outcome.ending, Ending::Finished(finals) if finals.val_bpb.is_nan()));
}

/// The order in which runs end, their times and their attempts show in no column but the volatile ones.
#[test]
fn tables_do_not_depend_on_how_runs_were_executed() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(&[("adamw", &["0.1", "0.2"]), ("sr4", &[])], &[1, 2, 3, 4, 5, 6, 7]);
    let value = |seed: u64, lr: f64| 2.0 + super::noise(seed, lr.to_bits()) + lr;
    let (a, b) = (open(one.path(), &plan), open(two.path(), &plan));
    for run in &plan.runs {
        let value = value(run.seed, run.settings.lr);
        publish(&a, run, &finished(value, Some(value)), 100.0);
    }
    for run in plan.runs.iter().rev() {
        crate::testing::attempt(&b, run);
        let value = value(run.seed, run.settings.lr);
        let mut outcome = finished(value, Some(value));
        outcome.wall_sec = 77.0;
        publish(&b, run, &outcome, 3.0);
    }
    write(&a, &plan);
    write(&b, &plan);
    assert_ne!(table(&a, "comparison.csv"), table(&b, "comparison.csv"));
    assert_eq!(table(&a, "summary.csv"), table(&b, "summary.csv"));
    assert_eq!(table(&a, "comparisons.csv"), table(&b, "comparisons.csv"));
    let found = crate::report::compare_paths(a.layout().dir(), b.layout().dir()).unwrap();
    assert_eq!((found.total, found.files), (0, 4 + 2 * 21), "{:?}", found.listed);
    assert!(VOLATILE.contains(&"wall_sec"));
}
