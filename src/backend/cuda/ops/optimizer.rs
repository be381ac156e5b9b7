//! Rows of `kernels/optimizer.cu`.

use crate::backend::cuda::kernel::{In, Out, kernel};

/// Floats of a lane's rates of AdamW.
pub const RATES: usize = 10;
/// Weights of a span, a block's work: `SPAN` in the source.
pub const SPAN: usize = 1024;
/// Numbers of a ternary tensor in the table.
pub const TERNARY: usize = 5;

kernel! {
    /// Sums of squares of pieces of the gradients.
    GradientPieces = "gradient_pieces" in "optimizer.cu", |s| [s.count, 1], 1024;
    gradients: In<f32> = s.arena as usize,
    arena: u64,
    pieces: In<u32> {2 * s.count as usize},
    sums: Out<f64> [s.count as usize],
    count: u32,
}

kernel! {
    /// The gradient's norm and clip factor.
    GradientNorm = "gradient_norm" in "optimizer.cu", |_s| [1, 1], 32;
    sums: In<f64> [_s.pieces as usize],
    limits: In<f64> [1],
    norms: Out<f64> [1],
    factors: Out<f32> [1],
    pieces: u32,
}

kernel! {
    /// A step of AdamW over an arena.
    AdamW = "adamw" in "optimizer.cu", |s| [s.len.div_ceil(1024), 1], 256;
    gradients: In<f32> = s.len as usize,
    factors: In<f32> [1],
    rates: In<f32> [RATES],
    kinds: In<u8> {s.len.div_ceil(16) as usize},
    trains_ternary: In<u8> [1],
    values: Out<f32> = s.len as usize,
    first: Out<f32> = s.len as usize,
    second: Out<f32> = s.len as usize,
    arena: u64,
    len: u32,
}

kernel! {
    /// Effective weights of ternary tensors.
    Sr4Weights = "sr4_weights" in "optimizer.cu", |s| [s.span_count, 1], 256;
    table: In<u32> {TERNARY * s.tensors as usize},
    spans: In<u32> {2 * s.span_count as usize},
    q: In<i8> [s.q_lane as usize],
    scales: In<f32> [s.scale_lane as usize],
    lane_settings: In<u32> [4],
    values: Out<f32> = s.arena as usize,
    arena: u64,
    q_lane: u64,
    scale_lane: u64,
    tensors: u32,
    span_count: u32,
}

kernel! {
    /// Gradients of the scales.
    Sr4Columns = "sr4_columns" in "optimizer.cu", |s| [s.widest.div_ceil(128), s.tensors], 128;
    table: In<u32> {TERNARY * s.tensors as usize},
    q: In<i8> [s.q_lane as usize],
    gradients: In<f32> = s.arena as usize,
    factors: In<f32> [1],
    lane_settings: In<u32> [4],
    sgrad: Out<f32> [s.scale_lane as usize],
    arena: u64,
    q_lane: u64,
    scale_lane: u64,
    tensors: u32,
    widest: u32,
}

kernel! {
    /// Each tensor's move for a unit of gradient.
    Sr4Magnitudes = "sr4_magnitudes" in "optimizer.cu", |s| [s.tensors, 1], 1024;
    table: In<u32> {TERNARY * s.tensors as usize},
    gradients: In<f32> = s.arena as usize,
    factors: In<f32> [1],
    scales: In<f32> [s.scale_lane as usize],
    target_steps: In<f64> [1],
    lane_settings: In<u32> [4],
    steps: Out<f64> [s.tensors as usize],
    arena: u64,
    scale_lane: u64,
    tensors: u32,
}

kernel! {
    /// Moves the accumulators.
    Sr4Update = "sr4_update" in "optimizer.cu", |s| [s.span_count, 1], 256;
    table: In<u32> {TERNARY * s.tensors as usize},
    spans: In<u32> {2 * s.span_count as usize},
    gradients: In<f32> = s.arena as usize,
    factors: In<f32> [1],
    scales: In<f32> [s.scale_lane as usize],
    steps: In<f64> [s.tensors as usize],
    seeds: In<u64> [1],
    step_numbers: In<u64> [1],
    lane_settings: In<u32> [4],
    q: Out<i8> [s.q_lane as usize],
    arena: u64,
    q_lane: u64,
    scale_lane: u64,
    tensors: u32,
    span_count: u32,
}
