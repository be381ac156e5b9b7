//! An RWKV-7 block.

use super::channel_mix::{ChannelMix, ChannelMixIds};
use super::norm::{Mixes, Norm, Residual};
use super::pass::{Pass, Sizes, View};
use super::recurrence::Recurrence;
use super::scratch::Scratch;
use crate::backend::cuda::die::{Die, DieError, Launcher};
use crate::backend::cuda::memory::Memory;
use crate::backend::cuda::ops::product::Finish;
use crate::backend::cuda::ops::recurrence as rec;
use crate::backend::cuda::ops::time_mix;
use crate::model::RwkvParams;

/// Mixed inputs, in the arena's order of their vectors.
const R: u32 = 0;
const K: u32 = 1;
const V: u32 = 2;
const W: u32 = 3;
const A: u32 = 4;
const G: u32 = 5;

/// An RWKV-7 block and what it keeps for its backward pass. Buffers are [L, R, C] unless their line says otherwise; names are those
/// of docs/arithmetic.md.
pub struct RwkvBlock {
    ids: RwkvParams,
    /// Whether it is the first RWKV block, whose values the others mix in.
    first: bool,
    /// Whether it is the last one, at which the gradient of those values begins.
    last: bool,
    /// The layer norm before the block.
    pub norm: Norm,
    r: Memory<f32>,
    k0: Memory<f32>,
    v0: Memory<f32>,
    /// [L, R, D].
    hw: Memory<f32>,
    ha: Memory<f32>,
    hg: Memory<f32>,
    hv: Memory<f32>,
    sw: Memory<f32>,
    a: Memory<f32>,
    g: Memory<f32>,
    vs: Memory<f32>,
    w: Memory<f32>,
    k: Memory<f32>,
    /// Values; those of the first block are read by the others.
    pub v: Memory<f32>,
    kk: Memory<f32>,
    b: Memory<f32>,
    /// Output of the recurrence.
    pub y: Memory<f32>,
    sa: Memory<f32>,
    states: Memory<f32>,
    o: Memory<f32>,
    ffn: ChannelMix,
}

impl RwkvBlock {
    /// Buffers of the block of the tensors `p`, which may be the first and the last RWKV block.
    pub fn new(die: &Die, sizes: &Sizes, p: &RwkvParams, (first, last): (bool, bool)) -> Result<Self, DieError> {
        let s = sizes;
        let c = || s.rows_of(die, s.c);
        let d = || s.rows_of(die, s.lora);
        let ids = ChannelMixIds { ln: (p.ln2_w, p.ln2_b), x_k: p.ffn_x_k, key: p.ffn_key_w, value: p.ffn_value_w };
        let states = s.lanes as usize * rec::states_len(s.windows, s.tokens, s.heads, s.n);
        Ok(Self {
            ids: p.clone(),
            first,
            last,
            norm: Norm::new(die, s, (p.ln1_w, p.ln1_b), Some(Mixes { first: p.x_r, count: 6 }))?,
            r: c()?,
            k0: c()?,
            v0: c()?,
            hw: d()?,
            ha: d()?,
            hg: d()?,
            hv: d()?,
            sw: c()?,
            a: c()?,
            g: c()?,
            vs: c()?,
            w: c()?,
            k: c()?,
            v: c()?,
            kk: c()?,
            b: c()?,
            y: c()?,
            sa: c()?,
            states: die.zeroed(states)?,
            o: c()?,
            ffn: ChannelMix::new(die, s, ids)?,
        })
    }

    fn mixed(&self, s: &Sizes, which: u32) -> View {
        self.norm.shifted(s, which)
    }

    /// `out` = the block's output, from its norm's input; `vfirst` are the first RWKV block's values.
    pub fn forward<L: Launcher>(
        &self,
        pass: &mut Pass<'_, L>,
        vfirst: &Memory<f32>,
        out: View,
    ) -> Result<(), DieError> {
        let s = pass.sizes;
        self.norm.forward(pass)?;
        self.projections(pass)?;
        self.prepare(pass, vfirst)?;
        self.recurrence().forward(pass)?;
        let (ln_x_w, ln_x_b, r_k) =
            (pass.weight(self.ids.ln_x_w), pass.weight(self.ids.ln_x_b), pass.weight(self.ids.r_k));
        pass.to.launch(&time_mix::Finish {
            lanes: pass.lanes.clone(),
            ln_x_w,
            ln_x_b,
            r_k,
            arena: pass.arenas.len,
            y: self.y.read(),
            r: self.r.read(),
            k: self.k.read(),
            v: self.v.read(),
            g: self.g.read(),
            o: self.o.write(),
            rows: s.rows(),
            heads: s.heads,
            n: s.n,
        })?;
        let mid = self.ffn.norm.input(&s);
        let o = pass.project(s.whole(&self.o, s.c), self.ids.output_w, mid).onto(self.norm.input(&s));
        pass.multiply([o])?;
        self.ffn.forward(pass, out)
    }

