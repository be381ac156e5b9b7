//! Rows of `kernels/product.cu`.

use crate::backend::cuda::kernel::{In, Out, kernel, size};

/// Elements that an operand with a lane stride must hold.
fn strided(lanes: usize, stride: u64, each: usize) -> usize {
    lanes.saturating_sub(1) * stride as usize + each
}

macro_rules! products {
    ($($(#[$meta:meta])* $name:ident = $entry:literal, $tile:literal;)+) => {$(
        kernel! {
            $(#[$meta])*
            $name = $entry in "product.cu", |s| [s.n.div_ceil($tile), s.m.div_ceil($tile)], 128;
            a: In<f32> {strided(s.lanes.lanes(), s.a_lane, size([s.m, s.k]))},
            b: In<f32> {strided(s.lanes.lanes(), s.b_lane, size([s.k, s.n]))},
            base: In<f32> {strided(s.lanes.lanes(), s.out_lane, size([s.m, s.n]))},
            out: Out<f32> {strided(s.lanes.lanes(), s.out_lane, size([s.m, s.n]))},
            a_lane: u64,
            b_lane: u64,
            out_lane: u64,
            m: u32,
            n: u32,
            k: u32,
            add: u32,
        }
    )+};
}

products! {
    /// out = a b, in large tiles.
    RowsWide = "product_rows_wide", 64;
    /// out = a b, in small tiles.
    RowsSmall = "product_rows_small", 32;
    /// out = a bᵀ, in large tiles.
    TransposedWide = "product_transposed_wide", 64;
    /// out = a bᵀ, in small tiles.
    TransposedSmall = "product_transposed_small", 32;
    /// out = aᵀ b, in large tiles.
    ColumnsWide = "product_columns_wide", 64;
    /// out = aᵀ b, in small tiles.
    ColumnsSmall = "product_columns_small", 32;
}
