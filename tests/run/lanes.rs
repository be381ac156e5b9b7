//! Workers that train many runs at once.

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Sweep, rule, undisturbed, watchdog};

/// Runs a sweep in lanes, which must end complete and with the tables of one run after the other.
fn in_lanes(lanes: u32, memory: u32, rules: &serde_json::Value, says: &str) -> Sweep {
    paced_in_lanes(0, lanes, memory, rules, says)
}

/// The same, with a step taking so many milliseconds, so that every lane is taken before any run is far.
fn paced_in_lanes(step_ms: u64, lanes: u32, memory: u32, rules: &serde_json::Value, says: &str) -> Sweep {
    watchdog();
    let sweep = Sweep::new(10);
    let args = sweep.script_of_lanes(lanes, memory, step_ms, rules);
    sweep.run(&args).assert_code(0).assert_says(says);
    sweep.assert_same_tables(&undisturbed(10));
    sweep
}

#[test]
fn lanes_give_the_tables_of_one_run_after_the_other() {
    for lanes in [2, 3, 8] {
        assert_eq!(in_lanes(lanes, lanes, &json!([]), "6 runs finished").attempts().len(), 6);
    }
}

#[test]
fn lanes_that_do_not_fit_are_halved_and_their_runs_are_not_counted_as_attempts() {
    let sweep = in_lanes(8, 2, &json!([]), "trains in 2 lanes: out of device memory at 8 lanes");
    // An attempt that was returned leaves nothing behind.
    assert_eq!(sweep.attempts().len(), 6);
}

#[test]
fn a_run_that_ends_badly_leaves_its_neighbours_alone() {
    let rule = rule(&json!({ "fail": ["out_of_device_memory", "no room"] }));
    let sweep = paced_in_lanes(50, 3, 3, &rule, "failed, and will be made again");
    assert_eq!(sweep.attempts().len(), 7);
}

#[test]
fn a_failure_that_speaks_against_the_worker_is_everybodys() {
    let rule = rule(&json!({ "fail": ["hung", "no step"] }));
    // The worker is ended: whoever is on its die is made again, and nobody else.
    let sweep = paced_in_lanes(50, 3, 3, &rule, "failed, and will be made again");
    assert_eq!(sweep.attempts().len(), 6 + 3);
}

#[test]
fn a_crash_is_everybodys_and_the_sweep_goes_on() {
    in_lanes(3, 3, &rule(&json!("abort")), "killed by SIGABRT");
    // Nobody can tell whose panic it is.
    paced_in_lanes(50, 3, 3, &rule(&json!({ "panic": "out of bounds" })), "the trainer panicked: out of bounds");
}

#[test]
fn a_stopped_sweep_goes_on_in_lanes() {
    watchdog();
    let sweep = Sweep::new(40);
    let args = sweep.script_of_lanes(3, 3, 20, &json!([]));
    let mut running = sweep.start(&args);
    running.until_both_train();
    running.signal(Signal::TERM);
    running.end().0.assert_code(128 + 15);
    let args = sweep.script_of_lanes(2, 2, 0, &json!([]));
    sweep.run(&args).assert_code(0);
    sweep.assert_same_tables(&undisturbed(40));
}
