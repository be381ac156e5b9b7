//! The leases of one controller: how it gets them, keeps them, loses them and gives them back.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::file::{Content, LeaseFile, begin_beat, highest, numbers, read_beat, write_beat};
use super::rules::{Known, LeaseTerms, Standing, Watch, standing};
use crate::plan::PlannedRun;
use crate::run::RunId;
use crate::store::attempt::Attempt;
use crate::store::durable;
use crate::store::error::StoreError;
use crate::store::holder::Holder;
use crate::store::layout::{Layout, RunPaths};
use crate::store::record::StoredResult;
use crate::store::results::{Results, make_folder};

/// Races for a lease that may be lost in a row: each is won by somebody, so more mean that something else is wrong.
const TRIES: u32 = 64;

/// Answer to a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// The run is this controller's, and this is a new attempt at it.
    Ours(Attempt),
    /// The run has a result.
    Finished(Box<StoredResult>),
    /// The run is another controller's.
    Elsewhere {
        /// Who holds it, in words.
        holder: String,
    },
}

/// What a look at another controller's run shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Look {
    /// It has a result by now.
    Finished(Box<StoredResult>),
    /// Nobody holds it, or whoever does is dead: a claim may succeed.
    Free,
    /// It is held.
    Held {
        /// Who holds it, in words.
        holder: String,
    },
}

/// A lease that another controller has taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The run.
    pub run: RunId,
    /// Who holds it now, in words.
    pub holder: String,
}

/// What a controller knows of leases.
#[derive(Debug)]
pub(in crate::store) struct Claims {
    controller: String,
    here: Holder,
    terms: LeaseTerms,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Beats so far.
    beat: u64,
    beaten: Instant,
    /// The leases that this controller holds, as far as it knows.
    held: BTreeMap<RunId, Held>,
    /// What has been seen of other controllers' beats, by the controllers' names.
    watches: HashMap<String, Watch<Option<u64>>>,
}

/// A lease that this controller has made.
#[derive(Clone, Debug)]
struct Held {
    number: u64,
    paths: RunPaths,
}

impl Claims {
    /// Begins to beat as `controller`.
    pub(in crate::store) fn begin(controller: String, layout: &Layout) -> Result<Self, StoreError> {
        begin_beat(&layout.beat(&controller), 1)?;
        let state = State { beat: 1, beaten: Instant::now(), held: BTreeMap::new(), watches: HashMap::new() };
        let (here, terms) = (Holder::this_process(), LeaseTerms::default());
        Ok(Self { controller, here, terms, state: Mutex::new(state) })
    }

