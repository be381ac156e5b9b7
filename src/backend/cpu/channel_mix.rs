//! The channel mix that ends every block: x + relu(shift(LN2(x))·W_key)²·W_value.

use super::buffer::Buffer;
use super::context::{ColumnSums, Context, Norm, NormTiles};
use super::gradients::MatrixGrad;
use super::rows;
use super::team::Parts;
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
    /// The layer norm before it, which the mixer before it fills.
    pub norm: Norm,
    xk: Buffer,
    rl: Buffer,
    act: Buffer,
    dh: Buffer,
    dxk: Buffer,
    sums: ColumnSums,
}

impl ChannelMix {
    /// A channel mix over at most `rows` rows.
    pub fn new(ids: ChannelMixIds, rows: usize) -> Self {
        let (c, f) = (ids.key.rows(), ids.key.cols());
        Self {
            ids,
            norm: Norm::new(ids.ln.0, ids.ln.1, rows),
            xk: Buffer::zeros(rows * c),
            rl: Buffer::zeros(rows * f),
            act: Buffer::zeros(rows * f),
            dh: Buffer::zeros(rows * f),
            dxk: Buffer::zeros(rows * c),
            sums: ColumnSums::new(&[ids.x_k], rows),
        }
    }

    /// Adds the mix to x [R, C], and normalises the result for what comes next.
    pub fn forward(&mut self, ctx: &Context<'_>, x: &mut [f32], next: &NormTiles<'_>) {
        let (c, f) = (self.ids.key.rows(), self.ids.key.cols());
        let u = &self.norm.y;
        let mix = self.ids.x_k.of(ctx.weights);
        let (x, xk) = (Parts::tiles(x, c), Parts::tiles(&mut self.xk, c));
        let (rl, act) = (Parts::tiles(&mut self.rl, f), Parts::tiles(&mut self.act, f));
        ctx.team.each(ctx.tiles(), |tile| {
            let n = ctx.tile_rows(tile).len();
            let (x, xk) = (&mut x.take(tile)[..n * c], &mut xk.take(tile)[..n * c]);
            let (rl, act) = (&mut rl.take(tile)[..n * f], &mut act.take(tile)[..n * f]);
            rows::token_shift(ctx.level(), u, ctx.window(tile), mix, xk);
            ctx.project(xk, self.ids.key, rl);
            rows::relu_squared(ctx.level(), rl, act);
            ctx.team.with_scratch(n * c, |out| {
                ctx.project(act, self.ids.value, out);
                rows::add(ctx.level(), out, x);
            });
            next.run(tile, x);
        });
    }

    /// From the gradient of the block's output `dout`, that of the mixer's output: `dmid` [R, C] is overwritten, tile by tile, and
    /// `then` is called with each tile of it.
    pub fn backward(
        &mut self,
        ctx: &Context<'_>,
        dout: &[f32],
        dmid: &mut [f32],
        then: impl Fn(usize, &[f32]) + Sync + Send,
    ) {
        let (c, f) = (self.ids.key.rows(), self.ids.key.cols());
        {
            let (dh, dxk) = (Parts::tiles(&mut self.dh, f), Parts::tiles(&mut self.dxk, c));
            let rl = &self.rl;
            ctx.team.each(ctx.tiles(), |tile| {
                let span = ctx.tile_rows(tile);
                let (dh, dxk) = (&mut dh.take(tile)[..span.len() * f], &mut dxk.take(tile)[..span.len() * c]);
                ctx.project_back(&dout[span.start * c..span.end * c], self.ids.value, dh);
                rows::relu_squared_backward(ctx.level(), dh, &rl[span.start * f..span.end * f]);
                ctx.project_back(dh, self.ids.key, dxk);
            });
        }
        let mix = self.ids.x_k.of(ctx.weights);
        let sums = self.sums.tiles();
        let dmid = Parts::tiles(dmid, c);
        let dxk = &self.dxk;
        let norm = self.norm.backward_tiles(ctx);
        ctx.team.each(ctx.tiles(), |tile| {
            let span = ctx.tile_rows(tile);
            let n = span.len();
            let window = ctx.window(tile);
            let dmid = &mut dmid.take(tile)[..n * c];
            rows::token_shift_mix_sums(
                ctx.level(),
                &dxk[span.start * c..span.end * c],
                norm.y,
                window,
                sums.take(0, tile, n),
            );
            ctx.team.with_scratch(n * c, |du| {
                rows::token_shift_backward(ctx.level(), dxk, window, mix, du);
                dmid.copy_from_slice(&dout[span.start * c..span.end * c]);
                norm.run(tile, du, dmid);
            });
            then(tile, dmid);
        });
    }

    /// Both sides of its matrices' gradients, `dout` being the gradient of the block's output.
    pub fn matrices<'a>(&'a self, dout: &'a [f32]) -> [MatrixGrad<'a>; 2] {
        [
            MatrixGrad { id: self.ids.key, x: &self.xk, dy: &self.dh },
            MatrixGrad { id: self.ids.value, x: &self.act, dy: dout },
        ]
    }

    /// Its vectors' gradients.
    pub fn sums(&self) -> [&ColumnSums; 2] {
        [&self.sums, self.norm.sums()]
    }
}
