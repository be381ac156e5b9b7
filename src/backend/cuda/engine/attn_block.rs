//! An attention block.

use super::channel_mix::{ChannelMix, ChannelMixIds};
use super::norm::{Norm, Residual};
use super::pass::{Pass, Sizes, View};
use super::products::Product;
use super::scratch::Scratch;
use crate::backend::cuda::die::{Die, DieError, Launcher};
use crate::backend::cuda::memory::Memory;
use crate::backend::cuda::ops::attention::{Choose, ChunkMeans, Columns, Rows, Scores, Softmax, SoftmaxBackward};
use crate::model::AttnParams;

/// An attention block and what it keeps for its backward pass. Buffers are [L, R, C] unless their line says otherwise.
pub struct AttnBlock {
    p: AttnParams,
    /// The layer norm before the block.
    pub norm: Norm,
    q: Memory<f32>,
    k: Memory<f32>,
    v: Memory<f32>,
    /// Output of the heads.
    pub o: Memory<f32>,
    /// Shares, [L, B, H, T, T].
    p_shares: Memory<f32>,
    /// [L, B, H, whole chunks, N], where attention is sparse.
    means: Memory<f32>,
    /// [L, B, H, T, chunks], likewise.
    scores: Memory<f32>,
    /// Likewise.
    seen: Memory<u8>,
    ffn: ChannelMix,
}

/// f32(1/sqrt(N)).
fn scale(n: u32) -> f32 {
    (1.0 / f64::from(n).sqrt()) as f32
}

impl AttnBlock {
    /// Buffers of the block of the tensors `p`.
    pub fn new(die: &Die, sizes: &Sizes, p: &AttnParams) -> Result<Self, DieError> {
        let s = sizes;
        let c = || s.rows_of(die, s.c);
        let sparse = s.chunk_size < s.tokens;
        let chunks = if sparse { s.tokens.div_ceil(s.chunk_size) } else { 0 };
        let heads = s.lanes as usize * (s.windows * s.heads) as usize;
        let means = if sparse { heads * (s.tokens / s.chunk_size * s.n) as usize } else { 0 };
        let ids = ChannelMixIds { ln: (p.ln2_w, p.ln2_b), x_k: p.ffn_x_k, key: p.ffn_key_w, value: p.ffn_value_w };
        Ok(Self {
            p: p.clone(),
            norm: Norm::new(die, s, (p.ln1_w, p.ln1_b), None)?,
            q: c()?,
            k: c()?,
            v: c()?,
            o: c()?,
            p_shares: s.rows_of(die, s.heads * s.tokens)?,
            means: die.zeroed(means)?,
            scores: s.rows_of(die, s.heads * chunks)?,
            seen: die.zeroed(s.lanes as usize * s.floats(s.heads * chunks))?,
            ffn: ChannelMix::new(die, s, ids)?,
        })
    }

    /// `out` = the block's output, from its norm's input.
    pub fn forward<L: Launcher>(&self, pass: &mut Pass<'_, L>, out: View) -> Result<(), DieError> {
        let s = pass.sizes;
        self.norm.forward(pass)?;
        let parts = [(self.p.receptance_w, &self.q), (self.p.key_w, &self.k), (self.p.value_w, &self.v)];
        let products = parts.map(|(id, to)| pass.project(self.norm.output(&s), id, s.whole(to, s.c)));
        pass.multiply(products)?;
        self.attend(pass)?;
        let mid = self.ffn.norm.input(&s);
        let o = pass.project(s.whole(&self.o, s.c), self.p.output_w, mid).onto(self.norm.input(&s));
        pass.multiply([o])?;
        self.ffn.forward(pass, out)
    }

