//! Rows of `kernels/data.cu`.

use crate::backend::cuda::kernel::{In, Out, kernel, size};
use crate::model::VOCAB;

kernel! {
    /// Bytes of a batch's windows.
    GatherWindows = "gather_windows" in "data.cu", |s| [s.rows.div_ceil(256), 1], 256;
    corpus: In<u8> {s.length as usize},
    seeds: In<u64> [1],
    numbers: In<u64> [1],
    inputs: Out<u8> [s.rows as usize],
    targets: Out<u8> [s.rows as usize],
    length: u64,
    split: u32,
    rows: u32,
    tokens: u32,
}

kernel! {
    /// x = `emb[byte]`.
    Embed = "embed" in "data.cu", |s| [s.rows, 1], 128;
    inputs: In<u8> [s.rows as usize],
    emb: In<f32> = VOCAB * s.c as usize,
    arena: u64,
    x: Out<f32> [size([s.rows, s.c])],
    rows: u32,
    c: u32,
}

kernel! {
    /// Gradient of emb.
    EmbedBackward = "embed_backward" in "data.cu", |_s| [256, 1], 128;
    inputs: In<u8> [_s.rows as usize],
    dx: In<f32> [size([_s.rows, _s.c])],
    demb: Out<f32> = VOCAB * _s.c as usize,
    arena: u64,
    rows: u32,
    c: u32,
    add: u32,
}
