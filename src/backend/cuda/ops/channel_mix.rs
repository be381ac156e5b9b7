//! Rows of `kernels/channel_mix.cu`.

use crate::backend::cuda::kernel::{In, Out, kernel};

/// Blocks of 256 threads for n values; more than a grid can hold are refused at the launch.
pub(super) fn blocks(n: u64) -> u32 {
    u32::try_from(n.div_ceil(256)).unwrap_or(u32::MAX)
}

kernel! {
    /// relu(h)².
    ReluSquared = "relu_squared" in "channel_mix.cu", |s| [blocks(s.n), 1], 256;
    h: Out<f32> [s.n as usize],
    act: Out<f32> [s.n as usize],
    n: u64,
}

kernel! {
    /// Gradient of h.
    ReluSquaredBackward = "relu_squared_backward" in "channel_mix.cu", |s| [blocks(s.n), 1], 256;
    d: Out<f32> [s.n as usize],
    rl: In<f32> [s.n as usize],
    n: u64,
}
