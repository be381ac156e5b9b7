//! The buffers that steer lanes on the die, and the graphs of a step and of an evaluation.

use crate::backend::cuda::die::{Die, DieError, Graph, Launcher};
use crate::backend::cuda::engine::Engine;
use crate::backend::cuda::engine::optimizer::{DeviceOptimizer, STEP_ROW};
use crate::backend::cuda::kernel::In;
use crate::backend::cuda::memory::Memory;
use crate::backend::cuda::ops::clear::Clear;
use crate::backend::cuda::ops::control as ops;
use crate::backend::cuda::ops::data::GatherWindows;

/// Steps whose rates lie on the die at a time.
pub const CHUNK: usize = 256;

/// What of a run's shape the graphs depend on, beside the engine's sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// Batches of a step.
    pub parts: u32,
    /// Bytes of the corpus.
    pub corpus: usize,
    /// Bytes of its training split, which begins the corpus.
    pub train: usize,
    /// Most windows of an evaluation.
    pub windows: u32,
}

/// The buffers.
pub struct Control {
    course: Course,
    corpus: Memory<u8>,
    all: Memory<i32>,
    /// One lane, the others at rest.
    only: Memory<i32>,
    pub(super) seeds: Memory<u64>,
    pub(super) limits: Memory<u64>,
    pub(super) steps: Memory<u64>,
    pub(super) skipped: Memory<u64>,
    pub(super) halted: Memory<u8>,
    pub(super) skips: Memory<u8>,
    pub(super) ceilings: Memory<f64>,
    pub(super) losses: Memory<f64>,
    pub(super) table: Memory<f32>,
    training: Memory<i32>,
    updating: Memory<i32>,
    scoring: Memory<i32>,
    numbers: Memory<u64>,
    pub(super) due: Memory<i32>,
    /// Lanes whose weights an evaluation sees as the update left them.
    pub(super) fresh: Memory<i32>,
    pub(super) offsets: Memory<u64>,
    pub(super) counts: Memory<u32>,
    pub(super) groups: Memory<u32>,
    pub(super) kept_losses: Memory<f64>,
    pub(super) kept_hits: Memory<u32>,
    pub(super) previous: Memory<i8>,
    pub(super) panel_counts: Memory<u32>,
    pub(super) scale_summary: Memory<f64>,
}

impl Control {
    /// Buffers for the lanes of an engine, with the corpus.
    ///
    /// # Errors
    /// The die has too little memory left.
    pub fn new(die: &Die, engine: &Engine, course: Course, corpus: &[u8]) -> Result<Self, DieError> {
        let lanes = engine.sizes().lanes as usize;
        let all: Vec<i32> = (0..i32::try_from(lanes).unwrap_or(i32::MAX)).collect();
        let windows = course.windows as usize;
        Ok(Self {
            course,
            corpus: die.copied(corpus)?,
            all: die.copied(&all)?,
            only: die.zeroed(lanes)?,
            seeds: die.zeroed(lanes)?,
            limits: die.zeroed(lanes)?,
            steps: die.zeroed(lanes)?,
            skipped: die.zeroed(lanes)?,
            halted: die.zeroed(lanes)?,
            skips: die.zeroed(lanes)?,
            ceilings: die.zeroed(lanes)?,
            losses: die.zeroed(lanes)?,
            table: die.zeroed(lanes * CHUNK * STEP_ROW)?,
            training: die.zeroed(lanes)?,
            updating: die.zeroed(lanes)?,
            scoring: die.zeroed(lanes)?,
            numbers: die.zeroed(lanes)?,
            due: die.zeroed(lanes)?,
            fresh: die.zeroed(lanes)?,
            offsets: die.zeroed(lanes * windows)?,
            counts: die.zeroed(lanes)?,
            groups: die.zeroed(lanes)?,
            kept_losses: die.zeroed(lanes * windows)?,
            kept_hits: die.zeroed(lanes * windows)?,
            previous: die.zeroed(lanes * engine.params().ternary_len)?,
            panel_counts: die.zeroed(lanes * ops::COUNTS)?,
            scale_summary: die.zeroed(lanes * 3)?,
        })
    }

    /// What the graphs depend on.
    pub const fn course(&self) -> &Course {
        &self.course
    }

    /// A list in which only `lane` takes part.
    pub(super) fn only(&self, lane: usize) -> Result<In<i32>, DieError> {
        let mut list = vec![-1; self.only.len()];
        list[lane] = i32::try_from(lane).unwrap_or(-1);
        self.only.upload(0, &list)?;
        Ok(self.only.read())
    }

    /// Sets a lane's moments, and with them everything that sums are added to, to zero.
    pub(super) fn clear(&self, die: &Die, o: &DeviceOptimizer, lane: usize) -> Result<(), DieError> {
        let lanes = self.only(lane)?;
        for memory in [&o.m, &o.v, &o.scale_m, &o.scale_v] {
            let n = (memory.len() / self.only.len()) as u64;
            if n > 0 {
                { die }.launch(&Clear { lanes: lanes.clone(), x: memory.write(), n })?;
            }
        }
        die.wait()
    }

