//! Runs that are broken off and go on from their checkpoints, with the real trainer.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{Ended, Running, Sweep, assert_gone, watchdog};

const NONE: [&str; 0] = [];
const STEPS: u64 = 600;
/// SR4 evaluates stale weights; gradients are accumulated: what is hardest to go on from.
const BASE: &str = "preset = \"reference\"\naccum_steps = 2\ngrad_clip = 0.5\n";

fn sweep(run: &str) -> Sweep {
    watchdog();
    let sweep = Sweep::new(STEPS);
    sweep.write(STEPS, &format!("{BASE}[run]\n{run}"));
    sweep
}

fn assert_as_undisturbed(sweep: &Sweep) {
    let undisturbed = self::sweep("");
    undisturbed.run(&NONE).assert_code(0);
    sweep.assert_same_tables(&undisturbed);
    for log in logs(sweep) {
        let text = std::fs::read_to_string(&log).unwrap();
        let elapsed = text.lines().skip(1).map(|row| row.split(',').nth(8).unwrap().parse::<f64>().unwrap());
        assert!(elapsed.is_sorted(), "elapsed_sec runs backwards in {}", log.display());
    }
}

fn logs(sweep: &Sweep) -> Vec<PathBuf> {
    let runs = std::fs::read_dir(sweep.results().join("runs")).unwrap();
    runs.map(|run| run.unwrap().path().join("log.csv")).collect()
}

/// Checkpoints in an attempt's folder, the newest last.
fn checkpoints(attempt: &Path) -> Vec<PathBuf> {
    let mut found: Vec<(u64, PathBuf)> = std::fs::read_dir(attempt)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            Some((name.strip_prefix("checkpoint-")?.strip_suffix(".safetensors")?.parse().ok()?, path))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

fn all_checkpoints(sweep: &Sweep) -> Vec<PathBuf> {
    sweep.attempts().iter().flat_map(|attempt| checkpoints(attempt)).collect()
}

/// Starts, and waits until both dies have written a checkpoint of runs that are not near their end.
fn start(sweep: &Sweep) -> Running {
    let mut running = sweep.start(&NONE);
    let mut seen = [false; 2];
    while seen != [true; 2] {
        let event = running.until(|event| event["event"] == "checkpointed");
        seen[usize::try_from(event["at"]["die"].as_u64().unwrap()).unwrap()] = true;
    }
    running
}

#[test]
fn a_stopped_sweep_goes_on_inside_its_runs() {
    let sweep = sweep("checkpoint_every = 50\n");
    let running = start(&sweep);
    running.signal(Signal::TERM);
    running.end().0.assert_code(143).assert_says("runs in hand are saved and go on next time");
    // The stop saves each run as it is, which need not be at a multiple of 50.
    assert!(!all_checkpoints(&sweep).is_empty());
    sweep.run(&NONE).assert_code(0).assert_says("goes on after ");
    assert_as_undisturbed(&sweep);
    assert_eq!(all_checkpoints(&sweep), Vec::<PathBuf>::new(), "checkpoints outlive their runs");
}

#[test]
fn a_stop_saves_runs_that_were_never_saved_before() {
    let sweep = sweep("");
    let mut running = sweep.start(&NONE);
    running.until_both_train();
    running.signal(Signal::INT);
    running.end().0.assert_code(130);
    assert!(!all_checkpoints(&sweep).is_empty(), "nothing was saved at the stop");
    sweep.run(&NONE).assert_code(0).assert_says("goes on after ");
    assert_as_undisturbed(&sweep);
}

#[test]
fn a_killed_worker_costs_the_steps_since_its_checkpoint_alone() {
    let sweep = sweep("checkpoint_every = 20\n");
    let mut running = start(&sweep);
    running.signal_worker(0, Signal::KILL);
    let resumed = running.until(|event| event["event"] == "attempt_resumed");
    assert!(resumed["steps"].as_u64().unwrap() >= 20, "{resumed}");
    running.end().0.assert_code(0);
    assert_as_undisturbed(&sweep);
}

#[test]
fn a_killed_controller_costs_the_steps_since_the_checkpoints_alone() {
    let sweep = sweep("checkpoint_every = 20\n");
    let mut running = start(&sweep);
    running.signal(Signal::KILL);
    assert_gone(&running.workers, Duration::from_secs(5));
    running.child.wait().unwrap();
    sweep.run(&NONE).assert_code(0).assert_says("goes on after ");
    assert_as_undisturbed(&sweep);
}

#[test]
fn a_damaged_checkpoint_is_told_of_and_the_one_before_is_taken() {
    let sweep = sweep("checkpoint_every = 20\n");
    let mut running = start(&sweep);
    // Two of each: the one that is taken must be there too.
    for _ in 0..4 {
        running.until(|event| event["event"] == "checkpointed");
    }
    running.signal(Signal::TERM);
    running.end().0.assert_code(143);
    let newest: Vec<_> =
        sweep.attempts().iter().filter_map(|attempt| checkpoints(attempt).into_iter().next_back()).collect();
    assert!(!newest.is_empty());
    for path in &newest {
        let mut bytes = std::fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(path, bytes).unwrap();
        show(path, &sweep).assert_code(1).assert_says("is damaged: its bytes do not have the digest");
    }
    let ended = sweep.run(&["--quiet"]);
    ended.assert_code(0).assert_says("warning: ").assert_says(" is damaged: its bytes do not have the digest");
    assert_as_undisturbed(&sweep);
}

fn show(file: &Path, sweep: &Sweep) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_diesweep"));
    Ended(command.args(["checkpoint", "show"]).arg(file).current_dir(sweep.path()).output().unwrap())
}

