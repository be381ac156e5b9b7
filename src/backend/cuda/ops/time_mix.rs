//! Rows of `kernels/time_mix.cu`.

use crate::backend::cuda::kernel::{In, Out, kernel, size};

macro_rules! values {
    ($s:ident) => {
        size([$s.rows, $s.heads, $s.n])
    };
}
macro_rules! chunks {
    ($s:ident) => {
        size([$s.rows.div_ceil(32), $s.vectors, $s.heads, $s.n])
    };
}

/// Threads of a block of the backward kernels: with many lanes several blocks share a multiprocessor, so that one reads while the
/// other adds up.
const fn threads(lanes: usize) -> u32 {
    if lanes >= 8 { 256 } else { 1024 }
}

kernel! {
    /// Decay, keys and values.
    Prepare = "time_mix_prepare" in "time_mix.cu", |s| [(s.rows * s.heads).div_ceil(4), 1], 128;
    w0: In<f32> = size([s.heads, s.n]),
    a0: In<f32> = size([s.heads, s.n]),
    v0p: In<f32> = size([s.heads, s.n]),
    k_k: In<f32> = size([s.heads, s.n]),
    k_a: In<f32> = size([s.heads, s.n]),
    arena: u64,
    k0: In<f32> [values!(s)],
    v0: In<f32> [values!(s)],
    vfirst: In<f32> [values!(s)],
    sw: Out<f32> [values!(s)],
    a: Out<f32> [values!(s)],
    vs: Out<f32> [values!(s)],
    w: Out<f32> [values!(s)],
    k: Out<f32> [values!(s)],
    v: Out<f32> [values!(s)],
    kk: Out<f32> [values!(s)],
    b: Out<f32> [values!(s)],
    rows: u32,
    heads: u32,
    n: u32,
    first: u32,
}

kernel! {
    /// Group norm, bonus and gate.
    Finish = "time_mix_finish" in "time_mix.cu", |s| [(s.rows * s.heads).div_ceil(4), 1], 128;
    ln_x_w: In<f32> = size([s.heads, s.n]),
    ln_x_b: In<f32> = size([s.heads, s.n]),
    r_k: In<f32> = size([s.heads, s.n]),
    arena: u64,
    y: In<f32> [values!(s)],
    r: In<f32> [values!(s)],
    k: In<f32> [values!(s)],
    v: In<f32> [values!(s)],
    g: In<f32> [values!(s)],
    o: Out<f32> [values!(s)],
    rows: u32,
    heads: u32,
    n: u32,
}

kernel! {
    /// Gradients through it.
    FinishBackward = "time_mix_finish_backward" in "time_mix.cu", |s| [s.rows.div_ceil(32), 1], threads(s.lanes.lanes());
    ln_x_w: In<f32> = size([s.heads, s.n]),
    ln_x_b: In<f32> = size([s.heads, s.n]),
    r_k: In<f32> = size([s.heads, s.n]),
    arena: u64,
    y: In<f32> [values!(s)],
    r: In<f32> [values!(s)],
    k: In<f32> [values!(s)],
    v: In<f32> [values!(s)],
    g: In<f32> [values!(s)],
    d_o: In<f32> [values!(s)],
    dg: Out<f32> [values!(s)],
    dr: Out<f32> [values!(s)],
    dk: Out<f32> [values!(s)],
    dv: Out<f32> [values!(s)],
    dy: Out<f32> [values!(s)],
    heads_of: Out<f32> [size([s.rows, s.heads, 3])],
    chunks: Out<f32> [chunks!(s)],
    rows: u32,
    heads: u32,
    n: u32,
    vectors: u32,
    slot: u32,
}

kernel! {
    /// Gradients through decay, keys and values.
    PrepareBackward = "time_mix_prepare_backward" in "time_mix.cu", |s| [s.rows.div_ceil(32), 1], threads(s.lanes.lanes());
    k_k: In<f32> = size([s.heads, s.n]),
    k_a: In<f32> = size([s.heads, s.n]),
    arena: u64,
    k0: In<f32> [values!(s)],
    v0: In<f32> [values!(s)],
    vfirst: In<f32> [values!(s)],
    sw: In<f32> [values!(s)],
    a: In<f32> [values!(s)],
    vs: In<f32> [values!(s)],
    w: In<f32> [values!(s)],
    kk: In<f32> [values!(s)],
    dr_rec: In<f32> [values!(s)],
    dw_rec: In<f32> [values!(s)],
    dk_rec: In<f32> [values!(s)],
    dv_rec: In<f32> [values!(s)],
    da_rec: In<f32> [values!(s)],
    db_rec: In<f32> [values!(s)],
    dr: Out<f32> [values!(s)],
    dk: Out<f32> [values!(s)],
    dv: Out<f32> [values!(s)],
    dvfirst: Out<f32> [values!(s)],
    dk0: Out<f32> [values!(s)],
    dv0: Out<f32> [values!(s)],
    dz: Out<f32> [values!(s)],
    dza: Out<f32> [values!(s)],
    dzv: Out<f32> [values!(s)],
    dq: Out<f32> [values!(s)],
    chunks: Out<f32> [chunks!(s)],
    rows: u32,
    heads: u32,
    n: u32,
    vectors: u32,
    k_slot: u32,
    w_slot: u32,
    a_slot: u32,
    v_slot: u32,
    first: u32,
    last: u32,
}
