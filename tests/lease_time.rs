//! Leases with their real times, which take more than a minute.
#![cfg(debug_assertions)]

#[expect(dead_code, reason = "shared with the tests of short times")]
#[path = "run/harness.rs"]
mod harness;

use std::time::{Duration, Instant};

use harness::{Sweep, assert_gone, undisturbed};
use rustix::process::Signal;
use serde_json::json;

const STANDING: Duration = Duration::from_secs(60);
const AT_MOST: Duration = Duration::from_secs(75);

/// A lease of a process on another host.
fn foreign_lease() -> String {
    json!({
        "format": 1,
        "controller": "k80-4711-0123456789abcdef",
        "process": {
            "host": "k80", "machine": "4711", "boot": "b8f1", "pid_namespace": "pid:[4026531836]", "pid": 4711, "start": 17
        },
        "beat": 3,
        "since": "2026-11-30T19:00:00.000Z",
        "released": false
    })
    .to_string()
}

#[test]
fn a_run_of_another_host_is_taken_over_when_its_beat_has_stood_for_a_minute() {
    let sweep = Sweep::new(10);
    sweep.run(&sweep.paced(0)).assert_code(0);
    let run = sweep.runs()[0].clone();
    for file in ["result.json", "log.csv"] {
        std::fs::remove_file(run.join(file)).unwrap();
    }
    std::fs::write(run.join("lease.5"), foreign_lease()).unwrap();
    let began = Instant::now();
    let mut running = sweep.start(&sweep.paced(0));
    let waiting = running.until(|event| event["event"] == "waiting");
    assert_eq!(waiting["holders"], json!(["process 4711 on k80"]));
    running.until(|event| event["event"] == "attempt_started");
    let took = began.elapsed();
    println!("a standing beat is taken over after {took:?}");
    assert!((STANDING..=AT_MOST).contains(&took), "taken over after {took:?}");
    running.end().0.assert_code(0);
    sweep.assert_same_tables(&undisturbed(10));
}

#[test]
fn a_stopped_controller_loses_its_workers_after_20_s_and_its_runs_after_60() {
    let sweep = Sweep::new(1500);
    let mut stopped = sweep.start(&sweep.paced(100));
    stopped.until_both_train();
    let mut other = sweep.start(&sweep.paced(0));
    other.until(|event| event["event"] == "waiting");
    let began = Instant::now();
    stopped.signal(Signal::STOP);
    assert_gone(&stopped.workers, Duration::from_secs(35));
    let left = began.elapsed();
    assert!(left >= Duration::from_secs(19), "its workers left after {left:?}");
    other.until(|event| event["event"] == "attempt_started");
    let took = began.elapsed();
    println!("workers left after {left:?}, runs were taken over after {took:?}");
    // Its last beat may be up to 10 s older than the stop.
    assert!((STANDING - Duration::from_secs(11)..=AT_MOST).contains(&took), "taken over after {took:?}");
    other.end().0.assert_code(0);
    stopped.signal(Signal::CONT);
    let (stopped, _) = stopped.end();
    stopped.assert_code(0);
    assert!(!stopped.stdout().contains("\"run_finished\""), "{}", stopped.stdout());
    sweep.assert_each_once(6);
    sweep.assert_same_tables(&undisturbed(1500));
}
