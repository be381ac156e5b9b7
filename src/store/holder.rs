//! Processes, told apart from all others, and what proves that one is dead.

use std::fmt;
use std::fs;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// A process, told apart from all others on any host and at any time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Name of its host.
    pub host: String,
    machine: String,
    boot: String,
    pid_namespace: String,
    /// Its number, within its pid namespace.
    pub pid: u32,
    /// In clock ticks since the boot.
    start: u64,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}

impl Holder {
    /// The process that asks.
    pub fn this_process() -> Self {
        let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let pid = std::process::id();
        Self {
            host: host_name(),
            machine: line("/etc/machine-id"),
            boot: line("/proc/sys/kernel/random/boot_id"),
            pid_namespace: namespace.to_string_lossy().into_owned(),
            pid,
            start: process_start(pid).unwrap_or(0),
        }
    }

    /// Whether the process is known to be gone, by what can be seen from the process `here`.
    pub fn is_provably_dead(&self, here: &Self) -> bool {
        self.is_dead_if(here, || !self.is_running())
    }

    /// The proof alone: a process that would be seen here (same boot and same pid namespace) is dead if it is `gone`; one of an
    /// earlier boot of this very machine is dead in any case; of all others nothing is known.
    fn is_dead_if(&self, here: &Self, gone: impl FnOnce() -> bool) -> bool {
        if self.boot.is_empty() || here.boot.is_empty() {
            return false;
        }
        if self.boot != here.boot {
            // Machines that were cloned share an identity; that they share a name as well is taken for the same machine.
            return !here.machine.is_empty() && self.machine == here.machine && self.host == here.host;
        }
        self.pid_namespace == here.pid_namespace && gone()
    }

    /// Whether the process could be seen from the process `here`, and is not gone.
    pub fn is_seen_from(&self, here: &Self) -> bool {
        let in_sight = !here.boot.is_empty() && self.boot == here.boot && self.pid_namespace == here.pid_namespace;
        in_sight && self.is_running()
    }

    fn is_running(&self) -> bool {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw) else {
            return false;
        };
        if rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
            return false;
        }
        // A start time that cannot be read proves nothing.
        process_start(self.pid).is_none_or(|start| start == self.start)
    }
}

/// The name of this host.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The name of this process as a controller: its host and number for eyes, and a random number that makes it its own. At
/// most 52 bytes of letters, digits, `-` and `_`.
pub fn controller_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let host: String = host_name().chars().map(plain).take(24).collect();
        format!("{host}-{}-{}", std::process::id(), nonce())
    })
}

/// Sixteen random digits, chosen once by each process: containers may share all that is in a [`Holder`].
pub(super) fn nonce() -> &'static str {
    static NONCE: OnceLock<String> = OnceLock::new();
    NONCE.get_or_init(|| {
        let mut bytes = [0_u8; 8];
        if rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).is_err() {
            // No kernel that runs this refuses; the address and the time are better than a constant.
            let nanos =
                std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos();
            bytes = nanos.to_le_bytes()[..8].try_into().unwrap_or(bytes);
        }
        format!("{:016x}", u64::from_le_bytes(bytes))
    })
}

/// When a process started, in clock ticks since the boot; 0 for one that has ended and is not yet waited for.
fn process_start(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in brackets that may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return Some(0);
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
impl Holder {
    /// A process that has ended and been waited for.
    pub(crate) fn dead() -> Self {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        Self { pid, start: 1, ..Self::this_process() }
    }

    /// A process of another host, of which nothing can be known.
    pub(crate) fn elsewhere() -> Self {
        Self { host: "other".into(), machine: "another".into(), boot: "another".into(), ..Self::this_process() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_number_that_was_given_anew_is_dead() {
        let here = Holder::this_process();
        let earlier = Holder { start: here.start - 1, ..here.clone() };
        assert!(earlier.is_provably_dead(&here));
        assert!(!here.is_provably_dead(&here));
        assert!(Holder::dead().is_provably_dead(&here));
    }

    #[test]
    fn a_process_that_ended_and_is_not_waited_for_is_dead() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let here = Holder::this_process();
        let pid = child.id();
        let holder = Holder { pid, start: process_start(pid).unwrap(), ..here.clone() };
        assert!(!holder.is_provably_dead(&here));
        drop(child.stdin.take());
        // Waits for the end and leaves the process to be waited for.
        let pid = rustix::process::Pid::from_child(&child);
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), options).unwrap();
        assert!(holder.is_provably_dead(&here));
        child.wait().unwrap();
    }

    #[test]
    fn what_cannot_be_seen_is_not_dead() {
        let here = Holder { machine: "m".into(), ..Holder::this_process() };
        let gone = |holder: &Holder| holder.is_dead_if(&here, || true);
        let elsewhere = Holder { boot: "another".into(), host: "other".into(), ..here.clone() };
        assert!(!gone(&elsewhere));
        let hidden = Holder { pid_namespace: "pid:[1]".into(), ..here.clone() };
        assert!(!gone(&hidden));
        let nameless = Holder { boot: String::new(), ..here.clone() };
        assert!(!gone(&nameless));
        let before = Holder { boot: "before".into(), ..here.clone() };
        assert!(before.is_dead_if(&here, || false), "this machine has been booted since");
        assert!(gone(&here) && !here.is_dead_if(&here, || false));
    }

    #[test]
    fn a_controllers_name_is_fit_for_a_file() {
        let name = controller_name();
        assert!(name.len() <= 52 && name.ends_with(nonce()), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)), "{name}");
        assert_eq!(name, controller_name());
    }
}
