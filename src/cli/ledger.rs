//! The controller's ledger, kept in a results folder.

use super::dies::Readings;
use crate::controller::{Claim, Claimed, DieSpec, Ledger, LedgerError, Publication};
use crate::event::{Failure, rfc3339};
use crate::plan::PlannedRun;
use crate::store::{Attempt, AttemptFailure, Execution, Results, StoreError, host_name};

/// Claims and publishes in a results folder that this process holds.
pub(super) struct FolderLedger {
    pub(super) results: Results,
    pub(super) dies: Vec<DieSpec>,
    pub(super) readings: Readings,
}

fn ledger_error(error: StoreError) -> LedgerError {
    LedgerError { message: error.full_text(), full: error.is_disk_full() }
}

fn attempt(claim: &Claim) -> Attempt {
    Attempt { number: claim.attempt, folder: claim.folder.clone() }
}

impl Ledger for FolderLedger {
    fn claim(&self, run: &PlannedRun) -> Result<Claimed, LedgerError> {
        let attempt = self.results.begin_attempt(run).map_err(ledger_error)?;
        Ok(Claimed::Ours(Claim { attempt: attempt.number, folder: attempt.folder }))
    }

    fn release(&self, _: &PlannedRun, claim: &Claim) {
        self.results.release(&attempt(claim));
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
            eprintln!("warning: {}", error.full_text());
        }
    }

    fn room_for(&self, bytes: u64) -> Result<(), LedgerError> {
        self.results.room_for(bytes).map_err(ledger_error)
    }

    fn publish(&self, run: &PlannedRun, publication: &Publication) -> Result<(), LedgerError> {
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
        self.results.publish(run, &attempt, &publication.outcome, &execution).map(drop).map_err(ledger_error)
    }
}