#[test]
fn kept_checkpoints_and_final_weights_can_be_looked_into() {
    watchdog();
    let sweep = Sweep::new(20);
    sweep.write(20, "save_final = true\n[run]\ncheckpoint_every = 8\nkeep_checkpoints = true\n");
    sweep.run(&NONE).assert_code(0);
    let checkpoints = all_checkpoints(&sweep);
    // A disk may be too slow for the second one of such a short run.
    assert!((6..=12).contains(&checkpoints.len()), "one or two of each of six runs: {checkpoints:?}");
    let sr4 = checkpoints.iter().find(|path| path.to_str().unwrap().contains("/sr4_s1")).unwrap();
    let shown = show(sr4, &sweep).assert_code(0).stdout();
    for text in [
        " bytes, whole\n",
        "checkpoint of run ",
        " steps done, 0 of them skipped\n",
        "\nlog of ",
        "rwkv0.key_w.q  i8  16 x 16\n",
    ] {
        assert!(shown.contains(text), "`{text}` is not in:\n{shown}");
    }
    let finals: Vec<_> = logs(&sweep).iter().map(|log| log.with_file_name("final.safetensors")).collect();
    assert_eq!(finals.len(), 6);
    for path in &finals {
        let shown = show(path, &sweep).assert_code(0).stdout();
        assert!(shown.contains("final weights of run ") && shown.contains("emb  f32  256 x 16\n"), "{shown}");
    }
    opens_in_python(&[sr4.clone(), finals[0].clone()]);
}

/// Opens files with Python's safetensors, and reads every array.
fn opens_in_python(files: &[PathBuf]) {
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let there = Command::new(&python).args(["-c", "import numpy, safetensors"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED opens_in_python: {} has no numpy and safetensors", python.display());
        return;
    }
    let script = "
import json, sys
from safetensors import safe_open
for path in sys.argv[1:]:
    with safe_open(path, framework='numpy') as f:
        label = json.loads(f.metadata()['diesweep'])
        assert label['format'] == 2 and len(label['digest']) == 64, label
        assert f.get_tensor('emb').shape == (256, 16)
        assert f.get_tensor('rwkv0.ffn_key_w').shape == (16, 32)
        values = sum(f.get_tensor(name).size for name in f.keys())
        print(label['holds'], len(f.keys()), values)
";
    let output = Command::new(python).args(["-c", script]).args(files).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.starts_with("checkpoint ") && said.contains("\nfinal "), "{said}");
}
