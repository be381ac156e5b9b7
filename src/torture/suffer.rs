//! One schedule from its first call to its verdict.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use crossbeam_channel::unbounded;

use super::call::{self, Place};
use super::check::{History, digests};
use super::damage::inflict;
use super::listen::Listener;
use super::schedule::{Fault, Schedule};
use super::sweep::Sweep;
use super::{Torture, TortureError};

/// A schedule that was gone through.
#[derive(Debug)]
pub struct Suffered {
    /// It.
    pub schedule: Schedule,
    /// Faults that struck, of all calls.
    pub struck: Vec<Fault>,
    /// Calls that were made.
    pub calls: usize,
    /// What went wrong: nothing, if all is well.
    pub wrong: Vec<String>,
    /// Its files; still there if something went wrong.
    pub folder: PathBuf,
}

/// Goes through a schedule.
pub(super) fn suffer(
    sweep: &Sweep,
    undisturbed: &Path,
    torture: &Torture,
    schedule: Schedule,
) -> Result<Suffered, TortureError> {
    let folder = torture.folder.join(format!("schedule-{}", schedule.number));
    fs::create_dir(&folder).map_err(|error| TortureError::io("create", &folder, error))?;
    let results = Sweep::folder_in(&folder);
    let mut suffered = Suffered { schedule, struck: Vec::new(), calls: 0, wrong: Vec::new(), folder };
    let mut history = History::new(&results);
    // Two more that nothing disturbs: one ends the sweep, one finds nothing to do.
    let calls = suffered.schedule.calls.clone();
    for call in &calls {
        suffered.call(sweep, &call.faults, &mut history)?;
        for damage in &call.damage {
            inflict(&results, *damage).map_err(|error| TortureError::io("damage", &results, error))?;
        }
    }
    suffered.call(sweep, &[], &mut history)?;
    suffered.wrong.extend(history.close(undisturbed));
    let before = digests(&results);
    suffered.call(sweep, &[], &mut history)?;
    let after = digests(&results);
    for path in before.keys().chain(after.keys().filter(|path| !before.contains_key(*path))) {
        if before.get(path) != after.get(path) {
            suffered.wrong.push(format!("a call with nothing to do changed {}", path.display()));
        }
    }
    if suffered.wrong.is_empty() && !torture.keep {
        let removed = fs::remove_dir_all(&suffered.folder);
        removed.map_err(|error| TortureError::io("remove", &suffered.folder, error))?;
    }
    Ok(suffered)
}

impl Suffered {
    /// Calls; without faults, the call must end with status 0.
    fn call(&mut self, sweep: &Sweep, faults: &[Fault], history: &mut History) -> Result<(), TortureError> {
        let must_end = faults.is_empty();
        self.calls += 1;
        let number = self.calls;
        let (sender, receiver) = unbounded();
        // One for each call: what a late process asks is none of the next call's business.
        let socket = self.folder.join(format!("{number}.sock"));
        let listener =
            Listener::start(&socket, sender.clone()).map_err(|error| TortureError::io("listen at", &socket, error))?;
        let place = Place {
            sweep,
            results: &self.folder,
            socket: &listener.path,
            news: (&sender, &receiver),
            log: self.folder.join(format!("call-{number}")),
        };
        let outcome = call::run(&place, faults)?;
        let mut wrong = history.take(&outcome);
        if must_end && !outcome.exits.iter().all(ExitStatus::success) {
            wrong.push(format!("nothing disturbed it, and it ended with {:?}", outcome.exits));
        }
        self.wrong.extend(wrong.into_iter().map(|what| format!("call {number}: {what}")));
        self.struck.extend(outcome.struck);
        Ok(())
    }
}
