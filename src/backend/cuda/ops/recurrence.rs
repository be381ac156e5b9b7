//! Rows of `kernels/recurrence.cu`.

use crate::backend::cuda::kernel::{In, Out, kernel, size};

/// Largest head.
pub const MAX_HEAD: u32 = 128;

/// Tokens of a segment, from one kept state to the next, for heads of n channels.
pub const fn segment(n: u32) -> u32 {
    match n {
        0..=32 => 8,
        33..=64 => 4,
        _ => 2,
    }
}

/// States kept of heads of n channels: floats of a lane.
pub fn states_len(windows: u32, tokens: u32, heads: u32, n: u32) -> usize {
    size([windows, heads, tokens.div_ceil(segment(n)), n]) * n as usize
}

/// Rows of a head that a thread takes: with many heads at once, several share what it reads from shared memory. Changes no number.
pub const fn rows_a_thread(heads: u64, n: u32) -> u32 {
    let warps = heads * n.div_ceil(8) as u64;
    match (n, warps) {
        (32, 513..=1024) => 2,
        (32, 1025..) => 4,
        _ => 1,
    }
}

macro_rules! values {
    ($s:ident) => {
        size([$s.windows, $s.tokens, $s.heads, $s.n])
    };
}
macro_rules! states {
    ($s:ident) => {
        states_len($s.windows, $s.tokens, $s.heads, $s.n)
    };
}

macro_rules! along_rows {
    ($($(#[$meta:meta])* $forward:ident = $fentry:literal, $rows:ident = $rentry:literal, $each:literal;)+) => {$(
        kernel! {
            $(#[$meta])*
            $forward = $fentry in "recurrence.cu", |s| [s.heads * s.n.div_ceil(8 * $each), s.windows], 32;
            r: In<f32> [values!(s)],
            w: In<f32> [values!(s)],
            k: In<f32> [values!(s)],
            v: In<f32> [values!(s)],
            kk: In<f32> [values!(s)],
            b: In<f32> [values!(s)],
            y: Out<f32> [values!(s)],
            sa: Out<f32> [values!(s)],
            states: Out<f32> [states!(s)],
            windows: u32,
            tokens: u32,
            heads: u32,
            n: u32,
            keep: u32,
        }

        kernel! {
            $(#[$meta])*
            $rows = $rentry in "recurrence.cu", |s| [s.heads * s.n.div_ceil(8 * $each), s.windows], 32;
            r: In<f32> [values!(s)],
            w: In<f32> [values!(s)],
            k: In<f32> [values!(s)],
            kk: In<f32> [values!(s)],
            b: In<f32> [values!(s)],
            dy: In<f32> [values!(s)],
            dv: Out<f32> [values!(s)],
            h: Out<f32> [values!(s)],
            gradients: Out<f32> [states!(s)],
            windows: u32,
            tokens: u32,
            heads: u32,
            n: u32,
        }
    )+};
}

macro_rules! down_columns {
    ($($(#[$meta:meta])* $columns:ident = $entry:literal, $each:literal;)+) => {$(
        kernel! {
            $(#[$meta])*
            $columns = $entry in "recurrence.cu",
                |s| [s.heads * s.n.div_ceil(16 * $each), s.windows * s.tokens.div_ceil(segment(s.n))], 64;
            r: In<f32> [values!(s)],
            w: In<f32> [values!(s)],
            k: In<f32> [values!(s)],
            v: In<f32> [values!(s)],
            kk: In<f32> [values!(s)],
            b: In<f32> [values!(s)],
            sa: In<f32> [values!(s)],
            h: In<f32> [values!(s)],
            dy: In<f32> [values!(s)],
            states: In<f32> [states!(s)],
            gradients: In<f32> [states!(s)],
            dr: Out<f32> [values!(s)],
            dw: Out<f32> [values!(s)],
            dk: Out<f32> [values!(s)],
            da: Out<f32> [values!(s)],
            db: Out<f32> [values!(s)],
            windows: u32,
            tokens: u32,
            heads: u32,
            n: u32,
        }
    )+};
}

along_rows! {
    /// Heads of at most 16 channels.
    ForwardUpto16 = "recurrence_forward_upto16", RowsUpto16 = "recurrence_rows_upto16", 1;
    /// Heads of at most 32 channels.
    ForwardUpto32 = "recurrence_forward_upto32", RowsUpto32 = "recurrence_rows_upto32", 1;
    /// Heads of at most 64 channels.
    ForwardUpto64 = "recurrence_forward_upto64", RowsUpto64 = "recurrence_rows_upto64", 1;
    /// Heads of at most 128 channels.
    ForwardUpto128 = "recurrence_forward_upto128", RowsUpto128 = "recurrence_rows_upto128", 1;
    /// Heads of 32 channels.
    ForwardOf32 = "recurrence_forward_of32", RowsOf32 = "recurrence_rows_of32", 1;
    /// The same, two rows a thread.
    ForwardOf32x2 = "recurrence_forward_of32x2", RowsOf32x2 = "recurrence_rows_of32x2", 2;
    /// The same, four rows a thread.
    ForwardOf32x4 = "recurrence_forward_of32x4", RowsOf32x4 = "recurrence_rows_of32x4", 4;
    /// Heads of 64 channels.
    ForwardOf64 = "recurrence_forward_of64", RowsOf64 = "recurrence_rows_of64", 1;
}

down_columns! {
    /// Heads of at most 16 channels.
    ColumnsUpto16 = "recurrence_columns_upto16", 1;
    /// Heads of at most 32 channels.
    ColumnsUpto32 = "recurrence_columns_upto32", 1;
    /// Heads of at most 64 channels.
    ColumnsUpto64 = "recurrence_columns_upto64", 1;
    /// Heads of at most 128 channels.
    ColumnsUpto128 = "recurrence_columns_upto128", 1;
    /// Heads of 32 channels.
    ColumnsOf32 = "recurrence_columns_of32", 2;
    /// Heads of 64 channels.
    ColumnsOf64 = "recurrence_columns_of64", 1;
}
