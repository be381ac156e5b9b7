//! Claims and publications, on threads of their own: the loop and the workers never wait for a disk.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::SystemTime;

use crossbeam_channel::{Receiver, Sender};

use super::effects::Input;
use crate::event::Failure;
use crate::plan::{Mark, Plan, PlannedRun, StopRule};
use crate::run::{Outcome, RunId};

/// A run could not be claimed or published. The text names the path.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct LedgerError {
    /// What could not be done, where, and why: a lower-case fragment.
    pub message: String,
    /// Whether there was no room for it: waiting may help.
    pub full: bool,
}

/// The right to attempt a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Its folder, absolute, new and empty.
    pub folder: PathBuf,
}

/// Answer to a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Claimed {
    /// The run is this controller's to attempt.
    Ours(Claim),
    /// The run has got a result meanwhile, from another controller.
    Finished(Box<Outcome>),
    /// The run is another controller's.
    Elsewhere {
        /// Who holds it.
        holder: String,
    },
    /// The run cannot be attempted, for a reason that concerns no other run and that waiting does not mend.
    Unusable {
        /// Why: names the path.
        failure: Failure,
    },
}

/// Answer to a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    /// The run has its result.
    Done {
        /// What differs from a result that was there before; see [`Event::ResultDiffers`](crate::event::Event).
        differs: Option<String>,
    },
    /// The run is another controller's by now: nothing was published.
    LeaseLost {
        /// Who holds it.
        holder: String,
        /// As above.
        differs: Option<String>,
    },
}

/// What a look at another controller's run shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// It has a result.
    Finished(Box<Outcome>),
    /// Nobody holds it any more.
    Free,
    /// It is held.
    Held {
        /// Who holds it.
        holder: String,
    },
}

/// What the ledger has to tell when it is tended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tended {
    /// Runs that this controller held and another one has taken over, and who that is.
    pub lost: Vec<(RunId, String)>,
    /// What the looks show, by the runs' indexes in the plan.
    pub seen: Vec<(usize, Seen)>,
}

/// A result to publish.
#[derive(Clone, Debug, PartialEq)]
pub struct Publication {
    /// Index of the run in the plan.
    pub run: usize,
    /// The attempt that made it.
    pub claim: Claim,
    /// The result.
    pub outcome: Outcome,
    /// Volatile: die.
    pub die: usize,
    /// Volatile: lane.
    pub lane: u32,
    /// Volatile: when the attempt was assigned.
    pub started: SystemTime,
    /// Volatile: when it ended.
    pub ended: SystemTime,
}

/// Where runs are claimed and results are published. Calls for different runs come from several threads at once;
/// those for one run never overlap.
pub trait Ledger: Send + Sync {
    /// Asks for a run; on success its attempt folder exists.
    ///
    /// # Errors
    /// The results folder cannot be written.
    fn claim(&self, run: &PlannedRun) -> Result<Claimed, LedgerError>;

    /// Gives back a claim that no worker has used, and the run with it.
    fn release(&self, run: &PlannedRun, claim: &Claim);

    /// Gives a run back that this controller will not attempt again.
    fn give_up(&self, run: &PlannedRun);

    /// Called all the time, never twice at once: proves that this controller lives, finds out which runs it has lost, and looks at
    /// `others`, each with its index in the plan.
    ///
    /// # Errors
    /// The results folder cannot be read or written.
    fn tend(&self, others: &[(usize, &PlannedRun)]) -> Result<Tended, LedgerError>;

    /// Notes beside the attempt why it gave no result, and whether its run is given up with it.
    fn failed(&self, claim: &Claim, failure: &Failure, for_good: bool);

    /// Finds out whether there is room for so many bytes.
    ///
    /// # Errors
    /// There is not, or the results folder cannot be written at all.
    fn room_for(&self, bytes: u64) -> Result<(), LedgerError>;

    /// Where a run has rested, or would have by its log.
    ///
    /// # Errors
    /// The results folder cannot be read.
    fn marks(&self, run: &PlannedRun, rule: &StopRule) -> Result<Vec<Mark>, LedgerError>;

    /// Notes where a run rests, and gives the run back; what differs from a note that was there before.
    ///
    /// # Errors
    /// The results folder cannot be written.
    fn rest(&self, run: &PlannedRun, rule: &StopRule, mark: &Mark) -> Result<Option<String>, LedgerError>;

    /// Publishes a result durably, unless the run is another controller's by now; a result that is there already is left
    /// as it is.
    ///
    /// # Errors
    /// The results folder cannot be written.
    fn publish(&self, run: &PlannedRun, publication: &Publication) -> Result<Published, LedgerError>;
}

/// What a clerk is asked to do.
#[derive(Debug)]
enum Errand {
    Claim(usize),
    Release(usize, Claim),
    GiveUp(usize),
    Failed(Claim, Failure, bool),
    Probe(u64),
    Rest(usize, Mark),
    Publish(Box<Publication>),
}

/// Threads that run errands to the ledger and report to the controller's loop.
pub(super) struct Clerks {
    errands: Sender<Errand>,
    /// To the thread that tends the ledger, of which one call at a time is asked.
    tender: Sender<Vec<usize>>,
    threads: Vec<JoinHandle<()>>,
}

