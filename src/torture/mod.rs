//! A fault harness: proves that whatever happens to a sweep, the same command ends it with the same bytes.
//!
//! It trains a small sweep undisturbed, and then many times over under schedules of faults, each in a folder of its own. A
//! [`Schedule`] is a few calls of `diesweep run` during which processes are killed, stopped and given a full disk, at points of
//! the program ([`crate::fault`]) or at events that it tells of; between the calls files are damaged. A last call, which nothing
//! disturbs, must end the sweep: all bytes as in the undisturbed one but for volatile columns, no run lost or done twice, no process
//! and no file left. docs/torture.md tells how to use it.

mod call;
mod check;
mod damage;
mod disk;
mod draw;
mod listen;
mod process;
mod schedule;
mod suffer;
mod sweep;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

pub use schedule::{Call, Damage, Deed, Fault, Schedule, Told, Trigger, Whom};
pub use suffer::Suffered;

use crate::fault::Point;
use suffer::suffer;
use sweep::{Patience, Sweep};

/// The harness itself could not work.
#[derive(Debug, thiserror::Error)]
pub enum TortureError {
    /// The system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A controller cannot be started or waited for.
    #[error("a controller cannot be started")]
    Start(#[source] io::Error),
    /// The undisturbed sweep failed.
    #[error("the undisturbed sweep failed: {0}")]
    Undisturbed(String),
}

impl TortureError {
    fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}

/// Has this program run where it may mount small disks, and gives its exit status; `None` if it is there already, or the system
/// does not permit it.
pub fn elsewhere() -> Option<i32> {
    disk::in_own_mounts()
}

/// Whether small disks can be had.
pub fn has_small_disks() -> bool {
    disk::is_permitted()
}

/// What to do.
#[derive(Clone, Debug)]
pub struct Torture {
    /// Schedules follow from it and their numbers.
    pub seed: u64,
    /// Numbers of the schedules.
    pub numbers: Vec<u32>,
    /// Schedules at a time.
    pub jobs: usize,
    /// Folder for all files, which exists.
    pub folder: PathBuf,
    /// Whether folders of schedules that went well are kept.
    pub keep: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// Schedules that were gone through.
    pub schedules: usize,
    /// Those in which something went wrong.
    pub failed: usize,
    /// How often a fault struck at each point.
    pub points: BTreeMap<Point, usize>,
    /// Faults that struck.
    pub struck: usize,
    /// Calls of `diesweep run`.
    pub calls: usize,
}

impl Torture {
    /// Goes through all schedules, and passes each to `done` when it is over.
    ///
    /// # Errors
    /// The harness could not work. What went wrong in a schedule is no error.
    pub fn run(&self, done: impl Fn(&Suffered) + Sync) -> Result<Report, TortureError> {
        let sweep = Sweep::write(&self.folder)?;
        let undisturbed = self.undisturbed(&sweep)?;
        let (next, report, error) = (AtomicU32::new(0), Mutex::new(Report::default()), Mutex::new(None));
        let work = || {
            while let Some(&number) = self.numbers.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                match suffer(&sweep, &undisturbed, self, Schedule::new(self.seed, number)) {
                    Ok(suffered) => {
                        done(&suffered);
                        lock(&report).add(&suffered);
                    }
                    Err(failed) => {
                        *lock(&error) = Some(failed);
                        next.store(u32::MAX / 2, Ordering::Relaxed);
                    }
                }
            }
        };
        std::thread::scope(|scope| (0..self.jobs).for_each(|_| drop(scope.spawn(work))));
        let (report, error) = (into(report), into(error));
        error.map_or(Ok(report), Err)
    }

    fn undisturbed(&self, sweep: &Sweep) -> Result<PathBuf, TortureError> {
        let results = self.folder.join("undisturbed");
        let output = sweep.command(&results, Patience::Usual).output().map_err(TortureError::Start)?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(TortureError::Undisturbed(format!("{}; {}", output.status, errors.trim_end())));
        }
        Ok(Sweep::folder_in(&results))
    }
}

impl Report {
    fn add(&mut self, suffered: &Suffered) {
        self.schedules += 1;
        self.failed += usize::from(!suffered.wrong.is_empty());
        self.calls += suffered.calls;
        self.struck += suffered.struck.len();
        for fault in &suffered.struck {
            if let Trigger::Passed(point, _) = fault.trigger {
                *self.points.entry(point).or_default() += 1;
            }
        }
    }

    /// Points at which nothing struck.
    pub fn spared(&self) -> Vec<Point> {
        Point::all().filter(|point| !self.points.contains_key(point)).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn into<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}
