//! Rows of `kernels/attention.cu`.

use crate::backend::cuda::kernel::{In, Out, kernel, size};

/// Positions of a tile.
const TILE: u32 = 64;
/// Channels, or keys, of a tile.
const CHANNELS: u32 = 32;

kernel! {
    /// Means of the keys of each whole chunk.
    ChunkMeans = "attention_chunk_means" in "attention.cu", |s| [s.tokens / s.chunk_size, s.windows * s.heads], 128;
    k: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
    means: Out<f32> [size([s.windows, s.heads, s.tokens / s.chunk_size, s.n])],
    windows: u32,
    tokens: u32,
    heads: u32,
    n: u32,
    chunk_size: u32,
}

kernel! {
    /// Chunks that each query sees.
    Choose = "attention_choose" in "attention.cu", |s| [s.tokens.div_ceil(128), s.windows * s.heads], 128;
    q: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
    means: In<f32> [size([s.windows, s.heads, s.tokens / s.chunk_size, s.n])],
    scores: Out<f32> [size([s.windows, s.heads, s.tokens, s.tokens.div_ceil(s.chunk_size)])],
    seen: Out<u8> [size([s.windows, s.heads, s.tokens, s.tokens.div_ceil(s.chunk_size)])],
    windows: u32,
    tokens: u32,
    heads: u32,
    n: u32,
    chunk_size: u32,
    top_k: u32,
}

kernel! {
    /// Products of every query with its keys.
    Scores = "attention_scores" in "attention.cu",
        |s| [s.tokens.div_ceil(CHANNELS), s.tokens.div_ceil(TILE) * s.windows * s.heads], 128;
    x: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
    z: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
    out: Out<f32> [size([s.windows, s.heads, s.tokens, s.tokens])],
    windows: u32,
    tokens: u32,
    heads: u32,
    n: u32,
}

kernel! {
    /// Sums over keys.
    Rows = "attention_rows" in "attention.cu",
        |s| [s.n.div_ceil(CHANNELS), s.tokens.div_ceil(TILE) * s.windows * s.heads], 128;
    s: In<f32> [size([s.windows, s.heads, s.tokens, s.tokens])],
    x: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
    out: Out<f32> [size([s.windows, s.tokens, s.heads, s.n])],
    windows: u32,
    tokens: u32,
    heads: u32,
    n: u32,
}

kernel! {
    /// Sums over queries.
    Columns = "attention_columns" in "attention.cu",
        |s| [s.n.div_ceil(CHANNELS), s.tokens.div_ceil(TILE) * s.windows * s.heads], 128;
    s: In<f32> [size([s.windows, s.heads, s.tokens, s.tokens])],
    x: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
    out: Out<f32> [size([s.windows, s.tokens, s.heads, s.n])],
    windows: u32,
    tokens: u32,
    heads: u32,
    n: u32,
}

kernel! {
    /// Shares of the visible keys.
    Softmax = "attention_softmax" in "attention.cu", |s| [(s.items * s.tokens).div_ceil(4), 1], 128;
    seen: In<u8> [if s.chunk_size >= s.tokens { 0 } else { size([s.items, s.tokens, s.tokens.div_ceil(s.chunk_size)]) }],
    p: Out<f32> [size([s.items, s.tokens, s.tokens])],
    scale: f32,
    items: u32,
    tokens: u32,
    chunk_size: u32,
}

kernel! {
    /// Gradients of the scores.
    SoftmaxBackward = "attention_softmax_backward" in "attention.cu",
        |s| [(s.windows * s.heads * s.tokens).div_ceil(4), 1], 128;
    p: In<f32> [size([s.windows, s.heads, s.tokens, s.tokens])],
    y: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
    dy: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
    ds: Out<f32> [size([s.windows, s.heads, s.tokens, s.tokens])],
    scale: f32,
    windows: u32,
    tokens: u32,
    heads: u32,
    n: u32,
}
