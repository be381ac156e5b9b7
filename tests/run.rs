//! `diesweep run` with real processes: crashes, rubbish, signals, and what is left afterwards.
//!
//! Where a test needs a trainer that misbehaves, a scripted one stands in, which only debug builds have.
#![cfg(debug_assertions)]

mod common;

use std::process::Stdio;
use std::time::Duration;

use common::{Running, Sweep, assert_gone, watchdog};
use rustix::process::Signal;
use serde_json::json;

/// An undisturbed sweep, scripted.
fn undisturbed(steps: u64) -> Sweep {
    let sweep = Sweep::new(steps);
    let args = sweep.script(0, &json!([]));
    sweep.run(&args).assert_code(0);
    sweep
}

/// Runs a sweep in which `rules` hold, which must end complete and with the tables of an undisturbed one.
fn disturbed(rules: &serde_json::Value, says: &str) -> Sweep {
    watchdog();
    let sweep = Sweep::new(10);
    let args = sweep.script(0, rules);
    sweep.run(&args).assert_code(0).assert_says(says);
    sweep.assert_same_tables(&undisturbed(10));
    sweep
}

fn rule(deed: &serde_json::Value) -> serde_json::Value {
    json!([{ "folder": "sr4_s2", "attempt": 1, "step": 3, "deed": deed }])
}

#[test]
fn a_second_call_trains_nothing_and_prints_the_same_table() {
    watchdog();
    let sweep = Sweep::new(4);
    let first = sweep.run::<&str>(&[]);
    first.assert_code(0).assert_says("6 runs: 0 finished, 6 to do, on 2 dies");
    let attempts = sweep.attempts();
    assert_eq!(attempts.len(), 6);
    let second = sweep.run::<&str>(&[]);
    second.assert_code(0).assert_says("6 runs: 6 finished, 0 to do; results in");
    assert_eq!(first.stdout(), second.stdout());
    assert!(first.stdout().contains("sr4"));
    assert_eq!(sweep.attempts(), attempts);
}

#[test]
fn without_a_terminal_there_are_plain_dated_lines() {
    watchdog();
    let sweep = Sweep::new(4);
    let ended = sweep.run::<&str>(&[]);
    let stderr = ended.assert_code(0).stderr();
    assert!(!stderr.contains('\r') && !stderr.contains('\x1b'), "{stderr}");
    let finished: Vec<_> = stderr.lines().filter(|line| line.contains(" finished ")).collect();
    assert_eq!(finished.iter().filter(|line| line.contains("val_bpb")).count(), 6, "{stderr}");
    for line in finished {
        let stamp = line.split(' ').next().unwrap();
        assert!(stamp.len() == 20 && stamp.ends_with('Z') && stamp.contains('T'), "{line}");
    }
}

#[test]
fn quiet_leaves_the_closing_table_alone() {
    watchdog();
    let sweep = Sweep::new(4);
    let ended = sweep.run(&["--quiet"]);
    assert_eq!(ended.assert_code(0).stderr(), "");
    assert!(ended.stdout().contains("adamw"));
}

#[test]
fn json_is_all_that_is_on_standard_output() {
    watchdog();
    let sweep = Sweep::new(4);
    let ended = sweep.run(&["--json"]);
    let stdout = ended.assert_code(0).stdout();
    let events: Vec<serde_json::Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((count("sweep_started"), count("run_finished"), count("sweep_ended")), (1, 6, 1));
    assert_eq!(count("logged"), 6 * 3);
}

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
    // A failed run is no result: the same command tries again.
    let args = sweep.script(0, &json!([]));
    sweep.run(&args).assert_code(0).assert_says("6 runs: 5 finished, 1 to do");
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
fn one_signal_ends_after_the_step_and_the_same_command_goes_on() {
    watchdog();
    for (signal, code) in
        [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129), (Signal::USR1, 138), (Signal::USR2, 140)]
    {
        let sweep = Sweep::new(400);
        let args = sweep.script(5, &json!([]));
        let mut running = sweep.start(&args);
        running.until_both_train();
        running.signal(signal);
        let (ended, workers) = running.end();
        ended.assert_code(code).assert_says("runs in hand start over next time");
        ended.assert_says("6 runs left; to go on: ").assert_says("run sweep.toml --dies 2 --script");
        assert_gone(&workers, Duration::from_secs(1));
        let args = sweep.script(0, &json!([]));
        sweep.run(&args).assert_code(0).assert_says("6 to do");
        sweep.assert_same_tables(&undisturbed(400));
    }
}

