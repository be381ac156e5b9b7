//! The controller's ledger, kept in a results folder.

use std::collections::HashMap;

use super::dies::Readings;
use super::past;
use crate::controller::{Claim, Claimed, DieSpec, Ledger, LedgerError, Publication, Published, Seen, Tended};
use crate::event::{Cause, Failure, rfc3339};
use crate::plan::PlannedRun;
use crate::run::RunId;
use crate::store::{self, Attempt, AttemptFailure, Execution, Look, Results, StoreError, host_name};

/// Claims and publishes in a results folder, beside any number of other controllers.
pub(super) struct FolderLedger {
    pub(super) results: Results,
    pub(super) dies: Vec<DieSpec>,
    pub(super) readings: Readings,
    /// Attempts of runs that had failed when this controller began.
    pub(super) failed_before: HashMap<RunId, u32>,
}

impl FolderLedger {
    /// Why another controller has given a run up since this one began.
    fn given_up(&self, run: &PlannedRun) -> Result<Option<Failure>, StoreError> {
        let before = self.failed_before.get(&run.id).copied().unwrap_or(0);
        let failure = self.results.failure(run)?.filter(|(attempt, failure)| *attempt > before && failure.for_good);
        Ok(failure.map(|(_, failure)| past::recorded(&failure)))
    }
}

fn ledger_error(error: StoreError) -> LedgerError {
    LedgerError { message: error.full_text(), full: error.is_disk_full() }
}

fn attempt(claim: &Claim) -> Attempt {
    Attempt { number: claim.attempt, folder: claim.folder.clone() }
}

impl Ledger for FolderLedger {
    fn claim(&self, run: &PlannedRun) -> Result<Claimed, LedgerError> {
        if let Ok(Some(failure)) = self.given_up(run) {
            return Ok(Claimed::Unusable { failure });
        }
        match self.results.claim(run) {
            Ok(store::Claim::Ours(attempt)) => {
                Ok(Claimed::Ours(Claim { attempt: attempt.number, folder: attempt.folder }))
            }
            Ok(store::Claim::Finished(result)) => Ok(Claimed::Finished(Box::new(result.outcome))),
            Ok(store::Claim::Elsewhere { holder }) => Ok(Claimed::Elsewhere { holder }),
            Err(error) if error.concerns_one_run() => {
                Ok(Claimed::Unusable { failure: Failure::new(Cause::Disk, error.full_text()) })
            }
            Err(error) => Err(ledger_error(error)),
        }
    }

    fn release(&self, run: &PlannedRun, claim: &Claim) {
        self.results.release(&attempt(claim));
        self.give_up(run);
    }

    fn give_up(&self, run: &PlannedRun) {
        if let Err(error) = self.results.give_back(run.id) {
            // Others wait for this controller's end, and have the run then.
            say!("warning: {}", error.full_text());
        }
    }

    fn tend(&self, others: &[(usize, &PlannedRun)]) -> Result<Tended, LedgerError> {
        let lost = self.results.tend().map_err(ledger_error)?;
        let lost = lost.into_iter().map(|lost| (lost.run, lost.holder)).collect();
        let look = |&(index, run): &(usize, &PlannedRun)| {
            let seen = match self.results.look(run) {
                Ok(Look::Finished(result)) => Seen::Finished(Box::new(result.outcome)),
                Ok(Look::Held { holder }) => Seen::Held { holder },
                // A claim will tell what is wrong with it.
                Ok(Look::Free) => Seen::Free,
                Err(error) if error.concerns_one_run() => Seen::Free,
                Err(error) => return Err(ledger_error(error)),
            };
            Ok((index, seen))
        };
        let seen = others.iter().map(look).collect::<Result<_, _>>()?;
        Ok(Tended { lost, seen })
    }

    fn failed(&self, claim: &Claim, failure: &Failure, for_good: bool) {
        let record = AttemptFailure {
            cause: failure.cause.to_string(),
            message: failure.message.clone(),
            ended: rfc3339(crate::clock::now()),
            for_good,
        };
        if let Err(error) = self.results.record_failure(&attempt(claim), &record) {
            // The failure itself is told to the user in any case.
            say!("warning: {}", error.full_text());
        }
    }

    fn room_for(&self, bytes: u64) -> Result<(), LedgerError> {
        self.results.room_for(bytes).map_err(ledger_error)
    }

    fn publish(&self, run: &PlannedRun, publication: &Publication) -> Result<Published, LedgerError> {
        let gpu = self.dies.get(publication.die).and_then(|die| die.gpu.as_ref());
        let execution = Execution {
            attempts: publication.claim.attempt,
            die: publication.die.to_string(),
            host: host_name(),
            device: gpu.map_or_else(|| "cpu".to_owned(), |gpu| gpu.name.clone()),
            lane: publication.lane,
            gpu: gpu.and_then(|gpu| self.readings.of(gpu)),
            started: rfc3339(publication.started),
            ended: rfc3339(publication.ended),
        };
        let attempt = attempt(&publication.claim);
        match self.results.publish(run, &attempt, &publication.outcome, &execution).map_err(ledger_error)? {
            store::Published::Done { differs, .. } => Ok(Published::Done { differs }),
            store::Published::LeaseLost { holder, differs } => Ok(Published::LeaseLost { holder, differs }),
        }
    }
}
