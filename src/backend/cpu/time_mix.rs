//! What stands around the recurrence of an RWKV-7 block: decay, rates and keys before it; group norm, bonus and gate after it.
//!
//! Slices hold rows of a tile, [rows, C]; `y` and the recurrence's gradients are head-major, [B·H, T, N]. Outputs are overwritten.

use super::simd::simd;
use crate::arith::functions::{exp, sigmoid, tanh};
use crate::arith::sums::{COLUMN_CHUNK, row_dot, row_sum};

/// Minus e^-½: the decay is exp of this times a sigmoid.
const DECAY_RATE: f32 = -0.606_530_67;
/// What group norm adds to the variance.
const GROUP_NORM_EPS: f32 = 64e-5;
/// Smallest norm that a key is divided by.
const KEY_NORM_MIN: f32 = 1e-12;

/// A tile of rows and how heads lie in it.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// Number of the tile's first row, counted over all windows.
    pub first: usize,
    /// Tokens of a window T.
    pub tokens: usize,
    /// Heads H.
    pub heads: usize,
    /// Channels of a head N.
    pub n: usize,
}

impl Heads {
    /// Where channels of head h of the tile's row i begin in a head-major buffer.
    #[inline(always)]
    fn head_major(&self, i: usize, h: usize) -> usize {
        let row = self.first + i;
        let (window, t) = (row / self.tokens, row % self.tokens);
        ((window * self.heads + h) * self.tokens + t) * self.n
    }
}

/// Vectors of the block, each `[C]`.
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the names are the formulas' own
pub struct Vectors<'a> {
    pub w0: &'a [f32],
    pub a0: &'a [f32],
    pub v0: &'a [f32],
    pub k_k: &'a [f32],
    pub k_a: &'a [f32],
    pub r_k: &'a [f32],
    pub ln_x_w: &'a [f32],
    pub ln_x_b: &'a [f32],
}

/// Operands of [`prepare`]: products go in, what the recurrence reads and the backward pass needs come out.
pub struct Prepare<'a> {
    /// `xk@W_k`.
    pub k0: &'a [f32],
    /// In: `hw@w2`. Out: sw.
    pub sw: &'a mut [f32],
    /// Out: decay.
    pub w: &'a mut [f32],
    /// In: `ha@a2`. Out: a.
    pub a: &'a mut [f32],
    /// In later RWKV blocks: `xv@W_v`, (in: `hv@v2`, out: vs), the first block's v, (out: v).
    pub value: Option<Value<'a>>,
    /// Out: norm of each head's key before the division, [rows, H].
    pub norm: &'a mut [f32],
    /// Out: normalised key.
    pub kk: &'a mut [f32],
    /// Out: key.
    pub k: &'a mut [f32],
    /// Out: replacement key.
    pub b: &'a mut [f32],
}

/// Value residual of an RWKV block after the first.
pub struct Value<'a> {
    /// `xv@W_v`.
    pub v0: &'a [f32],
    /// In: `hv@v2`. Out: vs.
    pub vs: &'a mut [f32],
    /// v of the first RWKV block.
    pub first: &'a [f32],
    /// Out: v.
    pub v: &'a mut [f32],
}

#[inline(always)]
fn head_norm(norm: f32) -> f32 {
    1.0 / if norm > KEY_NORM_MIN { norm } else { KEY_NORM_MIN }
}

