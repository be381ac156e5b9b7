//! Opening a results folder for writing.

use std::fs;
use std::ops::Deref;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::changes::{self, PlanChange};
use super::checkpoints::remove_checkpoints_in;
use super::durable;
use super::error::{Context, StoreError};
use super::holder::controller_name;
use super::layout::{FIRST_NAMES, Layout, RunPaths, id_of_folder};
use super::lease::{Claims, ControllerView, LeaseTerms, remove_dead_leases};
use super::view::View;
use crate::fault::{self, Moment};
use crate::plan::{CorpusInfo, Plan};
use crate::settings::Data;

/// A sweep's results folder as a controller works on it, beside any number of others, until this is dropped.
///
/// Calls for different runs may come from several threads at once.
#[derive(Debug)]
pub struct Results {
    view: View,
    corpora: Vec<CorpusInfo>,
    keep_checkpoints: bool,
    pub(super) claims: Claims,
}

impl Drop for Results {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A controller reads the folder like anybody else.
impl Deref for Results {
    type Target = View;

    fn deref(&self) -> &View {
        &self.view
    }
}

/// A folder that was opened.
#[derive(Debug)]
pub struct Opened {
    /// The folder.
    pub results: Results,
    /// Whether it is new.
    pub created: bool,
    /// How the plan differs from the one that was there; empty for a new folder.
    pub change: PlanChange,
    /// The other controllers that work on it, as far as can be seen.
    pub others: Vec<ControllerView>,
}

impl Results {
    /// Opens `<root>/<plan's name>` for writing, or makes it, and writes sweep.toml and plan.json into it.
    ///
    /// # Errors
    /// The place is a file, another sweep's folder or no results folder, or the system refuses. Nothing has been written then.
    pub fn open_or_create(root: &Path, plan: &Plan, sweep_toml: &str) -> Result<Opened, StoreError> {
        Self::open_as(controller_name(), root, plan, sweep_toml)
    }

    /// The same as the controller of this name.
    pub(super) fn open_as(name: &str, root: &Path, plan: &Plan, sweep_toml: &str) -> Result<Opened, StoreError> {
        let layout = Layout::new(root.join(&plan.name));
        let dir = layout.dir();
        let exists = dir.symlink_metadata().is_ok();
        if exists {
            read_plan(&layout, plan)?; // refuses what is not ours before anything is written
        }
        make_folder(&layout.runs())?;
        let dir = dir.canonicalize().context("find", dir)?;
        let layout = Layout::new(dir);
        make_folder(&layout.controllers())?;
        // Before anything else is written: temporary files of controllers that do not beat are cleared away.
        let claims = Claims::begin(name.to_owned(), &layout)?;

        // Read again: another controller may have changed it, or made it.
        let old = read_plan(&layout, plan)?;
        let change = old.as_ref().map_or_else(PlanChange::default, |old| changes::compare(old, plan));
        let view = View::of(layout.clone())?;
        let others = clear_up(&view, name, plan.options.keep_checkpoints)?;
        write_if_changed(&layout.sweep_toml(), sweep_toml.as_bytes())?;
        write_if_changed(&layout.plan(), &to_json(plan, &layout.plan())?)?;
        let keep_checkpoints = plan.options.keep_checkpoints;
        let results = Self { view, corpora: plan.corpora.clone(), keep_checkpoints, claims };
        Ok(Opened { results, created: old.is_none(), change, others })
    }

    /// Sets the times of leases: before the first claim.
    pub const fn set_lease_terms(&mut self, terms: LeaseTerms) {
        self.claims.set_terms(terms);
    }

    /// Whether checkpoints outlive their run.
    pub(super) const fn keeps_checkpoints(&self) -> bool {
        self.keep_checkpoints
    }

    /// Finds out whether the folder has room for so many bytes.
    ///
    /// # Errors
    /// It has not ([`StoreError::is_disk_full`]), or the system refuses otherwise.
    pub fn room_for(&self, bytes: u64) -> Result<(), StoreError> {
        durable::room_for(self.layout().dir(), bytes)
    }

