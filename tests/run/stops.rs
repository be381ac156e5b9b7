//! Early stopping, with the real trainer: what is stopped depends on nothing but the runs.

use std::process::Stdio;

use rustix::process::Signal;

use crate::harness::{Sweep, watchdog};

const NONE: [&str; 0] = [];
const STEPS: u64 = 40;
const RATES: &str = "lr = [1e-5, 1e-2, 1e-3]\n";
const MEDIAN: &str = "[stop]\nkind = \"median\"\nrungs = [10, 20]\n";

fn sweep(stop: &str) -> Sweep {
    watchdog();
    let sweep = Sweep::new(STEPS);
    write(&sweep, stop);
    sweep
}

fn write(sweep: &Sweep, stop: &str) {
    sweep.write(STEPS, &format!("{RATES}{stop}"));
}

/// (status, steps) of each run.
fn statuses(sweep: &Sweep) -> Vec<(String, String)> {
    let table = std::fs::read_to_string(sweep.results().join("comparison.csv")).unwrap();
    let cells = |row: &str| row.split(',').map(str::to_owned).collect::<Vec<_>>();
    table.lines().skip(1).map(cells).map(|row| (row[3].clone(), row[4].clone())).collect()
}

fn count(sweep: &Sweep, status: &str) -> usize {
    statuses(sweep).iter().filter(|(is, _)| is == status).count()
}

#[test]
fn what_the_median_stops_depends_on_the_runs_alone() {
    let calm = sweep(MEDIAN);
    let ended = calm.run(&NONE);
    ended.assert_code(0).assert_says("configurations stop, by their mean val_bpb").assert_says("stopped early after");
    let text = ended.stdout();
    assert!(text.contains("early stopping was on"), "{text}");
    assert!(text.contains("With early stopping: 12 of 18 runs") && !text.contains("Preliminary"), "{text}");
    // Of each arm the worst of three is left behind at the first rung, of two again one at the second; with all three seeds.
    let [finished, stopped] = ["finished", "stopped"].map(|status| count(&calm, status));
    assert_eq!((finished, stopped), (6, 12), "{:?}", statuses(&calm));
    assert!(statuses(&calm).contains(&("stopped".into(), "11.0".into())), "{:?}", statuses(&calm));
    let report = std::fs::read_to_string(calm.results().join("report.html")).unwrap();
    assert!(report.contains("id=\"stops\""), "the report has the rungs");

    // Stopped in the middle, and gone on with.
    let broken = sweep(MEDIAN);
    let mut running = broken.start(&NONE);
    running.until(|event| event["event"] == "rung_decided");
    running.signal(Signal::TERM);
    running.end().0.assert_code(143);
    broken.run(&NONE).assert_code(0);
    broken.assert_same_tables(&calm);

    // Two controllers.
    let shared = sweep(MEDIAN);
    let start = |_| shared.command(&["--quiet"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    for mut one in [0, 1].map(start) {
        assert_eq!(one.wait().unwrap().code(), Some(0));
    }
    for ended in shared.events("sweep_ended") {
        assert_eq!((&ended["finished"], &ended["stopped"]), (&6.into(), &12.into()), "{ended}");
    }
    shared.assert_same_tables(&calm);

    // Once more: there is nothing to do. Without the rule what was stopped goes on from there.
    calm.run(&NONE).assert_code(0).assert_says("6 finished, 12 stopped early, 0 to do");
    write(&calm, "");
    calm.run(&NONE).assert_code(0).assert_says("stop was").assert_says("goes on after 11 steps");
    let never = sweep("");
    never.run(&NONE).assert_code(0);
    calm.assert_same_tables(&never);
}

#[test]
fn a_run_stops_where_it_has_reached_the_target() {
    let target = |value| format!("[stop]\nkind = \"target\"\ntarget = {value}\n");
    let quick = sweep(&target("7.0"));
    quick.run(&NONE).assert_code(0).assert_says("target reached after");
    let reached = count(&quick, "stopped");
    assert!((1..18).contains(&reached), "{:?}", statuses(&quick));
    assert_eq!(count(&quick, "finished"), 18 - reached);

    // A nearer target is seen in what was trained further already, and in runs that have finished.
    let later = sweep(&target("6.0"));
    later.run(&NONE).assert_code(0);
    write(&later, &target("7.0"));
    later.run(&NONE).assert_code(0).assert_says("stop was");
    let steps = |sweep: &Sweep| {
        let all = statuses(sweep).into_iter();
        all.filter(|(status, _)| status == "stopped").map(|(_, steps)| steps).collect::<Vec<_>>()
    };
    for step in steps(&later) {
        assert!(steps(&quick).contains(&step));
    }
}

#[test]
fn a_worker_that_dies_at_a_rung_costs_nothing() {
    let calm = sweep(MEDIAN);
    calm.run(&NONE).assert_code(0);
    let torn = sweep(MEDIAN);
    let mut running = torn.start(&NONE);
    running.until(|event| event["event"] == "run_rests");
    running.signal_worker(0, Signal::KILL);
    running.end().0.assert_code(0);
    torn.assert_same_tables(&calm);
}
