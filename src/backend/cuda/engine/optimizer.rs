//! A step's update on the die: gradient norm, AdamW, SR4.

use super::Engine;
use crate::backend::cuda::die::{Die, DieError, Launcher};
use crate::backend::cuda::kernel::{In, Out};
use crate::backend::cuda::memory::Memory;
use crate::backend::cuda::ops::optimizer as ops;
use crate::model::{Class, ModelParams};
use crate::optim::adamw::AdamWStep;
use crate::settings::Opt;

/// Floats of a gradient piece whose squares are summed on their own.
const PIECE: usize = crate::optim::norm::PIECE;

/// Kinds of 16 floats of an arena, as the AdamW kernel reads them.
const CONTINUOUS: u8 = 1;
const TERNARY: u8 = 2;
const MATRIX: u8 = 4;

/// A flat array that AdamW trains: values, moments, gradients, all [L, len].
struct Trained {
    len: u32,
    stride: u64,
    kinds: Memory<u8>,
}

/// What of a lane's optimizer is fixed for a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneOptimizer {
    /// Arm.
    pub opt: Opt,
    /// L2 norm that gradients are clipped to; 0: none.
    pub grad_clip: f64,
    /// SR4: mean move.
    pub target_step: f64,
    /// SR4: end of the accumulators' range.
    pub clamp: u8,
    /// SR4: threshold.
    pub theta: u8,
    /// SR4: stochastic rounding.
    pub dither: bool,
    /// SR4: its seed.
    pub seed: u64,
}

/// What of a lane's optimizer a step changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneStep {
    /// Step, from 0.
    pub step: u64,
    /// AdamW's constants of matrices.
    pub matrices: AdamWStep,
    /// AdamW's constants of vectors, which differ in `keep` alone.
    pub vectors: AdamWStep,
    /// Those of the scales.
    pub scales: AdamWStep,
    /// What the scales' gradients are multiplied by first.
    pub scale_factor: f32,
}

/// Floats of a step's numbers: AdamW's of the weights, AdamW's of the scales, the factor of the scales' gradients.
pub const STEP_ROW: usize = crate::backend::cuda::ops::control::TABLE_ROW;

impl LaneStep {
    /// As the kernel that begins a step reads them.
    pub fn row(&self) -> [f32; STEP_ROW] {
        let mut row = [0.0; STEP_ROW];
        row[..ops::RATES].copy_from_slice(&rates(&self.matrices, &self.vectors));
        row[ops::RATES..2 * ops::RATES].copy_from_slice(&rates(&self.scales, &self.scales));
        row[2 * ops::RATES] = self.scale_factor;
        row
    }
}

/// Where a step's numbers of each lane lie.
pub struct StepBuffers {
    /// The step.
    pub numbers: Out<u64>,
    /// AdamW's numbers of the weights.
    pub rates: Out<f32>,
    /// AdamW's numbers of the scales.
    pub scale_rates: Out<f32>,
    /// What the scales' gradients are multiplied by.
    pub scale_factors: Out<f32>,
}

/// The optimizer's buffers of all lanes.
pub struct DeviceOptimizer {
    lanes: u32,
    weights: Trained,
    scales: Trained,
    /// First and second moments of the weights [L, arena].
    pub m: Memory<f32>,
    /// Second moments.
    pub v: Memory<f32>,
    /// Accumulators [L, accumulators].
    pub q: Memory<i8>,
    /// Scales [L, scales], their gradients and moments.
    pub scale: Memory<f32>,
    sgrad: Memory<f32>,
    /// First moments of the scales.
    pub scale_m: Memory<f32>,
    /// Second moments of the scales.
    pub scale_v: Memory<f32>,
    table: Memory<u32>,
    tensors: u32,
    /// Which weights of which tensor each block of a kernel over all ternary weights has in hand.
    spans: Memory<u32>,
    span_count: u32,
    widest: u32,
    pieces: Memory<u32>,
    piece_count: u32,
    piece_sums: Memory<f64>,
    limits: Memory<f64>,
    norms: Memory<f64>,
    factors: Memory<f32>,
    scale_factors: Memory<f32>,
    rates: Memory<f32>,
    scale_rates: Memory<f32>,
    trains_ternary: Memory<u8>,
    nothing_ternary: Memory<u8>,
    targets: Memory<f64>,
    settings: Memory<u32>,
    seeds: Memory<u64>,
    steps: Memory<u64>,
    moves: Memory<f64>,
}

