//! The RWKV-7 recurrence of one head, forward and backward.
//!
//! The state S[i][j] has value channels i and key channels j. Sums over either have shape S4: four partial sums over channels that are
//! equal modulo 4. The forward pass keeps S transposed, so that sums over j run down its rows; the backward pass keeps its gradient G in
//! both forms, since it sums over i and over j: twice the cheap element-wise work in place of sums across a vector register.

use super::simd::simd;

/// Tokens between the states that the forward pass keeps for the backward pass.
pub const SEGMENT: usize = 16;

/// Inputs of a head: slices of [rows, C] that begin at the window's first row and the head's first channel.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// Receptance.
    pub r: &'a [f32],
    /// Decay.
    pub w: &'a [f32],
    /// Key.
    pub k: &'a [f32],
    /// Value.
    pub v: &'a [f32],
    /// Normalised key kk; the removal key is -kk.
    pub kk: &'a [f32],
    /// Replacement key kk·a.
    pub b: &'a [f32],
    /// Floats from token to token.
    pub stride: usize,
    /// Tokens T.
    pub tokens: usize,
    /// Channels of the head N.
    pub n: usize,
}

/// Gradients of a head's inputs, each [T, N], overwritten.
pub struct HeadGrads<'a> {
    /// Of the receptance.
    pub r: &'a mut [f32],
    /// Of the decay.
    pub w: &'a mut [f32],
    /// Of the key.
    pub k: &'a mut [f32],
    /// Of the value.
    pub v: &'a mut [f32],
    /// Of the removal key A = -kk.
    pub a: &'a mut [f32],
    /// Of the replacement key.
    pub b: &'a mut [f32],
}

/// Floats that [`forward`] keeps for [`backward`]: one state for every segment.
pub const fn states_len(tokens: usize, n: usize) -> usize {
    tokens.div_ceil(SEGMENT) * n * n
}

/// Scratch floats of [`backward`].
pub const fn backward_scratch_len(n: usize) -> usize {
    (SEGMENT + 1 + 2) * n * n + 8 * 4 * n
}

/// Scratch floats of [`forward`].
pub const fn forward_scratch_len(n: usize) -> usize {
    n * n + 4 * n
}

#[inline(always)]
fn fold4(p: &[f32], n: usize, i: usize) -> f32 {
    (p[i] + p[2 * n + i]) + (p[n + i] + p[3 * n + i])
}

/// `p[lane] += row·factor` for one of four partial sums of n channels.
#[inline(always)]
fn take(p: &mut [f32], n: usize, lane: usize, row: &[f32], factor: f32) {
    for (p, x) in p[lane * n..(lane + 1) * n].iter_mut().zip(&row[..n]) {
        *p = x.mul_add(factor, *p);
    }
}

#[inline(always)]
fn forward_n(
    n: usize,
    head: Head<'_>,
    y: &mut [f32],
    sa: &mut [f32],
    mut states: Option<&mut [f32]>,
    scratch: &mut [f32],
) {
    let (state, p) = scratch.split_at_mut(n * n);
    let p = &mut p[..4 * n];
    state.fill(0.0);
    for t in 0..head.tokens {
        let span = t * head.stride..t * head.stride + n;
        let (r, w, k, v) = (&head.r[span.clone()], &head.w[span.clone()], &head.k[span.clone()], &head.v[span.clone()]);
        let (kk, b) = (&head.kk[span.clone()], &head.b[span]);
        if let Some(states) = states.as_deref_mut()
            && t % SEGMENT == 0
        {
            states[t / SEGMENT * n * n..][..n * n].copy_from_slice(state);
        }
        let sa = &mut sa[t * n..(t + 1) * n];
        p.fill(0.0);
        for j in 0..n {
            take(p, n, j % 4, &state[j * n..(j + 1) * n], -kk[j]);
        }
        for (i, sa) in sa.iter_mut().enumerate() {
            *sa = fold4(p, n, i);
        }
        p.fill(0.0);
        for j in 0..n {
            let row = &mut state[j * n..(j + 1) * n];
            let p = &mut p[(j % 4) * n..(j % 4 + 1) * n];
            for i in 0..n {
                row[i] = v[i].mul_add(k[j], sa[i].mul_add(b[j], row[i] * w[j]));
                p[i] = row[i].mul_add(r[j], p[i]);
            }
        }
        for (i, y) in y[t * n..(t + 1) * n].iter_mut().enumerate() {
            *y = fold4(p, n, i);
        }
    }
}

