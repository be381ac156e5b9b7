//! Causal attention of one head over one window, dense or sparse by chunks (MoBA), forward and backward.

use super::product::{Left, Packed, Part, product_part};
use super::simd::{Level, simd};
use super::team::TILE;
use crate::arith::functions::exp;
use crate::arith::sums::{PRODUCT_CHUNK, ROW_PARTIALS, row_dot, row_sum};

/// Sizes of a head.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Tokens of a window T.
    pub tokens: usize,
    /// Channels of a head N.
    pub n: usize,
    /// Positions of a chunk.
    pub chunk_size: usize,
    /// Earlier chunks that a query sees.
    pub top_k: usize,
}

impl Shape {
    fn scale(&self) -> f32 {
        (1.0 / (self.n as f64).sqrt()) as f32
    }

    /// Tiles of queries: (first, one past the last).
    fn tiles(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.tokens).step_by(TILE).map(move |i| (i, (i + TILE).min(self.tokens)))
    }

    /// Columns that a tile of queries ending before `end` must fill for the sums over queries to read: whole chunks of S1.
    fn filled(&self, end: usize) -> usize {
        end.next_multiple_of(PRODUCT_CHUNK).min(self.tokens)
    }
}

/// Which chunks each query sees beside its own: [T, chunks], where attention is sparse.
struct Choice {
    chunks: usize,
    seen: Vec<bool>,
}

impl Choice {
    /// Chunks are ranked by the query's product with the mean of their keys, larger first, ties to the lower chunk.
    fn new(shape: Shape, q: &[f32], k: &[f32]) -> Option<Self> {
        let Shape { tokens, n, chunk_size, top_k } = shape;
        if chunk_size >= tokens {
            return None;
        }
        let chunks = tokens.div_ceil(chunk_size);
        let mut seen = vec![false; tokens * chunks];
        let mut means = vec![0.0f32; (tokens / chunk_size) * n];
        for (mean, keys) in means.chunks_exact_mut(n).zip(k.chunks_exact(chunk_size * n)) {
            for key in keys.chunks_exact(n) {
                mean.iter_mut().zip(key).for_each(|(m, k)| *m += k);
            }
            mean.iter_mut().for_each(|m| *m /= chunk_size as f32);
        }
        let mut ranked: Vec<(f32, usize)> = Vec::with_capacity(chunks);
        for (t, query) in q.chunks_exact(n).enumerate() {
            let own = t / chunk_size;
            ranked.clear();
            ranked.extend(
                means
                    .chunks_exact(n)
                    .take(own)
                    .enumerate()
                    .map(|(c, mean)| (query.iter().zip(mean).fold(0.0f32, |sum, (q, m)| q.mul_add(*m, sum)), c)),
            );
            // A stable sort keeps the lower chunk first where scores are equal.
            ranked.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(std::cmp::Ordering::Equal));
            ranked.iter().take(top_k).for_each(|&(_, c)| seen[t * chunks + c] = true);
            seen[t * chunks + own] = true;
        }
        Some(Self { chunks, seen })
    }

    /// Turns the scores of invisible keys up to t into the exponential's zero.
    fn hide(&self, chunk_size: usize, t: usize, scores: &mut [f32]) {
        for (c, scores) in scores[..=t].chunks_mut(chunk_size).enumerate() {
            if !self.seen[t * self.chunks + c] {
                scores.fill(f32::NEG_INFINITY);
            }
        }
    }
}

simd! {
    /// Softmax of a query's products with its keys 0..=t: the products are scaled, those at minus infinity get share +0.
    /// Keys after t get +0.
    fn softmax(row: &mut [f32], t: usize, scale: f32) {
        let (seen, after) = row.split_at_mut(t + 1);
        after.fill(0.0);
        let mut max = [f32::NEG_INFINITY; ROW_PARTIALS];
        for chunk in seen.chunks_mut(ROW_PARTIALS) {
            for (x, max) in chunk.iter_mut().zip(&mut max) {
                *x *= scale;
                *max = if *x > *max { *x } else { *max };
            }
        }
        let max = max.iter().fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a });
        for x in seen.iter_mut() {
            *x = exp(*x - max);
        }
        let inverse = 1.0 / row_sum(t + 1, |i| seen[i]);
        for x in seen {
            *x *= inverse;
        }
    }

    /// ds = (p·(dp - along))·scale over one query's keys 0..=t, in place of dp; keys after t get +0.
    fn softmax_backward(dp: &mut [f32], p: &[f32], t: usize, along: f32, scale: f32) {
        let (seen, after) = dp.split_at_mut(t + 1);
        after.fill(0.0);
        for (d, p) in seen.iter_mut().zip(p) {
            *d = (p * (*d - along)) * scale;
        }
    }

    /// S2 of a·b.
    fn dot(a: &[f32], b: &[f32]) -> f32 {
        row_dot(a.len(), |i| (a[i], b[i]))
    }

    /// x = x + 0: gives a zero one sign.
    fn settle(x: &mut [f32]) {
        for x in x {
            *x += 0.0;
        }
    }
}

