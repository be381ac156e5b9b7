//! One schedule from its first call to its verdict.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use crossbeam_channel::unbounded;

use super::call::{self, Place};
use super::check::{History, digests};
use super::damage::inflict;
use super::disk::{SmallDisk, is_permitted};
use super::listen::Listener;
use super::schedule::{Call, Fault, Schedule};
use super::sweep::{Patience, Sweep};
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
    let root = folder.join("results");
    fs::create_dir_all(&root).map_err(|error| TortureError::io("create", &root, error))?;
    let disk = if schedule.small_disk && is_permitted() {
        Some(SmallDisk::mount(&root).map_err(|error| TortureError::io("mount a small disk at", &root, error))?)
    } else {
        None
    };
    let results = Sweep::folder_in(&root);
    let calls = schedule.calls.clone();
    let mut suffered = Suffered { schedule, struck: Vec::new(), calls: 0, wrong: Vec::new(), folder };
    let stage = Stage { sweep, root: &root, disk: disk.as_ref() };
    let mut history = History::new(&results);
    for call in &calls {
        suffered.call(&stage, Some(call), &mut history)?;
        for damage in &call.damage {
            inflict(&results, *damage).map_err(|error| TortureError::io("damage", &results, error))?;
        }
    }
    // Two more that nothing disturbs: one ends the sweep, one finds nothing to do.
    suffered.call(&stage, None, &mut history)?;
    suffered.wrong.extend(history.close(undisturbed));
    let before = digests(&results);
    suffered.call(&stage, None, &mut history)?;
    let after = digests(&results);
    for path in before.keys().chain(after.keys().filter(|path| !before.contains_key(*path))) {
        if before.get(path) != after.get(path) {
            suffered.wrong.push(format!("a call with nothing to do changed {}", path.display()));
        }
    }
    let keep = torture.keep || !suffered.wrong.is_empty();
    if let Some(disk) = disk.filter(|_| keep) {
        disk.keep().map_err(|error| TortureError::io("copy", &root, error))?;
    }
    if !keep {
        let removed = fs::remove_dir_all(&suffered.folder);
        removed.map_err(|error| TortureError::io("remove", &suffered.folder, error))?;
    }
    Ok(suffered)
}

/// What the calls of a schedule have in common.
struct Stage<'a> {
    sweep: &'a Sweep,
    /// `--results`.
    root: &'a Path,
    disk: Option<&'a SmallDisk>,
}

impl Suffered {
    /// Calls; where nothing disturbs it, the call must end with status 0.
    fn call(&mut self, stage: &Stage<'_>, call: Option<&Call>, history: &mut History) -> Result<(), TortureError> {
        self.calls += 1;
        let number = self.calls;
        let (sender, receiver) = unbounded();
        // One for each call: what a late process asks is none of the next call's business.
        let socket = self.folder.join(format!("{number}.sock"));
        let listener =
            Listener::start(&socket, sender.clone()).map_err(|error| TortureError::io("listen at", &socket, error))?;
        let place = Place {
            sweep: stage.sweep,
            results: stage.root,
            socket: &listener.path,
            news: (&sender, &receiver),
            disk: stage.disk,
            patience: match call {
                None => Patience::Usual,
                Some(call) if call.hangs() => Patience::Little,
                Some(_) => Patience::Short,
            },
            log: self.folder.join(format!("call-{number}")),
        };
        let outcome = call::run(&place, call.map_or(&[], |call| &call.faults))?;
        let mut wrong = history.take(&outcome);
        if call.is_none() && !outcome.exits.iter().all(ExitStatus::success) {
            wrong.push(format!("nothing disturbed it, and it ended with {:?}", outcome.exits));
        }
        self.wrong.extend(wrong.into_iter().map(|what| format!("call {number}: {what}")));
        self.struck.extend(outcome.struck);
        Ok(())
    }
}
