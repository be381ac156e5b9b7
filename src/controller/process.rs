//! A worker's process and the threads that wait for it.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::{Receiver, Sender};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::dies::DieSpec;
use super::effects::{Input, WorkerId};
use super::memory::OomKills;
use crate::event::{Cause, Failure, signal_name};
use crate::protocol::{FromWorker, Lines, ToWorker, WireError, encode};

/// How a worker's process is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Program.
    pub program: PathBuf,
    /// Arguments that all workers get.
    pub args: Vec<OsString>,
    /// Environment beside the inherited one.
    pub env: Vec<(OsString, OsString)>,
}

impl Launch {
    /// This very program, even if its file has been replaced since it started: a worker of another build could
    /// compute other numbers.
    pub fn this_program(args: Vec<OsString>) -> Self {
        Self { program: PathBuf::from("/proc/self/exe"), args, env: Vec::new() }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with a status.
    Status(i32),
    /// By a signal.
    Signal(i32),
    /// The kernel does not tell.
    Unknown,
}

impl Exit {
    /// Whether it ended by itself with status 0.
    pub const fn clean(self) -> bool {
        matches!(self, Self::Status(0))
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "its process ended with status {status}"),
            Self::Signal(9) => {
                f.write_str("its process was killed by SIGKILL, which the kernel also sends when memory runs out")
            }
            Self::Signal(signal) => write!(f, "its process was killed by {}", signal_name(*signal)),
            Self::Unknown => f.write_str("its process ended in an unknown way"),
        }
    }
}

/// A worker's process. It is reaped by [`Process::reap`] alone, so that its pid is its own until then and no signal
/// can reach a stranger.
pub(super) struct Process {
    child: Child,
    reaped: bool,
    pid: Option<Pid>,
    outbox: Sender<Vec<u8>>,
    tail: Arc<Mutex<Tail>>,
    /// As they were when it was started.
    kills: OomKills,
}

/// The end of what a worker printed outside of attempts.
#[derive(Default)]
struct Tail(Vec<u8>);

/// Bytes that are kept of what a worker printed.
const TAIL: usize = 32 << 10;

impl Process {
    /// Starts a worker. Must be called from a thread that lives as long as the controller: the kernel ties the
    /// worker's life to the thread.
    pub(super) fn start(
        launch: &Launch,
        die: usize,
        spec: &DieSpec,
        id: WorkerId,
        inputs: &Sender<Input>,
    ) -> Result<Self, Failure> {
        let cores: Vec<_> = spec.cores.iter().map(usize::to_string).collect();
        let pin = if cores.is_empty() { None } else { Some(format!("--cores={}", cores.join(","))) };
        let kills = OomKills::now();
        let mut child = Command::new(&launch.program)
            .arg0("diesweep")
            .arg("worker")
            .args(["--die", &die.to_string(), "--parent", &std::process::id().to_string()])
            .args(pin)
            .args(&launch.args)
            .envs(pinned(spec))
            .envs(launch.env.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| Failure::new(Cause::Start, format!("the worker cannot be started: {error}")))?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let (outbox, lines) = crossbeam_channel::unbounded();
        let tail = Arc::default();
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut process = Self { child, reaped: false, pid, outbox, tail, kills };
        if let Err(error) = process.attend(pipes, lines, id, inputs) {
            process.kill();
            process.reap();
            return Err(Failure::new(Cause::Start, format!("a thread cannot be started: {error}")));
        }
        Ok(process)
    }

    /// Starts the threads that wait for the process and its pipes.
    fn attend(
        &self,
        pipes: (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>),
        lines: Receiver<Vec<u8>>,
        id: WorkerId,
        inputs: &Sender<Input>,
    ) -> io::Result<()> {
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("a pipe is missing"));
        };
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(format!("{name} {}", id.0)).spawn(body).map(drop)
        };
        spawn("to worker", Box::new(move || write(stdin, &lines)))?;
        let sender = inputs.clone();
        spawn("from worker", Box::new(move || read(stdout, id, &sender)))?;
        let tail = Arc::clone(&self.tail);
        spawn("errors of worker", Box::new(move || keep_tail(stderr, &tail)))?;
        let (sender, pid) = (inputs.clone(), self.pid);
        spawn("end of worker", Box::new(move || wait(pid, id, &sender)))
    }

    /// Sends a message; a worker that does not read holds nobody up.
    pub(super) fn send(&self, message: &ToWorker) -> Result<(), WireError> {
        let line = encode(message)?;
        // A writer that is gone has met a closed pipe: the worker's end is on its way.
        let _ = self.outbox.send(line);
        Ok(())
    }

    /// Its process id.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process and what it started.
    pub(super) fn kill(&mut self) {
        if self.reaped {
            return;
        }
        if let Some(pid) = self.pid {
            // Not reaped yet, so the group is still the worker's. A worker that has not entered its group yet, or
            // is gone, is met by the second call.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.kill();
    }

    /// Gives the process id back to the system.
    pub(super) fn reap(&mut self) {
        let _ = self.child.wait();
        self.reaped = true;
    }

    /// Whether the kernel killed processes for want of memory since this one was started.
    pub(super) fn memory_ran_out(&self) -> bool {
        OomKills::now().grew_since(&self.kills)
    }

    /// The last that the worker printed: in the attempt's folder, else outside of attempts.
    pub(super) fn last_words(&self, folder: Option<&Path>) -> Option<String> {
        let in_attempt = folder.and_then(|folder| end_of_file(&folder.join("worker.log")).ok());
        let outside = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        in_attempt.as_deref().and_then(last_lines).or_else(|| last_lines(&outside.0))
    }
}

