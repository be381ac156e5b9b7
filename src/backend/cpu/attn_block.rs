//! An attention block: attention and channel mix, forward and backward, over tiles of rows and over heads.

use super::attention::{self, Head, HeadGrads, Shape};
use super::buffer::Buffer;
use super::channel_mix::{ChannelMix, ChannelMixIds};
use super::context::{Context, Norm, NormTiles};
use super::gradients::{self, MatrixGrad, Packs};
use super::rows;
use super::team::Parts;
use crate::model::{AttnParams, ModelConfig};

/// An attention block and what it keeps for its backward pass. Buffers are [R, C] unless their line says otherwise.
pub struct AttnBlock {
    p: AttnParams,
    q: Buffer,
    k: Buffer,
    v: Buffer,
    /// Head-major [B·H, T, N].
    y: Buffer,
    /// y, row-major.
    o: Buffer,
    /// Shares, [B·H, T, T].
    shares: Buffer,
    ffn: ChannelMix,
}

/// Buffers of the backward pass that blocks use one after the other, [R, C].
pub struct AttnScratch {
    dmid: Buffer,
    dy: Buffer,
    /// Head-major.
    heads: [Buffer; 3],
    /// Row-major: q, k, v.
    dqkv: [Buffer; 3],
    packs: Packs,
}

impl AttnScratch {
    /// Buffers for at most `rows` rows.
    pub fn new(config: &ModelConfig, rows: usize) -> Self {
        let c = || Buffer::zeros(rows * config.c);
        Self {
            dmid: c(),
            dy: c(),
            heads: std::array::from_fn(|_| c()),
            dqkv: std::array::from_fn(|_| c()),
            packs: Packs::default(),
        }
    }
}

fn shape(config: &ModelConfig) -> Shape {
    Shape { tokens: config.seq_len, n: config.head_size, chunk_size: config.chunk_size, top_k: config.top_k }
}

/// Copies head `task` of a row-major buffer [R, C] to `out` [T, N].
fn gather_head(config: &ModelConfig, rows: &[f32], task: usize, out: &mut [f32]) {
    let (window, h) = (task / config.n_head, task % config.n_head);
    let rows = &rows[window * config.seq_len * config.c..];
    for (row, out) in rows.chunks_exact(config.c).zip(out.chunks_exact_mut(config.head_size)) {
        out.copy_from_slice(&row[h * config.head_size..(h + 1) * config.head_size]);
    }
}

/// Copies the tile's rows of a head-major buffer to `out` [rows, C].
fn gather_rows(ctx: &Context<'_>, heads: &[f32], tile: usize, out: &mut [f32]) {
    let config = ctx.config;
    let n = config.head_size;
    for (row, out) in ctx.tile_rows(tile).zip(out.chunks_exact_mut(config.c)) {
        let (window, t) = (row / config.seq_len, row % config.seq_len);
        for (h, out) in out.chunks_exact_mut(n).enumerate() {
            out.copy_from_slice(&heads[((window * config.n_head + h) * config.seq_len + t) * n..][..n]);
        }
    }
}

impl AttnBlock {
    /// Block of the tensors `p`, for at most `windows` windows.
    pub fn new(config: &ModelConfig, p: &AttnParams, windows: usize) -> Self {
        let rows = windows * config.seq_len;
        let c = || Buffer::zeros(rows * config.c);
        let ffn = ChannelMixIds { ln: (p.ln2_w, p.ln2_b), x_k: p.ffn_x_k, key: p.ffn_key_w, value: p.ffn_value_w };
        Self {
            p: p.clone(),
            q: c(),
            k: c(),
            v: c(),
            y: c(),
            o: c(),
            shares: Buffer::zeros(rows * config.n_head * config.seq_len),
            ffn: ChannelMix::new(ffn, rows),
        }
    }

    /// Output of the heads [R, C].
    pub fn heads_output(&self) -> &[f32] {
        &self.o
    }

