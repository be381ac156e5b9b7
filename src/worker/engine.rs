//! The built-in trainer on the CPU backend.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::train::{Train, Trainers};
use crate::backend::cpu::engine::Engine;
use crate::backend::cpu::simd::Level;
use crate::backend::cpu::team::Team;
use crate::data::Corpus;
use crate::event::{Cause, Failure};
use crate::protocol::Assignment;
use crate::settings::Data;
use crate::trainer::{Progress, Run, TrainError};

/// Makes runs of the built-in trainer. Threads, corpora and the last run's buffers outlive a run.
pub struct CpuTrainers {
    team: Arc<Team>,
    corpora: HashMap<Data, Corpus>,
    spare: Rc<RefCell<Option<Engine>>>,
}

impl CpuTrainers {
    /// A team of `threads` threads with the best vector instructions, or those that the environment forces.
    ///
    /// # Errors
    /// The forced instructions are not there, or threads cannot be started.
    pub fn new(threads: usize) -> Result<Self, Failure> {
        let refuse = |error: &dyn std::fmt::Display| Failure::new(Cause::Start, error.to_string());
        let level = Level::current().map_err(|error| refuse(&error))?;
        let team = Team::new(threads, level).map_err(|error| refuse(&error))?;
        Ok(Self { team: Arc::new(team), corpora: HashMap::new(), spare: Rc::default() })
    }

    /// The corpus, which must be the one that was planned with: another would give a run another's numbers.
    fn corpus(&mut self, assignment: &Assignment) -> Result<Corpus, Failure> {
        let data = &assignment.settings.data;
        if let Some(corpus) = self.corpora.get(data) {
            return Ok(corpus.clone());
        }
        let corpus = Corpus::open(data).map_err(|error| Failure::new(Cause::Corpus, error.to_string()))?;
        let found = corpus.digest().to_string();
        if found != assignment.corpus.digest {
            let text = "the corpus is not the one that was planned with: its bytes have changed since";
            return Err(Failure::new(Cause::Corpus, text));
        }
        self.corpora.insert(data.clone(), corpus.clone());
        Ok(corpus)
    }
}

impl Trainers for CpuTrainers {
    fn backend(&self) -> &str {
        "cpu"
    }

    fn simd(&self) -> &str {
        self.team.level().name()
    }

    fn begin(&mut self, assignment: &Assignment) -> Result<Box<dyn Train>, Failure> {
        let corpus = self.corpus(assignment)?;
        let settings = &assignment.settings;
        let spare = self.spare.borrow_mut().take();
        let test_windows = corpus.test_ranges(settings.test_batches, settings.seq_len).count();
        let run = Run::new(settings, corpus.clone(), Arc::clone(&self.team), spare).map_err(|error| match error {
            TrainError::Corpus(error) => Failure::new(Cause::Corpus, error.to_string()),
            TrainError::Unsupported(_) => Failure::new(Cause::BadSettings, error.to_string()),
        })?;
        Ok(Box::new(CpuRun { run: Some(run), corpus, test_windows, spare: Rc::clone(&self.spare) }))
    }
}

/// A run that leaves its buffers to the next.
struct CpuRun {
    /// Present until it is dropped.
    run: Option<Run>,
    corpus: Corpus,
    test_windows: usize,
    spare: Rc<RefCell<Option<Engine>>>,
}

impl Drop for CpuRun {
    fn drop(&mut self) {
        // After a panic the buffers may be anything.
        if let Some(run) = self.run.take().filter(|_| !std::thread::panicking()) {
            *self.spare.borrow_mut() = Some(run.into_engine());
        }
    }
}

impl Train for CpuRun {
    fn advance(&mut self) -> Result<Progress, Failure> {
        let Some(run) = &mut self.run else { return Err(Failure::new(Cause::Bug, "the run is gone")) };
        let progress = run.advance();
        if matches!(progress, Progress::Ended(_)) {
            self.corpus.check_unchanged().map_err(|error| Failure::new(Cause::Corpus, error.to_string()))?;
        }
        Ok(progress)
    }

    fn built_in(&mut self) -> Option<&mut Run> {
        self.run.as_mut()
    }

    /// A window that is only evaluated counts like one that is trained, which is more than it takes.
    fn work(&self, step: u64) -> f64 {
        let Some(settings) = self.run.as_ref().map(Run::settings) else { return 1.0 };
        let last = step + 1 == settings.steps;
        let windows = if step >= settings.steps {
            2 * settings.eval_batches + self.test_windows as u64
        } else if step.is_multiple_of(settings.eval_every) || last {
            settings.eval_batches
        } else {
            0
        };
        1.0 + windows as f64 / (settings.batch * settings.accum_steps) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Failure;
    use crate::plan::CorpusInfo;
    use crate::protocol::Place;
    use crate::run::RunId;
    use crate::settings::Settings;

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
        }
    }

    /// Trains to the end; the last value of each row, and of the result.
    fn train(trainers: &mut CpuTrainers, assignment: &Assignment) -> Result<Vec<u64>, Failure> {
        let mut run = trainers.begin(assignment)?;
        let mut values = Vec::new();
        loop {
            match run.advance()? {
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
        let mut trainers = CpuTrainers::new(1).unwrap();
        let digest = Corpus::open(&Data::Builtin).unwrap().digest().to_string();
        let assignment = assignment(&digest);
        let first = train(&mut trainers, &assignment).unwrap();
        assert_eq!(first.len(), 4);
        assert!(trainers.spare.borrow().is_some(), "the buffers are kept");
        assert_eq!(train(&mut trainers, &assignment).unwrap(), first);
    }

    #[test]
    fn another_corpus_than_the_planned_one_is_refused() {
        let mut trainers = CpuTrainers::new(1).unwrap();
        let failure = trainers.begin(&assignment("0123")).err().unwrap();
        assert_eq!(failure.cause, Cause::Corpus);
    }

    #[test]
    fn work_counts_the_windows_that_belong_to_a_step() {
        let mut trainers = CpuTrainers::new(1).unwrap();
        let digest = Corpus::open(&Data::Builtin).unwrap().digest().to_string();
        let run = trainers.begin(&assignment(&digest)).unwrap();
        assert_eq!([0, 1, 2, 3, 4].map(|step| run.work(step)), [4.0, 1.0, 4.0, 4.0, 12.0]);
    }
}
