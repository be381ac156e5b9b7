//! The channel mix that ends every block.

use super::norm::{Mixes, Norm, Residual};
use super::pass::{Pass, Sizes, View};
use super::scratch::Scratch;
use crate::backend::cuda::die::{Die, DieError, Launcher};
use crate::backend::cuda::memory::Memory;
use crate::backend::cuda::ops::product::Finish;
use crate::model::ParamId;

/// Handles of a channel mix.
#[derive(Clone, Copy, Debug)]
pub struct ChannelMixIds {
    /// Weight and bias of its layer norm.
    pub ln: (ParamId, ParamId),
    /// Token-shift mix.
    pub x_k: ParamId,
    /// Matrix [C, F].
    pub key: ParamId,
    /// Matrix [F, C].
    pub value: ParamId,
}

/// A channel mix and what it keeps for its backward pass.
pub struct ChannelMix {
    ids: ChannelMixIds,
    /// The layer norm before it; its input is written by the mixer before.
    pub norm: Norm,
    rl: Memory<f32>,
    act: Memory<f32>,
}

impl ChannelMix {
    /// Buffers.
    pub fn new(die: &Die, sizes: &Sizes, ids: ChannelMixIds) -> Result<Self, DieError> {
        Ok(Self {
            ids,
            norm: Norm::new(die, sizes, ids.ln, Some(Mixes { first: ids.x_k, count: 1 }))?,
            rl: sizes.rows_of(die, sizes.ffn)?,
            act: sizes.rows_of(die, sizes.ffn)?,
        })
    }

    /// `out` = the norm's input plus the mix.
    pub fn forward<L: Launcher>(&self, pass: &mut Pass<'_, L>, out: View) -> Result<(), DieError> {
        let s = pass.sizes;
        self.norm.forward(pass)?;
        let (xk, rl, act) = (self.norm.shifted(&s, 0), s.whole(&self.rl, s.ffn), s.whole(&self.act, s.ffn));
        let squared = pass.project(xk, self.ids.key, rl).finished(Finish::ReluSquared, Some(act.clone()));
        pass.multiply([squared])?;
        let value = pass.project(act, self.ids.value, out).onto(self.norm.input(&s));
        pass.multiply([value])
    }

    /// Turns the gradient of the block's output in `t.dx` into that of the mixer's output, and writes those of the weights.
    pub fn backward<L: Launcher>(&self, pass: &mut Pass<'_, L>, t: &Scratch) -> Result<(), DieError> {
        let s = pass.sizes;
        let (dx, dh) = (s.whole(&t.dx, s.c), s.whole(&t.dh, s.ffn));
        let dxk = s.whole(&t.dmixed, s.c);
        let rl = Some(s.whole(&self.rl, s.ffn));
        let back = pass.project_back(dx.clone(), self.ids.value, dh.clone()).finished(Finish::ReluSlope, rl);
        let dvalue = pass.matrix_grad(s.whole(&self.act, s.ffn), dx, self.ids.value);
        pass.multiply([back, dvalue])?;
        let back = pass.project_back(dh.clone(), self.ids.key, dxk);
        let dkey = pass.matrix_grad(self.norm.shifted(&s, 0), dh, self.ids.key);
        pass.multiply([back, dkey])?;
        self.norm.backward(pass, t, Residual::Added)
    }
}