    pub(super) fn corpus_digest(&self, data: &Data) -> Option<String> {
        let corpus = self.corpora.iter().find(|c| match data {
            Data::Path(path) => c.path.as_ref() == Some(path),
            Data::Builtin => c.path.is_none(),
        });
        corpus.map(|c| c.digest.clone())
    }
}

/// Makes a folder and those that it is in.
pub(super) fn make_folder(path: &Path) -> Result<(), StoreError> {
    match fault::before(Moment::Create, path).and_then(|()| fs::create_dir_all(path)) {
        Ok(()) => Ok(()),
        Err(_) if path.exists() && !path.is_dir() => Err(StoreError::NotAFolder(path.to_owned())),
        Err(error) => Err(error).context("create the folder", path),
    }
}

/// Pretty JSON with a line end.
pub(super) fn to_json<T: Serialize>(value: &T, path: &Path) -> Result<Vec<u8>, StoreError> {
    let json = serde_json::to_vec_pretty(value).map_err(std::io::Error::from);
    let mut json = json.context("write", path)?;
    json.push(b'\n');
    Ok(json)
}

/// The plan that a folder has, `None` for a folder that was still being made. Refuses any other folder.
fn read_plan(layout: &Layout, plan: &Plan) -> Result<Option<Value>, StoreError> {
    if !layout.dir().is_dir() {
        return Err(StoreError::NotAFolder(layout.dir().to_owned()));
    }
    let path = layout.plan();
    let Some(bytes) = durable::read_if_there(&path)? else {
        // A results folder whose plan someone removed: its runs are found by their ids alone.
        if layout.sweep_toml().is_file() && layout.runs().is_dir() {
            return Ok(None);
        }
        return match foreign_entry(layout.dir())? {
            Some(entry) => Err(StoreError::Foreign { dir: layout.dir().to_owned(), entry }),
            None => Ok(None),
        };
    };
    let bad = |why: String| StoreError::BadPlan { path: path.clone(), why };
    let old: Value = serde_json::from_slice(&bytes).map_err(|e| bad(e.to_string()))?;
    let (Some(name), true) = (old["name"].as_str(), old["runs"].is_array()) else {
        return Err(bad("it has no name and runs".to_owned()));
    };
    if name != plan.name {
        return Err(StoreError::OtherSweep {
            dir: layout.dir().to_owned(),
            theirs: name.to_owned(),
            ours: plan.name.clone(),
        });
    }
    Ok(Some(old))
}

/// The first entry, by name, of a folder that this program would not have made before plan.json.
fn foreign_entry(dir: &Path) -> Result<Option<String>, StoreError> {
    let mut foreign = Vec::new();
    for entry in fs::read_dir(dir).context("read", dir)? {
        let name = entry.context("read", dir)?.file_name().to_string_lossy().into_owned();
        let ours = FIRST_NAMES.contains(&name.as_str()) || durable::is_temporary(&name);
        if !ours {
            foreign.push(name);
        }
    }
    Ok(foreign.into_iter().min())
}

/// Removes what dead controllers left: their beats, and files that they had half-written. The controllers that live beside the one
/// of this name are given back.
fn clear_up(view: &View, name: &str, keep_checkpoints: bool) -> Result<Vec<ControllerView>, StoreError> {
    let (dead, living): (Vec<_>, Vec<_>) = view.controllers()?.into_iter().partition(|controller| controller.dead);
    let lives = |nonce: &str| living.iter().any(|controller| controller.name.ends_with(nonce));
    let layout = view.layout();
    durable::remove_stale(layout.dir(), &lives)?;
    durable::remove_stale(&layout.controllers(), &lives)?;
    remove_stale_of_runs(layout, keep_checkpoints, &lives)?;
    for controller in dead {
        durable::remove_if_there(&layout.beat(&controller.name))?;
    }
    Ok(living.into_iter().filter(|controller| controller.name != name).collect())
}

/// Removes what killed processes left half-written in the runs' folders, and leases and checkpoints of runs that have a result: whoever
/// published it was killed before it could.
fn remove_stale_of_runs(
    layout: &Layout,
    keep_checkpoints: bool,
    lives: &dyn Fn(&str) -> bool,
) -> Result<(), StoreError> {
    let runs = layout.runs();
    for entry in fs::read_dir(&runs).context("read", &runs)? {
        let name = entry.context("read", &runs)?.file_name();
        if id_of_folder(&name.to_string_lossy()).is_some() {
            let run = RunPaths::new(runs.join(name));
            match durable::remove_stale(run.dir(), lives) {
                Err(error) if error.concerns_one_run() => continue, // told when the run is claimed
                done => done?,
            }
            if !run.result().exists() {
                continue;
            }
            remove_dead_leases(&run)?;
            if !keep_checkpoints {
                remove_checkpoints_in(run.dir())?;
            }
        }
    }
    Ok(())
}

fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    if durable::read_if_there(path)?.as_deref() == Some(bytes) {
        return Ok(());
    }
    durable::replace(path, bytes)
}
