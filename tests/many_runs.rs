//! What a folder of 10,000 finished runs costs those who ask for it.
//!
//! `cargo test --release --test many_runs -- --ignored --nocapture` prints the figures of docs/performance.md.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use diesweep::plan::{Plan, open_corpus};
use diesweep::run::{Ending, Finals, Outcome, Row, Timing};
use diesweep::store::{Attempt, Execution, LogWriter, Results};

const SWEEP: &str = r#"
name = "many"
seeds = { first = 1, count = 1000 }
[base]
data = "corpus.txt"
steps = 10
C = 16
n_head = 2
head_size = 8
n_rwkv = 1
n_attn = 1
ffn = 32
lora = 4
seq_len = 16
lr = [1e-4, 2e-4, 5e-4, 1e-3, 2e-3]
[[arm]]
name = "adamw"
opt = "adamw"
[[arm]]
name = "sr4"
opt = "sr4"
[compare]
baseline = "adamw"
metric = "val_bpb"
"#;

fn row(step: u64) -> Row {
    let timing = Timing { step_sec: 0.1, tok_per_sec: 160.0, elapsed_sec: 1.0, eta_sec: 0.0 };
    let (train_bpb, val_bpb) = (2.5, 2.5 + 1.0 / (1.0 + step as f64));
    Row { step, train_bpb, val_bpb, val_acc: 0.25, grad_norm: 1.0, grad_norms: None, lr: 1e-3, panel: None, timing }
}

fn outcome() -> Outcome {
    let finals = Finals { train_bpb: 2.5, val_bpb: 2.5, val_acc: 0.25, test_bpb: Some(2.5), test_acc: Some(0.25) };
    Outcome {
        ending: Ending::Finished(finals),
        steps: 10,
        skipped: 0,
        best_val_bpb: None,
        best_val_acc: None,
        wall_sec: 1.0,
        tok_per_sec: 160.0,
    }
}

/// Publishes one run as a sweep does, and writes the others after its model: all of them with the flushes of a
/// publication would take minutes.
fn fill(root: &Path) -> Plan {
    std::fs::write(root.join("corpus.txt"), "the quick brown fox jumps over the lazy dog. ".repeat(100)).unwrap();
    let file = root.join("sweep.toml");
    std::fs::write(&file, SWEEP).unwrap();
    std::env::set_current_dir(root).unwrap();
    let Ok(sweep) = diesweep::sweep::load(&file, &mut open_corpus) else { panic!("the sweep file is at fault") };
    let results = Results::open_or_create(&root.join("results"), &sweep.plan, &sweep.text).unwrap().results;
    let first = &sweep.plan.runs[0];
    let folder = results.run_paths(first).attempt(1);
    std::fs::create_dir_all(&folder).unwrap();
    let attempt = Attempt { number: 1, folder };
    let mut log = LogWriter::create(&attempt.log()).unwrap();
    [0, 5, 9].iter().for_each(|&step| log.row(&row(step)).unwrap());
    log.finish().unwrap();
    results.publish(first, &attempt, &outcome(), &Execution::default()).unwrap();
    let paths = results.run_paths(first);
    let log = std::fs::read(paths.log()).unwrap();
    let result = std::fs::read_to_string(paths.result()).unwrap();
    for run in &sweep.plan.runs[1..] {
        let paths = results.run_paths(run);
        std::fs::create_dir_all(paths.attempt(1)).unwrap();
        std::fs::write(paths.log(), &log).unwrap();
        std::fs::write(paths.result(), result.replace(&first.id.to_string(), &run.id.to_string())).unwrap();
    }
    sweep.plan
}

fn command(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_diesweep"));
    command.args(args).current_dir(root).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Time until the first line of output, and until the end.
fn timed(root: &Path, args: &[&str]) -> (String, Duration, Duration) {
    let began = Instant::now();
    let mut child = command(root, args).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let decided = began.elapsed();
    lines.for_each(drop);
    assert!(child.wait().unwrap().success());
    (first, decided, began.elapsed())
}

#[test]
#[ignore = "writes 20,000 files, and measures"]
fn ten_thousand_finished_runs() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let plan = fill(&root);
    assert_eq!(plan.runs.len(), 10_000);
    let mut best = [Duration::MAX; 3];
    for _ in 0..3 {
        let (line, _, status) = timed(&root, &["status", "results/many"]);
        assert!(line.starts_with("many: 10000 runs: 10000 finished; 100%"), "{line}");
        let (line, decided, all) = timed(&root, &["run", "sweep.toml", "--json"]);
        assert!(line.contains("\"finished\":10000"), "{line}");
        best = [best[0].min(status), best[1].min(decided), best[2].min(all)];
    }
    println!("status: {:.2} s", best[0].as_secs_f64());
    println!("run, until it knows that nothing is left: {:.2} s", best[1].as_secs_f64());
    println!("run, tables and report included: {:.2} s", best[2].as_secs_f64());
    assert!(best[0] < Duration::from_secs(1) && best[1] < Duration::from_secs(2));
}
