//! The built-in trainer on a GPU: many runs at once, one in each lane.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::corpora::{self, Corpora};
use super::cpu::team;
use super::train::{Moved, Trainer, work};
use crate::backend::cpu::team::Team;
use crate::backend::cuda::die::{Die, DieError};
use crate::backend::cuda::lanes::{Lanes, LanesError, knee, measure, supports};
use crate::backend::cuda::library::Host;
use crate::data::Corpus;
use crate::event::{Cause, Device, Failure};
use crate::plan::LanesAsked;
use crate::protocol::Assignment;
use crate::settings::Settings;
use crate::trainer::{Progress, Snapshot};

/// Longest time between two looks at the orders, where a step is not longer.
const TURN: Duration = Duration::from_millis(500);

/// Trains on the first GPU that this process sees. Kernels, corpora, buffers and graphs outlive a run.
pub struct CudaTrainer {
    // Dropped before the die that it lives on.
    made: Option<Made>,
    die: Rc<Die>,
    device: Device,
    code: String,
    team: Arc<Team>,
    corpora: Corpora,
    asked: LanesAsked,
    /// Runs that are left for this worker.
    runs: u32,
    count: u32,
    /// Steps between two looks at the orders.
    turn: u64,
}

/// Lanes for runs of one shape on one corpus.
struct Made {
    lanes: Lanes,
    corpus: Corpus,
    runs: Vec<Option<(Settings, usize)>>,
}

impl CudaTrainer {
    /// Opens the GPU, and compiles the kernels if no earlier process has. `runs` is how many runs there are to train, and so the
    /// most lanes that are of use; `threads` form initial weights.
    ///
    /// # Errors
    /// There is no driver, GPU or compiler, or the driver refuses.
    pub fn new(threads: usize, asked: LanesAsked, runs: u32) -> Result<Self, Failure> {
        let start = |error: DieError| Failure::new(Cause::Start, error.to_string());
        let die = Rc::new(Die::open(&Host::this(), 0).map_err(start)?);
        let identity = || Ok(Device { uuid: die.uuid()?, pci: die.pci()?, name: die.name()? });
        let device = identity().map_err(start)?;
        let count = match asked {
            // Measured when the first run shows the shape.
            LanesAsked::Auto => 1,
            LanesAsked::Count(count) => count.min(runs.max(1)),
        };
        Ok(Self {
            made: None,
            code: die.image().target.to_string(),
            die,
            device,
            team: team(threads)?,
            corpora: Corpora::default(),
            asked,
            runs: runs.max(1),
            count,
            turn: 1,
        })
    }

    /// How many lanes to try first for runs like this one, and why.
    fn wanted(&self, settings: &Settings, corpus: &Corpus) -> Result<(u32, Option<String>), Failure> {
        let runs = usize::try_from(self.runs).unwrap_or(usize::MAX);
        match self.asked {
            LanesAsked::Count(count) => Ok((count.min(self.runs), None)),
            LanesAsked::Auto => {
                let measured = measure(&self.die, settings, corpus, runs, &self.team).map_err(|e| failure(&e))?;
                let text: Vec<String> = measured
                    .iter()
                    .map(|m| format!("{:.2} ms a step in {}", m.step.as_secs_f64() * 1e3, m.lanes))
                    .collect();
                let best = knee(&measured, runs).map_or(1, |m| m.lanes);
                Ok((u32::try_from(best).unwrap_or(u32::MAX), Some(format!("measured {}", text.join(", ")))))
            }
        }
    }

    fn made(&mut self) -> Result<&mut Made, Failure> {
        self.made.as_mut().ok_or_else(|| Failure::new(Cause::Bug, "no lanes were made"))
    }
}

impl Trainer for CudaTrainer {
    fn backend(&self) -> &str {
        "cuda"
    }

    fn simd(&self) -> &str {
        &self.code
    }

    fn device(&self) -> Option<Device> {
        Some(self.device.clone())
    }

    fn lanes(&self) -> u32 {
        self.count
    }

