//! The whole model on the CPU: forward, loss, backward.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::attn_block::{AttnBlock, AttnScratch};
use super::buffer::Buffer;
use super::context::{Context, Norm, PackedWeights};
use super::gradients::{self, MatrixGrad, Packs};
use super::loss::cross_entropy;
use super::rows;
use super::rwkv_block::{RwkvBlock, RwkvScratch};
use super::team::{Parts, Team};
use crate::arith::sums::scalar_sum;
use crate::model::{BlockRef, ModelConfig, ModelParams, VOCAB};

enum Block {
    Rwkv(usize, Box<RwkvBlock>),
    Attn(usize, Box<AttnBlock>),
}

/// What a pass over windows found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowScores {
    /// Mean loss of each window, nats a byte.
    pub loss: Vec<f64>,
    /// Bytes of each window that were predicted right.
    pub hits: Vec<u64>,
}

/// Time that the last training pass took, by the monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PassTimes {
    /// Forward pass and loss.
    pub forward: Duration,
    /// Backward pass.
    pub backward: Duration,
}

/// Time of each part of training passes, summed up by the monotonic clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PassPhases {
    /// Embedding.
    pub embedding: Duration,
    /// Forward pass of each block, in their order.
    pub blocks: Vec<Duration>,
    /// Last norm and head.
    pub head: Duration,
    /// Loss, and its gradient.
    pub loss: Duration,
    /// Backward pass of the head and the last norm.
    pub head_backward: Duration,
    /// Backward pass of each block, in their order.
    pub blocks_backward: Vec<Duration>,
    /// Backward pass of the embedding.
    pub embedding_backward: Duration,
}

impl PassPhases {
    fn new(blocks: usize) -> Self {
        Self { blocks: vec![Duration::ZERO; blocks], blocks_backward: vec![Duration::ZERO; blocks], ..Self::default() }
    }
}

/// Counts the phases of training passes, where that is asked for.
#[derive(Debug)]
struct Counter {
    phases: PassPhases,
    /// Within a training pass: the end of the phase before.
    since: Option<Instant>,
}

impl Counter {
    /// Ends a phase.
    fn lap(counter: &mut Option<Self>, phase: impl FnOnce(&mut PassPhases) -> &mut Duration) {
        if let Some(Self { phases, since: Some(since) }) = counter {
            let now = Instant::now();
            *phase(phases) += now - std::mem::replace(since, now);
        }
    }
}

/// A model's buffers, for up to a number of windows at once.
pub struct Engine {
    config: ModelConfig,
    params: ModelParams,
    team: Arc<Team>,
    capacity: usize,
    packed: PackedWeights,
    blocks: Vec<Block>,
    /// The norm before each block, and the last one.
    norms: Vec<Norm>,
    x: Buffer,
    logits: Buffer,
    nll: Buffer,
    hits: Vec<u8>,
    dx: Buffer,
    dnext: Buffer,
    rwkv_scratch: RwkvScratch,
    attn_scratch: AttnScratch,
    packs: Packs,
    taps: Option<BTreeMap<String, Vec<f32>>>,
    times: PassTimes,
    counter: Option<Counter>,
}

impl Engine {
    /// Buffers for up to `windows` windows at once.
    pub fn new(config: &ModelConfig, windows: usize, team: Arc<Team>) -> Self {
        let params = ModelParams::new(config);
        let rows = windows * config.seq_len;
        let first_rwkv = params.order.iter().find_map(|b| match b {
            BlockRef::Rwkv(i) => Some(*i),
            BlockRef::Attn(_) => None,
        });
        let mut blocks = Vec::new();
        let mut norms = Vec::new();
        for block in &params.order {
            match *block {
                BlockRef::Rwkv(i) => {
                    let p = &params.rwkv[i];
                    norms.push(Norm::new(p.ln1_w, p.ln1_b, rows));
                    blocks.push(Block::Rwkv(i, Box::new(RwkvBlock::new(config, p, first_rwkv == Some(i), windows))));
                }
                BlockRef::Attn(j) => {
                    let p = &params.attn[j];
                    norms.push(Norm::new(p.ln1_w, p.ln1_b, rows));
                    blocks.push(Block::Attn(j, Box::new(AttnBlock::new(config, p, windows))));
                }
            }
        }
        norms.push(Norm::new(params.ln_out_w, params.ln_out_b, rows));
        Self {
            packed: PackedWeights::new(&params),
            capacity: windows,
            blocks,
            norms,
            x: Buffer::zeros(rows * config.c),
            logits: Buffer::zeros(rows * VOCAB),
            nll: Buffer::zeros(rows),
            hits: vec![0; rows],
            dx: Buffer::zeros(rows * config.c),
            dnext: Buffer::zeros(rows * config.c),
            rwkv_scratch: RwkvScratch::new(config, rows),
            attn_scratch: AttnScratch::new(config, rows),
            packs: Packs::default(),
            taps: None,
            times: PassTimes::default(),
            counter: None,
            config: config.clone(),
            params,
            team,
        }
    }

