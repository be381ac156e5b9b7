//! Rows of `kernels/time_mix.cu`.

use crate::backend::cuda::kernel::{In, Out, kernel, size};

kernel! {
    /// Decay, keys and values.
    Prepare = "time_mix_prepare" in "time_mix.cu", |s| [(s.rows * s.heads).div_ceil(4), 1], 128;
    w0: In<f32> = size([s.heads, s.n]),
    a0: In<f32> = size([s.heads, s.n]),
    v0p: In<f32> = size([s.heads, s.n]),
    k_k: In<f32> = size([s.heads, s.n]),
    k_a: In<f32> = size([s.heads, s.n]),
    arena: u64,
    k0: In<f32> [size([s.rows, s.heads, s.n])],
    v0: In<f32> [size([s.rows, s.heads, s.n])],
    vfirst: In<f32> [size([s.rows, s.heads, s.n])],
    sw: Out<f32> [size([s.rows, s.heads, s.n])],
    a: Out<f32> [size([s.rows, s.heads, s.n])],
    vs: Out<f32> [size([s.rows, s.heads, s.n])],
    w: Out<f32> [size([s.rows, s.heads, s.n])],
    k: Out<f32> [size([s.rows, s.heads, s.n])],
    v: Out<f32> [size([s.rows, s.heads, s.n])],
    kk: Out<f32> [size([s.rows, s.heads, s.n])],
    b: Out<f32> [size([s.rows, s.heads, s.n])],
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
    y: In<f32> [size([s.rows, s.heads, s.n])],
    r: In<f32> [size([s.rows, s.heads, s.n])],
    k: In<f32> [size([s.rows, s.heads, s.n])],
    v: In<f32> [size([s.rows, s.heads, s.n])],
    g: In<f32> [size([s.rows, s.heads, s.n])],
    o: Out<f32> [size([s.rows, s.heads, s.n])],
    rows: u32,
    heads: u32,
    n: u32,
}

kernel! {
    /// Gradients through it.
    FinishBackward = "time_mix_finish_backward" in "time_mix.cu", |s| [(s.rows * s.heads).div_ceil(4), 1], 128;
    ln_x_w: In<f32> = size([s.heads, s.n]),
    ln_x_b: In<f32> = size([s.heads, s.n]),
    r_k: In<f32> = size([s.heads, s.n]),
    arena: u64,
    y: In<f32> [size([s.rows, s.heads, s.n])],
    r: In<f32> [size([s.rows, s.heads, s.n])],
    k: In<f32> [size([s.rows, s.heads, s.n])],
    v: In<f32> [size([s.rows, s.heads, s.n])],
    g: In<f32> [size([s.rows, s.heads, s.n])],
    d_o: In<f32> [size([s.rows, s.heads, s.n])],
    dg: Out<f32> [size([s.rows, s.heads, s.n])],
    dr: Out<f32> [size([s.rows, s.heads, s.n])],
    dk: Out<f32> [size([s.rows, s.heads, s.n])],
    dv: Out<f32> [size([s.rows, s.heads, s.n])],
    dy: Out<f32> [size([s.rows, s.heads, s.n])],
    dyb: Out<f32> [size([s.rows, s.heads, s.n])],
    yhat: Out<f32> [size([s.rows, s.heads, s.n])],
    dbonus: Out<f32> [size([s.rows, s.heads])],
    rows: u32,
    heads: u32,
    n: u32,
}

kernel! {
    /// Sums of the gradients of r_k, ln_x_w and ln_x_b over chunks of rows.
    FinishColumns = "time_mix_finish_columns" in "time_mix.cu",
        |s| [(s.heads * s.n).div_ceil(128), s.rows.div_ceil(32)], 128;
    r: In<f32> [size([s.rows, s.heads, s.n])],
    k: In<f32> [size([s.rows, s.heads, s.n])],
    dyb: In<f32> [size([s.rows, s.heads, s.n])],
    yhat: In<f32> [size([s.rows, s.heads, s.n])],
    dbonus: In<f32> [size([s.rows, s.heads])],
    chunks: Out<f32> [size([s.rows.div_ceil(32), 3, s.heads, s.n])],
    rows: u32,
    heads: u32,
    n: u32,
}

kernel! {
    /// Gradients through decay, keys and values.
    PrepareBackward = "time_mix_prepare_backward" in "time_mix.cu", |s| [(s.rows * s.heads).div_ceil(4), 1], 128;
    k_k: In<f32> = size([s.heads, s.n]),
    k_a: In<f32> = size([s.heads, s.n]),
    arena: u64,
    k0: In<f32> [size([s.rows, s.heads, s.n])],
    v0: In<f32> [size([s.rows, s.heads, s.n])],
    vfirst: In<f32> [size([s.rows, s.heads, s.n])],
    sw: In<f32> [size([s.rows, s.heads, s.n])],
    a: In<f32> [size([s.rows, s.heads, s.n])],
    vs: In<f32> [size([s.rows, s.heads, s.n])],
    w: In<f32> [size([s.rows, s.heads, s.n])],
    kk: In<f32> [size([s.rows, s.heads, s.n])],
    dr_rec: In<f32> [size([s.rows, s.heads, s.n])],
    dw_rec: In<f32> [size([s.rows, s.heads, s.n])],
    dk_rec: In<f32> [size([s.rows, s.heads, s.n])],
    dv_rec: In<f32> [size([s.rows, s.heads, s.n])],
    da_rec: In<f32> [size([s.rows, s.heads, s.n])],
    db_rec: In<f32> [size([s.rows, s.heads, s.n])],
    dr: Out<f32> [size([s.rows, s.heads, s.n])],
    dk: Out<f32> [size([s.rows, s.heads, s.n])],
    dv: Out<f32> [size([s.rows, s.heads, s.n])],
    dvfirst: Out<f32> [size([s.rows, s.heads, s.n])],
    dk0: Out<f32> [size([s.rows, s.heads, s.n])],
    dv0: Out<f32> [size([s.rows, s.heads, s.n])],
    dz: Out<f32> [size([s.rows, s.heads, s.n])],
    dza: Out<f32> [size([s.rows, s.heads, s.n])],
    dzv: Out<f32> [size([s.rows, s.heads, s.n])],
    dq: Out<f32> [size([s.rows, s.heads, s.n])],
    rows: u32,
    heads: u32,
    n: u32,
    first: u32,
}

kernel! {
    /// Sums of the gradients of k_k, k_a, w0, a0 and v0 over chunks of rows.
    PrepareColumns = "time_mix_prepare_columns" in "time_mix.cu", |s| [s.c.div_ceil(128), s.rows.div_ceil(32)], 128;
    k0: In<f32> [size([s.rows, s.c])],
    a: In<f32> [size([s.rows, s.c])],
    dk: In<f32> [size([s.rows, s.c])],
    dq: In<f32> [size([s.rows, s.c])],
    dz: In<f32> [size([s.rows, s.c])],
    dza: In<f32> [size([s.rows, s.c])],
    dzv: In<f32> [size([s.rows, s.c])],
    chunks_k: Out<f32> [size([s.rows.div_ceil(32), 2, s.c])],
    chunks_w: Out<f32> [size([s.rows.div_ceil(32), s.c])],
    chunks_a: Out<f32> [size([s.rows.div_ceil(32), s.c])],
    chunks_v: Out<f32> [size([s.rows.div_ceil(32), s.c])],
    rows: u32,
    c: u32,
    first: u32,
}
