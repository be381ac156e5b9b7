//! The row of `kernels/clear.cu`.

use crate::backend::cuda::kernel::{Out, kernel};

/// Blocks of 256 threads for n values; more than a grid can hold are refused at the launch.
fn blocks(n: u64) -> u32 {
    u32::try_from(n.div_ceil(256)).unwrap_or(u32::MAX)
}

kernel! {
    /// x = 0.
    Clear = "clear" in "clear.cu", |s| [blocks(s.n), 1], 256;
    x: Out<f32> [s.n as usize],
    n: u64,
}