    /// The tensors.
    pub const fn params(&self) -> &ModelParams {
        &self.params
    }

    /// Most windows of a pass.
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether a run of this model and batch can use these buffers.
    pub fn fits(&self, config: &ModelConfig, windows: usize) -> bool {
        self.config == *config && self.capacity == windows
    }

    /// From now on, forward passes keep named intermediate values: `{block}.wkv` or `.att`, `.mid` and `.out`, each [R, C].
    pub fn keep_taps(&mut self) {
        self.taps = Some(BTreeMap::new());
    }

    /// What the last forward pass kept.
    pub const fn taps(&self) -> Option<&BTreeMap<String, Vec<f32>>> {
        self.taps.as_ref()
    }

    /// Times of the last call of [`Engine::gradients`].
    pub const fn times(&self) -> PassTimes {
        self.times
    }

    /// From now on the phases of training passes are counted, or not any more; what was counted so far.
    pub fn count_phases(&mut self, on: bool) -> Option<PassPhases> {
        let new = on.then(|| Counter { phases: PassPhases::new(self.blocks.len()), since: None });
        std::mem::replace(&mut self.counter, new).map(|counter| counter.phases)
    }

    /// Logits of the last forward pass, [R, V]. A call of [`Engine::score`] leaves them; one of [`Engine::gradients`] does not.
    pub fn logits(&self) -> &[f32] {
        &self.logits
    }

    /// Takes over changed weights. `gradients` says whether a backward pass will follow.
    pub fn load(&mut self, weights: &[f32], gradients: bool) {
        self.packed.pack(&self.team, &self.params, weights, gradients);
    }

    /// Loss and hits of each window of `inputs` `[B·T]` against `targets` `[B·T]`, with the weights last loaded.
    ///
    /// # Panics
    /// More windows than there is room for, or not whole windows.
    pub fn score(&mut self, weights: &[f32], inputs: &[u8], targets: &[u8]) -> WindowScores {
        let team = Arc::clone(&self.team);
        team.enter(|| {
            let windows = self.forward(weights, inputs, false);
            self.loss(targets, windows, None)
        })
    }

    /// Forward and backward pass: loss and hits of each window, and the gradient of `share` times the mean loss over all
    /// rows, written to `grads` (tensors that have none keep their zeros).
    ///
    /// # Panics
    /// As [`Engine::score`].
    pub fn gradients(
        &mut self,
        weights: &[f32],
        (inputs, targets): (&[u8], &[u8]),
        share: f64,
        grads: &mut [f32],
    ) -> WindowScores {
        let team = Arc::clone(&self.team);
        team.enter(|| {
            let began = Instant::now();
            if let Some(counter) = &mut self.counter {
                counter.since = Some(began);
            }
            let windows = self.forward(weights, inputs, true);
            let scale = (share / inputs.len() as f64) as f32;
            let scores = self.loss(targets, windows, Some(scale));
            Counter::lap(&mut self.counter, |p| &mut p.loss);
            let middle = Instant::now();
            self.backward(weights, inputs, windows, grads);
            if let Some(counter) = &mut self.counter {
                counter.since = None;
            }
            self.times = PassTimes { forward: middle - began, backward: middle.elapsed() };
            scores
        })
    }

