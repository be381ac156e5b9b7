//! Attempts and workers that fail.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Sweep, assert_gone, disturbed, rule, undisturbed, watchdog};

#[test]
fn a_crashed_worker_is_replaced_and_its_run_tried_again() {
    let sweep = disturbed(&rule(&json!("abort")), "killed by SIGABRT");
    assert_eq!(sweep.attempts().len(), 7);
}

#[test]
fn rubbish_on_the_pipe_costs_one_attempt() {
    for (deed, says) in [
        (json!({ "rubbish": "Segmentation fault (core dumped)" }), "a line is not a message: `Segmentation"),
        (json!({ "rubbish": "{\"type\":\"beat\"}" }), "a line is not a message"),
        (json!("oversized"), "a line is longer than"),
        (json!("torn"), "the stream ended in the middle of a line"),
        (json!("wrong_attempt"), "which it does not have"),
    ] {
        disturbed(&rule(&deed), says);
    }
}

#[test]
fn what_a_library_prints_harms_nothing_and_is_kept() {
    let sweep = disturbed(&rule(&json!({ "print": "NCCL version 2.18" })), "6 runs finished");
    let attempts = sweep.attempts();
    assert_eq!(attempts.len(), 6);
    let kept = |text: &str| {
        attempts.iter().filter(|path| std::fs::read_to_string(path.join("worker.log")).unwrap().contains(text)).count()
    };
    assert_eq!(kept("NCCL version 2.18"), 1);
}

#[test]
fn training_that_stands_still_is_ended() {
    watchdog();
    let sweep = Sweep::new(10);
    let mut args = sweep.script(0, &rule(&json!("hang")));
    args.extend(["--step-limit".into(), "1s".into()]);
    sweep.run(&args).assert_code(0).assert_says("hung: no step for 1 s after step 2");
    sweep.assert_same_tables(&undisturbed(10));
}

#[test]
fn a_worker_that_falls_silent_is_ended() {
    watchdog();
    let sweep = Sweep::new(40);
    let mut args = sweep.script(20, &json!([]));
    args.extend(["--beat-limit".into(), "2s".into()]);
    let mut running = sweep.start(&args);
    running.until_both_train();
    running.signal_worker(0, Signal::STOP);
    let (ended, workers) = running.end();
    ended.assert_code(0).assert_says("no sign of life for 2 s");
    assert_gone(&workers, Duration::from_secs(1));
    sweep.assert_same_tables(&undisturbed(40));
}

#[test]
fn a_bug_fails_its_run_alone_and_is_not_tried_again() {
    watchdog();
    let sweep = Sweep::new(10);
    let args = sweep.script(0, &rule(&json!({ "panic": "index 7 is out of bounds" })));
    let ended = sweep.run(&args);
    ended.assert_code(1).assert_says("FAILED after 1 attempt: sr4 seed=2: bug: the trainer panicked: index 7");
    ended.assert_says("1 run failed; to try again: ");
    assert_eq!(sweep.attempts().len(), 6);
    // The same command leaves it alone; what was wrong may be mended, and then it is asked for.
    let mut args = sweep.script(0, &json!([]));
    let ended = sweep.run(&args);
    ended.assert_code(1).assert_says("6 runs: 5 finished, 1 given up, 0 to do");
    ended.assert_says("1 run given up earlier, the last one because of bug: the trainer panicked: index 7");
    args.push("--retry-failed".into());
    sweep.run(&args).assert_code(0).assert_says("1 run given up earlier: trying again\n");
    sweep.assert_same_tables(&undisturbed(10));
}

#[test]
fn attempts_are_counted_and_come_to_an_end() {
    watchdog();
    let sweep = Sweep::new(10);
    let args = sweep.script(0, &json!([{ "folder": "sr4_s2", "step": 3, "deed": { "exit": 7 } }]));
    let ended = sweep.run(&args);
    ended.assert_code(1).assert_says("FAILED after 3 attempts: sr4 seed=2: crashed: its process ended with status 7");
    assert_eq!(sweep.attempts().len(), 5 + 3);
}

