//! Rows of `kernels/norm.cu`.

use crate::backend::cuda::kernel::{In, Out, kernel, size};

/// Floats of an arena from the first of `mixes` vectors to the end of the last.
fn mixes_len(mixes: u32, step: u32, c: u32) -> usize {
    mixes.checked_sub(1).map_or(0, |before| size([before, step]) + c as usize)
}

kernel! {
    /// Layer norm, and the token shifts of its output.
    LayerNorm = "layer_norm" in "norm.cu", |s| [s.rows.div_ceil(4 * s.each.max(1)), 1], 128;
    x: In<f32> [size([s.rows, s.c])],
    weight: In<f32> = s.c as usize,
    bias: In<f32> = s.c as usize,
    mix: In<f32> = mixes_len(s.mixes, s.mix_step, s.c),
    arena: u64,
    y: Out<f32> [size([s.rows, s.c])],
    mean: Out<f32> [s.rows as usize],
    scale: Out<f32> [s.rows as usize],
    shifted: Out<f32> [size([s.mixes, s.rows, s.c])],
    rows: u32,
    tokens: u32,
    c: u32,
    mixes: u32,
    mix_step: u32,
    each: u32,
}

kernel! {
    /// Gradients through it, and sums over chunks of rows of those of its vectors.
    LayerNormBackward = "layer_norm_backward" in "norm.cu", |s| [s.rows.div_ceil(32), 1], 128;
    dshifted: In<f32> [size([s.mixes, s.rows, s.c])],
    mix: In<f32> = mixes_len(s.mixes, s.mix_step, s.c),
    y: In<f32> [size([s.rows, s.c])],
    x: In<f32> [size([s.rows, s.c])],
    mean: In<f32> [s.rows as usize],
    scale: In<f32> [s.rows as usize],
    weight: In<f32> = s.c as usize,
    arena: u64,
    du: Out<f32> [size([s.rows, s.c])],
    dx: Out<f32> [size([s.rows, s.c])],
    chunks: Out<f32> [size([s.rows.div_ceil(32), s.vectors, s.c])],
    rows: u32,
    tokens: u32,
    c: u32,
    mixes: u32,
    mix_step: u32,
    vectors: u32,
    mix_slot: u32,
    norm_slot: u32,
    onto: u32,
}

kernel! {
    /// Totals of chunks' sums, for all vectors of channels.
    ColumnTotals = "column_totals" in "norm.cu", |s| [s.c.div_ceil(128), s.vectors], 128;
    chunks: In<f32> [size([s.chunk_count, s.vectors, s.c])],
    starts: In<u32> {s.vectors as usize},
    gradients: Out<f32> = s.arena as usize,
    arena: u64,
    chunk_count: u32,
    vectors: u32,
    c: u32,
    add: u32,
}
