//! The whole model on a die: forward, loss, backward, for every lane at once.
//!
//! Each lane's numbers are formed by the same operations whatever the number of lanes: kernels take a lane from blockIdx.z
//! and touch nothing of another's.

mod attn_block;
mod channel_mix;
mod columns;
mod norm;
pub mod optimizer;
mod pass;
mod products;
mod recurrence;
mod rwkv_block;
mod scratch;

pub use pass::{Arenas, Pass, Sizes, TooLarge};

use attn_block::AttnBlock;
use norm::{Norm, Residual};
use rwkv_block::RwkvBlock;
use scratch::Scratch;

use super::die::{Die, DieError, Launcher};
use super::kernel::In;
use super::memory::Memory;
use super::ops::data::{Embed, EmbedBackward};
use super::ops::loss::{CrossEntropy, LossTotals};
use crate::model::{BlockRef, ModelConfig, ModelParams, VOCAB};

/// A model cannot be laid out on a die.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Sizes.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The die.
    #[error(transparent)]
    Die(#[from] DieError),
}

enum Block {
    Rwkv(usize, Box<RwkvBlock>),
    Attn(usize, Box<AttnBlock>),
}

/// A model's buffers on a die, for a number of lanes and of windows at once.
pub struct Engine {
    sizes: Sizes,
    params: ModelParams,
    arenas: Arenas,
    blocks: Vec<Block>,
    last: Norm,
    /// Logits [L, R, V], or their gradient.
    logits: Memory<f32>,
    /// Input bytes [L, R].
    pub inputs: Memory<u8>,
    /// Target bytes [L, R].
    pub targets: Memory<u8>,
    nll: Memory<f32>,
    hits: Memory<u8>,
    /// Sums of losses of each window [L, B].
    window_losses: Memory<f64>,
    window_hits: Memory<u32>,
    /// Sum of losses over all rows of each lane.
    batch_loss: Memory<f64>,
    batch_hits: Memory<u32>,
    scratch: Scratch,
}

/// What a pass over a lane's windows found.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneScores {
    /// Mean loss of each window, nats a byte.
    pub loss: Vec<f64>,
    /// Bytes of each window that were predicted right.
    pub hits: Vec<u64>,
    /// Mean loss over all rows, one sum over all windows.
    pub batch_loss: f64,
}

impl Engine {
    /// Allocates everything for `lanes` lanes of `windows` windows.
    ///
    /// # Errors
    /// Sizes that the kernels do not take, or too little memory.
    pub fn new(die: &Die, config: &ModelConfig, windows: usize, lanes: usize) -> Result<Self, EngineError> {
        let sizes = Sizes::new(config, windows, lanes)?;
        let params = ModelParams::new(config);
        let rwkv = |b: &BlockRef| if let BlockRef::Rwkv(i) = b { Some(*i) } else { None };
        let ends = (params.order.iter().find_map(rwkv), params.order.iter().rev().find_map(rwkv));
        let mut blocks = Vec::new();
        for block in &params.order {
            blocks.push(match *block {
                BlockRef::Rwkv(i) => Block::Rwkv(
                    i,
                    Box::new(RwkvBlock::new(die, &sizes, &params.rwkv[i], (ends.0 == Some(i), ends.1 == Some(i)))?),
                ),
                BlockRef::Attn(j) => Block::Attn(j, Box::new(AttnBlock::new(die, &sizes, &params.attn[j])?)),
            });
        }
        let rows = lanes * sizes.floats(1);
        let arena = || die.zeroed(lanes * params.arena_len);
        Ok(Self {
            arenas: Arenas { weights: arena()?, grads: arena()?, len: params.arena_len as u64 },
            blocks,
            last: Norm::new(die, &sizes, (params.ln_out_w, params.ln_out_b), None)?,
            logits: die.zeroed(rows * VOCAB)?,
            inputs: die.zeroed(rows)?,
            targets: die.zeroed(rows)?,
            nll: die.zeroed(rows)?,
            hits: die.zeroed(rows)?,
            window_losses: die.zeroed(lanes * windows)?,
            window_hits: die.zeroed(lanes * windows)?,
            batch_loss: die.zeroed(lanes)?,
            batch_hits: die.zeroed(lanes)?,
            scratch: Scratch::new(die, &sizes, &params)?,
            sizes,
            params,
        })
    }

