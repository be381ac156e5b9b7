//! Whether the controller still lives, by what is heard of it.
//!
//! A controller that stands still (a stopped process, a machine that hangs) loses its runs to others after a while. Its workers leave
//! well before. Time is that of the clock that runs on while the machine sleeps: another machine's controller, which takes the run
//! over, does not sleep with this one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{Timespec, clock_gettime};

use super::heart::Heart;
use crate::protocol::ORPHANED;

/// When the controller was last heard.
#[derive(Debug)]
pub(super) struct Vigil {
    /// In nanoseconds since the boot.
    heard: AtomicU64,
    alone: AtomicBool,
    patience: Duration,
}

/// Time since the boot, sleep included.
fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Sleeps until a time since the boot. A machine that wakes up later ends it at once.
fn sleep_until(time: Duration) {
    if let Ok(time) = Timespec::try_from(time) {
        // Ended early by a signal: whoever asks looks again.
        let _ = clock_nanosleep_absolute(ClockId::Boottime, &time);
    }
}

impl Vigil {
    /// The controller is heard now, and shall not be silent for longer than `patience`.
    pub(super) fn new(patience: Duration) -> Self {
        Self { heard: AtomicU64::new(nanos(since_boot())), alone: AtomicBool::new(false), patience }
    }

    /// The controller was heard.
    pub(super) fn hear(&self) {
        self.heard.store(nanos(since_boot()), Ordering::Relaxed);
    }

    /// Whether the controller has been silent for too long: this worker saves what it has and leaves.
    pub(super) fn is_alone(&self) -> bool {
        self.alone.load(Ordering::Acquire)
    }

    /// When the patience ends, in time since the boot.
    fn deadline(&self) -> Duration {
        Duration::from_nanos(self.heard.load(Ordering::Relaxed)).saturating_add(self.patience)
    }

    /// Waits until the controller has been silent for too long.
    fn keep(&self) {
        loop {
            let deadline = self.deadline();
            sleep_until(deadline);
            if since_boot() < deadline {
                continue;
            }
            // This process may be what stood still: then what the controller said meanwhile lies in the pipe, about to be read.
            sleep_until(since_boot() + self.patience / 20);
            if self.deadline() <= since_boot() {
                self.alone.store(true, Ordering::Release);
                return;
            }
        }
    }
}

/// Starts the thread that ends the process when the controller is silent for too long. An attempt in hand has half as long again to
/// be saved.
pub(super) fn start(vigil: Arc<Vigil>, heart: Arc<Heart>) -> std::io::Result<()> {
    let keep = move || {
        vigil.keep();
        if !heart.is_idle() {
            sleep_until(since_boot() + vigil.patience / 2);
        }
        std::process::exit(ORPHANED.into());
    };
    std::thread::Builder::new().name("vigil".to_owned()).spawn(keep).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_controller_is_given_up_and_a_living_one_is_not() {
        const PATIENCE: Duration = Duration::from_millis(200);
        let vigil = Vigil::new(PATIENCE);
        let (done, ended) = std::sync::mpsc::channel();
        let began = since_boot();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                vigil.keep();
                done.send(since_boot()).unwrap();
            });
            let mut last = began;
            for _ in 0..10 {
                std::thread::sleep(PATIENCE / 4);
                // A busy machine may have slept for too long: then there is nothing to be said.
                if !vigil.is_alone() {
                    last = since_boot();
                    vigil.hear();
                }
            }
            assert!(ended.recv().unwrap() >= last + PATIENCE);
            assert!(vigil.is_alone());
        });
    }
}