#[test]
fn the_first_failure_can_stop_the_sweep() {
    watchdog();
    let sweep = Sweep::new(400);
    let mut args = sweep.script(5, &json!([{ "folder": "sr4_s1", "step": 3, "deed": { "panic": "no" } }]));
    args.push("--fail-fast".into());
    let ended = sweep.run(&args);
    ended.assert_code(1).assert_says("error: sr4 seed=1 failed for good: bug: the trainer panicked: no");
    ended.assert_says(" left; to go on: ");
}

#[test]
fn a_time_limit_stops_in_time_and_says_how_to_go_on() {
    watchdog();
    let sweep = Sweep::new(40_000);
    let limited = ["--time-limit", "3s", "--stop-grace", "1500ms"].map(str::to_owned);
    let args = [sweep.script(5, &json!([])), limited.to_vec()].concat();
    let began = std::time::Instant::now();
    let ended = sweep.run(&args);
    ended.assert_code(75).assert_says("the time limit of 3s is near: stopping after the steps in hand");
    ended.assert_says(" left; to go on: ");
    assert!(began.elapsed() >= Duration::from_millis(1500));
    let args = [sweep.script(5, &json!([])), vec!["--time-limit".into(), "20s".into()]].concat();
    sweep.run(&args).assert_code(2).assert_says("--time-limit must be longer than --stop-grace");
}

#[test]
fn a_full_disk_is_waited_for() {
    watchdog();
    let sweep = Sweep::new(10);
    let full = "cannot write 80 bytes to x/log.csv: no space left";
    let args = sweep.script(0, &rule(&json!({ "fail": ["disk_full", full] })));
    let ended = sweep.run(&[args, vec!["--disk-wait".into(), "8s".into()]].concat());
    ended.assert_code(0).assert_says(&format!("the disk is full: {full}; waiting up to 8s for "));
    ended.assert_says("there is room again after ");
    sweep.assert_same_tables(&undisturbed(10));
}

#[test]
fn three_runs_that_fail_alike_stop_the_sweep() {
    watchdog();
    let sweep = Sweep::new(10);
    let fail = json!([{ "step": 0, "deed": { "fail": ["bad_settings", "no such precision"] } }]);
    let args = sweep.script(0, &fail);
    let ended = sweep.run(&args);
    ended.assert_code(1).assert_says("error: the first three runs failed alike: bad settings: no such precision");
}

#[test]
fn a_full_disk_stops_the_sweep_with_the_path() {
    watchdog();
    let sweep = Sweep::new(10);
    let args =
        sweep.script(0, &rule(&json!({ "fail": ["disk", "cannot write 80 bytes to x/log.csv: no space left"] })));
    sweep.run(&args).assert_code(1).assert_says("error: cannot write 80 bytes to x/log.csv: no space left");
    let args = sweep.script(0, &json!([]));
    sweep.run(&args).assert_code(0);
    sweep.assert_same_tables(&undisturbed(10));
}

#[test]
fn divergence_is_a_result() {
    watchdog();
    let sweep = Sweep::new(10);
    let args = sweep.script(0, &rule(&json!("diverge")));
    sweep.run(&args).assert_code(0).assert_says("sr4 seed=2  diverged at step 3 (loss inf)");
    assert_eq!(sweep.attempts().len(), 6);
}

#[test]
fn a_killed_worker_of_the_real_trainer_changes_no_number() {
    watchdog();
    let [calm, sweep] = [Sweep::new(300), Sweep::new(300)];
    calm.run::<&str>(&[]).assert_code(0);
    let mut running = sweep.start::<&str>(&[]);
    running.until_both_train();
    running.signal_worker(0, Signal::KILL);
    running.signal_worker(1, Signal::KILL);
    running.end().0.assert_code(0).assert_says("killed by SIGKILL");
    sweep.assert_same_tables(&calm);
}