    /// The tensors.
    pub const fn params(&self) -> &ModelParams {
        &self.params
    }

    /// Sizes.
    pub const fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Weights and gradients.
    pub const fn arenas(&self) -> &Arenas {
        &self.arenas
    }

    /// Logits [L, R, V] of the last forward pass, or their gradient after a backward pass.
    pub const fn logits(&self) -> &Memory<f32> {
        &self.logits
    }

    /// Sums of losses over all rows of each lane, on the die.
    pub fn batch_loss_memory(&self) -> In<f64> {
        self.batch_loss.read()
    }

    /// Sums of losses, and hits, of each window [L, B], on the die.
    pub fn window_memories(&self) -> (In<f64>, In<u32>) {
        (self.window_losses.read(), self.window_hits.read())
    }

    /// The layer norm that reads block i's output.
    fn norm_after(&self, i: usize) -> &Norm {
        match self.blocks.get(i) {
            Some(Block::Rwkv(_, block)) => &block.norm,
            Some(Block::Attn(_, block)) => &block.norm,
            None => &self.last,
        }
    }

    /// The first RWKV block's values; any buffer of their size where there is no such block.
    fn vfirst(&self) -> &Memory<f32> {
        let values = self.blocks.iter().find_map(|block| match block {
            Block::Rwkv(_, block) => Some(&block.v),
            Block::Attn(..) => None,
        });
        values.unwrap_or(&self.scratch.dx)
    }

