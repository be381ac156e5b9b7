//! `diesweep train` and `diesweep sample` as a user calls them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A model that trains a step in a millisecond.
const SMALL: &[&str] = &[
    "--C",
    "16",
    "--n-head",
    "2",
    "--head-size",
    "8",
    "--n-rwkv",
    "1",
    "--n-attn",
    "1",
    "--ffn",
    "32",
    "--lora",
    "4",
    "--seq-len",
    "32",
    "--eval-every",
    "10",
    "--eval-batches",
    "2",
    "--test-batches",
    "4",
    "--data",
    "builtin",
];

fn diesweep(folder: &Path, command: &str) -> Command {
    let mut call = Command::new(env!("CARGO_BIN_EXE_diesweep"));
    call.current_dir(folder).arg(command).args(["--threads", "1"]);
    call
}

fn train(folder: &Path, args: &[&str]) -> Output {
    diesweep(folder, "train").args(SMALL).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Rows, best values and final values, without what the clock decides.
fn numbers(log: &str) -> Vec<String> {
    let lines = log
        .lines()
        .filter(|l| l.starts_with(|c: char| c.is_ascii_digit()) || l.contains("BEST") || l.contains("FINAL"));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split("  wall=").next().unwrap().split(',').collect();
            if cells.len() == 19 { [&cells[..6], &cells[10..]].concat().join(",") } else { cells.join(",") }
        })
        .collect()
}

#[test]
fn the_log_is_the_same_in_both_places_and_as_the_driver_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    for (arm, dashes) in [("sr4", false), ("adamw", true)] {
        let out = train(folder.path(), &["--opt", arm, "--steps", "25", "--log", "log"]);
        assert!(out.status.success(), "{}", text(&out.stderr));
        let log = fs::read_to_string(folder.path().join("log")).unwrap();
        assert_eq!(log, text(&out.stdout));
        assert!(log.starts_with("# start=2") && out.stderr.is_empty());
        let rows: Vec<&str> = log.lines().filter(|l| l.starts_with(|c: char| c.is_ascii_digit())).collect();
        assert_eq!(rows.iter().map(|r| r.split(',').next().unwrap()).collect::<Vec<_>>(), ["0", "10", "20", "24"]);
        assert!(rows.iter().all(|row| row.ends_with(",-,-,-,-,-,-,-,-,-") == dashes));
        assert_eq!(log.matches("# BEST: ").count(), rows.len() + 1);
        assert_eq!(log.matches("# FINAL: ").count(), 1);
        assert!(log.lines().last().unwrap().ends_with("total_tokens=800  (batch=1 seq_len=32)"));
    }
}

#[test]
fn a_run_that_was_stopped_goes_on_to_the_same_log() {
    let folder = tempfile::tempdir().unwrap();
    let steps = ["--opt", "sr4", "--steps", "2000"];
    let mut child = diesweep(folder.path(), "train")
        .args(SMALL)
        .args(steps)
        .args(["--log", "parts", "--save", "saved"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Stopped once it has logged a few steps: its output says when.
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    lines.find(|line| line.as_ref().unwrap().starts_with("30,")).unwrap().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    let rest = std::thread::spawn(move || lines.count());
    let out = child.wait_with_output().unwrap();
    rest.join().unwrap();
    assert_eq!(out.status.code(), Some(128 + 15), "{}", text(&out.stderr));
    assert!(text(&out.stderr).starts_with("stopped by SIGTERM after "), "{}", text(&out.stderr));
    let early = numbers(&fs::read_to_string(folder.path().join("parts")).unwrap()).len();

    let go_on = ["--resume", "saved", "--data", "builtin", "--log", "parts", "--save", "saved"];
    let out = diesweep(folder.path(), "train").args(go_on).output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(train(folder.path(), &[&steps[..], &["--log", "whole"]].concat()).status.success());
    let read = |name: &str| numbers(&fs::read_to_string(folder.path().join(name)).unwrap());
    assert!(early < read("whole").len(), "it was stopped before its end");
    assert_eq!(read("parts"), read("whole"));

    // The saved run's weights are the finished run's.
    let eval = diesweep(folder.path(), "train").args(["--eval-only", "saved", "--data", "builtin"]).output().unwrap();
    let last = read("whole").into_iter().find(|line| line.contains("FINAL")).unwrap();
    let said = text(&eval.stdout);
    assert!(said.starts_with(&last.replace("# FINAL", "# EVAL")), "{said} is not {last}");
    assert!(said.contains(" test_bpb="), "{said}");
}

#[test]
fn wrong_calls_have_the_drivers_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let check = |args: &[&str], code: i32, said: &str| {
        let out = diesweep(folder.path(), "train").args(args).output().unwrap();
        assert_eq!(out.status.code(), Some(code), "{args:?}");
        assert!(text(&out.stderr).contains(said), "{args:?}: {}", text(&out.stderr));
        assert!(out.stdout.is_empty(), "{args:?}");
    };
    check(&["--bogus", "1"], 2, "unexpected argument '--bogus'");
    check(&["--seed", "0"], 2, "a whole number from 1 up");
    check(&["--C", "100"], 2, "n_head * head_size = 4 * 32 = 128, but C = 100");
    check(&["--data", "nowhere"], 1, "the corpus `nowhere` does not exist");
    check(&["--resume", "nothing"], 1, "cannot read nothing");
    check(&["--data", "builtin", "--steps", "1", "--log", "no/folder/log"], 1, "cannot be written to no/folder/log");
    fs::write(folder.path().join("junk"), "no checkpoint").unwrap();
    check(&["--eval-only", "junk"], 1, "junk is damaged");
    assert!(train(folder.path(), &["--steps", "2", "--save", "saved"]).status.success());
    let other = ["--resume", "saved", "--data", "builtin", "--lr", "0.5"];
    check(&other, 2, "saved is of another run: lr = 0.001, not 0.5");
}

#[test]
fn a_diverged_run_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let out = train(folder.path(), &["--steps", "30", "--lr", "1e9", "--device", "3"]);
    assert_eq!(out.status.code(), Some(3));
    assert!(text(&out.stdout).contains("\n# DIVERGED: step="));
    assert!(!text(&out.stdout).contains("# FINAL"));
}