/// A head's inputs, each [T, N].
#[derive(Clone, Copy)]
#[allow(missing_docs)] // queries, keys and values
pub struct Head<'a> {
    pub q: &'a [f32],
    pub k: &'a [f32],
    pub v: &'a [f32],
}

/// Forward pass: shares p [T, T] (what the backward pass reads of it is filled) and y [T, N], overwritten.
pub fn forward(level: Level, shape: Shape, head: Head<'_>, p: &mut [f32], y: &mut [f32]) {
    let Shape { tokens, n, .. } = shape;
    let choice = Choice::new(shape, head.q, head.k);
    let mut keys = Packed::new(n, tokens);
    keys.pack_transposed(head.k);
    let mut values = Packed::new(tokens, n);
    values.pack(head.v, n);
    for (first, end) in shape.tiles() {
        let rows = end - first;
        let p = &mut p[first * tokens..end * tokens];
        let scores = Part { from: 0, to: n, columns: end, out_row: tokens };
        product_part(level, Left::rows(&head.q[first * n..end * n], rows, n), &keys, scores, p);
        for (i, row) in p.chunks_exact_mut(tokens).enumerate() {
            if let Some(choice) = &choice {
                choice.hide(shape.chunk_size, first + i, row);
            }
            softmax(level, &mut row[..shape.filled(end)], first + i, shape.scale());
        }
        let sums = Part { from: 0, to: end, columns: n, out_row: n };
        product_part(level, Left::rows(p, rows, tokens), &values, sums, &mut y[first * n..end * n]);
    }
    settle(level, y);
}

/// Gradients of a head's inputs, each [T, N], overwritten.
#[allow(missing_docs)] // of queries, keys and values
pub struct HeadGrads<'a> {
    pub q: &'a mut [f32],
    pub k: &'a mut [f32],
    pub v: &'a mut [f32],
}

/// Backward pass, from y and its gradient dy [T, N]; `ds` is scratch [T, T].
pub fn backward(
    level: Level,
    shape: Shape,
    head: Head<'_>,
    p: &[f32],
    (y, dy): (&[f32], &[f32]),
    grads: HeadGrads<'_>,
    ds: &mut [f32],
) {
    let Shape { tokens, n, .. } = shape;
    let mut values = Packed::new(n, tokens);
    values.pack_transposed(head.v);
    let [keys, queries, outputs] = [head.k, head.q, dy].map(|x| {
        let mut packed = Packed::new(tokens, n);
        packed.pack(x, n);
        packed
    });
    for (first, end) in shape.tiles() {
        let rows = end - first;
        let span = first * n..end * n;
        let tile = &mut ds[first * tokens..end * tokens];
        let products = Part { from: 0, to: n, columns: end, out_row: tokens };
        product_part(level, Left::rows(&dy[span.clone()], rows, n), &values, products, tile);
        for (i, row) in tile.chunks_exact_mut(tokens).enumerate() {
            let t = first + i;
            let along = dot(level, &dy[t * n..(t + 1) * n], &y[t * n..(t + 1) * n]);
            let p = &p[t * tokens..(t + 1) * tokens];
            softmax_backward(level, &mut row[..shape.filled(end)], p, t, along, shape.scale());
        }
        let sums = Part { from: 0, to: end, columns: n, out_row: n };
        product_part(level, Left::rows(tile, rows, tokens), &keys, sums, &mut grads.q[span]);
    }
    for (first, end) in shape.tiles() {
        let from = first / PRODUCT_CHUNK * PRODUCT_CHUNK;
        let sums = Part { from, to: tokens, columns: n, out_row: n };
        let span = first * n..end * n;
        let ds = Left::columns(&ds[from * tokens..], first, end - first, tokens);
        product_part(level, ds, &queries, sums, &mut grads.k[span.clone()]);
        let p = Left::columns(&p[from * tokens..], first, end - first, tokens);
        product_part(level, p, &outputs, sums, &mut grads.v[span]);
    }
    for x in [grads.q, grads.k, grads.v] {
        settle(level, x);
    }
}
