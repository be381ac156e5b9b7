//! The built-in trainer on the CPU backend: one run at a time.

use std::sync::Arc;

use super::corpora::{self, Corpora};
use super::train::{Moved, Trainer, work};
use crate::backend::cpu::engine::Engine;
use crate::backend::cpu::simd::Level;
use crate::backend::cpu::team::Team;
use crate::data::Corpus;
use crate::event::{Cause, Failure};
use crate::protocol::Assignment;
use crate::trainer::{Progress, Run, Snapshot, TrainError};

/// Trains with threads of the CPU. Threads, corpora and the last run's buffers outlive a run.
pub struct CpuTrainer {
    team: Arc<Team>,
    corpora: Corpora,
    spare: Option<Engine>,
    run: Option<CpuRun>,
    /// Weights of the run that ended last.
    ended: Vec<f32>,
}

/// The run in hand.
struct CpuRun {
    run: Run,
    corpus: Corpus,
    test_windows: usize,
}

/// A team of `threads` threads with the best vector instructions, or those that the environment forces.
pub(super) fn team(threads: usize) -> Result<Arc<Team>, Failure> {
    let refuse = |error: &dyn std::fmt::Display| Failure::new(Cause::Start, error.to_string());
    let level = Level::current().map_err(|error| refuse(&error))?;
    Team::new(threads, level).map(Arc::new).map_err(|error| refuse(&error))
}

impl CpuTrainer {
    /// Trains with `threads` threads.
    ///
    /// # Errors
    /// The forced vector instructions are not there, or threads cannot be started.
    pub fn new(threads: usize) -> Result<Self, Failure> {
        Ok(Self { team: team(threads)?, corpora: Corpora::default(), spare: None, run: None, ended: Vec::new() })
    }

    fn in_hand(&mut self) -> Result<&mut CpuRun, Failure> {
        self.run.as_mut().ok_or_else(|| Failure::new(Cause::Bug, "the run is gone"))
    }
}

impl Trainer for CpuTrainer {
    fn backend(&self) -> &str {
        "cpu"
    }

    fn simd(&self) -> &str {
        self.team.level().name()
    }

    fn prepare(&mut self, _: &Assignment) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    fn fits(&self, _: &Assignment) -> bool {
        false
    }

    fn begin(&mut self, assignment: &Assignment, from: Option<Snapshot>) -> Result<(), Failure> {
        let corpus = self.corpora.open(assignment)?;
        let settings = &assignment.settings;
        let test_windows = corpus.test_ranges(settings.test_batches, settings.seq_len).count();
        // Buffers of a run that panicked may be anything: they are dropped with it.
        let spare = self.spare.take();
        let run = Run::new(settings, corpus.clone(), Arc::clone(&self.team), spare);
        let mut run = run.map_err(|error| match error {
            TrainError::Corpus(error) => corpora::failure(&error),
            TrainError::Unsupported(_) => Failure::new(Cause::BadSettings, error.to_string()),
        })?;
        if let Some(snapshot) = from {
            run.restore(snapshot);
        }
        self.run = Some(CpuRun { run, corpus, test_windows });
        Ok(())
    }

    fn advance(&mut self) -> Result<Moved, Failure> {
        // Taken out, so that a run that panics is not gone on with.
        let Some(mut hand) = self.run.take() else { return Ok(Vec::new()) };
        let progress = hand.run.advance();
        if !matches!(progress, Progress::Ended(_)) {
            self.run = Some(hand);
            return Ok(vec![(0, Ok(progress))]);
        }
        self.ended.clone_from(&hand.run.state().weights);
        let unchanged = corpora::unchanged(&hand.corpus);
        self.spare = Some(hand.run.into_engine());
        Ok(vec![(0, unchanged.map(|()| progress))])
    }

    fn snapshot(&mut self, _: u32) -> Result<Option<Snapshot>, Failure> {
        self.in_hand().map(|hand| Some(hand.run.snapshot()))
    }

    fn weights(&mut self, _: u32) -> Result<Vec<f32>, Failure> {
        Ok(std::mem::take(&mut self.ended))
    }

    fn empty(&mut self, _: u32) -> Result<(), Failure> {
        self.spare = self.run.take().map(|hand| hand.run.into_engine()).or(self.spare.take());
        Ok(())
    }

    fn work(&self, _: u32, step: u64) -> f64 {
        self.run.as_ref().map_or(1.0, |hand| work(hand.run.settings(), hand.test_windows, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::CorpusInfo;
    use crate::protocol::Place;
    use crate::run::RunId;
    use crate::settings::{Data, Settings};

    fn assignment(digest: &str) -> Assignment {
        let settings = Settings {
            c: 16,
            n_head: 2,
            head_size: 8,
            n_rwkv: 1,
            n_attn: 1,
            ffn: 16,
            lora: 4,
            seq_len: 16,
            chunk_size: 16,
            steps: 4,
            eval_every: 2,
            eval_batches: 3,
            test_batches: crate::settings::TestBatches::Windows(5),
            data: Data::Builtin,
            ..Settings::default()
        };
        Assignment {
            place: Place { lane: 0, run: RunId::from_bits(1), attempt: 1 },
            folder: "/nowhere".into(),
            settings,
            corpus: CorpusInfo { path: None, bytes: 0, digest: digest.into(), entropy: None },
            checkpoint_every: crate::plan::CheckpointEvery::Steps(1000),
            rest: None,
        }
    }

    /// Trains to the end; the last value of each row, and of the result.
    fn train(trainers: &mut CpuTrainer, assignment: &Assignment) -> Result<Vec<u64>, Failure> {
        trainers.begin(assignment, None)?;
        let mut values = Vec::new();
        loop {
            let (lane, progress) = trainers.advance()?.remove(0);
            assert_eq!(lane, 0);
            match progress? {
                Progress::Stepped { .. } => {}
                Progress::Logged(row) => values.push(row.val_bpb.to_bits()),
                Progress::Ended(outcome) => {
                    values.push(outcome.best_val_bpb.map_or(0, |best| best.value.to_bits()));
                    return Ok(values);
                }
            }
        }
    }

    #[test]
    fn a_run_in_used_buffers_gives_the_same_numbers() {
        let mut trainers = CpuTrainer::new(1).unwrap();
        let digest = Corpus::open(&Data::Builtin).unwrap().digest().to_string();
        let assignment = assignment(&digest);
        let first = train(&mut trainers, &assignment).unwrap();
        assert_eq!(first.len(), 4);
        assert!(trainers.spare.is_some(), "the buffers are kept");
        assert_eq!(train(&mut trainers, &assignment).unwrap(), first);
    }

    #[test]
    fn another_corpus_than_the_planned_one_is_refused() {
        let mut trainers = CpuTrainer::new(1).unwrap();
        let failure = trainers.begin(&assignment("0123"), None).unwrap_err();
        assert_eq!(failure.cause, Cause::Corpus);
    }

    #[test]
    fn work_counts_the_windows_that_belong_to_a_step() {
        let mut trainers = CpuTrainer::new(1).unwrap();
        let digest = Corpus::open(&Data::Builtin).unwrap().digest().to_string();
        trainers.begin(&assignment(&digest), None).unwrap();
        assert_eq!([0, 1, 2, 3, 4].map(|step| trainers.work(0, step)), [4.0, 1.0, 4.0, 4.0, 12.0]);
    }
}