    pub(in crate::store) const fn set_terms(&mut self, terms: LeaseTerms) {
        self.terms = terms;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Beats if it is time; whether it was.
    fn beat_if_due(&self, layout: &Layout) -> Result<bool, StoreError> {
        let count = {
            let mut state = self.state();
            if state.beaten.elapsed() < self.terms.beat_every() {
                return Ok(false);
            }
            state.beat += 1;
            state.beat
        };
        write_beat(&layout.beat(&self.controller), count)?;
        self.state().beaten = Instant::now();
        Ok(true)
    }

    /// Whose a run is by its highest lease, and its holder in words.
    fn judge(
        &self,
        layout: &Layout,
        run: RunId,
        number: u64,
        content: &Content,
    ) -> Result<(Standing, String), StoreError> {
        let mut known = Known { released: false, ours: false, dead: false, stood: Duration::ZERO };
        let holder = match content {
            Content::Lease(lease) => {
                known.released = lease.released;
                known.ours = lease.controller == self.controller && self.number_of(run) == Some(number);
                known.dead = lease.process.is_provably_dead(&self.here);
                if !(known.released || known.ours || known.dead) {
                    known.stood = self.stood(&lease.controller, || {
                        Ok(read_beat(&layout.beat(&lease.controller))?.map(|beat| beat.count))
                    })?;
                }
                lease.process.to_string()
            }
            Content::Unreadable(digest) => {
                known.stood = self.stood(digest, || Ok(None))?;
                "an unknown process".to_owned()
            }
        };
        Ok((standing(known, self.terms), holder))
    }

    /// How long the beat of a controller has been seen to stand still; `read` reads it.
    fn stood(
        &self,
        controller: &str,
        read: impl FnOnce() -> Result<Option<u64>, StoreError>,
    ) -> Result<Duration, StoreError> {
        if let Some(watch) = self.state().watches.get(controller)
            && !watch.is_due(Instant::now(), self.terms)
        {
            return Ok(watch.stood());
        }
        let (now, beat) = (Instant::now(), read()?);
        let mut state = self.state();
        Ok(match state.watches.get_mut(controller) {
            Some(watch) => watch.look(now, beat, self.terms),
            None => {
                state.watches.insert(controller.to_owned(), Watch::new(now, beat));
                Duration::ZERO
            }
        })
    }

    /// The number of the lease that this controller holds on a run.
    fn number_of(&self, run: RunId) -> Option<u64> {
        self.state().held.get(&run).map(|held| held.number)
    }

    /// Takes a run for its own.
    pub(super) fn hold(&self, run: RunId, number: u64, paths: RunPaths) {
        self.state().held.insert(run, Held { number, paths });
    }

    /// No longer takes a run for its own.
    fn forget(&self, run: RunId) -> Option<Held> {
        self.state().held.remove(&run)
    }

    /// Makes the next lease after `number`; whether nobody was faster.
    fn make(&self, paths: &RunPaths, number: u64) -> Result<bool, StoreError> {
        let lease = LeaseFile::new(&self.controller, self.here.clone(), self.state().beat);
        durable::create_first(&paths.lease(number + 1), &lease.to_json())
    }

    /// Who holds a run in place of this controller; `None` if its lease of this number still is the highest.
    fn lost(&self, paths: &RunPaths, number: u64) -> Result<Option<String>, StoreError> {
        Ok(match highest(paths)? {
            Some((found, Content::Lease(lease))) if found == number && lease.controller == self.controller => None,
            Some((_, Content::Lease(lease))) => Some(lease.process.to_string()),
            Some((_, Content::Unreadable(_))) => Some("an unknown process".to_owned()),
            None => Some("nobody: the lease was removed".to_owned()),
        })
    }
}

/// Removes the leases of a run that has its result, where whoever published it was killed before it could.
pub(in crate::store) fn remove_dead_leases(paths: &RunPaths) -> Result<(), StoreError> {
    match highest(paths)? {
        Some((_, Content::Lease(lease))) if lease.process.is_provably_dead(&Holder::this_process()) => {
            remove_all(paths)
        }
        Some(_) | None => Ok(()),
    }
}

fn remove_all(paths: &RunPaths) -> Result<(), StoreError> {
    // The highest last: until then it says whose the run was.
    for number in numbers(paths)? {
        durable::remove_if_there(&paths.lease(number))?;
    }
    Ok(())
}

impl Results {
    /// Claims a run, and begins an attempt at it. A run that this controller holds already gets another attempt.
    ///
    /// A run is free if it has no lease, if its highest lease was given back, if that lease's process is provably dead, or if this
    /// controller has seen its beat stand still for the standing time.
    ///
    /// # Errors
    /// The system refuses; see [`StoreError::concerns_one_run`].
    pub fn claim(&self, run: &PlannedRun) -> Result<Claim, StoreError> {
        let (claims, layout) = (&self.claims, self.layout());
        // Whoever claims must be seen to live.
        claims.beat_if_due(layout)?;
        let paths = self.run_paths(run);
        make_folder(paths.dir())?;
        for _ in 0..TRIES {
            if let Some(result) = self.finished(run)? {
                self.claims.forget(run.id);
                return Ok(Claim::Finished(Box::new(result)));
            }
            let number = match highest(&paths)? {
                None => 0,
                Some((number, content)) => match claims.judge(layout, run.id, number, &content)? {
                    (Standing::Ours, _) => return self.begin_attempt(run).map(Claim::Ours),
                    (Standing::Held, holder) => return Ok(Claim::Elsewhere { holder }),
                    (Standing::Free, _) => number,
                },
            };
            if claims.make(&paths, number)? {
                claims.hold(run.id, number + 1, paths.clone());
                // Looks again: the run may have got its result since it was looked for, and its leases be gone; or somebody whose
                // list of leases was longer may have made a higher one.
            }
        }
        self.claims.forget(run.id);
        Ok(Claim::Elsewhere { holder: "controllers that come and go".to_owned() })
    }

