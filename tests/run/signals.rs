//! Signals to the controller, and its death.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Running, Sweep, assert_gone, undisturbed, watchdog};

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
        ended.assert_code(code).assert_says("runs in hand are saved and go on next time");
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
