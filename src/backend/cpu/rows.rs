//! Operations on rows of channels: layer norm, token shift, column sums, and what is done element by element.
//!
//! Slices hold whole rows, row-major. Outputs are overwritten unless a line says "added to".

use super::simd::simd;
use crate::arith::sums::{COLUMN_CHUNK, row_dot, row_sum};

/// What a layer norm adds to the variance.
pub const LAYER_NORM_EPS: f32 = 1e-5;

/// Rows whose neighbours in time are known: rows `first..` of [rows of all windows, width].
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Number of the first row, counted over all windows.
    pub first: usize,
    /// Tokens of a window.
    pub tokens: usize,
    /// Floats of a row.
    pub width: usize,
}

impl Window {
    /// Row `row` of `all`, and the one before it in its window.
    #[inline(always)]
    fn with_previous<'a>(&self, all: &'a [f32], row: usize) -> (&'a [f32], Option<&'a [f32]>) {
        let here = &all[row * self.width..(row + 1) * self.width];
        let previous = (!row.is_multiple_of(self.tokens)).then(|| &all[(row - 1) * self.width..row * self.width]);
        (here, previous)
    }
}

simd! {
    /// Layer norm over rows x [rows, C]: xhat = (x - mean)·rs, y = xhat·w + b, rs `[rows]`.
    pub fn layer_norm(x: &[f32], w: &[f32], b: &[f32], xhat: &mut [f32], y: &mut [f32], rs: &mut [f32]) {
        let c = w.len();
        let rows = x.chunks_exact(c).zip(xhat.chunks_exact_mut(c)).zip(y.chunks_exact_mut(c)).zip(rs);
        for (((x, xhat), y), rs) in rows {
            let mean = row_sum(c, |i| x[i]) / c as f32;
            for i in 0..c {
                xhat[i] = x[i] - mean;
            }
            let variance = row_dot(c, |i| (xhat[i], xhat[i])) / c as f32;
            *rs = 1.0 / (variance + LAYER_NORM_EPS).sqrt();
            for i in 0..c {
                xhat[i] *= *rs;
                y[i] = xhat[i].mul_add(w[i], b[i]);
            }
        }
    }

    /// Gradient of [`layer_norm`]'s x, added to the gradient dx [rows, C] that passes it by: dx = dx + ….
    pub fn layer_norm_backward(dy: &[f32], xhat: &[f32], w: &[f32], rs: &[f32], dx: &mut [f32]) {
        let c = w.len();
        let rows = dy.chunks_exact(c).zip(xhat.chunks_exact(c)).zip(dx.chunks_exact_mut(c)).zip(rs);
        for (((dy, xhat), dx), rs) in rows {
            let c1 = row_sum(c, |i| dy[i] * w[i]) / c as f32;
            let c2 = row_dot(c, |i| (dy[i] * w[i], xhat[i])) / c as f32;
            for i in 0..c {
                dx[i] += rs * (-xhat[i]).mul_add(c2, dy[i] * w[i] - c1);
            }
        }
    }

    /// Sums of the columns of x [rows, C] over each chunk of rows (S3): out [chunks, C].
    pub fn column_sums(x: &[f32], c: usize, out: &mut [f32]) {
        for (x, out) in x.chunks(COLUMN_CHUNK * c).zip(out.chunks_exact_mut(c)) {
            out.fill(0.0);
            for x in x.chunks_exact(c) {
                for i in 0..c {
                    out[i] += x[i];
                }
            }
        }
    }

    /// Sums of the columns of a·b [rows, C] over each chunk of rows (S3): out [chunks, C].
    pub fn column_dots(a: &[f32], b: &[f32], c: usize, out: &mut [f32]) {
        let chunks = a.chunks(COLUMN_CHUNK * c).zip(b.chunks(COLUMN_CHUNK * c)).zip(out.chunks_exact_mut(c));
        for ((a, b), out) in chunks {
            out.fill(0.0);
            for (a, b) in a.chunks_exact(c).zip(b.chunks_exact(c)) {
                for i in 0..c {
                    out[i] = a[i].mul_add(b[i], out[i]);
                }
            }
        }
    }

    /// Adds up the chunks' sums of [`column_sums`] or [`column_dots`]: out `[C]`.
    pub fn fold_chunks(chunks: &[f32], out: &mut [f32]) {
        let c = out.len();
        out.copy_from_slice(&chunks[..c]);
        for chunk in chunks[c..].chunks_exact(c) {
            for i in 0..c {
                out[i] += chunk[i];
            }
        }
    }

    /// Token shift: out = u + (previous - u)·mix for the rows of `window`; `u` holds all rows.
    pub fn token_shift(u: &[f32], window: Window, mix: &[f32], out: &mut [f32]) {
        let c = window.width;
        for (i, out) in out.chunks_exact_mut(c).enumerate() {
            match window.with_previous(u, window.first + i) {
                (u, Some(previous)) => {
                    for i in 0..c {
                        out[i] = (previous[i] - u[i]).mul_add(mix[i], u[i]);
                    }
                }
                (u, None) => {
                    for i in 0..c {
                        out[i] = (0.0 - u[i]).mul_add(mix[i], u[i]);
                    }
                }
            }
        }
    }

    /// Column sums of dxc·(previous - u) over each chunk of rows (S3), the gradient of a token shift's mix: out [chunks, C].
    pub fn token_shift_mix_sums(dxc: &[f32], u: &[f32], window: Window, out: &mut [f32]) {
        let c = window.width;
        for (chunk, (dxc, out)) in dxc.chunks(COLUMN_CHUNK * c).zip(out.chunks_exact_mut(c)).enumerate() {
            out.fill(0.0);
            for (i, d) in dxc.chunks_exact(c).enumerate() {
                match window.with_previous(u, window.first + chunk * COLUMN_CHUNK + i) {
                    (u, Some(previous)) => {
                        for i in 0..c {
                            out[i] = d[i].mul_add(previous[i] - u[i], out[i]);
                        }
                    }
                    (u, None) => {
                        for i in 0..c {
                            out[i] = d[i].mul_add(0.0 - u[i], out[i]);
                        }
                    }
                }
            }
        }
    }

    /// Gradient of u through one token shift: du = dxc·(1 - mix), plus the next row's dxc·mix within the window.
    /// `dxc` holds all rows, `du` the rows of `window`.
    pub fn token_shift_backward(dxc: &[f32], window: Window, mix: &[f32], du: &mut [f32]) {
        let c = window.width;
        for (i, du) in du.chunks_exact_mut(c).enumerate() {
            let row = window.first + i;
            let here = &dxc[row * c..(row + 1) * c];
            if (row + 1).is_multiple_of(window.tokens) {
                for i in 0..c {
                    du[i] = here[i] * (1.0 - mix[i]);
                }
            } else {
                let next = &dxc[(row + 1) * c..(row + 2) * c];
                for i in 0..c {
                    du[i] = here[i] * (1.0 - mix[i]) + next[i] * mix[i];
                }
            }
        }
    }

    /// Gradient of u through six token shifts, as [`token_shift_backward`] for one.
    pub fn token_shift_backward6(dxc: [&[f32]; 6], window: Window, mix: [&[f32]; 6], du: &mut [f32]) {
        let c = window.width;
        let mix = mix.map(|m| &m[..c]);
        for (i, du) in du.chunks_exact_mut(c).enumerate() {
            let row = window.first + i;
            let here = dxc.map(|d| &d[row * c..(row + 1) * c]);
            for i in 0..c {
                let mut own = here[0][i] * (1.0 - mix[0][i]);
                for k in 1..6 {
                    own = here[k][i].mul_add(1.0 - mix[k][i], own);
                }
                du[i] = own;
            }
            if !(row + 1).is_multiple_of(window.tokens) {
                let next = dxc.map(|d| &d[(row + 1) * c..(row + 2) * c]);
                for i in 0..c {
                    let mut from_next = next[0][i] * mix[0][i];
                    for k in 1..6 {
                        from_next = next[k][i].mul_add(mix[k][i], from_next);
                    }
                    du[i] += from_next;
                }
            }
        }
    }

    /// x = x + y.
    pub fn add(y: &[f32], x: &mut [f32]) {
        for (x, y) in x.iter_mut().zip(y) {
            *x += y;
        }
    }

    /// rl = h where h > 0, else +0, in place; act = rl².
    pub fn relu_squared(h: &mut [f32], act: &mut [f32]) {
        for (h, act) in h.iter_mut().zip(act) {
            *h = if *h > 0.0 { *h } else { 0.0 };
            *act = *h * *h;
        }
    }

    /// dh = dact·(rl + rl), in place of dact.
    pub fn relu_squared_backward(dact: &mut [f32], rl: &[f32]) {
        for (d, rl) in dact.iter_mut().zip(rl) {
            *d *= rl + rl;
        }
    }
}