/// The environment in which a worker sees its GPU, and no other, as the first of its list.
fn pinned(spec: &DieSpec) -> impl Iterator<Item = (&'static str, &str)> {
    let gpu = spec.gpu.iter();
    gpu.flat_map(|gpu| [("CUDA_VISIBLE_DEVICES", gpu.visible.as_str()), ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")])
}

/// Writes lines to a worker until it closes its input or is forgotten.
fn write(mut stdin: ChildStdin, lines: &Receiver<Vec<u8>>) {
    for line in lines {
        if stdin.write_all(&line).is_err() {
            return;
        }
    }
}

/// Reads messages to the end of output; after a line that is none, only drains.
fn read(stdout: ChildStdout, id: WorkerId, inputs: &Sender<Input>) {
    let mut lines = Lines::new(BufReader::new(stdout));
    loop {
        match lines.read::<FromWorker>() {
            Ok(Some(message)) => {
                if inputs.send(Input::Message(id, Box::new(message))).is_err() {
                    return;
                }
            }
            Ok(None) => break,
            Err(error) => {
                let source = std::error::Error::source(&error).map_or_else(String::new, |source| format!(": {source}"));
                let _ = inputs.send(Input::Broken(id, format!("{error}{source}")));
                let _ = io::copy(&mut lines.into_inner(), &mut io::sink());
                break;
            }
        }
    }
    let _ = inputs.send(Input::Closed(id));
}

/// Drains standard error and keeps its end.
fn keep_tail(mut stderr: ChildStderr, tail: &Mutex<Tail>) {
    let mut chunk = [0; TAIL];
    while let Ok(read @ 1..) = stderr.read(&mut chunk) {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.0.extend_from_slice(&chunk[..read]);
        let excess = tail.0.len().saturating_sub(TAIL);
        tail.0.drain(..excess);
    }
}

/// Waits for the end of the process and leaves it unreaped.
fn wait(pid: Option<Pid>, id: WorkerId, inputs: &Sender<Input>) {
    let exit = loop {
        let Some(pid) = pid else { break Exit::Unknown };
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => {
                break match (status.exit_status(), status.terminating_signal()) {
                    (Some(status), _) => Exit::Status(status),
                    (None, Some(signal)) => Exit::Signal(signal),
                    (None, None) => Exit::Unknown,
                };
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break Exit::Unknown,
        }
    };
    let _ = inputs.send(Input::Exited(id, exit));
}

fn end_of_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL as u64)))?;
    let mut bytes = Vec::new();
    file.take(TAIL as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The last lines that say something, as one.
fn last_lines(bytes: &[u8]) -> Option<String> {
    const LINES: usize = 3;
    const CHARS: usize = 400;
    let text = String::from_utf8_lossy(bytes);
    let telling = |line: &&str| !line.trim().is_empty() && !of_backtrace(line);
    let mut lines: Vec<&str> = text.lines().rev().filter(telling).take(LINES).map(str::trim).collect();
    lines.reverse();
    let shown: String = lines.join(" | ").chars().filter(|c| !c.is_control()).take(CHARS).collect();
    (!shown.is_empty()).then_some(shown)
}

/// Whether a line belongs to a backtrace: what went wrong is said above it.
fn of_backtrace(line: &str) -> bool {
    let text = line.trim_start();
    let numbered = text.split_once(": ").is_some_and(|(n, _)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let indented = text.len() < line.len();
    (indented && (numbered || text.starts_with("at ")))
        || text == "stack backtrace:"
        || (text.starts_with("note: ") && text.contains("RUST_BACKTRACE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_stand_above_a_backtrace() {
        let text = b"memory allocation of 34359738368 bytes failed\nstack backtrace:\n   0: rust_oom\n             at \
            /rustc/alloc.rs:420:5\n  39: call_once<fn() -> std::process::ExitCode, ()>\nnote: Some details are \
            omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.\n";
        assert_eq!(last_lines(text).as_deref(), Some("memory allocation of 34359738368 bytes failed"));
        let text = b"12: not a frame\nat the end\n";
        assert_eq!(last_lines(text).as_deref(), Some("12: not a frame | at the end"));
    }

    #[test]
    fn last_words_are_the_last_telling_lines() {
        assert_eq!(last_lines(b""), None);
        assert_eq!(last_lines(b"\n \n"), None);
        let text = b"one\ntwo\n\nthree\nfour\x1b[0m\nnote: run with `RUST_BACKTRACE=1` environment variable\n";
        assert_eq!(last_lines(text).as_deref(), Some("two | three | four[0m"));
    }

    #[test]
    fn an_exit_is_said_in_words() {
        assert_eq!(Exit::Status(3).to_string(), "its process ended with status 3");
        assert_eq!(Exit::Signal(6).to_string(), "its process was killed by SIGABRT");
        assert!(Exit::Signal(9).to_string().contains("memory"));
    }
}
