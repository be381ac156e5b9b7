//! A small sweep in a folder of its own, run by the real binary.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};

/// A sweep of two arms with three seeds each, and a corpus for it.
pub struct Sweep {
    folder: tempfile::TempDir,
}

/// Longest time that a test may take.
const PATIENCE: Duration = Duration::from_secs(120);

impl Sweep {
    /// Runs of `steps` steps.
    pub fn new(steps: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let corpus: String = (0..4000).map(|i| format!("{} ", i * i % 97)).collect();
        std::fs::write(folder.path().join("corpus.txt"), corpus).unwrap();
        let sweep = Self { folder };
        sweep.write(steps, "");
        sweep
    }

    /// Writes the sweep file; `more` goes into `[base]`.
    pub fn write(&self, steps: u64, more: &str) {
        let text = format!(
            r#"
name = "t"
seeds = {{ first = 1, count = 3 }}
[base]
data = "corpus.txt"
steps = {steps}
C = 16
n_head = 2
head_size = 8
n_rwkv = 1
n_attn = 1
ffn = 32
lora = 4
seq_len = 16
eval_every = 2
eval_batches = 1
test_batches = 2
{more}
[[arm]]
name = "adamw"
opt = "adamw"
[[arm]]
name = "sr4"
opt = "sr4"
[compare]
baseline = "adamw"
metric = "val_bpb"
"#
        );
        std::fs::write(self.folder.path().join("sweep.toml"), text).unwrap();
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn results(&self) -> PathBuf {
        self.path().join("results/t")
    }

    /// Writes a script for scripted trainers, and gives the arguments that have it followed.
    pub fn script(&self, step_ms: u64, rules: &Value) -> Vec<String> {
        let path = self.path().join("script.json");
        std::fs::write(&path, json!({ "step_ms": step_ms, "rules": rules }).to_string()).unwrap();
        vec!["--script".into(), path.to_str().unwrap().into()]
    }

    /// Writes a script whose workers offer `lanes` lanes, of which `memory` fit.
    pub fn script_of_lanes(&self, lanes: u32, memory: u32, step_ms: u64, rules: &Value) -> Vec<String> {
        let args = self.script(step_ms, rules);
        let script = json!({ "step_ms": step_ms, "lanes": lanes, "memory": memory, "rules": rules });
        std::fs::write(&args[1], script.to_string()).unwrap();
        args
    }

    /// The command, with two dies.
    pub fn command<S: AsRef<str>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_diesweep"));
        command.args(["run", "sweep.toml", "--dies", "2"]).args(args.iter().map(AsRef::as_ref));
        command.current_dir(self.path()).stdin(Stdio::null()).env_remove("DIESWEEP_SIMD");
        command
    }

    /// Runs to the end.
    pub fn run<S: AsRef<str>>(&self, args: &[S]) -> Ended {
        Ended(self.command(args).output().unwrap())
    }

    /// Starts, with events on standard output.
    pub fn start<S: AsRef<str>>(&self, args: &[S]) -> Running {
        let mut command = self.command(args);
        command.arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::spawn(&mut command)
    }

    /// Asserts that the tables equal those of another folder but for volatile columns.
    pub fn assert_same_tables(&self, other: &Self) {
        let differences = diesweep::report::compare_paths(&self.results(), &other.results()).unwrap();
        assert_eq!(differences.total, 0, "{differences:?}");
        assert!(differences.files > 0);
    }

    /// Writes a script of its own, so that one controller's workers train at another pace than another's.
    pub fn paced(&self, step_ms: u64) -> Vec<String> {
        let path = self.path().join(format!("script-{step_ms}.json"));
        std::fs::write(&path, json!({ "step_ms": step_ms, "rules": [] }).to_string()).unwrap();
        vec!["--script".into(), path.to_str().unwrap().into()]
    }