#[test]
fn the_second_signal_ends_at_once() {
    watchdog();
    let sweep = Sweep::new(400);
    let args = sweep.script(1, &json!([{ "step": 20, "deed": "hang" }]));
    let mut running = sweep.start(&args);
    running.until_both_train();
    running.signal(Signal::INT);
    running.until(|event| event["event"] == "stopping");
    running.signal(Signal::INT);
    let started = std::time::Instant::now();
    let (ended, workers) = running.end();
    ended.assert_code(130);
    assert!(started.elapsed() < Duration::from_secs(5), "it waited for the grace of 20 s");
    assert_gone(&workers, Duration::from_secs(1));
}

#[test]
fn a_run_that_does_not_stop_is_given_the_grace_and_no_more() {
    watchdog();
    let sweep = Sweep::new(400);
    let mut args = sweep.script(1, &json!([{ "step": 20, "deed": "hang" }]));
    args.extend(["--stop-grace".into(), "1s".into()]);
    let mut running = sweep.start(&args);
    running.until_both_train();
    running.signal(Signal::INT);
    let (ended, workers) = running.end();
    ended.assert_code(130);
    assert_gone(&workers, Duration::from_secs(1));
}

#[test]
fn a_hang_up_that_is_ignored_stays_ignored() {
    watchdog();
    let sweep = Sweep::new(60);
    let args = sweep.script(5, &json!([]));
    let direct = sweep.command(&args);
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg("trap '' HUP; exec \"$@\"").arg("sh").arg(direct.get_program()).args(direct.get_args());
    command.arg("--json").current_dir(sweep.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::spawn(&mut command);
    running.until_both_train();
    running.signal(Signal::HUP);
    running.end().0.assert_code(0);
}

#[test]
fn no_worker_outlives_a_killed_controller() {
    watchdog();
    // One hangs in a step, the others train: neither reads its input or looks at its parent.
    let sweep = Sweep::new(4000);
    let args = sweep.script(5, &json!([{ "folder": "sr4_s1", "step": 20, "deed": "hang" }]));
    let mut running = sweep.start(&args);
    running.until_both_train();
    assert_eq!(running.workers.len(), 2);
    running.signal(Signal::KILL);
    assert_gone(&running.workers, Duration::from_secs(5));
    running.child.wait().unwrap();
    sweep.write(10, "");
    let args = sweep.script(0, &json!([]));
    sweep.run(&args).assert_code(0);
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

#[test]
fn dies_and_threads_change_no_number() {
    watchdog();
    let [one, two] = [Sweep::new(12), Sweep::new(12)];
    let mut command = one.command::<&str>(&[]);
    command.arg("--threads-per-die=2");
    assert!(command.status().unwrap().success());
    two.run(&["--simd", "portable"]).assert_code(0);
    one.assert_same_tables(&two);
}

#[test]
fn a_results_folder_that_cannot_be_made_is_named() {
    watchdog();
    let sweep = Sweep::new(4);
    std::fs::write(sweep.path().join("file"), "").unwrap();
    let ended = sweep.run(&["--results", "file"]);
    ended.assert_code(1).assert_says("file");
    assert!(ended.stderr().starts_with("error: "), "{}", ended.stderr());
}

#[test]
fn a_bad_sweep_file_writes_nothing() {
    watchdog();
    let sweep = Sweep::new(4);
    sweep.write(4, "taget_step = 0.1");
    let ended = sweep.run::<&str>(&[]);
    ended.assert_code(2).assert_says("target_step");
    assert!(!sweep.path().join("results").exists());
}

#[test]
fn usage_errors_have_their_exit_code() {
    watchdog();
    let sweep = Sweep::new(4);
    sweep.run(&["--backend", "cuda"]).assert_code(2).assert_says("this build has no CUDA backend yet");
    sweep.run(&["--simd", "mmx"]).assert_code(2).assert_says("not a SIMD level");
    sweep.run(&["--stop-grace", "1d"]).assert_code(2).assert_says("`d` is not a unit of time");
    assert!(!sweep.path().join("results").exists());
}