/// For every 16 floats of an arena, whether they are trained, as what, and whether they belong to a matrix.
fn kinds(params: &ModelParams) -> Vec<u8> {
    let mut kinds = vec![0; params.arena_len.div_ceil(16)];
    for p in &params.table {
        let class = if p.class == Class::Ternary { TERNARY } else { CONTINUOUS };
        let matrix = if p.is_matrix() { MATRIX } else { 0 };
        let range = p.id.range();
        kinds[range.start / 16..range.end.div_ceil(16)].fill(class | matrix);
    }
    kinds
}

fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl DeviceOptimizer {
    /// Buffers for the lanes of an engine.
    ///
    /// # Errors
    /// The die has too little memory left.
    pub fn new(die: &Die, engine: &Engine) -> Result<Self, DieError> {
        let (params, lanes) = (engine.params(), engine.sizes().lanes as usize);
        let mut pieces = Vec::new();
        for p in &params.table {
            let range = p.id.range();
            for start in range.clone().step_by(PIECE) {
                pieces.extend([small(start), small(PIECE.min(range.end - start))]);
            }
        }
        let table: Vec<u32> = params
            .ternary()
            .flat_map(|(p, place)| [p.id.range().start, p.id.rows(), p.id.cols(), place.base, place.scale].map(small))
            .collect();
        let scale_len = params.scale_len;
        let floats = |n: usize| die.zeroed::<f32>(lanes * n);
        let count = pieces.len() / 2;
        let spans: Vec<u32> = (0..)
            .zip(params.ternary())
            .flat_map(|(tensor, (p, _))| (0..p.id.len()).step_by(ops::SPAN).flat_map(move |at| [tensor, small(at)]))
            .collect();
        let widest = params.ternary().map(|(p, _)| p.id.cols()).max().unwrap_or(0);
        Ok(Self {
            lanes: engine.sizes().lanes,
            weights: Trained {
                len: small(params.arena_len),
                stride: params.arena_len as u64,
                kinds: die.copied(&kinds(params))?,
            },
            scales: Trained {
                len: small(scale_len),
                stride: scale_len as u64,
                kinds: die.copied(&vec![CONTINUOUS; scale_len.div_ceil(16)])?,
            },
            m: floats(params.arena_len)?,
            v: floats(params.arena_len)?,
            q: die.zeroed(lanes * params.ternary_len)?,
            scale: floats(scale_len)?,
            sgrad: floats(scale_len)?,
            scale_m: floats(scale_len)?,
            scale_v: floats(scale_len)?,
            tensors: small(table.len() / ops::TERNARY),
            table: die.copied(&table)?,
            span_count: small(spans.len() / 2),
            spans: die.copied(&spans)?,
            widest: small(widest),
            pieces: die.copied(&pieces)?,
            piece_count: small(count),
            piece_sums: die.zeroed(lanes * count)?,
            limits: die.zeroed(lanes)?,
            norms: die.zeroed(lanes)?,
            factors: floats(1)?,
            scale_factors: floats(1)?,
            rates: floats(ops::RATES)?,
            scale_rates: floats(ops::RATES)?,
            trains_ternary: die.zeroed(lanes)?,
            nothing_ternary: die.zeroed(lanes)?,
            targets: die.zeroed(lanes)?,
            settings: die.zeroed(4 * lanes)?,
            seeds: die.zeroed(lanes)?,
            steps: die.zeroed(lanes)?,
            moves: die.zeroed(lanes * (table.len() / ops::TERNARY))?,
        })
    }

    /// Takes over a run's settings in a lane.
    ///
    /// # Errors
    /// The die's.
    pub fn configure(&self, lane: usize, by: &LaneOptimizer) -> Result<(), DieError> {
        let sr4 = by.opt == Opt::Sr4;
        self.limits.upload(lane, &[by.grad_clip])?;
        self.targets.upload(lane, &[by.target_step])?;
        self.seeds.upload(lane, &[by.seed])?;
        self.trains_ternary.upload(lane, &[u8::from(!sr4)])?;
        let settings = [u32::from(by.clamp), u32::from(by.theta), u32::from(by.dither), u32::from(sr4)];
        self.settings.upload(4 * lane, &settings)
    }

    /// Where a step's numbers of each lane lie, for the kernel that puts them there.
    pub fn step_buffers(&self) -> StepBuffers {
        StepBuffers {
            numbers: self.steps.write(),
            rates: self.rates.write(),
            scale_rates: self.scale_rates.write(),
            scale_factors: self.scale_factors.write(),
        }
    }

    /// Takes over a step's numbers of every lane from the host.
    ///
    /// # Errors
    /// The die's.
    ///
    /// # Panics
    /// Not one entry a lane.
    pub fn set_step(&self, lanes: &[LaneStep]) -> Result<(), DieError> {
        assert_eq!(lanes.len(), self.lanes as usize, "one entry a lane");
        let rows: Vec<[f32; STEP_ROW]> = lanes.iter().map(LaneStep::row).collect();
        let part = |from: usize, to: usize| -> Vec<f32> { rows.iter().flat_map(|r| r[from..to].to_vec()).collect() };
        self.rates.upload(0, &part(0, ops::RATES))?;
        self.scale_rates.upload(0, &part(ops::RATES, 2 * ops::RATES))?;
        self.scale_factors.upload(0, &part(2 * ops::RATES, STEP_ROW))?;
        self.steps.upload(0, &lanes.iter().map(|l| l.step).collect::<Vec<_>>())
    }

    /// Norms of the last step's gradients of each lane, on the die.
    pub fn norms_memory(&self) -> In<f64> {
        self.norms.read()
    }

    /// Each lane's settings as kernels read them [L, 4], on the die.
    pub fn settings_memory(&self) -> In<u32> {
        self.settings.read()
    }

    /// Norms of the last step's gradients of each lane.
    ///
    /// # Errors
    /// The die's.
    pub fn norms(&self) -> Result<Vec<f64>, DieError> {
        self.norms.download(0, self.norms.len())
    }

    /// The norm of the gradients in the engine's arena, and what clipping multiplies them by.
    ///
    /// # Errors
    /// The die's.
    pub fn norm<L: Launcher>(&self, mut to: L, engine: &Engine, lanes: &In<i32>) -> Result<(), DieError> {
        to.launch(&ops::GradientPieces {
            lanes: lanes.clone(),
            gradients: engine.arenas().grads.read(),
            arena: engine.arenas().len,
            pieces: self.pieces.read(),
            sums: self.piece_sums.write(),
            count: self.piece_count,
        })?;
        to.launch(&ops::GradientNorm {
            lanes: lanes.clone(),
            sums: self.piece_sums.read(),
            limits: self.limits.read(),
            norms: self.norms.write(),
            factors: self.factors.write(),
            pieces: self.piece_count,
        })
    }

    /// The update by the gradients in the engine's arena, after [`DeviceOptimizer::norm`]. SR4's weights stay those of the step's
    /// forward pass until [`DeviceOptimizer::refresh`].
    ///
    /// # Errors
    /// The die's.
    pub fn update<L: Launcher>(&self, mut to: L, engine: &Engine, lanes: &In<i32>) -> Result<(), DieError> {
        let arenas = engine.arenas();
        if self.tensors > 0 {
            self.update_sr4(&mut to, engine, lanes)?;
        }
        to.launch(&ops::AdamW {
            lanes: lanes.clone(),
            gradients: arenas.grads.read(),
            factors: self.factors.read(),
            rates: self.rates.read(),
            kinds: self.weights.kinds.read(),
            trains_ternary: self.trains_ternary.read(),
            values: arenas.weights.write(),
            first: self.m.write(),
            second: self.v.write(),
            arena: self.weights.stride,
            len: self.weights.len,
        })
    }

    fn update_sr4<L: Launcher>(&self, to: &mut L, engine: &Engine, lanes: &In<i32>) -> Result<(), DieError> {
        let arenas = engine.arenas();
        let (arena, tensors) = (arenas.len, self.tensors);
        let (q_lane, scale_lane) = (engine.params().ternary_len as u64, engine.params().scale_len as u64);
        to.launch(&ops::Sr4Columns {
            lanes: lanes.clone(),
            table: self.table.read(),
            q: self.q.read(),
            gradients: arenas.grads.read(),
            factors: self.factors.read(),
            lane_settings: self.settings.read(),
            sgrad: self.sgrad.write(),
            arena,
            q_lane,
            scale_lane,
            tensors,
            widest: self.widest,
        })?;
        to.launch(&ops::Sr4Magnitudes {
            lanes: lanes.clone(),
            table: self.table.read(),
            gradients: arenas.grads.read(),
            factors: self.factors.read(),
            scales: self.scale.read(),
            target_steps: self.targets.read(),
            lane_settings: self.settings.read(),
            steps: self.moves.write(),
            arena,
            scale_lane,
            tensors,
        })?;
        to.launch(&ops::Sr4Update {
            lanes: lanes.clone(),
            table: self.table.read(),
            spans: self.spans.read(),
            gradients: arenas.grads.read(),
            factors: self.factors.read(),
            scales: self.scale.read(),
            steps: self.moves.read(),
            seeds: self.seeds.read(),
            step_numbers: self.steps.read(),
            lane_settings: self.settings.read(),
            q: self.q.write(),
            arena,
            q_lane,
            scale_lane,
            tensors,
            span_count: self.span_count,
        })?;
        to.launch(&ops::AdamW {
            lanes: lanes.clone(),
            gradients: self.sgrad.read(),
            factors: self.scale_factors.read(),
            rates: self.scale_rates.read(),
            kinds: self.scales.kinds.read(),
            trains_ternary: self.nothing_ternary.read(),
            values: self.scale.write(),
            first: self.scale_m.write(),
            second: self.scale_v.write(),
            arena: self.scales.stride,
            len: self.scales.len,
        })
    }

    /// Makes the ternary tensors' weights of the accumulators and scales as they are now, in SR4's lanes.
    ///
    /// # Errors
    /// The die's.
    pub fn refresh<L: Launcher>(&self, mut to: L, engine: &Engine, lanes: &In<i32>) -> Result<(), DieError> {
        if self.tensors == 0 {
            return Ok(());
        }
        to.launch(&ops::Sr4Weights {
            lanes: lanes.clone(),
            table: self.table.read(),
            spans: self.spans.read(),
            q: self.q.read(),
            scales: self.scale.read(),
            lane_settings: self.settings.read(),
            values: engine.arenas().weights.write(),
            arena: engine.arenas().len,
            q_lane: engine.params().ternary_len as u64,
            scale_lane: engine.params().scale_len as u64,
            tensors: self.tensors,
            span_count: self.span_count,
        })
    }
}

/// In the order of the kernel's `Rates`.
fn rates(s: &AdamWStep, vectors: &AdamWStep) -> [f32; ops::RATES] {
    let [b1, b2] = [(s.beta1, s.one_minus_beta1), (s.beta2, s.one_minus_beta2)];
    [b1.0, b1.1, b2.0, b2.1, s.bias1, s.bias2, s.lr, s.eps, s.keep, vectors.keep]
}
