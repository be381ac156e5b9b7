//! The RWKV-7 recurrence of one head, forward and backward.
//!
//! The state S[i][j] has value channels i and key channels j. Sums over either have shape S4: four partial sums over channels that are
//! equal modulo 4. Vectors run over the other index, in blocks that keep their partial sums in registers. The forward pass keeps S transposed, so that sums over j run down its rows; the backward pass keeps its gradient G in
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
    (SEGMENT + 1 + 2) * n * n + n
}

/// Scratch floats of [`forward`].
pub const fn forward_scratch_len(n: usize) -> usize {
    n * n
}

/// Calls a function of a block's width and first channel for blocks of 16, 8 and single channels that cover 0..n.
macro_rules! by_blocks {
    ($n:expr, $f:ident($($arg:expr),*)) => {{
        let mut at = 0;
        while at + 16 <= $n {
            $f::<16>(at, $($arg),*);
            at += 16;
        }
        while at + 8 <= $n {
            $f::<8>(at, $($arg),*);
            at += 8;
        }
        while at < $n {
            $f::<1>(at, $($arg),*);
            at += 1;
        }
    }};
}

/// Four partial sums of a block of channels.
type Partials<const W: usize> = [[f32; W]; 4];

#[inline(always)]
fn fold<const W: usize>(p: &Partials<W>) -> [f32; W] {
    std::array::from_fn(|l| (p[0][l] + p[2][l]) + (p[1][l] + p[3][l]))
}

/// W floats of a row of n at channel `at`.
#[inline(always)]
fn block<const W: usize>(x: &[f32], n: usize, row: usize, at: usize) -> &[f32; W] {
    x[row * n + at..].first_chunk().expect("a block lies within its row")
}

/// The same, to be written.
#[inline(always)]
fn block_mut<const W: usize>(x: &mut [f32], n: usize, row: usize, at: usize) -> &mut [f32; W] {
    x[row * n + at..].first_chunk_mut().expect("a block lies within its row")
}

/// p += x·factor.
#[inline(always)]
fn take<const W: usize>(p: &mut [f32; W], x: &[f32; W], factor: f32) {
    for l in 0..W {
        p[l] = x[l].mul_add(factor, p[l]);
    }
}

/// Runs a body for rows 0..n in order, with `lane = row % 4` known to the compiler. (A macro, since a closure is not sure to be inlined, and
/// would then be compiled without the level's instructions.)
macro_rules! rows_by_four {
    ($n:expr, |$row:ident, $lane:ident| $body:block) => {{
        let mut first = 0;
        while first + 4 <= $n {
            for $lane in 0..4 {
                let $row = first + $lane;
                $body
            }
            first += 4;
        }
        for $lane in 0..$n - first {
            let $row = first + $lane;
            $body
        }
    }};
}

/// A token's vectors, each [N].
#[derive(Clone, Copy)]
struct Token<'a> {
    r: &'a [f32],
    w: &'a [f32],
    k: &'a [f32],
    v: &'a [f32],
    kk: &'a [f32],
    b: &'a [f32],
}

impl<'a> Head<'a> {
    #[inline(always)]
    fn token(&self, n: usize, t: usize) -> Token<'a> {
        let span = t * self.stride..t * self.stride + n;
        Token {
            r: &self.r[span.clone()],
            w: &self.w[span.clone()],
            k: &self.k[span.clone()],
            v: &self.v[span.clone()],
            kk: &self.kk[span.clone()],
            b: &self.b[span],
        }
    }
}

/// sa = S·A for channels i of a block, from the transposed state.
#[inline(always)]
fn removal<const W: usize>(at: usize, n: usize, state: &[f32], token: Token<'_>, sa: &mut [f32]) {
    let mut p = [[0.0; W]; 4];
    rows_by_four!(n, |j, lane| { take(&mut p[lane], block(state, n, j, at), -token.kk[j]) });
    *block_mut(sa, n, 0, at) = fold(&p);
}