/// More than one, so that claims do not wait behind results whose bytes are on their way to the disk, and the
/// file system can flush several at a time.
const CLERKS: usize = 4;

impl Clerks {
    /// Starts the threads; they end with the last sender of errands.
    pub(super) fn start(plan: &Arc<Plan>, ledger: &Arc<dyn Ledger>, inputs: &Sender<Input>) -> std::io::Result<Self> {
        let (errands, inbox) = crossbeam_channel::unbounded();
        let mut threads = Vec::with_capacity(CLERKS + 1);
        for number in 0..CLERKS {
            let (plan, ledger) = (Arc::clone(plan), Arc::clone(ledger));
            let (inbox, inputs) = (inbox.clone(), inputs.clone());
            let thread = std::thread::Builder::new().name(format!("clerk {number}"));
            threads.push(thread.spawn(move || serve(&plan, ledger.as_ref(), &inbox, &inputs))?);
        }
        let (tender, rounds) = crossbeam_channel::bounded(1);
        let (plan, ledger, inputs) = (Arc::clone(plan), Arc::clone(ledger), inputs.clone());
        let thread = std::thread::Builder::new().name("tender".to_owned());
        threads.push(thread.spawn(move || tend(&plan, ledger.as_ref(), &rounds, &inputs))?);
        Ok(Self { errands, tender, threads })
    }

    /// Has all errands run to their end.
    pub(super) fn finish(self) {
        drop((self.errands, self.tender));
        for thread in self.threads {
            // A clerk that panicked has said so on standard error; its claim or result is made again next time.
            let _ = thread.join();
        }
    }

    pub(super) fn claim(&self, run: usize) {
        self.put(Errand::Claim(run));
    }

    pub(super) fn release(&self, run: usize, claim: Claim) {
        self.put(Errand::Release(run, claim));
    }

    pub(super) fn give_up(&self, run: usize) {
        self.put(Errand::GiveUp(run));
    }

    /// [`Input::Tended`] follows.
    pub(super) fn tend(&self, others: Vec<usize>) {
        // Asked once the one before has been answered: there is room.
        let _ = self.tender.send(others);
    }

    pub(super) fn failed(&self, claim: Claim, failure: Failure, for_good: bool) {
        self.put(Errand::Failed(claim, failure, for_good));
    }

    pub(super) fn probe(&self, bytes: u64) {
        self.put(Errand::Probe(bytes));
    }

    pub(super) fn rest(&self, run: usize, mark: Mark) {
        self.put(Errand::Rest(run, mark));
    }

    pub(super) fn publish(&self, publication: Publication) {
        self.put(Errand::Publish(Box::new(publication)));
    }

    fn put(&self, errand: Errand) {
        // Clerks take errands until this end is dropped.
        let _ = self.errands.send(errand);
    }
}

/// Tends the ledger, on a thread of its own: a beat must not wait behind what others have to write.
fn tend(plan: &Plan, ledger: &dyn Ledger, rounds: &Receiver<Vec<usize>>, inputs: &Sender<Input>) {
    for others in rounds {
        let others: Vec<_> = others.into_iter().map(|run| (run, &plan.runs[run])).collect();
        others.iter().for_each(|&(run, _)| tell_of_marks(plan, ledger, run, inputs));
        let _ = inputs.send(Input::Tended(ledger.tend(&others)));
    }
}

/// Tells where a run has rested, in a sweep that stops runs early. What cannot be read now is read the next time.
fn tell_of_marks(plan: &Plan, ledger: &dyn Ledger, run: usize, inputs: &Sender<Input>) {
    if let Some(rule) = &plan.stop
        && let Ok(marks) = ledger.marks(&plan.runs[run], rule)
        && !marks.is_empty()
    {
        let _ = inputs.send(Input::Marks(run, marks));
    }
}

fn serve(plan: &Plan, ledger: &dyn Ledger, inbox: &Receiver<Errand>, inputs: &Sender<Input>) {
    for errand in inbox {
        let report = match errand {
            Errand::Claim(run) => {
                let answer = ledger.claim(&plan.runs[run]);
                tell_of_marks(plan, ledger, run, inputs);
                Input::Claimed(run, answer)
            }
            Errand::Rest(run, mark) => {
                // Only a plan with a rule has runs rest.
                let Some(rule) = &plan.stop else { continue };
                Input::Rested(run, mark, ledger.rest(&plan.runs[run], rule, &mark))
            }
            Errand::Release(run, claim) => {
                ledger.release(&plan.runs[run], &claim);
                continue;
            }
            Errand::GiveUp(run) => {
                ledger.give_up(&plan.runs[run]);
                continue;
            }
            Errand::Failed(claim, failure, for_good) => {
                ledger.failed(&claim, &failure, for_good);
                continue;
            }
            Errand::Probe(bytes) => Input::Probed(ledger.room_for(bytes)),
            Errand::Publish(publication) => {
                let answer = ledger.publish(&plan.runs[publication.run], &publication);
                Input::Published(publication, answer)
            }
        };
        // The loop may have ended meanwhile; what was asked for is done all the same.
        let _ = inputs.send(report);
    }
}
