//! Many runs at once on a die, one in each lane.
//!
//! All lanes take a step together, by one replay of a recorded graph; a lane whose run has ended rests until it is filled again.
//! The host writes a lane's settings when it is filled and its learning rates every 256 steps, and reads when a step is logged.

mod control;
mod knee;
mod run;
mod saved;

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::die::{Die, DieError, Graph};
use super::engine::optimizer::DeviceOptimizer;
use super::engine::{Engine, EngineError};
use crate::backend::cpu::team::Team;
use crate::data::{Corpus, DataError, Split};
use crate::model::ModelConfig;
use crate::optim::{Optimizer, State};
use crate::settings::{OnNonfinite, Precision, Settings};
use crate::trainer::Progress;
use control::{CHUNK, Control, Course};
pub use knee::{Measured, knee, measure};
use run::{LaneRun, Reading};

/// A run cannot be put in a lane, or the lanes cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum LanesError {
    /// The corpus does not fit the settings.
    #[error(transparent)]
    Corpus(#[from] DataError),
    /// The backend lacks what a setting asks.
    #[error("the cuda backend has no {0}")]
    Unsupported(&'static str),
    /// The run is of another shape than the lanes.
    #[error("the run is of another shape than these lanes")]
    Shape,
    /// The model.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The die.
    #[error(transparent)]
    Die(#[from] DieError),
}

/// What runs that share lanes have in common.
#[derive(Clone, Debug, PartialEq)]
struct Shape {
    config: ModelConfig,
    batch: usize,
    parts: usize,
}

impl Shape {
    fn of(settings: &Settings) -> Self {
        Self { config: ModelConfig::from(settings), batch: settings.batch, parts: settings.accum_steps }
    }
}

/// The graphs, recorded once for a shape.
struct Graphs {
    step: Graph,
    group: Graph,
    panel: Graph,
}

/// Lanes on a die, for runs of one shape on one corpus.
pub struct Lanes {
    // Graphs go first, then what they use, then the die.
    graphs: Graphs,
    control: Control,
    optimizer: DeviceOptimizer,
    engine: Engine,
    shape: Shape,
    runs: Vec<Option<LaneRun>>,
    corpus: Corpus,
    team: Arc<Team>,
    die: Rc<Die>,
}

/// Whether this backend has what a run asks.
///
/// # Errors
/// It has not.
pub fn supports(settings: &Settings) -> Result<(), LanesError> {
    if settings.precision != Precision::Fp32 {
        return Err(LanesError::Unsupported("precision but fp32"));
    }
    if settings.recompute != 0 {
        return Err(LanesError::Unsupported("recomputation of activations"));
    }
    if settings.dies_per_run != 1 {
        return Err(LanesError::Unsupported("runs over several dies"));
    }
    Ok(())
}

impl Lanes {
    /// `count` empty lanes for runs of the shape of `settings`, whose evaluations are no longer than its. The team forms initial
    /// weights.
    ///
    /// # Errors
    /// The backend lacks what the settings ask, the corpus is too short, or the die has too little memory.
    pub fn new(
        die: Rc<Die>,
        settings: &Settings,
        corpus: Corpus,
        count: usize,
        team: Arc<Team>,
    ) -> Result<Self, LanesError> {
        supports(settings)?;
        corpus.check(settings.seq_len)?;
        let shape = Shape::of(settings);
        let engine = Engine::new(&die, &shape.config, shape.batch, count)?;
        let optimizer = DeviceOptimizer::new(&die, &engine)?;
        let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let course = Course {
            parts: small(shape.parts),
            corpus: corpus.len(),
            train: Split::Train.range(corpus.len()).len(),
            windows: small(LaneRun::windows(settings, &corpus)),
        };
        let control = Control::new(&die, &engine, course, corpus.bytes())?;
        let graphs = Graphs {
            step: control.step(&die, &engine, &optimizer)?,
            group: control.group(&die, &engine)?,
            panel: control.panel(&die, &engine, &optimizer)?,
        };
        let runs = (0..count).map(|_| None).collect();
        let lanes = Self { graphs, control, optimizer, engine, shape, runs, corpus, team, die };
        // Empty lanes rest.
        lanes.control.halted.upload(0, &vec![1; count])?;
        Ok(lanes)
    }

    /// Lanes, filled or not.
    pub fn count(&self) -> usize {
        self.runs.len()
    }

    /// Kernels of a training step.
    pub fn step_nodes(&self) -> usize {
        self.graphs.step.nodes()
    }

    /// The die.
    pub fn die(&self) -> &Die {
        &self.die
    }

    /// Whether a run can be put in these lanes.
    pub fn fits(&self, settings: &Settings) -> bool {
        let windows = LaneRun::windows(settings, &self.corpus);
        Shape::of(settings) == self.shape && windows <= self.control.course().windows as usize
    }

    /// Puts a run in a lane, in place of what is there.
    ///
    /// # Errors
    /// The run is of another shape, or the die's error.
    ///
    /// # Panics
    /// There is no such lane.
    pub fn fill(&mut self, lane: usize, settings: &Settings) -> Result<(), LanesError> {
        let run = self.run(settings)?;
        let params = self.engine.params();
        let state = self.team.enter(|| run.start(&self.team, params));
        self.place(lane, run, &state)
    }

    /// A run that these lanes can take, before its first step.
    fn run(&self, settings: &Settings) -> Result<LaneRun, LanesError> {
        supports(settings)?;
        if !self.fits(settings) {
            return Err(LanesError::Shape);
        }
        Ok(LaneRun::new(settings, Optimizer::new(settings, self.engine.params()), &self.corpus))
    }

    /// Puts a run in a lane with the state that it is in.
    fn place(&mut self, lane: usize, run: LaneRun, state: &State) -> Result<(), LanesError> {
        let control = &self.control;
        self.upload(lane, state)?;
        self.optimizer.configure(lane, &run.lane_optimizer())?;
        let settings = &run.settings;
        control.seeds.upload(lane, &[settings.seed])?;
        control.limits.upload(lane, &[settings.steps])?;
        control.steps.upload(lane, &[run.step])?;
        control.skipped.upload(lane, &[run.skipped])?;
        control.skips.upload(lane, &[u8::from(settings.on_nonfinite == OnNonfinite::Skip)])?;
        control.ceilings.upload(lane, &[settings.diverge_above])?;
        self.offer(lane, run.val())?;
        control.halted.upload(lane, &[u8::from(run.is_trained())])?;
        self.runs[lane] = Some(run);
        Ok(())
    }

    /// Empties a lane; its run is given up.
    ///
    /// # Errors
    /// The die's.
    pub fn empty(&mut self, lane: usize) -> Result<(), LanesError> {
        self.control.halted.upload(lane, &[1])?;
        self.runs[lane] = None;
        Ok(())
    }

    /// Puts the windows of a lane's next evaluation on the die.
    fn offer(&self, lane: usize, windows: &[u64]) -> Result<(), DieError> {
        let capacity = self.control.course().windows as usize;
        self.control.offsets.upload(lane * capacity, windows)?;
        self.control.counts.upload(lane, &[u32::try_from(windows.len()).unwrap_or(u32::MAX)])
    }

    /// Moves every run on, up to the first step that one of them logs, and tells what became of each: one entry a filled lane that
    /// moved. A lane whose run ended is empty afterwards.
    ///
    /// # Errors
    /// The die's; the runs are lost then.
    pub fn advance(&mut self) -> Result<Vec<(usize, Progress)>, LanesError> {
        self.advance_at_most(CHUNK as u64)
    }

    /// [`Lanes::advance`] by no more than `most` steps, so that whoever drives the lanes is asked that often.
    ///
    /// # Errors
    /// The die's; the runs are lost then.
    pub fn advance_at_most(&mut self, most: u64) -> Result<Vec<(usize, Progress)>, LanesError> {
        let trained: Vec<usize> = self.filled().filter(|(_, run)| run.is_trained()).map(|(lane, _)| lane).collect();
        if !trained.is_empty() {
            return self.finish(&trained);
        }
        let steps = self.filled().map(|(_, run)| run.steps_to_log()).min();
        let Some(steps) = steps.map(|n| n.min(most.clamp(1, CHUNK as u64))) else { return Ok(Vec::new()) };
        self.supply(steps)?;
        for _ in 0..steps {
            self.graphs.step.replay()?;
        }
        let moved = self.read_steps()?;
        self.tell(&moved)
    }

    fn filled(&self) -> impl Iterator<Item = (usize, &LaneRun)> {
        self.runs.iter().enumerate().filter_map(|(lane, run)| Some((lane, run.as_ref()?)))
    }

    /// Sees to it that the rates of the next `steps` steps lie on the die.
    fn supply(&mut self, steps: u64) -> Result<(), DieError> {
        let row = super::engine::optimizer::STEP_ROW;
        for (lane, run) in self.runs.iter_mut().enumerate() {
            let Some(run) = run.as_mut().filter(|run| run.step + steps > run.table_until) else { continue };
            let mut table = vec![0.0; CHUNK * row];
            for step in run.step..run.step + CHUNK as u64 {
                let place = (step % CHUNK as u64) as usize * row;
                table[place..place + row].copy_from_slice(&run.lane_step(step).row());
            }
            self.control.table.upload(lane * CHUNK * row, &table)?;
            run.table_until = run.step + CHUNK as u64;
        }
        Ok(())
    }

    /// Reads how far each run is; the lanes that are filled, and whether each has diverged.
    fn read_steps(&mut self) -> Result<Vec<(usize, bool)>, DieError> {
        let n = self.count();
        let (steps, skipped) = (self.control.steps.download(0, n)?, self.control.skipped.download(0, n)?);
        let halted = self.control.halted.download(0, n)?;
        let mut moved = Vec::new();
        for (lane, run) in self.runs.iter_mut().enumerate() {
            if let Some(run) = run {
                (run.step, run.skipped) = (steps[lane], skipped[lane]);
                moved.push((lane, halted[lane] != 0));
            }
        }
        Ok(moved)
    }

    /// What became of each lane: diverged, logged or stepped.
    fn tell(&mut self, moved: &[(usize, bool)]) -> Result<Vec<(usize, Progress)>, LanesError> {
        let due: Vec<usize> = moved
            .iter()
            .filter(|&&(lane, diverged)| {
                !diverged && self.runs[lane].as_ref().is_some_and(|run| run.step > 0 && run.is_logged(run.step - 1))
            })
            .map(|&(lane, _)| lane)
            .collect();
        let (readings, took) = self.evaluate(&due, false)?;
        let losses = self.control.losses.download(0, self.count())?;
        let sizes = (self.engine.params().ternary_len, self.engine.params().scale_len);
        let mut progress = Vec::new();
        for &(lane, diverged) in moved {
            let Some(run) = &mut self.runs[lane] else { continue };
            if diverged {
                progress.push((lane, run.diverged(run.step, losses[lane])));
                self.runs[lane] = None;
            } else if let Some(i) = due.iter().position(|&d| d == lane) {
                progress.push((lane, run.log(&readings[i], sizes, took)));
            } else {
                progress.push((lane, Progress::Stepped { step: run.step - 1 }));
            }
        }
        Ok(progress)
    }

    /// The last evaluation of runs that are trained, and their outcomes.
    fn finish(&mut self, lanes: &[usize]) -> Result<Vec<(usize, Progress)>, LanesError> {
        let mut due = Vec::new();
        for &lane in lanes {
            if let Some(run) = self.runs[lane].as_ref().filter(|run| run.bad().is_none()) {
                self.offer(lane, run.evaluation())?;
                due.push(lane);
            }
        }
        let (readings, took) = self.evaluate(&due, true)?;
        let nothing = Reading {
            loss: 0.0,
            norm: 0.0,
            pieces: vec![],
            losses: vec![],
            hits: vec![],
            counts: [0; 5],
            scales: [0.0; 3],
        };
        let mut progress = Vec::new();
        for &lane in lanes {
            let reading = due.iter().position(|&d| d == lane).map_or(&nothing, |i| &readings[i]);
            if let Some(mut run) = self.runs[lane].take() {
                progress.push((lane, run.finish(reading, took)));
            }
            self.control.halted.upload(lane, &[1])?;
        }
        Ok(progress)
    }

    /// Evaluates lanes on the windows offered, and measures their panels; `last` is whether for the last time. Also how long it took.
    fn evaluate(&self, due: &[usize], last: bool) -> Result<(Vec<Reading>, Duration), LanesError> {
        if due.is_empty() {
            return Ok((Vec::new(), Duration::ZERO));
        }
        let from = Instant::now();
        let control = &self.control;
        let n = self.count();
        let list = |takes_part: &dyn Fn(usize) -> bool| -> Vec<i32> {
            (0..n).map(|lane| if takes_part(lane) { i32::try_from(lane).unwrap_or(-1) } else { -1 }).collect()
        };
        control.due.upload(0, &list(&|lane| due.contains(&lane)))?;
        let fresh =
            |lane: usize| due.contains(&lane) && (last || self.runs[lane].as_ref().is_some_and(LaneRun::sees_fresh));
        control.fresh.upload(0, &list(&fresh))?;
        control.groups.upload(0, &vec![0; n])?;
        self.graphs.panel.replay()?;
        let counts = control.counts.download(0, n)?;
        let longest = due.iter().map(|&lane| counts[lane]).max().unwrap_or(0);
        for _ in 0..longest.div_ceil(self.engine.sizes().windows) {
            self.graphs.group.replay()?;
        }
        let readings = self.read(due, &counts)?;
        Ok((readings, from.elapsed()))
    }

    fn read(&self, due: &[usize], evaluated: &[u32]) -> Result<Vec<Reading>, DieError> {
        let (control, n) = (&self.control, self.count());
        let capacity = control.course().windows as usize;
        let losses = control.losses.download(0, n)?;
        let norms = self.optimizer.norms()?;
        let counts = control.panel_counts.download(0, 5 * n)?;
        let scales = control.scale_summary.download(0, 3 * n)?;
        due.iter()
            .map(|&lane| {
                let windows = evaluated[lane] as usize;
                Ok(Reading {
                    loss: losses[lane],
                    norm: norms[lane],
                    pieces: self.optimizer.piece_sums(lane)?,
                    losses: control.kept_losses.download(lane * capacity, windows)?,
                    hits: control.kept_hits.download(lane * capacity, windows)?,
                    counts: std::array::from_fn(|i| counts[5 * lane + i]),
                    scales: std::array::from_fn(|i| scales[3 * lane + i]),
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