simd! {
    /// x = tanh(x).
    pub fn tanh_all(x: &mut [f32]) {
        for x in x {
            *x = tanh(*x);
        }
    }

    /// x = sigmoid(x).
    pub fn sigmoid_all(x: &mut [f32]) {
        for x in x {
            *x = sigmoid(*x);
        }
    }

    /// Decay, rates, value residual and keys of a tile.
    pub fn prepare(heads: Heads, p: Vectors<'_>, io: Prepare<'_>) {
        let c = heads.heads * heads.n;
        let rows = io.k0.len() / c;
        for row in 0..rows {
            let span = row * c..(row + 1) * c;
            let (sw, w, a) = (&mut io.sw[span.clone()], &mut io.w[span.clone()], &mut io.a[span]);
            for i in 0..c {
                sw[i] = sigmoid(p.w0[i] + sw[i]);
                w[i] = exp(DECAY_RATE * sw[i]);
                a[i] = sigmoid(p.a0[i] + a[i]);
            }
        }
        if let Some(value) = io.value {
            for row in 0..rows {
                let span = row * c..(row + 1) * c;
                let (v0, first) = (&value.v0[span.clone()], &value.first[span.clone()]);
                let (vs, v) = (&mut value.vs[span.clone()], &mut value.v[span]);
                for i in 0..c {
                    vs[i] = sigmoid(p.v0[i] + vs[i]);
                    v[i] = (first[i] - v0[i]).mul_add(vs[i], v0[i]);
                }
            }
        }
        for row in 0..rows {
            for h in 0..heads.heads {
                let (at, head) = (row * c + h * heads.n, h * heads.n);
                let n = heads.n;
                let (k0, a) = (&io.k0[at..at + n], &io.a[at..at + n]);
                let (k_k, k_a) = (&p.k_k[head..head + n], &p.k_a[head..head + n]);
                let norm = row_dot(n, |j| (k0[j] * k_k[j], k0[j] * k_k[j])).sqrt();
                io.norm[row * heads.heads + h] = norm;
                let inverse = head_norm(norm);
                let (kk, k, b) = (&mut io.kk[at..at + n], &mut io.k[at..at + n], &mut io.b[at..at + n]);
                for j in 0..n {
                    kk[j] = (k0[j] * k_k[j]) * inverse;
                    k[j] = k0[j] * (a[j] - 1.0).mul_add(k_a[j], 1.0);
                    b[j] = kk[j] * a[j];
                }
            }
        }
    }
}

/// Operands of [`finish`].
pub struct Finish<'a> {
    /// Output of the recurrence, all rows, head-major.
    pub y: &'a [f32],
    /// Receptance.
    pub r: &'a [f32],
    /// Key.
    pub k: &'a [f32],
    /// Value.
    pub v: &'a [f32],
    /// Gate.
    pub g: &'a [f32],
    /// Out: normalised y.
    pub yhat: &'a mut [f32],
    /// Out: 1/deviation, [rows, H].
    pub rs: &'a mut [f32],
    /// Out: bonus, [rows, H].
    pub bonus: &'a mut [f32],
    /// Out: y after norm and bonus.
    pub yb: &'a mut [f32],
    /// Out: gated.
    pub o: &'a mut [f32],
}

simd! {
    /// Group norm, bonus and gate of a tile.
    pub fn finish(heads: Heads, p: Vectors<'_>, io: Finish<'_>) {
        let (n, c) = (heads.n, heads.heads * heads.n);
        for row in 0..io.r.len() / c {
            for h in 0..heads.heads {
                let (at, head) = (row * c + h * n, h * n);
                let y = &io.y[heads.head_major(row, h)..][..n];
                let (r, k, v, g) = (&io.r[at..at + n], &io.k[at..at + n], &io.v[at..at + n], &io.g[at..at + n]);
                let (ln_w, ln_b, r_k) = (&p.ln_x_w[head..head + n], &p.ln_x_b[head..head + n], &p.r_k[head..head + n]);
                let (yhat, yb, o) = (&mut io.yhat[at..at + n], &mut io.yb[at..at + n], &mut io.o[at..at + n]);
                let mean = row_sum(n, |j| y[j]) / n as f32;
                let variance = row_dot(n, |j| (y[j] - mean, y[j] - mean)) / n as f32;
                let rs = 1.0 / (variance + GROUP_NORM_EPS).sqrt();
                let bonus = row_dot(n, |j| (r[j] * k[j], r_k[j]));
                io.rs[row * heads.heads + h] = rs;
                io.bonus[row * heads.heads + h] = bonus;
                for j in 0..n {
                    yhat[j] = (y[j] - mean) * rs;
                    yb[j] = bonus.mul_add(v[j], yhat[j].mul_add(ln_w[j], ln_b[j]));
                    o[j] = yb[j] * g[j];
                }
            }
        }
    }
}

/// Operands of [`finish_backward`].
pub struct FinishBackward<'a> {
    /// Gradient of o; out: gradient of y after norm and bonus (dyb).
    pub d: &'a mut [f32],
    /// As in [`Finish`].
    pub v: &'a [f32],
    /// As in [`Finish`].
    pub g: &'a [f32],
    /// As in [`Finish`].
    pub yhat: &'a [f32],
    /// As in [`Finish`].
    pub rs: &'a [f32],
    /// As in [`Finish`].
    pub yb: &'a [f32],
    /// Out: gradient of the gate.
    pub dg: &'a mut [f32],
    /// Out: gradient of the bonus, [rows, H].
    pub dbonus: &'a mut [f32],
    /// Out: gradient of the recurrence's output.
    pub dy: &'a mut [f32],
}

