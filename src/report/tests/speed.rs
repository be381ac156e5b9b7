//! How long the tables of a large sweep take. By hand: `cargo test --release -- --ignored --nocapture speed`.

use std::time::Instant;

use crate::plan::Plan;
use crate::report::{analyse, write_tables};
use crate::store::{LogWriter, Results};
use crate::testing::{execution, finished, plan, row};

fn fill(results: &Results, plan: &Plan, rows: u64) {
    use rayon::prelude::*;
    plan.runs.par_iter().for_each(|run| {
        let attempt = crate::testing::attempt(results, run);
        let mut log = LogWriter::create(&attempt.log()).unwrap();
        for step in 0..rows {
            log.row(&row(5 * step, 8.0 / (1.0 + step as f64), 40.0)).unwrap();
        }
        let value = 2.0 + super::noise(run.seed, run.settings.lr.to_bits());
        results.publish(run, &attempt, &finished(value, Some(value)), &execution(1, "0")).unwrap();
    });
}

fn measure(seeds: u64, rows: u64) {
    let root = tempfile::tempdir().unwrap();
    let rates: Vec<String> = (1..=50).map(|i| format!("0.{i:03}")).collect();
    let rates: Vec<&str> = rates.iter().map(String::as_str).collect();
    let plan = plan(&[("adamw", &rates), ("sr4", &rates)], &(1..=seeds).collect::<Vec<_>>());
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