    /// A training step of every lane that has one left.
    pub(super) fn step(&self, die: &Die, engine: &Engine, optimizer: &DeviceOptimizer) -> Result<Graph, DieError> {
        let s = *engine.sizes();
        let course = self.course;
        die.record(|to| {
            let step = optimizer.step_buffers();
            to.launch(&ops::BeginStep {
                lanes: self.all.read(),
                halted: self.halted.read(),
                limits: self.limits.read(),
                steps: self.steps.read(),
                table: self.table.read(),
                training: self.training.write(),
                step_numbers: step.numbers,
                numbers: self.numbers.write(),
                rates: step.rates,
                scale_rates: step.scale_rates,
                scale_factors: step.scale_factors,
                chunk: CHUNK as u32,
                windows: s.windows * course.parts,
            })?;
            let training = self.training.read();
            // The weights of the step are those of its accumulators and scales.
            optimizer.refresh(&mut *to, engine, &training)?;
            for part in 0..course.parts {
                self.batch(to, engine, part)?;
            }
            optimizer.norm(&mut *to, engine, &training)?;
            to.launch(&ops::JudgeStep {
                lanes: self.all.read(),
                losses: self.losses.read(),
                norms: optimizer.norms_memory(),
                ceilings: self.ceilings.read(),
                skips: self.skips.read(),
                training,
                updating: self.updating.write(),
                halted: self.halted.write(),
                steps: self.steps.write(),
                skipped: self.skipped.write(),
            })?;
            optimizer.update(&mut *to, engine, &self.updating.read())
        })
    }

    fn batch<L: Launcher>(&self, to: &mut L, engine: &Engine, part: u32) -> Result<(), DieError> {
        let s = *engine.sizes();
        let course = self.course;
        let training = self.training.read();
        to.launch(&GatherWindows {
            lanes: training.clone(),
            corpus: self.corpus.read(),
            seeds: self.seeds.read(),
            numbers: self.numbers.read(),
            inputs: engine.inputs.write(),
            targets: engine.targets.write(),
            length: course.train as u64,
            split: crate::data::Split::Train.id(),
            rows: s.rows(),
            tokens: s.tokens,
        })?;
        let mut pass = engine.pass(&mut *to, training.clone());
        pass.accumulate = part > 0;
        engine.forward(&mut pass)?;
        engine.loss(&mut pass, Some(1.0 / f64::from(course.parts)))?;
        engine.backward(&mut pass)?;
        to.launch(&ops::CollectLoss {
            lanes: training,
            sums: engine.batch_loss_memory(),
            losses: self.losses.write(),
            numbers: self.numbers.write(),
            rows: s.rows(),
            windows: s.windows,
            part,
            parts: course.parts,
        })
    }

    /// Scores the next group of windows of every lane that is due and has one.
    pub(super) fn group(&self, die: &Die, engine: &Engine) -> Result<Graph, DieError> {
        let s = *engine.sizes();
        die.record(|to| {
            to.launch(&ops::BeginGroup {
                lanes: self.all.read(),
                due: self.due.read(),
                counts: self.counts.read(),
                groups: self.groups.write(),
                scoring: self.scoring.write(),
                windows: s.windows,
            })?;
            let scoring = self.scoring.read();
            to.launch(&ops::GatherGroup {
                lanes: scoring.clone(),
                corpus: self.corpus.read(),
                offsets: self.offsets.read(),
                groups: self.groups.read(),
                inputs: engine.inputs.write(),
                targets: engine.targets.write(),
                length: self.course.corpus as u64,
                capacity: self.course.windows,
                rows: s.rows(),
                tokens: s.tokens,
                windows: s.windows,
            })?;
            let mut pass = engine.pass(&mut *to, scoring.clone());
            pass.keep = false;
            engine.forward(&mut pass)?;
            engine.loss(&mut pass, None)?;
            let (losses, hits) = engine.window_memories();
            to.launch(&ops::KeepScores {
                lanes: scoring,
                losses,
                hits,
                groups: self.groups.read(),
                kept_losses: self.kept_losses.write(),
                kept_hits: self.kept_hits.write(),
                capacity: self.course.windows,
                windows: s.windows,
            })
        })
    }

    /// Weights of the lanes in `fresh` as their accumulators are now, and the panel of the lanes that are due.
    pub(super) fn panel(&self, die: &Die, engine: &Engine, optimizer: &DeviceOptimizer) -> Result<Graph, DieError> {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (q, scales) = (count(engine.params().ternary_len), count(engine.params().scale_len));
        die.record(|to| {
            optimizer.refresh(&mut *to, engine, &self.fresh.read())?;
            to.launch(&ops::PanelScales {
                lanes: self.due.read(),
                scales: optimizer.scale.read(),
                summary: self.scale_summary.write(),
                counts: self.panel_counts.write(),
                count: scales,
            })?;
            to.launch(&ops::PanelWeights {
                lanes: self.due.read(),
                q: optimizer.q.read(),
                lane_settings: optimizer.settings_memory(),
                previous: self.previous.write(),
                counts: self.panel_counts.write(),
                count: q,
            })
        })
    }
}