/// The new state and y = S·r for channels i of a block, on the transposed state.
#[inline(always)]
fn update<const W: usize>(at: usize, n: usize, state: &mut [f32], token: Token<'_>, sa: &[f32], y: &mut [f32]) {
    let mut p = [[0.0; W]; 4];
    let (v, sa) = (*block::<W>(token.v, n, 0, at), *block::<W>(sa, n, 0, at));
    rows_by_four!(n, |j, lane| {
        let row = block_mut::<W>(state, n, j, at);
        for l in 0..W {
            row[l] = v[l].mul_add(token.k[j], sa[l].mul_add(token.b[j], row[l] * token.w[j]));
        }
        take(&mut p[lane], row, token.r[j]);
    });
    *block_mut(y, n, 0, at) = fold(&p);
}

#[inline(always)]
fn forward_n(
    n: usize,
    head: Head<'_>,
    y: &mut [f32],
    sa: &mut [f32],
    mut states: Option<&mut [f32]>,
    state: &mut [f32],
) {
    let state = &mut state[..n * n];
    state.fill(0.0);
    for (t, (y, sa)) in y.chunks_exact_mut(n).zip(sa.chunks_exact_mut(n)).enumerate().take(head.tokens) {
        let token = head.token(n, t);
        if let Some(states) = states.as_deref_mut()
            && t % SEGMENT == 0
        {
            states[t / SEGMENT * n * n..][..n * n].copy_from_slice(state);
        }
        by_blocks!(n, removal(n, state, token, sa));
        by_blocks!(n, update(n, state, token, sa, y));
    }
}

/// G takes in dy, and what is summed over i, for channels j of a block: the gradients of r, k, b and w.
#[inline(always)]
fn gather<const W: usize>(
    at: usize,
    n: usize,
    g: &mut [f32],
    (before, after): (&[f32], &[f32]),
    token: Token<'_>,
    (dy, sa): (&[f32], &[f32]),
    out: [&mut [f32]; 4],
) {
    let [mut pr, mut pk, mut pb, mut pw] = [[[0.0; W]; 4]; 4];
    let r = *block::<W>(token.r, n, 0, at);
    rows_by_four!(n, |i, lane| {
        let row = block_mut::<W>(g, n, i, at);
        take(row, &r, dy[i]);
        take(&mut pr[lane], block(after, n, i, at), dy[i]);
        take(&mut pk[lane], row, token.v[i]);
        take(&mut pb[lane], row, sa[i]);
        let before = block::<W>(before, n, i, at);
        for l in 0..W {
            pw[lane][l] = row[l].mul_add(before[l], pw[lane][l]);
        }
    });
    for (out, p) in out.into_iter().zip([pr, pk, pb, pw]) {
        *block_mut(out, n, 0, at) = fold(&p);
    }
}

/// The same on G's transpose, for channels i of a block: the gradient of v, and h.
#[inline(always)]
fn gather_transposed<const W: usize>(
    at: usize,
    n: usize,
    gt: &mut [f32],
    token: Token<'_>,
    dy: &[f32],
    dv: &mut [f32],
    h: &mut [f32],
) {
    let [mut pv, mut ph] = [[[0.0; W]; 4]; 2];
    let dy = *block::<W>(dy, n, 0, at);
    rows_by_four!(n, |j, lane| {
        let row = block_mut::<W>(gt, n, j, at);
        take(row, &dy, token.r[j]);
        take(&mut pv[lane], row, token.k[j]);
        take(&mut ph[lane], row, token.b[j]);
    });
    *block_mut(dv, n, 0, at) = fold(&pv);
    *block_mut(h, n, 0, at) = fold(&ph);
}

