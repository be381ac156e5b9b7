//! Rows of `kernels/norm.cu`.

use crate::backend::cuda::kernel::{In, Out, kernel, size};

kernel! {
    /// Layer norm.
    LayerNorm = "layer_norm" in "norm.cu", |s| [s.rows.div_ceil(8), 1], 256;
    x: In<f32> [size([s.rows, s.c])],
    weight: In<f32> = s.c as usize,
    bias: In<f32> = s.c as usize,
    arena: u64,
    y: Out<f32> [size([s.rows, s.c])],
    mean: Out<f32> [s.rows as usize],
    scale: Out<f32> [s.rows as usize],
    rows: u32,
    c: u32,
}

kernel! {
    /// Gradient of layer norm's input, added to what passes it by.
    LayerNormBackward = "layer_norm_backward" in "norm.cu", |s| [s.rows.div_ceil(8), 1], 256;
    dy: In<f32> [size([s.rows, s.c])],
    x: In<f32> [size([s.rows, s.c])],
    mean: In<f32> [s.rows as usize],
    scale: In<f32> [s.rows as usize],
    weight: In<f32> = s.c as usize,
    arena: u64,
    dx: Out<f32> [size([s.rows, s.c])],
    rows: u32,
    c: u32,
}

kernel! {
    /// Sums of layer norm's gradients of weight and bias over chunks of rows.
    LayerNormColumns = "layer_norm_columns" in "norm.cu", |s| [s.c.div_ceil(128), s.rows.div_ceil(32)], 128;
    dy: In<f32> [size([s.rows, s.c])],
    x: In<f32> [size([s.rows, s.c])],
    mean: In<f32> [s.rows as usize],
    scale: In<f32> [s.rows as usize],
    chunks: Out<f32> [size([s.rows.div_ceil(32), 2, s.c])],
    rows: u32,
    c: u32,
}

kernel! {
    /// Totals of chunks' sums.
    ColumnTotals = "column_totals" in "norm.cu", |s| [s.width.div_ceil(128), s.count], 128;
    chunks: In<f32> [size([s.chunk_count, s.count, s.width])],
    out: Out<f32> = size([s.count - 1, s.step]) + s.width as usize,
    arena: u64,
    chunk_count: u32,
    count: u32,
    width: u32,
    step: u32,
    add: u32,
}
