//! What comes into the controller's state, and what goes out of it.

use std::path::Path;

use super::clerk::{Claim, Claimed, LedgerError, Publication, Published, Tended};
use super::process::Exit;
use crate::event::{Event, Failure};
use crate::plan::Mark;
use crate::protocol::{FromWorker, ToWorker};

/// A worker's process; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct WorkerId(pub(super) u64);

/// Something that happened.
#[derive(Debug)]
pub(super) enum Input {
    /// A worker said something.
    Message(WorkerId, Box<FromWorker>),
    /// A worker said something that is no message; nothing more will be read from it.
    Broken(WorkerId, String),
    /// A worker's output ended.
    Closed(WorkerId),
    /// A worker's process ended.
    Exited(WorkerId, Exit),
    /// The ledger answered a claim of this run.
    Claimed(usize, Result<Claimed, LedgerError>),
    /// The ledger published this result, or could not.
    Published(Box<Publication>, Result<Published, LedgerError>),
    /// The ledger has noted where a run rests, or could not; what differs from a note that was there before.
    Rested(usize, Mark, Result<Option<String>, LedgerError>),
    /// Where a run has rested, by the ledger.
    Marks(usize, Vec<Mark>),
    /// The ledger was tended.
    Tended(Result<Tended, LedgerError>),
    /// The ledger found room, or did not.
    Probed(Result<(), LedgerError>),
    /// The process got a signal.
    Signal(i32),
    /// Time passed.
    Tick,
}

/// What the state has done to the world. None of it waits.
pub(super) trait Effects {
    /// Starts a worker for a die; its process id.
    fn start(&mut self, die: usize, worker: WorkerId) -> Result<u32, Failure>;
    /// Sends a worker a message.
    fn send(&mut self, worker: WorkerId, message: ToWorker);
    /// Drops all that is held of a worker that is gone.
    fn forget(&mut self, worker: WorkerId);
    /// Kills a worker's process.
    fn kill(&mut self, worker: WorkerId);
    /// Asks the ledger for a run: [`Input::Claimed`] follows.
    fn claim(&mut self, run: usize);
    /// Has the ledger tended, and other controllers' runs looked at: [`Input::Tended`] follows.
    fn tend(&mut self, others: Vec<usize>);
    /// Gives back a run that will not be attempted again.
    fn give_up(&mut self, run: usize);
    /// Gives back a claim that was not used, and the run with it.
    fn release(&mut self, run: usize, claim: Claim);
    /// Has it noted why an attempt failed, and whether its run is given up with it.
    fn failed(&mut self, claim: Claim, failure: Failure, for_good: bool);
    /// Asks the ledger whether there is room: [`Input::Probed`] follows.
    fn probe(&mut self, bytes: u64);
    /// Has it noted where a run rests, and gives the run back: [`Input::Rested`] follows.
    fn rest(&mut self, run: usize, mark: Mark);
    /// Publishes a result: [`Input::Published`] follows.
    fn publish(&mut self, publication: Publication);
    /// The last that a worker printed, in the attempt's folder if it had one.
    fn last_words(&mut self, worker: WorkerId, folder: Option<&Path>) -> Option<String>;
    /// Whether the kernel killed processes for want of memory since the worker was started.
    fn memory_ran_out(&mut self, worker: WorkerId) -> bool;
    /// Tells whoever listens.
    fn announce(&mut self, event: Event);
}