    fn forward(&mut self, weights: &[f32], inputs: &[u8], keep: bool) -> usize {
        let windows = inputs.len() / self.config.seq_len;
        assert_eq!(inputs.len(), windows * self.config.seq_len, "whole windows");
        assert!(windows > 0 && windows <= self.capacity, "{windows} windows, room for {}", self.capacity);
        let ctx = Context { team: &self.team, config: &self.config, packed: &self.packed, weights, windows };
        let c = self.config.c;
        let embedding = self.params.emb.of(weights);
        {
            let (x, norm) = (Parts::tiles(&mut self.x, c), self.norms[0].tiles(&ctx));
            ctx.team.each(ctx.tiles(), |tile| {
                let span = ctx.tile_rows(tile);
                let x = &mut x.take(tile)[..span.len() * c];
                for (x, &token) in x.chunks_exact_mut(c).zip(&inputs[span]) {
                    x.copy_from_slice(&embedding[usize::from(token) * c..][..c]);
                }
                norm.run(tile, x);
            });
        }
        Counter::lap(&mut self.counter, |p| &mut p.embedding);
        for i in 0..self.blocks.len() {
            let (before, block) = self.blocks.split_at_mut(i);
            let (norms, next) = self.norms.split_at_mut(i + 1);
            let (u, next) = (&norms[i].y, next[0].tiles(&ctx));
            match &mut block[0] {
                Block::Rwkv(n, block) => {
                    block.time_mix(&ctx, u, first_values(before), &mut self.x, keep);
                    tap(&mut self.taps, || format!("rwkv{n}.mid"), &self.x[..ctx.rows() * c]);
                    block.channel_mix(&ctx, &mut self.x, &next);
                    let heads = |out: &mut Vec<f32>| by_rows(&ctx, block.recurrence_output(), out);
                    tap_with(&mut self.taps, || format!("rwkv{n}.wkv"), heads);
                    tap(&mut self.taps, || format!("rwkv{n}.out"), &self.x[..ctx.rows() * c]);
                }
                Block::Attn(n, block) => {
                    block.attend(&ctx, u, &mut self.x);
                    tap(&mut self.taps, || format!("attn{n}.mid"), &self.x[..ctx.rows() * c]);
                    block.channel_mix(&ctx, &mut self.x, &next);
                    tap(&mut self.taps, || format!("attn{n}.att"), &block.heads_output()[..ctx.rows() * c]);
                    tap(&mut self.taps, || format!("attn{n}.out"), &self.x[..ctx.rows() * c]);
                }
            }
            Counter::lap(&mut self.counter, |p| &mut p.blocks[i]);
        }
        let u = &self.norms[self.blocks.len()].y;
        let logits = Parts::tiles(&mut self.logits, VOCAB);
        let head = self.params.head;
        ctx.team.each(ctx.tiles(), |tile| {
            let span = ctx.tile_rows(tile);
            ctx.project(&u[span.start * c..span.end * c], head, &mut logits.take(tile)[..span.len() * VOCAB]);
        });
        Counter::lap(&mut self.counter, |p| &mut p.head);
        windows
    }

    /// Scores the logits; where `scale` is given, they become their gradient.
    fn loss(&mut self, targets: &[u8], windows: usize, scale: Option<f32>) -> WindowScores {
        let ctx = Context { team: &self.team, config: &self.config, packed: &self.packed, weights: &[], windows };
        assert_eq!(targets.len(), ctx.rows(), "a target for each row");
        {
            let (logits, nll) = (Parts::tiles(&mut self.logits, VOCAB), Parts::tiles(&mut self.nll, 1));
            let hits = Parts::tiles(&mut self.hits, 1);
            ctx.team.each(ctx.tiles(), |tile| {
                let span = ctx.tile_rows(tile);
                let n = span.len();
                let (logits, nll) = (&mut logits.take(tile)[..n * VOCAB], &mut nll.take(tile)[..n]);
                cross_entropy(ctx.level(), logits, &targets[span], nll, &mut hits.take(tile)[..n], scale);
            });
        }
        let tokens = self.config.seq_len;
        let mean = |nll: &[f32]| scalar_sum(nll.len(), |i| f64::from(nll[i])) / nll.len() as f64;
        WindowScores {
            loss: self.nll[..ctx.rows()].chunks_exact(tokens).map(mean).collect(),
            hits: self.hits[..ctx.rows()].chunks_exact(tokens).map(|h| h.iter().map(|&h| u64::from(h)).sum()).collect(),
        }
    }

