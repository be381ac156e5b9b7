//! The harness's own processes: held by descriptors, so that no signal can reach a stranger.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::fault::VARIABLE;

/// A process of a call.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) pid: u32,
    fd: OwnedFd,
}

impl Held {
    /// Holds the process of this number if it is one of those that ask at `socket`.
    pub(super) fn open(pid: u32, socket: &Path) -> Option<Self> {
        let fd = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
        // Looked at after it is held: what has these words is what the descriptor holds, or it is gone.
        is_marked(pid, socket).then_some(Self { pid, fd })
    }

    /// Sends a signal; a process that has ended needs none.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.fd, signal);
    }

    /// Waits for its end; whether it came in time.
    pub(super) fn ends_by(&self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let Ok(left) = Timespec::try_from(left) else { return false };
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&left)), Ok(1))
    }
}

/// Whether a process was started with this socket in its environment.
fn is_marked(pid: u32, socket: &Path) -> bool {
    let mark = [VARIABLE.as_bytes(), b"=", socket.as_os_str().as_encoded_bytes()].concat();
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == mark)
}

/// All living processes that ask at `socket`.
pub(super) fn all_of(socket: &Path) -> Vec<Held> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_marked(*pid, socket)).filter_map(|pid| Held::open(pid, socket)).collect()
}