    /// Looks at a run that another controller held.
    ///
    /// # Errors
    /// The system refuses.
    pub fn look(&self, run: &PlannedRun) -> Result<Look, StoreError> {
        if let Some(result) = self.finished(run)? {
            return Ok(Look::Finished(Box::new(result)));
        }
        let Some((number, content)) = highest(&self.run_paths(run))? else { return Ok(Look::Free) };
        Ok(match self.claims.judge(self.layout(), run.id, number, &content)? {
            (Standing::Held, holder) => Look::Held { holder },
            (Standing::Free | Standing::Ours, _) => Look::Free,
        })
    }

    /// To be called several times within [`LeaseTerms::beat_every`]: beats when it is time, and looks then whether this
    /// controller's leases still are the highest. Those that are not are given back, and are no longer its own.
    ///
    /// # Errors
    /// The system refuses. Leases that cannot be proven to live will be taken over.
    pub fn tend(&self) -> Result<Vec<Lost>, StoreError> {
        if !self.claims.beat_if_due(self.layout())? {
            return Ok(Vec::new());
        }
        let held = self.claims.state().held.clone();
        let mut lost = Vec::new();
        for (run, Held { number, paths }) in held {
            // The usual case costs two looks for a name.
            if paths.lease(number).exists() && !paths.lease(number + 1).exists() {
                continue;
            }
            if paths.result().exists() {
                continue; // published since, and its leases are going
            }
            if let Some(holder) = self.claims.lost(&paths, number)? {
                self.claims.forget(run);
                lost.push(Lost { run, holder });
            }
        }
        Ok(lost)
    }

    /// Who holds a run in place of this controller; `None` if this controller does.
    pub(in crate::store) fn lost(&self, run: &PlannedRun) -> Result<Option<String>, StoreError> {
        let paths = self.run_paths(run);
        match self.claims.number_of(run.id) {
            Some(number) => self.claims.lost(&paths, number),
            None => Ok(Some(match highest(&paths)? {
                Some((_, Content::Lease(lease))) => lease.process.to_string(),
                Some((_, Content::Unreadable(_))) | None => "nobody".to_owned(),
            })),
        }
    }

    /// Gives a run back without a result: whoever comes next may have it.
    ///
    /// # Errors
    /// The system refuses. The lease then stands until this process is known to be dead.
    pub fn give_back(&self, run: RunId) -> Result<(), StoreError> {
        let Some(Held { number, paths }) = self.claims.forget(run) else { return Ok(()) };
        if self.claims.lost(&paths, number)?.is_some() {
            return Ok(());
        }
        let lease = LeaseFile::new(&self.claims.controller, self.claims.here.clone(), self.claims.state().beat);
        durable::replace(&paths.lease(number), &LeaseFile { released: true, ..lease }.to_json())
    }

    /// Gives all runs back.
    ///
    /// # Errors
    /// The system refuses one of them; the others are given back all the same.
    pub fn give_all_back(&self) -> Result<(), StoreError> {
        let held: Vec<RunId> = self.claims.state().held.keys().copied().collect();
        held.into_iter().map(|run| self.give_back(run)).fold(Ok(()), Result::and)
    }

    /// Removes the leases of a run that has its result, which is what keeps others from it from now on.
    pub(in crate::store) fn remove_leases(&self, run: &PlannedRun) -> Result<(), StoreError> {
        remove_all(&self.run_paths(run))?;
        self.claims.forget(run.id);
        Ok(())
    }

    /// Leaves the folder: gives all runs back, and stops to beat.
    pub(in crate::store) fn leave(&self) {
        // What cannot be given back is seen as dead as soon as this process is.
        let _ = self.give_all_back();
        let _ = durable::remove_if_there(&self.layout().beat(&self.claims.controller));
    }
}
