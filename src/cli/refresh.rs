//! The report made anew while a sweep is at work.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use super::ledger::FolderLedger;
use crate::event::rfc3339;
use crate::plan::Plan;
use crate::report::{Running, analyse, write_report};
use crate::store::StoreError;

/// The least time between two reports.
pub(super) const LEAST: Duration = Duration::from_millis(100);

/// A thread that makes the report anew every so often.
///
/// It reads published files alone, and works at the lowest priority and on one core, so that it holds back neither the
/// controller nor its workers. A report that takes longer than the time between two lets the next ones fall out.
pub(super) struct Refresher {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Refresher {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(plan: Arc<Plan>, ledger: Arc<FolderLedger>, every: Duration) -> io::Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .thread_name(|_| "report-reader".to_owned())
            .start_handler(|_| give_way())
            .build()
            .map_err(io::Error::other)?;
        let (stop, stopped) = crossbeam_channel::bounded(0);
        let thread = thread::Builder::new().name("report".to_owned()).spawn(move || {
            give_way();
            let mut told = false;
            on_time(&stopped, every, || {
                let made = pool.install(|| refresh(&plan, &ledger, every));
                if let Err(error) = made
                    && !std::mem::replace(&mut told, true)
                {
                    // Results do not depend on it: a sweep goes on without.
                    say!("warning: the report cannot be made anew: {}", error.full_text());
                }
            });
        })?;
        Ok(Self { stop, thread })
    }

    /// Ends the thread, after the report in hand if there is one.
    pub(super) fn finish(self) {
        drop(self.stop);
        // It does not panic; if it did, the panic is on the screen and the sweep none the worse.
        let _ = self.thread.join();
    }
}

/// The lowest priority for the calling thread. Where that is refused, it works at the usual one.
fn give_way() {
    let _ = rustix::process::setpriority_process(None, 19);
}

/// Acts every so often until it is stopped; turns that come due while it acts fall out.
fn on_time(stopped: &Receiver<()>, every: Duration, mut act: impl FnMut()) {
    let mut next = Instant::now() + every;
    while stopped.recv_deadline(next) == Err(RecvTimeoutError::Timeout) {
        act();
        let now = Instant::now();
        while next <= now {
            next += every;
        }
    }
}

fn refresh(plan: &Plan, ledger: &FolderLedger, every: Duration) -> Result<(), StoreError> {
    let as_of = rfc3339(crate::clock::now());
    let loaded = ledger.results.load(plan)?;
    let analysis = analyse(plan, &loaded);
    let running = Running { as_of, every: words(every) };
    write_report(&ledger.results, plan, &loaded, &analysis, Some(running))
}

/// `30 s`, `5 min`, `1.5 h`.
fn words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s < 120.0 => format!("{s} s"),
        s if s < 7200.0 => format!("{} min", s / 60.0),
        s => format!("{} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_suits_them() {
        let texts = [0.1, 30.0, 90.0, 300.0, 5400.0, 7200.0].map(|s| words(Duration::from_secs_f64(s)));
        assert_eq!(texts, ["0.1 s", "30 s", "90 s", "5 min", "90 min", "2 h"]);
    }

    #[test]
    fn turns_that_come_due_meanwhile_fall_out() {
        let (stop, stopped) = crossbeam_channel::bounded(0);
        let every = Duration::from_millis(20);
        let mut stop = Some(stop);
        let mut begun = Vec::new();
        let start = Instant::now();
        on_time(&stopped, every, || {
            begun.push(start.elapsed());
            if begun.len() == 1 {
                // As long as several turns.
                let busy = Instant::now();
                while busy.elapsed() < 5 * every {
                    thread::yield_now();
                }
            } else {
                drop(stop.take());
            }
        });
        assert_eq!(begun.len(), 2, "{begun:?}");
        assert!(begun[0] >= every && begun[1] >= begun[0] + 5 * every, "{begun:?}");
    }
}
