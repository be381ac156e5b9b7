//! The RWKV-7 recurrence of one head, forward and backward.
//!
//! The state `S[i][j]` has value channels i and key channels j. Sums over either have shape S4: four partial sums over channels that are
//! equal modulo 4. Vectors run over the other index, in blocks that keep their partial sums in registers. The forward pass keeps S transposed, so that sums over j run down its rows; the backward pass keeps its gradient G in
//! both forms, since it sums over i and over j: twice the cheap element-wise work in place of sums across a vector register.

use super::vector::{Vector, by_vector};

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

/// Calls a function of a register and a block's first channel for blocks that cover 0..n.
macro_rules! by_blocks {
    ($v:ident, $n:expr, $f:ident($($arg:expr),*)) => {{
        let mut at = 0;
        while at + $v::WIDTH <= $n {
            $f::<$v>(at, $($arg),*);
            at += $v::WIDTH;
        }
        while at < $n {
            $f::<f32>(at, $($arg),*);
            at += 1;
        }
    }};
}

/// Four partial sums of a block of channels.
type Partials<V> = [V; 4];

#[inline(always)]
fn none<V: Vector>() -> Partials<V> {
    [V::splat(0.0); 4]
}

#[inline(always)]
fn fold<V: Vector>(p: &Partials<V>) -> V {
    V::add(V::add(p[0], p[2]), V::add(p[1], p[3]))
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

/// A token's vectors, each `[N]`.
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
fn removal<V: Vector>(at: usize, n: usize, state: &[f32], token: Token<'_>, sa: &mut [f32]) {
    let mut p = none::<V>();
    rows_by_four!(n, |j, lane| {
        p[lane] = V::fma(V::load(&state[j * n + at..]), V::splat(-token.kk[j]), p[lane]);
    });
    fold(&p).store(&mut sa[at..]);
}

/// The new state and y = S·r for channels i of a block, on the transposed state.
#[inline(always)]
fn update<V: Vector>(at: usize, n: usize, state: &mut [f32], token: Token<'_>, sa: &[f32], y: &mut [f32]) {
    let mut p = none::<V>();
    let (v, sa) = (V::load(&token.v[at..]), V::load(&sa[at..]));
    rows_by_four!(n, |j, lane| {
        let row = &mut state[j * n + at..];
        let kept = V::mul(V::load(row), V::splat(token.w[j]));
        let new = V::fma(v, V::splat(token.k[j]), V::fma(sa, V::splat(token.b[j]), kept));
        new.store(row);
        p[lane] = V::fma(new, V::splat(token.r[j]), p[lane]);
    });
    fold(&p).store(&mut y[at..]);
}

#[inline(always)]
fn forward_n<V: Vector>(
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
        by_blocks!(V, n, removal(n, state, token, sa));
        by_blocks!(V, n, update(n, state, token, sa, y));
    }
}

/// G takes in dy, and what is summed over i, for channels j of a block: the gradients of r, k, b and w.
#[inline(always)]
fn gather<V: Vector>(
    at: usize,
    n: usize,
    g: &mut [f32],
    states: (&[f32], &[f32]),
    token: Token<'_>,
    (dy, sa): (&[f32], &[f32]),
    out: [&mut [f32]; 4],
) {
    let (before, after) = states;
    let [mut pr, mut pk, mut pb, mut pw] = [none::<V>(); 4];
    let r = V::load(&token.r[at..]);
    rows_by_four!(n, |i, lane| {
        let dy = V::splat(dy[i]);
        let row = V::fma(r, dy, V::load(&g[i * n + at..]));
        row.store(&mut g[i * n + at..]);
        pr[lane] = V::fma(V::load(&after[i * n + at..]), dy, pr[lane]);
        pk[lane] = V::fma(row, V::splat(token.v[i]), pk[lane]);
        pb[lane] = V::fma(row, V::splat(sa[i]), pb[lane]);
        pw[lane] = V::fma(row, V::load(&before[i * n + at..]), pw[lane]);
    });
    for (out, p) in out.into_iter().zip([pr, pk, pb, pw]) {
        fold(&p).store(&mut out[at..]);
    }
}

/// The same on G's transpose, for channels i of a block: the gradient of v, and h.
#[inline(always)]
fn gather_transposed<V: Vector>(
    at: usize,
    n: usize,
    gt: &mut [f32],
    token: Token<'_>,
    dy: &[f32],
    dv: &mut [f32],
    h: &mut [f32],
) {
    let [mut pv, mut ph] = [none::<V>(); 2];
    let dy = V::load(&dy[at..]);
    rows_by_four!(n, |j, lane| {
        let row = V::fma(dy, V::splat(token.r[j]), V::load(&gt[j * n + at..]));
        row.store(&mut gt[j * n + at..]);
        pv[lane] = V::fma(row, V::splat(token.k[j]), pv[lane]);
        ph[lane] = V::fma(row, V::splat(token.b[j]), ph[lane]);
    });
    fold(&pv).store(&mut dv[at..]);
    fold(&ph).store(&mut h[at..]);
}

