//! Several controllers on one folder.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::{Running, Sweep, assert_gone, undisturbed, watchdog};

const NONE: [&str; 0] = [];

/// Leases short enough for a test.
const SHORT: [&str; 2] = ["--lease-time", "3s"];

fn short(mut args: Vec<String>) -> Vec<String> {
    args.extend(SHORT.map(str::to_owned));
    args
}

/// Starts a controller that holds runs for long, and a quick one that has done all others and waits for those.
fn slow_and_waiting(sweep: &Sweep, times: &[&str]) -> (Running, Running) {
    let with = |mut args: Vec<String>| {
        args.extend(times.iter().map(|&arg| arg.to_owned()));
        args
    };
    let mut slow = sweep.start(&with(sweep.paced(100)));
    slow.until_both_train();
    let mut quick = sweep.start(&with(sweep.paced(0)));
    let waiting = quick.until(|event| event["event"] == "waiting");
    let holder = format!("process {} on ", slow.child.id());
    assert!(waiting["holders"][0].as_str().unwrap().starts_with(&holder), "{waiting}");
    (slow, quick)
}

#[test]
fn controllers_share_the_runs() {
    watchdog();
    let calm = undisturbed(40);
    for controllers in [2, 3] {
        let sweep = Sweep::new(40);
        let args = sweep.paced(10);
        let running: Vec<_> = (0..controllers).map(|_| sweep.start(&args)).collect();
        let mut here = 0;
        for one in running {
            let (ended, _) = one.end();
            ended.assert_code(0);
            let summary = ended.stdout().lines().last().map(|line| serde_json::from_str(line).unwrap());
            let summary: serde_json::Value = summary.unwrap();
            assert_eq!((&summary["event"], &summary["finished"]), (&"sweep_ended".into(), &6.into()), "{summary}");
            here += summary["here"].as_u64().unwrap();
            assert_eq!(summary["here"].as_u64().unwrap() + summary["elsewhere"].as_u64().unwrap(), 6, "{summary}");
        }
        assert_eq!(here, 6);
        sweep.assert_each_once(6);
        assert_eq!(sweep.attempts().len(), 6, "no run is even begun twice");
        sweep.assert_same_tables(&calm);
        // Nothing is left of anybody's claims.
        assert_eq!(std::fs::read_dir(sweep.results().join("controllers")).unwrap().count(), 0);
        for run in sweep.runs() {
            assert!(!run.join("lease.1").exists(), "{}", run.display());
        }
    }
}

#[test]
fn runs_of_a_killed_controller_are_taken_over_at_once() {
    watchdog();
    let sweep = Sweep::new(200);
    let (mut slow, mut quick) = slow_and_waiting(&sweep, &[]);
    let killed = Instant::now();
    slow.signal(Signal::KILL);
    quick.until(|event| event["event"] == "attempt_started");
    let took = killed.elapsed();
    println!("taken over {took:?} after the kill");
    assert!(took < Duration::from_secs(1), "taken over after {took:?}");
    assert_gone(&slow.workers, Duration::from_secs(5));
    slow.child.wait().unwrap();
    quick.end().0.assert_code(0);
    sweep.assert_same_tables(&undisturbed(200));
    sweep.assert_each_once(6);
}

#[test]
fn a_controller_that_stands_still_loses_its_workers_and_then_its_runs_and_publishes_nothing() {
    watchdog();
    let sweep = Sweep::new(200);
    let (slow, mut quick) = slow_and_waiting(&sweep, &SHORT);
    let stopped = Instant::now();
    slow.signal(Signal::STOP);
    // Their patience of 1 s, and half of it to save what they have in hand.
    assert_gone(&slow.workers, Duration::from_secs(3));
    quick.until(|event| event["event"] == "attempt_started");
    let took = stopped.elapsed();
    assert!(took >= Duration::from_secs(2), "its last beat may be half a second old: taken over after {took:?}");
    quick.end().0.assert_code(0);
    slow.signal(Signal::CONT);
    let (slow, _) = slow.end();
    slow.assert_code(0).assert_says("worker of die 0 left");
    sweep.assert_each_once(6);
    assert!(slow.stdout().lines().all(|line| !line.contains("\"run_finished\"")), "{}", slow.stdout());
    sweep.assert_same_tables(&undisturbed(200));
}

#[test]
fn workers_that_do_not_hear_of_their_controller_save_their_runs() {
    watchdog();
    let sweep = Sweep::new(3000);
    let mut args = short(Vec::new());
    args.extend(["--controller-limit".into(), "2s".into()]);
    let mut running = sweep.start(&args);
    running.until_both_train();
    running.signal(Signal::STOP);
    assert_gone(&running.workers, Duration::from_secs(5));
    let files =
        |folder: &PathBuf| std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
    let saved: Vec<PathBuf> = sweep.attempts().iter().flat_map(files).collect();
    let saved: Vec<_> =
        saved.iter().filter(|path| path.extension().is_some_and(|kind| kind == "safetensors")).collect();
    assert!(!saved.is_empty(), "nothing was saved");
    running.signal(Signal::CONT);
    running.end().0.assert_code(0).assert_says(" left: it had not heard of this controller");
    sweep.assert_each_once(6);
    let calm = Sweep::new(3000);
    calm.run(&NONE).assert_code(0);
    sweep.assert_same_tables(&calm);
}

#[test]
fn who_does_not_wait_says_what_is_left() {
    watchdog();
    let sweep = Sweep::new(200);
    let mut slow = sweep.start(&sweep.paced(100));
    slow.until_both_train();
    let mut args = sweep.paced(0);
    args.push("--no-wait".into());
    let ended = sweep.run(&args);
    ended.assert_code(75).assert_says("works on this folder too").assert_says(" left, which other controllers hold");
    // One task of an array that finds nothing to do is no failed task.
    let mut command = sweep.command(&args);
    assert!(command.env("SLURM_JOB_ID", "1").status().unwrap().success());
    slow.signal(Signal::TERM);
    slow.end().0.assert_code(143);
    sweep.run(&sweep.paced(0)).assert_code(0);
    sweep.assert_same_tables(&undisturbed(200));
    sweep.assert_each_once(6);
}

#[test]
fn a_lease_that_is_a_folder_fails_its_run_alone() {
    watchdog();
    let sweep = Sweep::new(10);
    let mut running = sweep.start(&sweep.paced(100));
    running.until_both_train();
    running.signal(Signal::TERM);
    running.end().0.assert_code(143);
    std::fs::create_dir(sweep.runs()[0].join("lease.99")).unwrap();
    let ended = sweep.run(&sweep.paced(0));
    ended.assert_code(1).assert_says("FAILED: ").assert_says("lease.99: Is a directory").assert_says("5 runs finished");
}

#[test]
fn an_edited_sweep_that_joins_a_running_one_is_told_to_both() {
    watchdog();
    let sweep = Sweep::new(60);
    let mut first = sweep.start(&sweep.paced(50));
    first.until_both_train();
    sweep.write(10, "");
    let second = sweep.run(&sweep.paced(0));
    second.assert_code(0).assert_says("changed since the last time: arm `adamw`: steps was 60, is 10");
    first.end().0.assert_code(0).assert_says("another controller has changed the plan of this folder meanwhile");
    sweep.assert_each_once(12);
    let table = std::fs::read_to_string(sweep.results().join("comparison.csv")).unwrap();
    assert_eq!(table.lines().filter(|line| line.contains(",finished,10")).count(), 6, "{table}");
}