    fn prepare(&mut self, assignment: &Assignment) -> Result<Option<String>, Failure> {
        if self.fits(assignment) {
            return Ok(None);
        }
        let settings = &assignment.settings;
        supports(settings).map_err(|error| failure(&error))?;
        let corpus = self.corpora.open(assignment)?;
        // Its memory is needed for what follows.
        self.made = None;
        let (mut count, mut why) = self.wanted(settings, &corpus)?;
        let lanes = loop {
            let size = usize::try_from(count).unwrap_or(usize::MAX);
            match Lanes::new(Rc::clone(&self.die), settings, corpus.clone(), size, Arc::clone(&self.team)) {
                Err(LanesError::Die(DieError::OutOfMemory { .. })) if count > 1 => {
                    why = Some(format!("out of device memory at {count} lanes"));
                    count /= 2;
                }
                made => break made.map_err(|error| failure(&error))?,
            }
        };
        let runs = (0..lanes.count()).map(|_| None).collect();
        self.made = Some(Made { lanes, corpus, runs });
        self.count = count;
        Ok(why)
    }

    fn fits(&self, assignment: &Assignment) -> bool {
        self.made.as_ref().is_some_and(|made| {
            let same = made.corpus.digest().to_string() == assignment.corpus.digest;
            same && made.lanes.fits(&assignment.settings)
        })
    }

    fn begin(&mut self, assignment: &Assignment, from: Option<Snapshot>) -> Result<(), Failure> {
        let (settings, lane) = (&assignment.settings, assignment.place.lane as usize);
        let made = self.made()?;
        match &from {
            Some(snapshot) => made.lanes.resume(lane, settings, snapshot),
            None => made.lanes.fill(lane, settings),
        }
        .map_err(|error| failure(&error))?;
        let tests = made.corpus.test_ranges(settings.test_batches, settings.seq_len).len();
        made.runs[lane] = Some((settings.clone(), tests));
        Ok(())
    }

    fn advance(&mut self) -> Result<Moved, Failure> {
        let (turn, from) = (self.turn, Instant::now());
        let made = self.made()?;
        let moved = made.lanes.advance_at_most(turn).map_err(|error| failure(&error))?;
        let mut all: Moved = Vec::with_capacity(moved.len());
        for (lane, progress) in moved {
            let ended = matches!(progress, Progress::Ended(_));
            if ended {
                made.runs[lane] = None;
            }
            let told = if ended { corpora::unchanged(&made.corpus).map(|()| progress) } else { Ok(progress) };
            all.push((u32::try_from(lane).unwrap_or(u32::MAX), told));
        }
        let took = from.elapsed();
        self.turn = if took < TURN / 2 { (turn * 2).min(256) } else { turn };
        if took > TURN {
            self.turn = (turn / 2).max(1);
        }
        Ok(all)
    }

    fn snapshot(&mut self, lane: u32) -> Result<Option<Snapshot>, Failure> {
        self.made()?.lanes.snapshot(lane as usize).map_err(|error| of_die(&error))
    }

    fn weights(&mut self, lane: u32) -> Result<Vec<f32>, Failure> {
        self.made()?.lanes.state(lane as usize).map(|state| state.weights).map_err(|error| of_die(&error))
    }

    fn empty(&mut self, lane: u32) -> Result<(), Failure> {
        let made = self.made()?;
        made.runs[lane as usize] = None;
        made.lanes.empty(lane as usize).map_err(|error| failure(&error))
    }

    fn work(&self, lane: u32, step: u64) -> f64 {
        let run = self.made.as_ref().and_then(|made| made.runs.get(lane as usize)?.as_ref());
        run.map_or(1.0, |(settings, tests)| work(settings, *tests, step))
    }
}

fn failure(error: &LanesError) -> Failure {
    let cause = match error {
        LanesError::Corpus(error) => return corpora::failure(error),
        LanesError::Die(error) => return of_die(error),
        LanesError::Unsupported(_) | LanesError::Engine(_) => Cause::BadSettings,
        LanesError::Shape => Cause::Bug,
    };
    Failure::new(cause, error.to_string())
}

fn of_die(error: &DieError) -> Failure {
    let cause = match error {
        DieError::OutOfMemory { .. } => Cause::OutOfDeviceMemory,
        DieError::Launch(_) => Cause::Bug,
        DieError::NoDriver(_) | DieError::Code(_) => Cause::Start,
        DieError::Driver { .. } if error.is_loss() => Cause::DeviceLost,
        DieError::Driver { .. } => Cause::Crashed,
    };
    Failure::new(cause, error.to_string())
}
