//! Rows of `kernels/loss.cu`.

use crate::backend::cuda::kernel::{In, Out, kernel, size};
use crate::model::VOCAB;

kernel! {
    /// Loss and hit of each row, and the logits' gradient.
    CrossEntropy = "cross_entropy" in "loss.cu", |s| [s.rows.div_ceil(8), 1], 256;
    targets: In<u8> [s.rows as usize],
    logits: Out<f32> [s.rows as usize * VOCAB],
    nll: Out<f32> [s.rows as usize],
    hits: Out<u8> [s.rows as usize],
    scale: f32,
    rows: u32,
}

kernel! {
    /// Sums of losses and hits over groups of rows.
    LossTotals = "loss_totals" in "loss.cu", |s| [s.groups, 1], 1024;
    nll: In<f32> [size([s.groups, s.count])],
    hits: In<u8> [size([s.groups, s.count])],
    losses: Out<f64> [s.groups as usize],
    correct: Out<u32> [s.groups as usize],
    groups: u32,
    count: u32,
}