/// G goes back by a token, for channels j of a block, and the gradient of A.
#[inline(always)]
fn decay<V: Vector>(at: usize, n: usize, g: &mut [f32], before: &[f32], token: Token<'_>, h: &[f32], da: &mut [f32]) {
    let mut pa = none::<V>();
    let removal = V::mul(V::load(&token.kk[at..]), V::splat(-1.0));
    let w = V::load(&token.w[at..]);
    rows_by_four!(n, |i, lane| {
        let h = V::splat(h[i]);
        pa[lane] = V::fma(V::load(&before[i * n + at..]), h, pa[lane]);
        let row = &mut g[i * n + at..];
        V::fma(h, removal, V::mul(V::load(row), w)).store(row);
    });
    fold(&pa).store(&mut da[at..]);
}

/// G's transpose goes back by a token, for channels i of a block.
#[inline(always)]
fn decay_transposed<V: Vector>(at: usize, n: usize, gt: &mut [f32], token: Token<'_>, h: &[f32]) {
    let h = V::load(&h[at..]);
    for j in 0..n {
        let row = &mut gt[j * n + at..];
        V::fma(h, V::splat(-token.kk[j]), V::mul(V::load(row), V::splat(token.w[j]))).store(row);
    }
}

#[inline(always)]
fn backward_n<V: Vector>(
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
        restate::<V>(n, head, sa, &states[segment * nn..(segment + 1) * nn], kept, first..last);
        for t in (first..last).rev() {
            let token = head.token(n, t);
            let dy = &dy[t * head.stride..t * head.stride + n];
            let out = t * n..(t + 1) * n;
            let sa = &sa[out.clone()];
            let states = kept[(t - first) * nn..(t - first + 2) * nn].split_at(nn);
            let (dr, dk) = (&mut grads.r[out.clone()], &mut grads.k[out.clone()]);
            let (db, dw) = (&mut grads.b[out.clone()], &mut grads.w[out.clone()]);
            let (dv, da) = (&mut grads.v[out.clone()], &mut grads.a[out]);
            by_blocks!(V, n, gather(n, g, states, token, (dy, sa), [&mut *dr, &mut *dk, &mut *db, &mut *dw]));
            by_blocks!(V, n, gather_transposed(n, gt, token, dy, dv, h));
            by_blocks!(V, n, decay(n, g, states.0, token, h, da));
            by_blocks!(V, n, decay_transposed(n, gt, token, h));
        }
    }
}

/// The states of tokens `span`, not transposed: `kept[t - span.start]` is S before token t. `start` is the first, transposed.
#[inline(always)]
fn restate<V: Vector>(
    n: usize,
    head: Head<'_>,
    sa: &[f32],
    start: &[f32],
    kept: &mut [f32],
    span: std::ops::Range<usize>,
) {
    let nn = n * n;
    for i in 0..n {
        for j in 0..n {
            kept[i * n + j] = start[j * n + i];
        }
    }
    for t in span.clone() {
        let (token, sa) = (head.token(n, t), &sa[t * n..(t + 1) * n]);
        let (before, after) = kept[(t - span.start) * nn..(t - span.start + 2) * nn].split_at_mut(nn);
        by_blocks!(V, n, redo(n, before, after, token, sa));
    }
}

/// The state after a token, for channels j of a block.
#[inline(always)]
fn redo<V: Vector>(at: usize, n: usize, before: &[f32], after: &mut [f32], token: Token<'_>, sa: &[f32]) {
    let (w, k, b) = (V::load(&token.w[at..]), V::load(&token.k[at..]), V::load(&token.b[at..]));
    for i in 0..n {
        let kept = V::mul(V::load(&before[i * n + at..]), w);
        let new = V::fma(V::splat(token.v[i]), k, V::fma(V::splat(sa[i]), b, kept));
        new.store(&mut after[i * n + at..]);
    }
}

#[inline(always)]
fn forward_v<V: Vector>(
    head: Head<'_>,
    y: &mut [f32],
    sa: &mut [f32],
    states: Option<&mut [f32]>,
    scratch: &mut [f32],
) {
    // A head size that the compiler knows unrolls its loops.
    match head.n {
        16 => forward_n::<V>(16, head, y, sa, states, scratch),
        32 => forward_n::<V>(32, head, y, sa, states, scratch),
        64 => forward_n::<V>(64, head, y, sa, states, scratch),
        n => forward_n::<V>(n, head, y, sa, states, scratch),
    }
}

#[inline(always)]
fn backward_v<V: Vector>(
    head: Head<'_>,
    sa: &[f32],
    states: &[f32],
    dy: &[f32],
    grads: HeadGrads<'_>,
    scratch: &mut [f32],
) {
    match head.n {
        16 => backward_n::<V>(16, head, sa, states, dy, grads, scratch),
        32 => backward_n::<V>(32, head, sa, states, dy, grads, scratch),
        64 => backward_n::<V>(64, head, sa, states, dy, grads, scratch),
        n => backward_n::<V>(n, head, sa, states, dy, grads, scratch),
    }
}

by_vector! {
    /// Forward pass of one head over one window: y [T, N] and sa [T, N] are overwritten, as is `states` ([`states_len`] floats) where
    /// it is wanted; `scratch` has [`forward_scratch_len`] floats.
    pub fn forward(head: Head<'_>, y: &mut [f32], sa: &mut [f32], states: Option<&mut [f32]>, scratch: &mut [f32]) = forward_v
}

by_vector! {
    /// Backward pass of one head over one window, from dy (strided as the inputs) and what the forward pass kept;
    /// `scratch` has [`backward_scratch_len`] floats.
    pub fn backward(head: Head<'_>, sa: &[f32], states: &[f32], dy: &[f32], grads: HeadGrads<'_>, scratch: &mut [f32]) = backward_v
}
