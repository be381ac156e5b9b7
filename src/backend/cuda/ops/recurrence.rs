//! Rows of `kernels/recurrence.cu`.

use crate::backend::cuda::kernel::{In, Out, kernel, size};

/// Largest head.
pub const MAX_HEAD: u32 = 128;

/// Tokens between the states that the forward pass keeps, for heads of n channels.
pub const fn segment(n: u32) -> u32 {
    match n {
        0..=32 => 8,
        33..=64 => 2,
        _ => 1,
    }
}

/// Four threads a row of the state, in whole warps.
const fn threads(n: u32) -> u32 {
    (4 * n).next_multiple_of(32)
}

/// States that the forward pass keeps for heads of n channels: floats of a lane.
pub fn states_len(windows: u32, tokens: u32, heads: u32, n: u32) -> usize {
    size([windows, heads, tokens.div_ceil(segment(n)), n]) * n as usize
}

macro_rules! recurrences {
    ($($(#[$meta:meta])* $forward:ident = $fentry:literal, $backward:ident = $bentry:literal;)+) => {$(
        kernel! {
            $(#[$meta])*
            $forward = $fentry in "recurrence.cu", |s| [s.heads, s.windows], threads(s.n);
            r: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            w: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            k: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            v: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            kk: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            b: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            y: Out<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            sa: Out<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            states: Out<f32> [states_len(s.windows, s.tokens, s.heads, s.n)],
            windows: u32,
            tokens: u32,
            heads: u32,
            n: u32,
        }

        kernel! {
            $(#[$meta])*
            $backward = $bentry in "recurrence.cu", |s| [s.heads, s.windows], threads(s.n);
            r: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            w: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            k: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            v: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            kk: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            b: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            sa: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            states: In<f32> [states_len(s.windows, s.tokens, s.heads, s.n)],
            dy: In<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            dr: Out<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            dw: Out<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            dk: Out<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            dv: Out<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            da: Out<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            db: Out<f32> [size([s.windows, s.tokens, s.heads, s.n])],
            windows: u32,
            tokens: u32,
            heads: u32,
            n: u32,
        }
    )+};
}

recurrences! {
    /// Heads of at most 16 channels.
    ForwardUpto16 = "recurrence_forward_upto16", BackwardUpto16 = "recurrence_backward_upto16";
    /// Heads of at most 32 channels.
    ForwardUpto32 = "recurrence_forward_upto32", BackwardUpto32 = "recurrence_backward_upto32";
    /// Heads of at most 64 channels.
    ForwardUpto64 = "recurrence_forward_upto64", BackwardUpto64 = "recurrence_backward_upto64";
    /// Heads of at most 128 channels.
    ForwardUpto128 = "recurrence_forward_upto128", BackwardUpto128 = "recurrence_backward_upto128";
    /// Heads of 32 channels.
    ForwardOf32 = "recurrence_forward_of32", BackwardOf32 = "recurrence_backward_of32";
    /// Heads of 64 channels.
    ForwardOf64 = "recurrence_forward_of64", BackwardOf64 = "recurrence_backward_of64";
}
