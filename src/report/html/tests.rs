//! Tests of the page.

mod browser;
mod edges;
mod structure;

pub(in crate::report) use structure::assert_well_formed;

use std::path::Path;

use super::{Drawn, Running, write_report};
use crate::plan::Plan;
use crate::report::analyse;
use crate::run::{Outcome, Panel};
use crate::store::{Execution, LogWriter, Results};
use crate::testing::{execution, plan, row};

/// A results folder for a plan.
pub(in crate::report) fn open(root: &Path, plan: &Plan, sweep_toml: &str) -> Results {
    Results::open_or_create(root, plan, sweep_toml).unwrap().results
}

/// The page of what is in the folder.
fn page(results: &Results, plan: &Plan) -> String {
    page_of(results, plan, None)
}

/// The page, perhaps of a sweep at work.
fn page_of(results: &Results, plan: &Plan, running: Option<Running>) -> String {
    let loaded = results.load(plan).unwrap();
    let analysis = analyse(plan, &loaded);
    let drawn = Drawn::gather(results, plan, &loaded, &analysis, running).unwrap();
    super::page::page(&drawn.source, &drawn.curves)
}

/// Attempts and publishes a run with a log of `rows` rows; the arm `sr4` logs its weights too.
pub(in crate::report) fn publish(results: &Results, plan: &Plan, run: usize, outcome: &Outcome, rows: u64) {
    publish_on(results, plan, run, outcome, (rows, "cpu"));
}

/// The same, on a kind of device.
fn publish_on(results: &Results, plan: &Plan, run: usize, outcome: &Outcome, (rows, device): (u64, &str)) {
    let run = &plan.runs[run];
    let attempt = crate::testing::attempt(results, run);
    let mut log = LogWriter::create(&attempt.log()).unwrap();
    for step in 0..rows {
        let share = step as f64 / rows as f64;
        let mut row = row(step * 5, 8.0 - 6.0 * share + run.seed as f64 / 50.0, 10.0);
        row.panel = (run.arm == "sr4").then_some(Panel {
            churn: 0.1 * share,
            pct_neg: 0.3 - 0.1 * share,
            pct_zero: 0.4 + 0.2 * share,
            pct_pos: 0.3 - 0.1 * share,
            rail_pct: 0.05 * share,
            dead_pct: 0.4,
            scale_mean: 0.1,
            scale_min: 0.05,
            scale_max: 0.2 + 0.001 * run.seed as f64,
        });
        log.row(&row).unwrap();
    }
    log.finish().unwrap();
    let execution = Execution { device: device.to_owned(), ..execution(attempt.number, "0") };
    results.publish(run, &attempt, outcome, &execution).unwrap();
}

/// Every run of a plan finished, `sr4` the better the larger its rate.
fn all_finished(results: &Results, plan: &Plan, rows: u64) {
    for (i, run) in plan.runs.iter().enumerate() {
        let rate: f64 = run.axes.first().map_or(0.0, |axis| axis.value.parse().unwrap());
        let value = if run.arm == "sr4" { 2.0 - rate } else { 2.3 } + (run.seed * run.seed % 7) as f64 / 100.0;
        publish(results, plan, i, &crate::testing::finished(value, Some(value + 0.05)), rows);
    }
}

/// Two arms with six seeds, all finished.
pub(in crate::report) fn good(root: &Path) -> (Plan, Results) {
    let plan = plan(&[("adamw", &[]), ("sr4", &["0.001", "0.01", "0.1"])], &[1, 2, 3, 4, 5, 6]);
    let results = open(root, &plan, "name = \"test\"\n");
    all_finished(&results, &plan, 12);
    (plan, results)
}

/// Two arms of ten configurations with ten seeds, and logs of 200 rows.
fn two_hundred(root: &Path) -> (Plan, Results) {
    let rates: Vec<String> = (1..=10).map(|i| format!("{}", f64::from(i) / 1000.0)).collect();
    let rates: Vec<&str> = rates.iter().map(String::as_str).collect();
    let plan = plan(&[("adamw", &rates), ("sr4", &rates)], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let results = open(root, &plan, "");
    all_finished(&results, &plan, 200);
    (plan, results)
}
