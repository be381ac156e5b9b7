//! Leases and controllers as a reader sees them, from any host, whether anybody works or not.

use std::fs;
use std::io;

use super::file::{Content, highest, read_beat};
use crate::plan::PlannedRun;
use crate::store::error::{Context, StoreError};
use crate::store::holder::Holder;
use crate::store::layout::controller_of_beat;
use crate::store::view::View;

/// The highest lease of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseView {
    /// Its number.
    pub number: u64,
    /// Name of the controller that made it; empty if it cannot be read.
    pub controller: String,
    /// Its process, unless it cannot be read.
    pub holder: Option<Holder>,
    /// When it was made by its holder's clock, UTC, RFC 3339.
    pub since: String,
    /// What one look can tell.
    pub state: LeaseState,
}

/// What one look at a lease can tell. Whether a beat stands still takes two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Its controller lives, as far as can be seen.
    Held {
        /// Its controller's beat, unless that is gone.
        beat: Option<u64>,
    },
    /// Its controller is provably dead.
    Dead,
    /// It was given back.
    Released,
    /// It is no lease of this version.
    Unreadable,
}

/// A controller that has a beat: it works on the folder, or did not end in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerView {
    /// Its name, which its leases and its events file bear.
    pub name: String,
    /// Its process, unless the file is damaged.
    pub holder: Option<Holder>,
    /// When it began by its own clock, UTC, RFC 3339.
    pub since: String,
    /// Its beat; it moves every [`beat_every`](super::LeaseTerms::beat_every).
    pub beat: u64,
    /// Whether its process is provably dead.
    pub dead: bool,
}

impl View {
    /// The highest lease of a run, if it has one. A finished run has none, or one that is about to be removed.
    ///
    /// # Errors
    /// The system refuses.
    pub fn lease(&self, run: &PlannedRun) -> Result<Option<LeaseView>, StoreError> {
        let Some((number, content)) = highest(&self.run_paths(run))? else { return Ok(None) };
        let lease = match content {
            Content::Lease(lease) => lease,
            Content::Unreadable(_) => {
                let (controller, since) = (String::new(), String::new());
                let state = LeaseState::Unreadable;
                return Ok(Some(LeaseView { number, controller, holder: None, since, state }));
            }
        };
        let state = if lease.released {
            LeaseState::Released
        } else if lease.process.is_provably_dead(&Holder::this_process()) {
            LeaseState::Dead
        } else {
            let beat = read_beat(&self.layout().beat(&lease.controller))?;
            LeaseState::Held { beat: beat.map(|beat| beat.count) }
        };
        let (controller, since) = (lease.controller, lease.since);
        Ok(Some(LeaseView { number, controller, holder: Some(lease.process), since, state }))
    }

    /// The controllers that have a beat, by name.
    ///
    /// # Errors
    /// The system refuses.
    pub fn controllers(&self) -> Result<Vec<ControllerView>, StoreError> {
        let dir = self.layout().controllers();
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).context("read", &dir),
        };
        let here = Holder::this_process();
        let mut controllers = Vec::new();
        for entry in entries {
            let entry = entry.context("read", &dir)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(name) = controller_of_beat(&name) else { continue };
            if let Some(beat) = read_beat(&entry.path())? {
                let dead = beat.process.as_ref().is_some_and(|process| process.is_provably_dead(&here));
                let (holder, since, beat) = (beat.process, beat.since, beat.count);
                controllers.push(ControllerView { name: name.to_owned(), holder, since, beat, dead });
            }
        }
        controllers.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(controllers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Results;
    use crate::store::lease::file::{LeaseFile, begin_beat};
    use crate::testing::plan;

    #[test]
    fn a_reader_sees_who_holds_a_run() {
        let root = tempfile::tempdir().unwrap();
        let plan = plan(&[("adamw", &[])], &[1]);
        let run = &plan.runs[0];
        drop(Results::open_or_create(root.path(), &plan, "").unwrap());
        let (view, _) = View::open(&root.path().join("test")).unwrap();
        assert_eq!(view.lease(run).unwrap(), None);
        let paths = view.run_paths(run);
        fs::create_dir_all(paths.dir()).unwrap();
        let state = |number, lease: &LeaseFile| {
            fs::write(paths.lease(number), lease.to_json()).unwrap();
            let seen = view.lease(run).unwrap().unwrap();
            assert_eq!((seen.number, seen.holder.as_ref()), (number, Some(&lease.process)));
            seen.state
        };
        let lease = LeaseFile::new("c", Holder::this_process(), 1);
        assert_eq!(state(1, &lease), LeaseState::Held { beat: None });
        fs::create_dir_all(view.layout().controllers()).unwrap();
        begin_beat(&view.layout().beat(&lease.controller), 42).unwrap();
        assert_eq!(state(2, &lease), LeaseState::Held { beat: Some(42) });
        assert_eq!(state(3, &LeaseFile { process: Holder::dead(), ..lease.clone() }), LeaseState::Dead);
        let elsewhere = LeaseFile { process: Holder::elsewhere(), controller: "other".into(), ..lease.clone() };
        assert_eq!(state(4, &elsewhere), LeaseState::Held { beat: None });
        assert_eq!(state(5, &LeaseFile { released: true, ..lease.clone() }), LeaseState::Released);
        fs::write(paths.lease(6), "{}").unwrap();
        assert_eq!(view.lease(run).unwrap().unwrap().state, LeaseState::Unreadable);

        let controllers = view.controllers().unwrap();
        assert_eq!(controllers.len(), 1);
        let one = &controllers[0];
        assert_eq!((one.name.as_str(), one.beat, one.dead), (lease.controller.as_str(), 42, false));
    }
}
