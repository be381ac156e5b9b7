//! A results folder as a reader sees it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::durable;
use super::error::{Context, StoreError};
use super::layout::{Layout, RunPaths, id_of_folder};
use crate::plan::{Plan, PlannedRun};
use crate::run::RunId;

/// A results folder, read while anybody may work on it: what is published does not change.
#[derive(Debug)]
pub struct View {
    layout: Layout,
    /// The folders of runs that were there at the start, by id; the first name of each.
    folders: BTreeMap<RunId, String>,
}

impl View {
    /// Opens the results folder `dir` for reading, and reads its plan.
    ///
    /// # Errors
    /// There is no such folder, it has no plan of this program, or the system refuses.
    pub fn open(dir: &Path) -> Result<(Self, Plan), StoreError> {
        if !dir.is_dir() {
            return Err(StoreError::NotAFolder(dir.to_owned()));
        }
        let layout = Layout::new(dir.canonicalize().context("find", dir)?);
        let plan = read_plan(&layout)?;
        Ok((Self::of(layout)?, plan))
    }

    /// The plan that the folder has now.
    ///
    /// # Errors
    /// It has none of this program, or the system refuses.
    pub fn plan(&self) -> Result<Plan, StoreError> {
        read_plan(&self.layout)
    }

    /// The view of a folder that has been found to be a results folder.
    pub(super) fn of(layout: Layout) -> Result<Self, StoreError> {
        let folders = scan_runs(&layout)?;
        Ok(Self { layout, folders })
    }

    /// The folder's paths.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The folder of a planned run, which may not be there yet: the one that has its id, whatever its name.
    pub fn run_paths(&self, run: &PlannedRun) -> RunPaths {
        self.layout.run(self.folders.get(&run.id).unwrap_or(&run.folder))
    }

    /// Whether a run had a folder when this folder was opened.
    pub fn is_begun(&self, run: &PlannedRun) -> bool {
        self.folders.contains_key(&run.id)
    }

    /// Names of the folders of runs, by id, that were there when the folder was opened.
    pub(super) fn folders(&self) -> &BTreeMap<RunId, String> {
        &self.folders
    }

    /// Writes report.html in place of the one that may be there.
    ///
    /// It is whole whoever else writes one at the same time, and nothing is read from it: no lock is needed.
    pub(crate) fn write_report(&self, html: &[u8]) -> Result<(), StoreError> {
        durable::replace(&self.layout.report(), html)
    }

    /// Writes files into plots/, each in place of the one that may be there, and removes those there that `stale` names.
    pub(crate) fn write_plots(
        &self,
        files: &[(String, Vec<u8>)],
        stale: impl Fn(&str) -> bool,
    ) -> Result<(), StoreError> {
        let folder = self.layout.plots();
        fs::create_dir_all(&folder).context("create the folder", &folder)?;
        for (name, bytes) in files {
            durable::replace(&folder.join(name), bytes)?;
        }
        for entry in fs::read_dir(&folder).context("read", &folder)? {
            let entry = entry.context("read", &folder)?;
            if stale(&entry.file_name().to_string_lossy()) {
                durable::remove_if_there(&entry.path())?;
            }
        }
        Ok(())
    }
}

fn read_plan(layout: &Layout) -> Result<Plan, StoreError> {
    let path = layout.plan();
    let Some(bytes) = durable::read_if_there(&path)? else {
        return Err(StoreError::NoPlan(layout.dir().to_owned()));
    };
    serde_json::from_slice(&bytes).map_err(|error| StoreError::BadPlan { path, why: error.to_string() })
}

/// The folders of runs by id.
fn scan_runs(layout: &Layout) -> Result<BTreeMap<RunId, String>, StoreError> {
    let runs = layout.runs();
    let mut folders: BTreeMap<RunId, String> = BTreeMap::new();
    if !runs.is_dir() {
        return Ok(folders);
    }
    for entry in fs::read_dir(&runs).context("read", &runs)? {
        let entry = entry.context("read", &runs)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(id) = id_of_folder(&name) else {
            continue;
        };
        // Of two folders of one run, the one with a result counts, else the first by name.
        let rank = |name: &str| (!layout.run(name).result().exists(), name.to_owned());
        match folders.get(&id) {
            Some(other) if rank(other) <= rank(&name) => {}
            _ => drop(folders.insert(id, name)),
        }
    }
    Ok(folders)
}