    /// Calls `work` with head `task`'s queries, keys and values.
    fn with_head<R>(&self, ctx: &Context<'_>, task: usize, work: impl FnOnce(Head<'_>) -> R) -> R {
        let each = ctx.config.seq_len * ctx.config.head_size;
        ctx.team.with_scratch(3 * each, |scratch| {
            for (rows, out) in [&self.q, &self.k, &self.v].into_iter().zip(scratch.chunks_exact_mut(each)) {
                gather_head(ctx.config, rows, task, out);
            }
            let (q, kv) = scratch.split_at(each);
            let (k, v) = kv.split_at(each);
            work(Head { q, k, v })
        })
    }

    /// Adds attention to x, from its normalised input `u`.
    pub fn attend(&mut self, ctx: &Context<'_>, u: &[f32], x: &mut [f32]) {
        let config = ctx.config;
        let c = config.c;
        let p = &self.p;
        {
            let [q, k, v] = [&mut self.q, &mut self.k, &mut self.v].map(|x| Parts::tiles(x, c));
            ctx.team.each(ctx.tiles(), |tile| {
                let span = ctx.tile_rows(tile);
                let u = &u[span.start * c..span.end * c];
                for (out, id) in [(&q, p.receptance_w), (&k, p.key_w), (&v, p.value_w)] {
                    ctx.project(u, id, &mut out.take(tile)[..u.len()]);
                }
            });
        }
        let [mut y, mut shares] = [&mut self.y, &mut self.shares].map(std::mem::take);
        {
            let each = config.seq_len * config.head_size;
            let (y, shares) = (Parts::new(&mut y, each), Parts::new(&mut shares, config.seq_len * config.seq_len));
            ctx.team.each(ctx.windows * config.n_head, |task| {
                self.with_head(ctx, task, |head| {
                    attention::forward(ctx.level(), shape(config), head, shares.take(task), y.take(task));
                });
            });
        }
        (self.y, self.shares) = (y, shares);
        let (x, o, next) = (Parts::tiles(x, c), Parts::tiles(&mut self.o, c), self.ffn.norm.tiles(ctx));
        let y = &self.y;
        ctx.team.each(ctx.tiles(), |tile| {
            let n = ctx.tile_rows(tile).len() * c;
            let (x, o) = (&mut x.take(tile)[..n], &mut o.take(tile)[..n]);
            gather_rows(ctx, y, tile, o);
            ctx.team.with_scratch(n, |out| {
                ctx.project(o, p.output_w, out);
                rows::add(ctx.level(), out, x);
            });
            next.run(tile, x);
        });
    }

    /// Adds the channel mix to x, and normalises the result for what comes next.
    pub fn channel_mix(&mut self, ctx: &Context<'_>, x: &mut [f32], next: &NormTiles<'_>) {
        self.ffn.forward(ctx, x, next);
    }

    /// Backward pass: `dx` is the gradient of the block's output and becomes that of its input; gradients of its weights are written to
    /// `grads`. `norm` is the layer norm before the block.
    pub fn backward(
        &mut self,
        ctx: &Context<'_>,
        norm: &mut Norm,
        s: &mut AttnScratch,
        (dx, dnext): (&mut Buffer, &mut Buffer),
        grads: &mut [f32],
    ) {
        let c = ctx.config.c;
        {
            let dy = Parts::tiles(&mut s.dy, c);
            self.ffn.backward(ctx, dx, &mut s.dmid, |tile, dmid| {
                ctx.project_back(dmid, self.p.output_w, &mut dy.take(tile)[..dmid.len()]);
            });
        }
        self.heads_backward(ctx, s);
        let p = &self.p;
        {
            let dqkv = s.dqkv.each_mut().map(|x| Parts::tiles(x, c));
            let (heads, dmid, norm) = (&s.heads, &s.dmid, norm.backward_tiles(ctx));
            let out = Parts::tiles(dnext, c);
            ctx.team.each(ctx.tiles(), |tile| {
                let span = ctx.tile_rows(tile);
                let n = span.len() * c;
                ctx.team.with_scratch(2 * n, |scratch| {
                    let (du, part) = scratch.split_at_mut(n);
                    for (i, id) in [p.receptance_w, p.key_w, p.value_w].into_iter().enumerate() {
                        let d = &mut dqkv[i].take(tile)[..n];
                        gather_rows(ctx, &heads[i], tile, d);
                        if i == 0 {
                            ctx.project_back(d, id, du);
                        } else {
                            ctx.project_back(d, id, part);
                            rows::add(ctx.level(), part, du);
                        }
                    }
                    let out = &mut out.take(tile)[..n];
                    out.copy_from_slice(&dmid[span.start * c..span.end * c]);
                    norm.run(tile, du, out);
                });
            });
        }
        let mut matrices = Vec::with_capacity(6);
        for (id, x, dy) in [
            (p.receptance_w, &norm.y, &s.dqkv[0]),
            (p.key_w, &norm.y, &s.dqkv[1]),
            (p.value_w, &norm.y, &s.dqkv[2]),
            (p.output_w, &self.o, &s.dmid),
        ] {
            matrices.push(MatrixGrad { id, x, dy });
        }
        matrices.extend(self.ffn.matrices(dx));
        let [ffn, ffn_norm] = self.ffn.sums();
        gradients::write(ctx, &mut s.packs, &matrices, &[norm.sums(), ffn, ffn_norm], grads);
        std::mem::swap(dx, dnext);
    }

    fn heads_backward(&self, ctx: &Context<'_>, s: &mut AttnScratch) {
        let config = ctx.config;
        let (tokens, each) = (config.seq_len, config.seq_len * config.head_size);
        let parts = s.heads.each_mut().map(|x| Parts::new(x, each));
        let dy = &s.dy;
        ctx.team.each(ctx.windows * config.n_head, |task| {
            let [q, k, v] = std::array::from_fn(|i| parts[i].take(task));
            let shares = &self.shares[task * tokens * tokens..][..tokens * tokens];
            let y = &self.y[task * each..][..each];
            self.with_head(ctx, task, |head| {
                ctx.team.with_scratch(each + tokens * tokens, |scratch| {
                    let (dy_head, ds) = scratch.split_at_mut(each);
                    gather_head(config, dy, task, dy_head);
                    let grads = HeadGrads { q, k, v };
                    attention::backward(ctx.level(), shape(config), head, shares, (y, dy_head), grads, ds);
                });
            });
        });
    }
}