    fn attend<L: Launcher>(&self, pass: &mut Pass<'_, L>) -> Result<(), DieError> {
        let Sizes { windows, tokens, heads, n, chunk_size, top_k, .. } = pass.sizes;
        let lanes = || pass.lanes.clone();
        let (q, k, v) = (self.q.read(), self.k.read(), self.v.read());
        if chunk_size < tokens {
            let means = self.means.write();
            pass.to.launch(&ChunkMeans {
                lanes: lanes(),
                k: k.clone(),
                means,
                windows,
                tokens,
                heads,
                n,
                chunk_size,
            })?;
            pass.to.launch(&Choose {
                lanes: lanes(),
                q: q.clone(),
                means: self.means.read(),
                scores: self.scores.write(),
                seen: self.seen.write(),
                windows,
                tokens,
                heads,
                n,
                chunk_size,
                top_k,
            })?;
        }
        let out = self.p_shares.write();
        pass.to.launch(&Scores { lanes: lanes(), x: q, z: k, out: out.clone(), windows, tokens, heads, n })?;
        pass.to.launch(&Softmax {
            lanes: lanes(),
            seen: self.seen.read(),
            p: out,
            scale: scale(n),
            items: windows * heads,
            tokens,
            chunk_size,
        })?;
        let (s, out) = (self.p_shares.read(), self.o.write());
        pass.to.launch(&Rows { lanes: lanes(), s, x: v, out, windows, tokens, heads, n })
    }

    /// Turns the gradient of the block's output in `t.dx` into that of its input, and writes those of the weights.
    pub fn backward<L: Launcher>(&self, pass: &mut Pass<'_, L>, t: &Scratch) -> Result<(), DieError> {
        let s = pass.sizes;
        self.ffn.backward(pass, t)?;
        let dx = s.whole(&t.dx, s.c);
        let back = pass.project_back(dx.clone(), self.p.output_w, s.whole(&t.d_o, s.c));
        let dw = pass.matrix_grad(s.whole(&self.o, s.c), dx, self.p.output_w);
        pass.multiply([back, dw])?;
        self.attend_backward(pass, t)?;
        let du = s.whole(&t.du, s.c);
        let parts = [(self.p.receptance_w, &t.dr), (self.p.key_w, &t.dk), (self.p.value_w, &t.dv)];
        let mut products: Vec<_> =
            parts.iter().map(|&(id, d)| pass.matrix_grad(self.norm.output(&s), s.whole(d, s.c), id)).collect();
        let back = parts.map(|(id, d)| pass.project_back(s.whole(d, s.c), id, du.clone()));
        products.extend(back.into_iter().reduce(Product::plus));
        pass.multiply(products)?;
        self.norm.backward(pass, t, Residual::Added)
    }

    fn attend_backward<L: Launcher>(&self, pass: &mut Pass<'_, L>, t: &Scratch) -> Result<(), DieError> {
        let Sizes { windows, tokens, heads, n, .. } = pass.sizes;
        let lanes = || pass.lanes.clone();
        let dy = t.d_o.read();
        let (x, z, out) = (dy.clone(), self.v.read(), t.ds.write());
        pass.to.launch(&Scores { lanes: lanes(), x, z, out, windows, tokens, heads, n })?;
        pass.to.launch(&SoftmaxBackward {
            lanes: lanes(),
            p: self.p_shares.read(),
            y: self.o.read(),
            dy: dy.clone(),
            ds: t.ds.write(),
            scale: scale(n),
            windows,
            tokens,
            heads,
            n,
        })?;
        let (ds, p) = (t.ds.read(), self.p_shares.read());
        let (x, out) = (self.k.read(), t.dr.write());
        pass.to.launch(&Rows { lanes: lanes(), s: ds.clone(), x, out, windows, tokens, heads, n })?;
        let (x, out) = (self.q.read(), t.dk.write());
        pass.to.launch(&Columns { lanes: lanes(), s: ds, x, out, windows, tokens, heads, n })?;
        pass.to.launch(&Columns { lanes: lanes(), s: p, x: dy, out: t.dv.write(), windows, tokens, heads, n })
    }
}