    fn recurrence(&self) -> Recurrence<'_> {
        let (r, w, k, v, kk, b) = (&self.r, &self.w, &self.k, &self.v, &self.kk, &self.b);
        Recurrence { r, w, k, v, kk, b, y: &self.y, sa: &self.sa, states: &self.states }
    }

    fn projections<L: Launcher>(&self, pass: &mut Pass<'_, L>) -> Result<(), DieError> {
        let s = pass.sizes;
        let p = &self.ids;
        let (wide, low) = (|m: &Memory<f32>| s.whole(m, s.c), |m: &Memory<f32>| s.whole(m, s.lora));
        let mut down = vec![
            pass.project(self.mixed(&s, R), p.receptance_w, wide(&self.r)),
            pass.project(self.mixed(&s, K), p.key_w, wide(&self.k0)),
            pass.project(self.mixed(&s, V), p.value_w, wide(&self.v0)),
            pass.project(self.mixed(&s, W), p.w1, low(&self.hw)).finished(Finish::Tanh, None),
            pass.project(self.mixed(&s, A), p.a1, low(&self.ha)),
            pass.project(self.mixed(&s, G), p.g1, low(&self.hg)).finished(Finish::Sigmoid, None),
        ];
        let mut up = vec![
            pass.project(low(&self.hw), p.w2, wide(&self.sw)),
            pass.project(low(&self.ha), p.a2, wide(&self.a)),
            pass.project(low(&self.hg), p.g2, wide(&self.g)),
        ];
        if !self.first {
            down.push(pass.project(self.mixed(&s, V), p.v1, low(&self.hv)));
            up.push(pass.project(low(&self.hv), p.v2, wide(&self.vs)));
        }
        pass.multiply(down)?;
        pass.multiply(up)
    }

    fn prepare<L: Launcher>(&self, pass: &mut Pass<'_, L>, vfirst: &Memory<f32>) -> Result<(), DieError> {
        let (s, p) = (pass.sizes, &self.ids);
        let [w0, a0, v0p, k_k, k_a] = [p.w0, p.a0, p.v0, p.k_k, p.k_a].map(|id| pass.weight(id));
        pass.to.launch(&time_mix::Prepare {
            lanes: pass.lanes.clone(),
            w0,
            a0,
            v0p,
            k_k,
            k_a,
            arena: pass.arenas.len,
            k0: self.k0.read(),
            v0: self.v0.read(),
            vfirst: vfirst.read(),
            sw: self.sw.write(),
            a: self.a.write(),
            vs: self.vs.write(),
            w: self.w.write(),
            k: self.k.write(),
            v: self.v.write(),
            kk: self.kk.write(),
            b: self.b.write(),
            rows: s.rows(),
            heads: s.heads,
            n: s.n,
            first: u32::from(self.first),
        })
    }

    /// Turns the gradient of the block's output in `t.dx` into that of its input, and writes those of the weights. Blocks run last to
    /// first, so that `t.dvfirst` is whole at the first.
    pub fn backward<L: Launcher>(
        &self,
        pass: &mut Pass<'_, L>,
        vfirst: &Memory<f32>,
        t: &Scratch,
    ) -> Result<(), DieError> {
        let s = pass.sizes;
        self.ffn.backward(pass, t)?;
        let dx = s.whole(&t.dx, s.c);
        let back = pass.project_back(dx.clone(), self.ids.output_w, s.whole(&t.d_o, s.c));
        let dw = pass.matrix_grad(s.whole(&self.o, s.c), dx, self.ids.output_w);
        pass.multiply([back, dw])?;
        self.finish_backward(pass, t)?;
        self.recurrence().backward(pass, t)?;
        self.prepare_backward(pass, vfirst, t)?;
        self.projections_backward(pass, t)?;
        self.norm.backward(pass, t, Residual::Added)
    }

    fn finish_backward<L: Launcher>(&self, pass: &mut Pass<'_, L>, t: &Scratch) -> Result<(), DieError> {
        let Sizes { heads, n, .. } = pass.sizes;
        let rows = pass.sizes.rows();
        let (ln_x_w, ln_x_b, r_k) =
            (pass.weight(self.ids.ln_x_w), pass.weight(self.ids.ln_x_b), pass.weight(self.ids.r_k));
        pass.to.launch(&time_mix::FinishBackward {
            lanes: pass.lanes.clone(),
            ln_x_w,
            ln_x_b,
            r_k,
            arena: pass.arenas.len,
            y: self.y.read(),
            r: self.r.read(),
            k: self.k.read(),
            v: self.v.read(),
            g: self.g.read(),
            d_o: t.d_o.read(),
            dg: t.dg.write(),
            dr: t.dr.write(),
            dk: t.dk.write(),
            dv: t.dv.write(),
            dy: t.dy.write(),
            heads_of: t.heads_of.write(),
            chunks: t.columns.chunks.write(),
            rows,
            heads,
            n,
            vectors: t.columns.vectors(),
            slot: t.columns.slot(self.ids.r_k),
        })
    }

    fn prepare_backward<L: Launcher>(
        &self,
        pass: &mut Pass<'_, L>,
        vfirst: &Memory<f32>,
        t: &Scratch,
    ) -> Result<(), DieError> {
        let (s, p) = (pass.sizes, &self.ids);
        let (k_k, k_a) = (pass.weight(p.k_k), pass.weight(p.k_a));
        let [dr_rec, dw_rec, dk_rec, dv_rec, da_rec, db_rec] = t.recurrent.each_ref().map(Memory::read);
        pass.to.launch(&time_mix::PrepareBackward {
            lanes: pass.lanes.clone(),
            k_k,
            k_a,
            arena: pass.arenas.len,
            k0: self.k0.read(),
            v0: self.v0.read(),
            vfirst: vfirst.read(),
            sw: self.sw.read(),
            a: self.a.read(),
            vs: self.vs.read(),
            w: self.w.read(),
            kk: self.kk.read(),
            dr_rec,
            dw_rec,
            dk_rec,
            dv_rec,
            da_rec,
            db_rec,
            dr: t.dr.write(),
            dk: t.dk.write(),
            dv: t.dv.write(),
            dvfirst: t.dvfirst.write(),
            dk0: t.dk0.write(),
            dv0: t.dv0.write(),
            dz: t.dz.write(),
            dza: t.dza.write(),
            dzv: t.dzv.write(),
            dq: t.dq.write(),
            chunks: t.columns.chunks.write(),
            rows: s.rows(),
            heads: s.heads,
            n: s.n,
            vectors: t.columns.vectors(),
            k_slot: t.columns.slot(p.k_k),
            w_slot: t.columns.slot(p.w0),
            a_slot: t.columns.slot(p.a0),
            v_slot: t.columns.slot(p.v0),
            first: u32::from(self.first),
            last: u32::from(self.last),
        })
    }

    fn projections_backward<L: Launcher>(&self, pass: &mut Pass<'_, L>, t: &Scratch) -> Result<(), DieError> {
        let (s, p) = (pass.sizes, &self.ids);
        let (wide, low) = (|m: &Memory<f32>| s.whole(m, s.c), |m: &Memory<f32>| s.whole(m, s.lora));
        let dmixed = |which: u32| View::part(&t.dmixed, &s, 6, s.c, which);
        // First what needs the gradients of the mixer alone; then what needs those of the low-rank rows too. Values are in both.
        let mut first = vec![
            pass.project_back(wide(&t.dr), p.receptance_w, dmixed(R)),
            pass.project_back(wide(&t.dk0), p.key_w, dmixed(K)),
            pass.matrix_grad(self.mixed(&s, V), wide(&t.dv0), p.value_w),
        ];
        let mut values = pass.project_back(wide(&t.dv0), p.value_w, dmixed(V));
        let mut second = vec![
            pass.matrix_grad(self.mixed(&s, R), wide(&t.dr), p.receptance_w),
            pass.matrix_grad(self.mixed(&s, K), wide(&t.dk0), p.key_w),
        ];
        let low_ranks = [
            (W, p.w1, p.w2, &self.hw, &t.dz, &t.low_w, Finish::TanhSlope),
            (A, p.a1, p.a2, &self.ha, &t.dza, &t.low_a, Finish::Set),
            (G, p.g1, p.g2, &self.hg, &t.dg, &t.low_g, Finish::SigmoidSlope),
            (V, p.v1, p.v2, &self.hv, &t.dzv, &t.low_v, Finish::Set),
        ];
        for (which, down, up, h, d, dlow, finish) in low_ranks {
            if which == V && self.first {
                continue;
            }
            first.push(pass.matrix_grad(low(h), wide(d), up));
            first.push(pass.project_back(wide(d), up, low(dlow)).finished(finish, Some(low(h))));
            second.push(pass.matrix_grad(self.mixed(&s, which), low(dlow), down));
            let back = pass.project_back(low(dlow), down, dmixed(which));
            if which == V {
                values = values.plus(back);
            } else {
                second.push(back);
            }
        }
        second.push(values);
        pass.multiply(first)?;
        pass.multiply(second)
    }
}