    /// Mean loss over all rows of the last pass, nats a byte: one sum over the rows of all its windows.
    pub fn batch_loss(&self, windows: usize) -> f64 {
        let nll = &self.nll[..windows * self.config.seq_len];
        scalar_sum(nll.len(), |i| f64::from(nll[i])) / nll.len() as f64
    }

    fn backward(&mut self, weights: &[f32], inputs: &[u8], windows: usize, grads: &mut [f32]) {
        let ctx = Context { team: &self.team, config: &self.config, packed: &self.packed, weights, windows };
        let c = self.config.c;
        let last = self.blocks.len();
        self.dx[..ctx.rows() * c].fill(0.0);
        {
            let (dx, norm, dlogits) =
                (Parts::tiles(&mut self.dx, c), self.norms[last].backward_tiles(&ctx), &self.logits);
            let head = self.params.head;
            ctx.team.each(ctx.tiles(), |tile| {
                let span = ctx.tile_rows(tile);
                ctx.team.with_scratch(span.len() * c, |du| {
                    ctx.project_back(&dlogits[span.start * VOCAB..span.end * VOCAB], head, du);
                    norm.run(tile, du, &mut dx.take(tile)[..span.len() * c]);
                });
            });
        }
        let head = MatrixGrad { id: self.params.head, x: &self.norms[last].y, dy: &self.logits };
        gradients::write(&ctx, &mut self.packs, &[head], &[self.norms[last].sums()], grads);
        self.rwkv_scratch.dfirst[..ctx.rows() * c].fill(0.0);
        Counter::lap(&mut self.counter, |p| &mut p.head_backward);
        for i in (0..last).rev() {
            let (before, block) = self.blocks.split_at_mut(i);
            let (norm, d) = (&mut self.norms[i], (&mut self.dx, &mut self.dnext));
            match &mut block[0] {
                Block::Rwkv(_, block) => {
                    block.backward(&ctx, norm, first_values(before), &mut self.rwkv_scratch, d, grads);
                }
                Block::Attn(_, block) => block.backward(&ctx, norm, &mut self.attn_scratch, d, grads),
            }
            Counter::lap(&mut self.counter, |p| &mut p.blocks_backward[i]);
        }
        let demb = self.params.emb.of_mut(grads);
        demb.fill(0.0);
        for (dx, &token) in self.dx.chunks_exact(c).zip(inputs) {
            rows::add(ctx.level(), dx, &mut demb[usize::from(token) * c..][..c]);
        }
        Counter::lap(&mut self.counter, |p| &mut p.embedding_backward);
    }
}

/// Values of the first RWKV block, where one ran before.
fn first_values(before: &[Block]) -> Option<&[f32]> {
    before.iter().find_map(|block| match block {
        Block::Rwkv(_, block) => Some(block.values()),
        Block::Attn(..) => None,
    })
}

/// Head-major [B·H, T, N] as rows [R, C].
fn by_rows(ctx: &Context<'_>, heads: &[f32], out: &mut Vec<f32>) {
    let (config, n) = (ctx.config, ctx.config.head_size);
    for row in 0..ctx.rows() {
        let (window, t) = (row / config.seq_len, row % config.seq_len);
        for h in 0..config.n_head {
            out.extend_from_slice(&heads[((window * config.n_head + h) * config.seq_len + t) * n..][..n]);
        }
    }
}

type Taps = Option<BTreeMap<String, Vec<f32>>>;

fn tap(taps: &mut Taps, name: impl FnOnce() -> String, values: &[f32]) {
    tap_with(taps, name, |out| out.extend_from_slice(values));
}

fn tap_with(taps: &mut Taps, name: impl FnOnce() -> String, fill: impl FnOnce(&mut Vec<f32>)) {
    if let Some(taps) = taps {
        let mut values = Vec::new();
        fill(&mut values);
        taps.insert(name(), values);
    }
}