    /// Folders of runs.
    pub fn runs(&self) -> Vec<PathBuf> {
        let mut runs: Vec<_> =
            std::fs::read_dir(self.results().join("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
        runs.sort();
        runs
    }

    /// The events of this kind, of all controllers.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        let files = std::fs::read_dir(self.results().join("events")).unwrap();
        let text: String = files.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter(|event| event["event"] == kind).collect()
    }

    /// Asserts that each of so many runs was finished once, and by one controller.
    pub fn assert_each_once(&self, runs: usize) {
        let finished = self.events("run_finished");
        let ids: std::collections::BTreeSet<_> = finished.iter().map(|event| event["at"]["run"].to_string()).collect();
        assert_eq!((finished.len(), ids.len()), (runs, runs), "{finished:?}");
    }

    /// Folders of attempts, of all runs.
    pub fn attempts(&self) -> Vec<PathBuf> {
        let list =
            |path: &Path| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
        let is_attempt = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("attempt-");
        let mut attempts: Vec<_> =
            list(&self.results().join("runs")).iter().flat_map(|run| list(run)).filter(is_attempt).collect();
        attempts.sort();
        attempts
    }
}

/// An undisturbed sweep, scripted.
pub fn undisturbed(steps: u64) -> Sweep {
    let sweep = Sweep::new(steps);
    let args = sweep.script(0, &json!([]));
    sweep.run(&args).assert_code(0);
    sweep
}

/// Runs a sweep in which `rules` hold, which must end complete and with the tables of an undisturbed one.
pub fn disturbed(rules: &Value, says: &str) -> Sweep {
    watchdog();
    let sweep = Sweep::new(10);
    let args = sweep.script(0, rules);
    sweep.run(&args).assert_code(0).assert_says(says);
    sweep.assert_same_tables(&undisturbed(10));
    sweep
}

pub fn rule(deed: &Value) -> Value {
    json!([{ "folder": "sr4_s2", "attempt": 1, "step": 3, "deed": deed }])
}

/// A command that ended.
pub struct Ended(pub Output);

impl Ended {
    pub fn code(&self) -> Option<i32> {
        self.0.status.code()
    }
    pub fn stdout(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }
    pub fn stderr(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }
    pub fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.code(), Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout(), self.stderr());
        self
    }
    pub fn assert_says(&self, text: &str) -> &Self {
        assert!(self.stderr().contains(text), "`{text}` is not in:\n{}", self.stderr());
        self
    }
}

/// A command at work.
pub struct Running {
    pub child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    /// Processes of the workers that were seen, held by descriptors: a number could be another's by now.
    pub workers: Vec<(u32, OwnedFd)>,
}

impl Running {
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, workers: Vec::new() }
    }

    /// Reads events until one is met for which `wanted` holds.
    pub fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        for line in &mut self.lines {
            let event: Value = serde_json::from_str(&line.unwrap()).expect("a line of JSON");
            if event["event"] == "worker_ready" {
                let pid = u32::try_from(event["pid"].as_u64().unwrap()).unwrap();
                // A worker that has ended already has no process to hold.
                if let Ok(fd) = pidfd_open(to_pid(pid), PidfdFlags::empty()) {
                    self.workers.push((pid, fd));
                }
            }
            if wanted(&event) {
                return event;
            }
        }
        panic!("the events ended before that");
    }

    /// Reads events until both workers have logged a step.
    pub fn until_both_train(&mut self) {
        let mut seen = [false; 2];
        while seen != [true; 2] {
            let event = self.until(|event| event["event"] == "logged");
            seen[usize::try_from(event["at"]["die"].as_u64().unwrap()).unwrap()] = true;
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(to_pid(self.child.id()), signal).unwrap();
    }

    pub fn signal_worker(&self, number: usize, signal: Signal) {
        pidfd_send_signal(&self.workers[number].1, signal).unwrap();
    }

    /// Waits for the end; the rest of standard output is read meanwhile.
    pub fn end(mut self) -> (Ended, Vec<(u32, OwnedFd)>) {
        let rest: Vec<String> = self.lines.by_ref().map(Result::unwrap).collect();
        let mut output = self.child.wait_with_output().unwrap();
        output.stdout = rest.join("\n").into_bytes();
        (Ended(output), self.workers)
    }
}

fn to_pid(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

/// Asserts that processes end within a time.
pub fn assert_gone(workers: &[(u32, OwnedFd)], within: Duration) {
    assert!(!workers.is_empty(), "no worker was seen");
    let deadline = std::time::Instant::now() + within;
    for (pid, fd) in workers {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        let left = Timespec::try_from(left).unwrap();
        let mut fds = [PollFd::new(fd, PollFlags::IN)];
        assert_eq!(poll(&mut fds, Some(&left)).unwrap(), 1, "process {pid} is still there");
    }
}

thread_local! {
    /// Held by a test's thread as long as it lives.
    static WATCHED: std::cell::RefCell<Option<std::sync::mpsc::Sender<()>>> = const { std::cell::RefCell::new(None) };
}

/// Ends the process of all tests when this one, whose thread it is, waits for what never comes.
pub fn watchdog() {
    WATCHED.with_borrow_mut(|watched| {
        if watched.is_some() {
            return;
        }
        let (alive, ended) = std::sync::mpsc::channel();
        *watched = Some(alive);
        let name = std::thread::current().name().unwrap_or("a test").to_owned();
        std::thread::spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                eprintln!("{name} takes longer than {PATIENCE:?}");
                std::process::exit(1);
            }
        });
    });
}