simd! {
    /// Backward pass of [`finish`]; the bonus's gradients of r, k and v are formed by [`prepare_backward`].
    pub fn finish_backward(heads: Heads, p: Vectors<'_>, io: FinishBackward<'_>) {
        let (n, c) = (heads.n, heads.heads * heads.n);
        for row in 0..io.v.len() / c {
            for h in 0..heads.heads {
                let (at, head) = (row * c + h * n, h * n);
                let (d, dg, dy) = (&mut io.d[at..at + n], &mut io.dg[at..at + n], &mut io.dy[at..at + n]);
                let (v, g, yhat, yb) = (&io.v[at..at + n], &io.g[at..at + n], &io.yhat[at..at + n], &io.yb[at..at + n]);
                let ln_w = &p.ln_x_w[head..head + n];
                let rs = io.rs[row * heads.heads + h];
                for j in 0..n {
                    dg[j] = d[j] * yb[j];
                    d[j] *= g[j];
                }
                io.dbonus[row * heads.heads + h] = row_dot(n, |j| (d[j], v[j]));
                let c1 = row_sum(n, |j| d[j] * ln_w[j]) / n as f32;
                let c2 = row_dot(n, |j| (d[j] * ln_w[j], yhat[j])) / n as f32;
                for j in 0..n {
                    dy[j] = rs * (-yhat[j]).mul_add(c2, d[j] * ln_w[j] - c1);
                }
            }
        }
    }

    /// Column sums of dbonus·(r·k) over each chunk of rows (S3), the gradient of r_k: out [chunks, C].
    pub fn bonus_sums(heads: Heads, dbonus: &[f32], r: &[f32], k: &[f32], out: &mut [f32]) {
        let (n, c) = (heads.n, heads.heads * heads.n);
        out.fill(0.0);
        for row in 0..r.len() / c {
            let out = &mut out[row / COLUMN_CHUNK * c..][..c];
            for h in 0..heads.heads {
                let (at, head) = (row * c + h * n, h * n);
                let (r, k, out) = (&r[at..at + n], &k[at..at + n], &mut out[head..head + n]);
                let d = dbonus[row * heads.heads + h];
                for j in 0..n {
                    out[j] = d.mul_add(r[j] * k[j], out[j]);
                }
            }
        }
    }
}

/// Gradients that the recurrence gives, all rows, head-major.
#[derive(Clone, Copy)]
#[allow(missing_docs)] // as in `recurrence::HeadGrads`
pub struct Recurrent<'a> {
    pub r: &'a [f32],
    pub w: &'a [f32],
    pub k: &'a [f32],
    pub v: &'a [f32],
    pub a: &'a [f32],
    pub b: &'a [f32],
}

/// What the forward pass kept of a tile for [`prepare_backward`].
#[derive(Clone, Copy)]
#[allow(missing_docs)] // as in `Prepare` and `Finish`
pub struct Kept<'a> {
    pub r: &'a [f32],
    pub w: &'a [f32],
    pub k: &'a [f32],
    pub k0: &'a [f32],
    pub kk: &'a [f32],
    pub sw: &'a [f32],
    pub a: &'a [f32],
    pub norm: &'a [f32],
    pub bonus: &'a [f32],
}

/// Outputs of [`prepare_backward`], each [rows, C].
#[allow(missing_docs)] // the gradients of what the names say
pub struct PrepareGrads<'a> {
    pub r: &'a mut [f32],
    pub k0: &'a mut [f32],
    /// Of v.
    pub v: &'a mut [f32],
    /// Of the decay's argument z.
    pub z: &'a mut [f32],
    /// Of a's argument.
    pub za: &'a mut [f32],
    /// Of k0·k_k; its column sums with k0 are k_k's gradient.
    pub q: &'a mut [f32],
    /// Of the key; its column sums with k0·(a - 1) are k_a's gradient.
    pub k: &'a mut [f32],
}