    /// Begins a pass over the lanes of a list on the die, one entry a lane; negative entries rest.
    pub fn pass<L: Launcher>(&self, to: L, lanes: In<i32>) -> Pass<'_, L> {
        Pass { to, lanes, sizes: self.sizes, arenas: &self.arenas, accumulate: false, keep: true }
    }

    /// Logits of the windows in `inputs`.
    ///
    /// # Errors
    /// The die's.
    pub fn forward<L: Launcher>(&self, pass: &mut Pass<'_, L>) -> Result<(), DieError> {
        let s = self.sizes;
        let emb = pass.weight(self.params.emb);
        pass.to.launch(&Embed {
            lanes: pass.lanes.clone(),
            inputs: self.inputs.read(),
            emb,
            arena: self.arenas.len,
            x: self.norm_after(0).x.write(),
            rows: s.rows(),
            c: s.c,
        })?;
        for (i, block) in self.blocks.iter().enumerate() {
            let out = self.norm_after(i + 1).input(&s);
            match block {
                Block::Rwkv(_, block) => block.forward(pass, self.vfirst(), out)?,
                Block::Attn(_, block) => block.forward(pass, out)?,
            }
        }
        self.last.forward(pass)?;
        let logits = pass.project(self.last.output(&s), self.params.head, s.whole(&self.logits, VOCAB as u32));
        pass.multiply([logits])
    }

    /// Losses and hits of the logits against `targets`. Where `share` is given, the logits become the gradient of `share`
    /// times the mean loss over all rows.
    ///
    /// # Errors
    /// The die's.
    pub fn loss<L: Launcher>(&self, pass: &mut Pass<'_, L>, share: Option<f64>) -> Result<(), DieError> {
        let s = self.sizes;
        pass.to.launch(&CrossEntropy {
            lanes: pass.lanes.clone(),
            targets: self.targets.read(),
            logits: self.logits.write(),
            nll: self.nll.write(),
            hits: self.hits.write(),
            scale: share.map_or(0.0, |share| (share / f64::from(s.rows())) as f32),
            rows: s.rows(),
        })?;
        let groups = [
            (s.windows, s.tokens, &self.window_losses, &self.window_hits),
            (1, s.rows(), &self.batch_loss, &self.batch_hits),
        ];
        for (groups, count, losses, correct) in groups {
            pass.to.launch(&LossTotals {
                lanes: pass.lanes.clone(),
                nll: self.nll.read(),
                hits: self.hits.read(),
                losses: losses.write(),
                correct: correct.write(),
                groups,
                count,
            })?;
        }
        Ok(())
    }

    /// Gradients of all weights, from those of the logits. With `pass.accumulate` they are added to what is there.
    ///
    /// # Errors
    /// The die's.
    pub fn backward<L: Launcher>(&self, pass: &mut Pass<'_, L>) -> Result<(), DieError> {
        let (s, t) = (self.sizes, &self.scratch);
        let dlogits = s.whole(&self.logits, VOCAB as u32);
        let du = pass.project_back(dlogits.clone(), self.params.head, s.whole(&t.du, s.c));
        let dw = pass.matrix_grad(self.last.output(&s), dlogits, self.params.head);
        pass.multiply([du, dw])?;
        self.last.backward(pass, t, Residual::None)?;
        for block in self.blocks.iter().rev() {
            match block {
                Block::Rwkv(_, block) => block.backward(pass, self.vfirst(), t)?,
                Block::Attn(_, block) => block.backward(pass, t)?,
            }
        }
        t.columns.totals(pass)?;
        let demb = pass.grad(self.params.emb);
        pass.to.launch(&EmbedBackward {
            lanes: pass.lanes.clone(),
            inputs: self.inputs.read(),
            dx: t.dx.read(),
            demb,
            arena: self.arenas.len,
            rows: s.rows(),
            c: s.c,
            add: u32::from(pass.accumulate),
        })
    }

    /// Reads what the last [`Engine::loss`] found of each lane.
    ///
    /// # Errors
    /// The die's; a fault of an earlier kernel shows here.
    pub fn scores(&self) -> Result<Vec<LaneScores>, DieError> {
        let (lanes, windows) = (self.sizes.lanes as usize, self.sizes.windows as usize);
        let losses = self.window_losses.download(0, lanes * windows)?;
        let hits = self.window_hits.download(0, lanes * windows)?;
        let batch = self.batch_loss.download(0, lanes)?;
        let (tokens, rows) = (f64::from(self.sizes.tokens), f64::from(self.sizes.rows()));
        Ok((0..lanes)
            .map(|lane| {
                let span = lane * windows..(lane + 1) * windows;
                LaneScores {
                    loss: losses[span.clone()].iter().map(|sum| sum / tokens).collect(),
                    hits: hits[span].iter().map(|&n| u64::from(n)).collect(),
                    batch_loss: batch[lane] / rows,
                }
            })
            .collect())
    }

    /// Named intermediate values of the last forward pass, [L, R, C]: `{block}.wkv` or `.att`, and `{block}.out`.
    ///
    /// # Errors
    /// The die's.
    pub fn taps(&self) -> Result<Vec<(String, Vec<f32>)>, DieError> {
        let mut taps = Vec::new();
        for (i, block) in self.blocks.iter().enumerate() {
            let (name, kind, inner) = match block {
                Block::Rwkv(n, block) => (format!("rwkv{n}"), "wkv", &block.y),
                Block::Attn(n, block) => (format!("attn{n}"), "att", &block.o),
            };
            let out = &self.norm_after(i + 1).x;
            taps.push((format!("{name}.{kind}"), inner.download(0, inner.len())?));
            taps.push((format!("{name}.out"), out.download(0, out.len())?));
        }
        Ok(taps)
    }
}

#[cfg(test)]
mod product_tests;
#[cfg(test)]
mod tests;