#[test]
fn of_a_flag_given_twice_the_last_holds() {
    let folder = tempfile::tempdir().unwrap();
    let out = train(folder.path(), &["--steps", "30", "--steps", "1"]);
    assert!(text(&out.stdout).contains(" steps=1 "), "{}", text(&out.stderr));
}

#[test]
fn samples_are_the_seeds_own() {
    let folder = tempfile::tempdir().unwrap();
    assert!(train(folder.path(), &["--steps", "3", "--save", "saved"]).status.success());
    let sample = |args: &[&str]| {
        let out = diesweep(folder.path(), "sample").arg("saved").args(args).output().unwrap();
        assert!(out.status.success(), "{}", text(&out.stderr));
        out.stdout
    };
    let first = sample(&["--prompt", "<page>", "--bytes", "40"]);
    assert!(first.starts_with(b"<page>") && first.len() == 46);
    assert_eq!(sample(&["--prompt", "<page>", "--bytes", "40"]), first);
    assert_ne!(sample(&["--prompt", "<page>", "--bytes", "40", "--seed", "2"]), first);
    let coldest = sample(&["--prompt", "a", "--bytes", "20", "--temperature", "0"]);
    assert_eq!(sample(&["--prompt", "a", "--bytes", "20", "--top-k", "1", "--seed", "9"]), coldest);
    // Longer than the window that it was trained on.
    assert_eq!(sample(&["--bytes", "50"]).len(), 51);
}

/// The log is seen while the run goes on.
#[test]
fn rows_reach_the_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = diesweep(folder.path(), "train")
        .args(SMALL)
        .args(["--steps", "1000000", "--log", "log"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    lines.find(|line| line.as_ref().unwrap().starts_with("10,")).unwrap().unwrap();
    lines.find(|line| line.as_ref().unwrap().starts_with("20,")).unwrap().unwrap();
    // What stood on standard output before the second row stands in the file too.
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(log.lines().any(|line| line.starts_with("10,")), "{log}");
}

#[test]
fn a_profile_goes_to_standard_error_and_changes_no_number() {
    let folder = tempfile::tempdir().unwrap();
    let plain = train(folder.path(), &["--steps", "30"]);
    let args = ["--steps", "30", "--profile", "20", "--profile-json", "p.json", "--save", "s.safetensors"];
    let profiled = train(folder.path(), &args);
    assert!(plain.status.success() && profiled.status.success(), "{profiled:?}");
    assert_eq!(numbers(text(&profiled.stdout)), numbers(text(&plain.stdout)));
    let table = text(&profiled.stderr);
    for phase in ["# PROFILE of 20 steps", "forward rwkv0", "backward attn0", "optimizer", "checkpoint", "GFLOP/s"] {
        assert!(table.contains(phase), "{phase}: {table}");
    }
    let json: serde_json::Value = serde_json::from_slice(&fs::read(folder.path().join("p.json")).unwrap()).unwrap();
    let shares: f64 = json["phases"].as_array().unwrap().iter().map(|phase| phase["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-6 && json["steps"] == 20, "{json}");
}

/// On a GPU the log is the CPU's, but for the lines that name it. Without one the call says why it cannot be had.
#[test]
fn a_run_on_cuda_has_the_cpus_log_or_a_clear_refusal() {
    let folder = tempfile::tempdir().unwrap();
    for opt in ["adamw", "sr4"] {
        let args = ["--steps", "25", "--opt", opt, "--grad-clip", "0.5", "--accum-steps", "2", "--warmup-steps", "10"];
        let on = |backend: &[&str]| train(folder.path(), &[&args[..], backend].concat());
        let cuda = on(&["--backend", "cuda", "--save", "c.safetensors"]);
        if cuda.status.code() == Some(1) && std::env::var_os("DIESWEEP_NEED_GPU").is_none() {
            eprintln!("SKIPPED, no CUDA die: {}", text(&cuda.stderr));
            assert!(text(&cuda.stderr).starts_with("error: "), "{cuda:?}");
            return;
        }
        assert!(cuda.status.success(), "{cuda:?}");
        assert_eq!(numbers(text(&cuda.stdout)), numbers(text(&on(&[]).stdout)), "{opt}");
        assert!(text(&cuda.stdout).contains("(GPU driver)") && text(&cuda.stdout).contains("[GPU]"));
        let again = on(&["--backend", "cuda", "--resume", "c.safetensors"]);
        assert!(text(&again.stdout).contains("# FINAL:"), "{again:?}");
    }
    let refused = train(folder.path(), &["--backend", "cuda", "--recompute", "1"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
