//! The row of `kernels/clear.cu`.

use super::channel_mix::blocks;
use crate::backend::cuda::kernel::{Out, kernel};

kernel! {
    /// x = 0.
    Clear = "clear" in "clear.cu", |s| [blocks(s.n), 1], 256;
    x: Out<f32> [s.n as usize],
    n: u64,
}