#[inline(always)]
fn backward_n(
    n: usize,
    head: Head<'_>,
    sa: &[f32],
    states: &[f32],
    dy: &[f32],
    grads: HeadGrads<'_>,
    scratch: &mut [f32],
) {
    let nn = n * n;
    let (kept, rest) = scratch.split_at_mut((SEGMENT + 1) * nn);
    let (g, rest) = rest.split_at_mut(nn);
    let (gt, p) = rest.split_at_mut(nn);
    let (p, h) = p.split_at_mut(7 * 4 * n);
    g.fill(0.0);
    gt.fill(0.0);
    for segment in (0..head.tokens.div_ceil(SEGMENT)).rev() {
        let first = segment * SEGMENT;
        let last = (first + SEGMENT).min(head.tokens);
        restate(n, head, sa, &states[segment * nn..(segment + 1) * nn], kept, first..last);
        for t in (first..last).rev() {
            let span = t * head.stride..t * head.stride + n;
            let (r, w, k, v) =
                (&head.r[span.clone()], &head.w[span.clone()], &head.k[span.clone()], &head.v[span.clone()]);
            let (kk, b) = (&head.kk[span.clone()], &head.b[span.clone()]);
            let dy = &dy[span];
            let out = t * n..(t + 1) * n;
            let sa = &sa[out.clone()];
            let (before, after) = kept[(t - first) * nn..(t - first + 2) * nn].split_at(nn);
            p.fill(0.0);
            let (pr, rest) = p.split_at_mut(4 * n);
            let (pk, rest) = rest.split_at_mut(4 * n);
            let (pb, rest) = rest.split_at_mut(4 * n);
            let (pw, rest) = rest.split_at_mut(4 * n);
            let (pv, rest) = rest.split_at_mut(4 * n);
            let (ph, pa) = rest.split_at_mut(4 * n);
            for i in 0..n {
                let row = i * n..(i + 1) * n;
                let lane = (i % 4) * n..(i % 4 + 1) * n;
                let (g, s) = (&mut g[row.clone()], &after[row]);
                let (pr, pk) = (&mut pr[lane.clone()], &mut pk[lane]);
                for j in 0..n {
                    g[j] = r[j].mul_add(dy[i], g[j]);
                    pr[j] = s[j].mul_add(dy[i], pr[j]);
                    pk[j] = g[j].mul_add(v[i], pk[j]);
                }
            }
            for i in 0..n {
                let row = i * n..(i + 1) * n;
                let lane = (i % 4) * n..(i % 4 + 1) * n;
                let (g, before) = (&g[row.clone()], &before[row]);
                let (pb, pw) = (&mut pb[lane.clone()], &mut pw[lane]);
                for j in 0..n {
                    pb[j] = g[j].mul_add(sa[i], pb[j]);
                    pw[j] = g[j].mul_add(before[j], pw[j]);
                }
            }
            for j in 0..n {
                let gt = &mut gt[j * n..(j + 1) * n];
                let lane = (j % 4) * n..(j % 4 + 1) * n;
                let (pv, ph) = (&mut pv[lane.clone()], &mut ph[lane]);
                for i in 0..n {
                    gt[i] = dy[i].mul_add(r[j], gt[i]);
                    pv[i] = gt[i].mul_add(k[j], pv[i]);
                    ph[i] = gt[i].mul_add(b[j], ph[i]);
                }
            }
            let h = &mut h[..n];
            for (i, h) in h.iter_mut().enumerate() {
                *h = fold4(ph, n, i);
            }
            for i in 0..n {
                let row = i * n..(i + 1) * n;
                take(pa, n, i % 4, &before[row.clone()], h[i]);
                let g = &mut g[row];
                for j in 0..n {
                    g[j] = h[i].mul_add(-kk[j], g[j] * w[j]);
                }
            }
            for j in 0..n {
                let gt = &mut gt[j * n..(j + 1) * n];
                for i in 0..n {
                    gt[i] = h[i].mul_add(-kk[j], gt[i] * w[j]);
                }
            }
            for i in 0..n {
                grads.r[t * n + i] = fold4(pr, n, i);
                grads.k[t * n + i] = fold4(pk, n, i);
                grads.b[t * n + i] = fold4(pb, n, i);
                grads.w[t * n + i] = fold4(pw, n, i);
                grads.v[t * n + i] = fold4(pv, n, i);
                grads.a[t * n + i] = fold4(pa, n, i);
            }
        }
    }
}

/// The states of tokens `span`, not transposed: `kept[t - span.start]` is S before token t. `start` is the first, transposed.
#[inline(always)]
fn restate(n: usize, head: Head<'_>, sa: &[f32], start: &[f32], kept: &mut [f32], span: std::ops::Range<usize>) {
    let nn = n * n;
    for i in 0..n {
        for j in 0..n {
            kept[i * n + j] = start[j * n + i];
        }
    }
    for t in span.clone() {
        let at = t * head.stride..t * head.stride + n;
        let (w, k, v, b) = (&head.w[at.clone()], &head.k[at.clone()], &head.v[at.clone()], &head.b[at]);
        let sa = &sa[t * n..(t + 1) * n];
        let (before, after) = kept[(t - span.start) * nn..(t - span.start + 2) * nn].split_at_mut(nn);
        for i in 0..n {
            let (before, after) = (&before[i * n..(i + 1) * n], &mut after[i * n..(i + 1) * n]);
            for j in 0..n {
                after[j] = v[i].mul_add(k[j], sa[i].mul_add(b[j], before[j] * w[j]));
            }
        }
    }
}

simd! {
    /// Forward pass of one head over one window: y [T, N] and sa [T, N] are overwritten, as is `states` ([`states_len`] floats) where
    /// it is wanted; `scratch` has [`forward_scratch_len`] floats.
    pub fn forward(head: Head<'_>, y: &mut [f32], sa: &mut [f32], states: Option<&mut [f32]>, scratch: &mut [f32]) {
        // A head size that the compiler knows keeps rows in registers.
        match head.n {
            16 => forward_n(16, head, y, sa, states, scratch),
            32 => forward_n(32, head, y, sa, states, scratch),
            64 => forward_n(64, head, y, sa, states, scratch),
            n => forward_n(n, head, y, sa, states, scratch),
        }
    }

    /// Backward pass of one head over one window, from dy (strided as the inputs) and what the forward pass kept;
    /// `scratch` has [`backward_scratch_len`] floats.
    pub fn backward(head: Head<'_>, sa: &[f32], states: &[f32], dy: &[f32], grads: HeadGrads<'_>, scratch: &mut [f32]) {
        match head.n {
            16 => backward_n(16, head, sa, states, dy, grads, scratch),
            32 => backward_n(32, head, sa, states, dy, grads, scratch),
            64 => backward_n(64, head, sa, states, dy, grads, scratch),
            n => backward_n(n, head, sa, states, dy, grads, scratch),
        }
    }
}