/// G goes back by a token, for channels j of a block, and the gradient of A.
#[inline(always)]
fn decay<const W: usize>(
    at: usize,
    n: usize,
    g: &mut [f32],
    before: &[f32],
    token: Token<'_>,
    h: &[f32],
    da: &mut [f32],
) {
    let mut pa = [[0.0; W]; 4];
    let (kk, w) = (*block::<W>(token.kk, n, 0, at), *block::<W>(token.w, n, 0, at));
    rows_by_four!(n, |i, lane| {
        take(&mut pa[lane], block(before, n, i, at), h[i]);
        let row = block_mut::<W>(g, n, i, at);
        for l in 0..W {
            row[l] = h[i].mul_add(-kk[l], row[l] * w[l]);
        }
    });
    *block_mut(da, n, 0, at) = fold(&pa);
}

/// G's transpose goes back by a token, for channels i of a block.
#[inline(always)]
fn decay_transposed<const W: usize>(at: usize, n: usize, gt: &mut [f32], token: Token<'_>, h: &[f32]) {
    let h = *block::<W>(h, n, 0, at);
    for j in 0..n {
        let row = block_mut::<W>(gt, n, j, at);
        for l in 0..W {
            row[l] = h[l].mul_add(-token.kk[j], row[l] * token.w[j]);
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
    let (gt, h) = rest.split_at_mut(nn);
    g.fill(0.0);
    gt.fill(0.0);
    for segment in (0..head.tokens.div_ceil(SEGMENT)).rev() {
        let first = segment * SEGMENT;
        let last = (first + SEGMENT).min(head.tokens);
        restate(n, head, sa, &states[segment * nn..(segment + 1) * nn], kept, first..last);
        for t in (first..last).rev() {
            let token = head.token(n, t);
            let dy = &dy[t * head.stride..t * head.stride + n];
            let out = t * n..(t + 1) * n;
            let sa = &sa[out.clone()];
            let (before, after) = kept[(t - first) * nn..(t - first + 2) * nn].split_at(nn);
            let (dr, dk) = (&mut grads.r[out.clone()], &mut grads.k[out.clone()]);
            let (db, dw) = (&mut grads.b[out.clone()], &mut grads.w[out.clone()]);
            let (dv, da) = (&mut grads.v[out.clone()], &mut grads.a[out]);
            by_blocks!(n, gather(n, g, (before, after), token, (dy, sa), [dr, dk, db, dw]));
            by_blocks!(n, gather_transposed(n, gt, token, dy, dv, h));
            by_blocks!(n, decay(n, g, before, token, h, da));
            by_blocks!(n, decay_transposed(n, gt, token, h));
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
        let (token, sa) = (head.token(n, t), &sa[t * n..(t + 1) * n]);
        let (before, after) = kept[(t - span.start) * nn..(t - span.start + 2) * nn].split_at_mut(nn);
        by_blocks!(n, redo(n, before, after, token, sa));
    }
}

/// The state after a token, for channels j of a block.
#[inline(always)]
fn redo<const W: usize>(at: usize, n: usize, before: &[f32], after: &mut [f32], token: Token<'_>, sa: &[f32]) {
    let (w, k, b) = (*block::<W>(token.w, n, 0, at), *block::<W>(token.k, n, 0, at), *block::<W>(token.b, n, 0, at));
    for i in 0..n {
        let (before, after) = (block::<W>(before, n, i, at), block_mut::<W>(after, n, i, at));
        for l in 0..W {
            after[l] = token.v[i].mul_add(k[l], sa[i].mul_add(b[l], before[l] * w[l]));
        }
    }
}

simd! {
    /// Forward pass of one head over one window: y [T, N] and sa [T, N] are overwritten, as is `states` ([`states_len`] floats) where
    /// it is wanted; `scratch` has [`forward_scratch_len`] floats.
    pub fn forward(head: Head<'_>, y: &mut [f32], sa: &mut [f32], states: Option<&mut [f32]>, scratch: &mut [f32]) {
        // A head size that the compiler knows unrolls its loops.
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