simd! {
    /// Backward pass of [`prepare`] but for the value residual, the bonus's part included.
    pub fn prepare_backward(heads: Heads, p: Vectors<'_>, kept: Kept<'_>, from: Recurrent<'_>, dbonus: &[f32], dyb: &[f32], out: PrepareGrads<'_>) {
        let (n, c) = (heads.n, heads.heads * heads.n);
        for row in 0..kept.r.len() / c {
            for h in 0..heads.heads {
                let (at, head) = (row * c + h * n, h * n);
                let hm = heads.head_major(row, h);
                let (fr, fw, fk) = (&from.r[hm..hm + n], &from.w[hm..hm + n], &from.k[hm..hm + n]);
                let (fv, fa, fb) = (&from.v[hm..hm + n], &from.a[hm..hm + n], &from.b[hm..hm + n]);
                let (k_k, k_a, r_k) = (&p.k_k[head..head + n], &p.k_a[head..head + n], &p.r_k[head..head + n]);
                let (r, w, k) = (&kept.r[at..at + n], &kept.w[at..at + n], &kept.k[at..at + n]);
                let (k0, kk) = (&kept.k0[at..at + n], &kept.kk[at..at + n]);
                let (sw, a, dyb) = (&kept.sw[at..at + n], &kept.a[at..at + n], &dyb[at..at + n]);
                let (dr, dk0, dv) = (&mut out.r[at..at + n], &mut out.k0[at..at + n], &mut out.v[at..at + n]);
                let (dz, dza) = (&mut out.z[at..at + n], &mut out.za[at..at + n]);
                let (dq, dk) = (&mut out.q[at..at + n], &mut out.k[at..at + n]);
                let (db, bonus) = (dbonus[row * heads.heads + h], kept.bonus[row * heads.heads + h]);
                for j in 0..n {
                    dr[j] = fr[j] + db * (k[j] * r_k[j]);
                    dk[j] = fk[j] + db * (r[j] * r_k[j]);
                    dv[j] = fv[j] + bonus * dyb[j];
                    dq[j] = fb[j].mul_add(a[j], -fa[j]);
                }
                let norm = kept.norm[row * heads.heads + h];
                let inverse = head_norm(norm);
                let along = if norm > KEY_NORM_MIN { row_dot(n, |j| (dq[j], kk[j])) } else { 0.0 };
                for j in 0..n {
                    dq[j] = (-kk[j]).mul_add(along, dq[j]) * inverse;
                    let da = fb[j].mul_add(kk[j], dk[j] * (k0[j] * k_a[j]));
                    dk0[j] = dq[j].mul_add(k_k[j], dk[j] * (a[j] - 1.0).mul_add(k_a[j], 1.0));
                    dza[j] = da * (a[j] * (1.0 - a[j]));
                    let dsw = (fw[j] * w[j]) * DECAY_RATE;
                    dz[j] = dsw * (sw[j] * (1.0 - sw[j]));
                }
            }
        }
    }

    /// Column sums of dk·(k0·(a - 1)) over each chunk of rows (S3), the gradient of k_a: out [chunks, C].
    pub fn key_rate_sums(dk: &[f32], k0: &[f32], a: &[f32], c: usize, out: &mut [f32]) {
        let chunk = COLUMN_CHUNK * c;
        let parts = dk.chunks(chunk).zip(k0.chunks(chunk)).zip(a.chunks(chunk)).zip(out.chunks_exact_mut(c));
        for (((dk, k0), a), out) in parts {
            out.fill(0.0);
            for ((dk, k0), a) in dk.chunks_exact(c).zip(k0.chunks_exact(c)).zip(a.chunks_exact(c)) {
                for i in 0..c {
                    out[i] = dk[i].mul_add(k0[i] * (a[i] - 1.0), out[i]);
                }
            }
        }
    }

    /// Backward pass of the value residual: dv is the gradient of v (out: of v0), `dfirst` gains that of the first block's v,
    /// dzv is that of vs's argument.
    pub fn value_backward(dv: &mut [f32], v0: &[f32], vs: &[f32], first: &[f32], dfirst: &mut [f32], dzv: &mut [f32]) {
        for i in 0..dv.len() {
            let dvs = dv[i] * (first[i] - v0[i]);
            dfirst[i] += dv[i] * vs[i];
            dzv[i] = dvs * (vs[i] * (1.0 - vs[i]));
            dv[i] *= 1.0 - vs[i];
        }
    }

    /// d = d·(1 - t²), t the tanh.
    pub fn tanh_backward(d: &mut [f32], t: &[f32]) {
        for (d, t) in d.iter_mut().zip(t) {
            *d *= (-t).mul_add(*t, 1.0);
        }
    }

    /// d = d·(s·(1 - s)), s the sigmoid.
    pub fn sigmoid_backward(d: &mut [f32], s: &[f32]) {
        for (d, s) in d.iter_mut().zip(s) {
            *d *= s * (1.0 - s);
        }
    }
}
