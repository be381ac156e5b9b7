//! Signals as inputs.

use crossbeam_channel::Sender;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::{Handle, Signals};

use super::effects::Input;

/// Sends inputs for signals as long as it lives.
pub(super) struct Watch {
    handle: Handle,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// The signals that ask for a stop. One that was ignored when this process started stays ignored: that is how `nohup`
/// works, and how a shell without job control keeps Ctrl-C from what it put in the background.
pub fn stop_signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let taken = [SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2];
    taken.into_iter().filter(|&signal| !ignored(&status, signal)).collect()
}

/// The signals that stop a sweep, from the moment on at which it has something to give back. Those that come before it trains
/// wait for it, and stop it then.
pub struct StopSignals(Signals);

impl StopSignals {
    /// Takes them from the system, which would end the process.
    ///
    /// # Errors
    /// The system refuses.
    pub fn take() -> std::io::Result<Self> {
        Ok(Self(Signals::new(stop_signals())?))
    }
}

/// Passes the signals that stop a sweep on.
pub(super) fn watch(StopSignals(mut signals): StopSignals, inputs: Sender<Input>) -> std::io::Result<Watch> {
    let handle = signals.handle();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if inputs.send(Input::Signal(signal)).is_err() {
                return;
            }
        }
    })?;
    Ok(Watch { handle })
}

/// Whether `/proc/<pid>/status` says that the signal is ignored.
fn ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inherited_ignore_is_seen() {
        let status = "Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\n";
        assert!(ignored(status, SIGHUP));
        assert!(!ignored(status, SIGINT));
        assert!(!ignored("", SIGHUP));
    }
}
