//! Claims and publications, on threads of their own: the loop and the workers never wait for a disk.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::SystemTime;

use crossbeam_channel::{Receiver, Sender};

use super::effects::Input;
use crate::event::Failure;
use crate::plan::{Plan, PlannedRun};
use crate::run::Outcome;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The run is this controller's to attempt.
    Ours(Claim),
    /// The run has got a result meanwhile.
    Finished,
    /// The run is another controller's.
    Elsewhere {
        /// Who holds it.
        holder: String,
    },
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

    /// Gives back a claim that no worker has used.
    fn release(&self, run: &PlannedRun, claim: &Claim);

    /// Notes beside the attempt why it gave no result, and whether its run is given up with it.
    fn failed(&self, claim: &Claim, failure: &Failure, for_good: bool);

    /// Finds out whether there is room for so many bytes.
    ///
    /// # Errors
    /// There is not, or the results folder cannot be written at all.
    fn room_for(&self, bytes: u64) -> Result<(), LedgerError>;

    /// Publishes a result durably; a result that is there already is left as it is.
    ///
    /// # Errors
    /// The results folder cannot be written.
    fn publish(&self, run: &PlannedRun, publication: &Publication) -> Result<(), LedgerError>;
}

/// What a clerk is asked to do.
#[derive(Debug)]
enum Errand {
    Claim(usize),
    Release(usize, Claim),
    Failed(Claim, Failure, bool),
    Probe(u64),
    Publish(Box<Publication>),
}

/// Threads that run errands to the ledger and report to the controller's loop.
pub(super) struct Clerks {
    errands: Sender<Errand>,
    threads: Vec<JoinHandle<()>>,
}

/// More than one, so that claims do not wait behind results whose bytes are on their way to the disk, and the
/// file system can flush several at a time.
const CLERKS: usize = 4;

impl Clerks {
    /// Starts the threads; they end with the last sender of errands.
    pub(super) fn start(plan: &Arc<Plan>, ledger: &Arc<dyn Ledger>, inputs: &Sender<Input>) -> std::io::Result<Self> {
        let (errands, inbox) = crossbeam_channel::unbounded();
        let mut threads = Vec::with_capacity(CLERKS);
        for number in 0..CLERKS {
            let (plan, ledger) = (Arc::clone(plan), Arc::clone(ledger));
            let (inbox, inputs) = (inbox.clone(), inputs.clone());
            let thread = std::thread::Builder::new().name(format!("clerk {number}"));
            threads.push(thread.spawn(move || serve(&plan, ledger.as_ref(), &inbox, &inputs))?);
        }
        Ok(Self { errands, threads })
    }

    /// Has all errands run to their end.
    pub(super) fn finish(self) {
        drop(self.errands);
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

    pub(super) fn failed(&self, claim: Claim, failure: Failure, for_good: bool) {
        self.put(Errand::Failed(claim, failure, for_good));
    }

    pub(super) fn probe(&self, bytes: u64) {
        self.put(Errand::Probe(bytes));
    }

    pub(super) fn publish(&self, publication: Publication) {
        self.put(Errand::Publish(Box::new(publication)));
    }

    fn put(&self, errand: Errand) {
        // Clerks take errands until this end is dropped.
        let _ = self.errands.send(errand);
    }
}

fn serve(plan: &Plan, ledger: &dyn Ledger, inbox: &Receiver<Errand>, inputs: &Sender<Input>) {
    for errand in inbox {
        let report = match errand {
            Errand::Claim(run) => Input::Claimed(run, ledger.claim(&plan.runs[run])),
            Errand::Release(run, claim) => {
                ledger.release(&plan.runs[run], &claim);
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
