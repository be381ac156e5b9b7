//! A layer norm's buffers and launches, with the token shifts that read it.

use super::pass::{Pass, Sizes, View};
use super::scratch::Scratch;
use crate::backend::cuda::die::{Die, DieError, Launcher};
use crate::backend::cuda::kernel::In;
use crate::backend::cuda::memory::Memory;
use crate::backend::cuda::ops::norm::{LayerNorm, LayerNormBackward};
use crate::model::ParamId;

/// Vectors that a norm's output is mixed with the row before by: the first, and how many follow one another in the arena.
#[derive(Clone, Copy, Debug)]
pub struct Mixes {
    /// The first.
    pub first: ParamId,
    /// Their number.
    pub count: u32,
}

/// What becomes of the gradient that passes a norm by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// The norm's is added to it.
    Added,
    /// There is none.
    None,
}

/// A layer norm: its vectors, its input, and what it keeps of it.
pub struct Norm {
    w: ParamId,
    b: ParamId,
    mixes: Option<Mixes>,
    /// Input [L, R, C], written by whatever comes before.
    pub x: Memory<f32>,
    /// Output [L, R, C].
    pub y: Memory<f32>,
    mean: Memory<f32>,
    scale: Memory<f32>,
    /// Its shifts [L, mixes, R, C].
    shifted: Memory<f32>,
}

impl Norm {
    /// Buffers of the norm with these vectors; the bias follows the weight in the arena.
    ///
    /// # Panics
    /// The kernels know no such number of mixes.
    pub fn new(die: &Die, sizes: &Sizes, (w, b): (ParamId, ParamId), mixes: Option<Mixes>) -> Result<Self, DieError> {
        assert!(matches!(mixes.map_or(0, |m| m.count), 0 | 1 | 6), "mixes of a norm");
        Ok(Self {
            w,
            b,
            mixes,
            x: sizes.rows_of(die, sizes.c)?,
            y: sizes.rows_of(die, sizes.c)?,
            mean: sizes.rows_of(die, 1)?,
            scale: sizes.rows_of(die, 1)?,
            shifted: sizes.rows_of(die, mixes.map_or(0, |m| m.count) * sizes.c)?,
        })
    }

    /// Its input as an operand.
    pub fn input(&self, sizes: &Sizes) -> View {
        sizes.whole(&self.x, sizes.c)
    }

    /// Its output as an operand.
    pub fn output(&self, sizes: &Sizes) -> View {
        sizes.whole(&self.y, sizes.c)
    }

    /// Its shift by the mix `which` as an operand.
    pub fn shifted(&self, sizes: &Sizes, which: u32) -> View {
        View::part(&self.shifted, sizes, self.count(), sizes.c, which)
    }

    fn count(&self) -> u32 {
        self.mixes.map_or(0, |m| m.count)
    }

    /// The mixes; without any, an array of which nothing is read.
    fn mix<L: Launcher>(&self, pass: &Pass<'_, L>) -> In<f32> {
        pass.weight(self.mixes.map_or(self.w, |m| m.first))
    }

    /// y and its shifts from x.
    pub fn forward<L: Launcher>(&self, pass: &mut Pass<'_, L>) -> Result<(), DieError> {
        let (weight, bias, mix) = (pass.weight(self.w), pass.weight(self.b), self.mix(pass));
        pass.to.launch(&LayerNorm {
            lanes: pass.lanes.clone(),
            x: self.x.read(),
            weight,
            bias,
            mix,
            arena: pass.arenas.len,
            y: self.y.write(),
            mean: self.mean.write(),
            scale: self.scale.write(),
            shifted: self.shifted.write(),
            rows: pass.sizes.rows(),
            tokens: pass.sizes.tokens,
            c: pass.sizes.c,
            mixes: self.count(),
            mix_step: super::pass::vector_step(pass.sizes.c),
            each: rows_a_warp(&pass.sizes),
        })
    }

    /// The input's gradient in `t.dx`, from those of the shifts in `t.dmixed`, or without shifts from the output's in `t.du`; and sums
    /// of those of the vectors.
    pub fn backward<L: Launcher>(
        &self,
        pass: &mut Pass<'_, L>,
        t: &Scratch,
        residual: Residual,
    ) -> Result<(), DieError> {
        let (weight, mix) = (pass.weight(self.w), self.mix(pass));
        let norm_slot = t.columns.slot(self.w);
        pass.to.launch(&LayerNormBackward {
            lanes: pass.lanes.clone(),
            dshifted: t.dmixed.read(),
            mix,
            y: self.y.read(),
            x: self.x.read(),
            mean: self.mean.read(),
            scale: self.scale.read(),
            weight,
            arena: pass.arenas.len,
            du: t.du.write(),
            dx: t.dx.write(),
            chunks: t.columns.chunks.write(),
            rows: pass.sizes.rows(),
            tokens: pass.sizes.tokens,
            c: pass.sizes.c,
            mixes: self.count(),
            mix_step: super::pass::vector_step(pass.sizes.c),
            vectors: t.columns.vectors(),
            mix_slot: self.mixes.map_or(norm_slot, |m| t.columns.slot(m.first)),
            norm_slot,
            onto: u32::from(residual == Residual::Added),
        })
    }
}

/// Rows that a warp of the forward kernel takes one after the other: where there are many, each is then formed once and not also
/// for its successor. Changes no number.
fn rows_a_warp(s: &Sizes) -> u32 {
    if u64::from(s.lanes) * u64::from(s.rows()) >= 8192 { 4 } else { 1 }
}
