//! Rows of `kernels/shift.cu`.

use crate::backend::cuda::kernel::{In, Out, kernel, size};

kernel! {
    /// Token shift.
    TokenShift = "token_shift" in "shift.cu", |s| [s.c.div_ceil(128), s.rows], 128;
    u: In<f32> [size([s.rows, s.c])],
    mix: In<f32> = size([s.mixes - 1, s.mix_step]) + s.c as usize,
    arena: u64,
    out: Out<f32> [size([s.mixes, s.rows, s.c])],
    rows: u32,
    tokens: u32,
    c: u32,
    mixes: u32,
    mix_step: u32,
}

kernel! {
    /// Gradient of token shift's input.
    TokenShiftBackward = "token_shift_backward" in "shift.cu", |s| [s.c.div_ceil(128), s.rows], 128;
    dout: In<f32> [size([s.mixes, s.rows, s.c])],
    mix: In<f32> = size([s.mixes - 1, s.mix_step]) + s.c as usize,
    arena: u64,
    du: Out<f32> [size([s.rows, s.c])],
    rows: u32,
    tokens: u32,
    c: u32,
    mixes: u32,
    mix_step: u32,
}

kernel! {
    /// Sums of the mixes' gradients over chunks of rows.
    TokenShiftColumns = "token_shift_columns" in "shift.cu", |s| [s.c.div_ceil(128), s.chunk_count * s.mixes], 128;
    dout: In<f32> [size([s.mixes, s.rows, s.c])],
    u: In<f32> [size([s.rows, s.c])],
    chunks: Out<f32> [size([s.chunk_count, s.mixes, s.c])],
    rows: u32,
    tokens: u32,
    c: u32,
    mixes: u32,
    chunk_count: u32,
}
