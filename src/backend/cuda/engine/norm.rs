//! A layer norm's buffers and launches.

use super::pass::{Pass, Sizes, View};
use crate::backend::cuda::die::{Die, DieError, Launcher};
use crate::backend::cuda::memory::Memory;
use crate::backend::cuda::ops::norm::{LayerNorm, LayerNormBackward, LayerNormColumns};
use crate::model::ParamId;

/// A layer norm: its vectors, its input, and what it keeps of it.
pub struct Norm {
    w: ParamId,
    b: ParamId,
    /// Input [L, R, C], written by whatever comes before.
    pub x: Memory<f32>,
    /// Output [L, R, C].
    pub y: Memory<f32>,
    mean: Memory<f32>,
    scale: Memory<f32>,
}

impl Norm {
    /// Buffers of the norm with these vectors; the bias follows the weight in the arena.
    pub fn new(die: &Die, sizes: &Sizes, (w, b): (ParamId, ParamId)) -> Result<Self, DieError> {
        Ok(Self {
            w,
            b,
            x: sizes.rows_of(die, sizes.c)?,
            y: sizes.rows_of(die, sizes.c)?,
            mean: sizes.rows_of(die, 1)?,
            scale: sizes.rows_of(die, 1)?,
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

    /// y from x.
    pub fn forward<L: Launcher>(&self, pass: &mut Pass<'_, L>) -> Result<(), DieError> {
        let (weight, bias) = (pass.weight(self.w), pass.weight(self.b));
        pass.to.launch(&LayerNorm {
            lanes: pass.lanes.clone(),
            x: self.x.read(),
            weight,
            bias,
            arena: pass.arenas.len,
            y: self.y.write(),
            mean: self.mean.write(),
            scale: self.scale.write(),
            rows: pass.sizes.rows(),
            c: pass.sizes.c,
        })
    }

    /// Adds the input's gradient to `dx` and writes those of the vectors, from the output's gradient `dy`; `chunks` is scratch.
    pub fn backward<L: Launcher>(
        &self,
        pass: &mut Pass<'_, L>,
        dy: &Memory<f32>,
        dx: &Memory<f32>,
        chunks: &Memory<f32>,
    ) -> Result<(), DieError> {
        let (rows, c, arena) = (pass.sizes.rows(), pass.sizes.c, pass.arenas.len);
        let weight = pass.weight(self.w);
        pass.to.launch(&LayerNormColumns {
            lanes: pass.lanes.clone(),
            dy: dy.read(),
            x: self.x.read(),
            mean: self.mean.read(),
            scale: self.scale.read(),
            chunks: chunks.write(),
            rows,
            c,
        })?;
        pass.totals(chunks.read(), self.w, 2)?;
        pass.to.launch(&LayerNormBackward {
            lanes: pass.lanes.clone(),
            dy: dy.read(),
            x: self.x.read(),
            mean: self.mean.read(),
            scale: self.scale.read(),
            weight,
            arena,
            dx: dx.write(),
            rows,
            c,
        })
    }
}
