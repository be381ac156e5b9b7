//! An RWKV-7 block: time mix and channel mix, forward and backward, over tiles of rows and over heads.

use super::buffer::Buffer;
use super::channel_mix::{ChannelMix, ChannelMixIds};
use super::context::{ColumnSums, Context, Norm, NormTiles};
use super::gradients::{self, MatrixGrad, Packs};
use super::recurrence::{self, Head, HeadGrads};
use super::rows;
use super::team::Parts;
use super::time_mix::{self, Finish, FinishBackward, Heads, Kept, Prepare, PrepareGrads, Recurrent, Value, Vectors};
use crate::model::{ModelConfig, ParamId, RwkvParams};

/// Vectors whose gradients are column sums, in the order of [`RwkvBlock::sums`].
fn summed(p: &RwkvParams) -> [ParamId; 14] {
    [p.x_r, p.x_k, p.x_v, p.x_w, p.x_a, p.x_g, p.w0, p.a0, p.k_k, p.k_a, p.r_k, p.ln_x_w, p.ln_x_b, p.v0]
}

/// Numbers of [`summed`]'s vectors after the six mixes.
const W0: usize = 6;
const A0: usize = 7;
const K_K: usize = 8;
const K_A: usize = 9;
const R_K: usize = 10;
const LN_X_W: usize = 11;
const LN_X_B: usize = 12;
const V0: usize = 13;

/// An RWKV-7 block and what it keeps for its backward pass. Buffers are [R, C] unless their line says otherwise.
pub struct RwkvBlock {
    p: RwkvParams,
    /// Whether it is the first RWKV block, whose values the others mix in.
    first: bool,
    mixed: [Buffer; 6],
    r: Buffer,
    k0: Buffer,
    v0: Buffer,
    v: Buffer,
    /// [R, D] each: tanh, plain, sigmoid, plain.
    hw: Buffer,
    ha: Buffer,
    hg: Buffer,
    hv: Buffer,
    sw: Buffer,
    w: Buffer,
    a: Buffer,
    g: Buffer,
    vs: Buffer,
    /// [R, H].
    norm: Buffer,
    kk: Buffer,
    k: Buffer,
    b: Buffer,
    /// Head-major [B·H, T, N], as is sa.
    y: Buffer,
    sa: Buffer,
    /// States of segments, [B·H, segments, N, N].
    states: Buffer,
    yhat: Buffer,
    /// [R, H], as is the bonus.
    rs: Buffer,
    bonus: Buffer,
    yb: Buffer,
    o: Buffer,
    sums: ColumnSums,
    ffn: ChannelMix,
}

/// Buffers of the backward pass that blocks use one after the other. [R, C] unless their line says otherwise.
pub struct RwkvScratch {
    dmid: Buffer,
    dyb: Buffer,
    dg: Buffer,
    dy: Buffer,
    /// [R, H].
    dbonus: Buffer,
    /// Head-major: r, w, k, v, a, b.
    recurrent: [Buffer; 6],
    dr: Buffer,
    dk0: Buffer,
    dv: Buffer,
    dz: Buffer,
    dza: Buffer,
    dzv: Buffer,
    /// [R, D] each.
    dpw: Buffer,
    dha: Buffer,
    dpg: Buffer,
    dhv: Buffer,
    dmixed: [Buffer; 6],
    /// Gradient of the first RWKV block's values, summed over the later ones.
    pub dfirst: Buffer,
    packs: Packs,
}

impl RwkvScratch {
    /// Buffers for at most `rows` rows.
    pub fn new(config: &ModelConfig, rows: usize) -> Self {
        let c = || Buffer::zeros(rows * config.c);
        let d = || Buffer::zeros(rows * config.lora);
        Self {
            dmid: c(),
            dyb: c(),
            dg: c(),
            dy: c(),
            dbonus: Buffer::zeros(rows * config.n_head),
            recurrent: std::array::from_fn(|_| c()),
            dr: c(),
            dk0: c(),
            dv: c(),
            dz: c(),
            dza: c(),
            dzv: c(),
            dpw: d(),
            dha: d(),
            dpg: d(),
            dhv: d(),
            dmixed: std::array::from_fn(|_| c()),
            dfirst: c(),
            packs: Packs::default(),
        }
    }
}

impl RwkvBlock {
    /// Block of the tensors `p`, for at most `windows` windows.
    pub fn new(config: &ModelConfig, p: &RwkvParams, first: bool, windows: usize) -> Self {
        let rows = windows * config.seq_len;
        let c = || Buffer::zeros(rows * config.c);
        let d = || Buffer::zeros(rows * config.lora);
        let h = || Buffer::zeros(rows * config.n_head);
        let states = recurrence::states_len(config.seq_len, config.head_size);
        let ids = summed(p);
        let ffn = ChannelMixIds { ln: (p.ln2_w, p.ln2_b), x_k: p.ffn_x_k, key: p.ffn_key_w, value: p.ffn_value_w };
        Self {
            p: p.clone(),
            first,
            mixed: std::array::from_fn(|_| c()),
            r: c(),
            k0: c(),
            v0: if first { Buffer::default() } else { c() },
            v: c(),
            hw: d(),
            ha: d(),
            hg: d(),
            hv: if first { Buffer::default() } else { d() },
            sw: c(),
            w: c(),
            a: c(),
            g: c(),
            vs: if first { Buffer::default() } else { c() },
            norm: h(),
            kk: c(),
            k: c(),
            b: c(),
            y: c(),
            sa: c(),
            states: Buffer::zeros(windows * config.n_head * states),
            yhat: c(),
            rs: h(),
            bonus: h(),
            yb: c(),
            o: c(),
            sums: ColumnSums::new(&ids[..if first { V0 } else { V0 + 1 }], rows),
            ffn: ChannelMix::new(ffn, rows),
        }
    }

    /// Values of this block [R, C].
    pub fn values(&self) -> &[f32] {
        &self.v
    }

    /// Output of the recurrence, head-major [B·H, T, N].
    pub fn recurrence_output(&self) -> &[f32] {
        &self.y
    }

    fn vectors<'a>(&self, weights: &'a [f32]) -> Vectors<'a> {
        let p = &self.p;
        Vectors {
            w0: p.w0.of(weights),
            a0: p.a0.of(weights),
            v0: p.v0.of(weights),
            k_k: p.k_k.of(weights),
            k_a: p.k_a.of(weights),
            r_k: p.r_k.of(weights),
            ln_x_w: p.ln_x_w.of(weights),
            ln_x_b: p.ln_x_b.of(weights),
        }
    }

    fn mixes<'a>(&self, weights: &'a [f32]) -> [&'a [f32]; 6] {
        let p = &self.p;
        [p.x_r, p.x_k, p.x_v, p.x_w, p.x_a, p.x_g].map(|id| id.of(weights))
    }

    /// Adds the time mix to x, from its normalised input `u`; `first_values` are those of the first RWKV block.
    /// States for a backward pass are kept where `keep` asks.
    pub fn time_mix(&mut self, ctx: &Context<'_>, u: &[f32], first_values: Option<&[f32]>, x: &mut [f32], keep: bool) {
        self.prepare(ctx, u, first_values);
        self.recur(ctx, keep);
        self.finish(ctx, x);
    }

    /// Adds the channel mix to x, and normalises the result for what comes next.
    pub fn channel_mix(&mut self, ctx: &Context<'_>, x: &mut [f32], next: &NormTiles<'_>) {
        self.ffn.forward(ctx, x, next);
    }

    fn prepare(&mut self, ctx: &Context<'_>, u: &[f32], first_values: Option<&[f32]>) {
        let (c, d, h) = (ctx.config.c, ctx.config.lora, ctx.config.n_head);
        let (vectors, mixes) = (self.vectors(ctx.weights), self.mixes(ctx.weights));
        let p = &self.p;
        let mixed = self.mixed.each_mut().map(|m| Parts::tiles(m, c));
        let [r, k0, v0, v] = [&mut self.r, &mut self.k0, &mut self.v0, &mut self.v].map(|x| Parts::tiles(x, c));
        let [hw, ha, hg, hv] = [&mut self.hw, &mut self.ha, &mut self.hg, &mut self.hv].map(|x| Parts::tiles(x, d));
        let [sw, w, a, g, vs] =
            [&mut self.sw, &mut self.w, &mut self.a, &mut self.g, &mut self.vs].map(|x| Parts::tiles(x, c));
        let [kk, k, b] = [&mut self.kk, &mut self.k, &mut self.b].map(|x| Parts::tiles(x, c));
        let norm = Parts::tiles(&mut self.norm, h);
        let level = ctx.level();
        ctx.team.each(ctx.tiles(), |tile| {
            let span = ctx.tile_rows(tile);
            let (nc, nd) = (span.len() * c, span.len() * d);
            let [xr, xk, xv, xw, xa, xg] = std::array::from_fn(|i| {
                let out = &mut mixed[i].take(tile)[..nc];
                rows::token_shift(level, u, ctx.window(tile), mixes[i], out);
                &*out
            });
            let (sw, a, g) = (&mut sw.take(tile)[..nc], &mut a.take(tile)[..nc], &mut g.take(tile)[..nc]);
            let (k0, v) = (&mut k0.take(tile)[..nc], &mut v.take(tile)[..nc]);
            let (hw, ha, hg) = (&mut hw.take(tile)[..nd], &mut ha.take(tile)[..nd], &mut hg.take(tile)[..nd]);
            ctx.project(xr, p.receptance_w, &mut r.take(tile)[..nc]);
            ctx.project(xk, p.key_w, k0);
            ctx.project(xw, p.w1, hw);
            time_mix::tanh_all(level, hw);
            ctx.project(hw, p.w2, sw);
            ctx.project(xa, p.a1, ha);
            ctx.project(ha, p.a2, a);
            ctx.project(xg, p.g1, hg);
            time_mix::sigmoid_all(level, hg);
            ctx.project(hg, p.g2, g);
            let value = match first_values {
                None => {
                    ctx.project(xv, p.value_w, v);
                    None
                }
                Some(first) => {
                    let (v0, hv) = (&mut v0.take(tile)[..nc], &mut hv.take(tile)[..nd]);
                    let vs = &mut vs.take(tile)[..nc];
                    ctx.project(xv, p.value_w, v0);
                    ctx.project(xv, p.v1, hv);
                    ctx.project(hv, p.v2, vs);
                    Some(Value { v0, vs, first: &first[span.start * c..span.end * c], v })
                }
            };
            let io = Prepare {
                k0,
                sw,
                w: &mut w.take(tile)[..nc],
                a,
                value,
                norm: &mut norm.take(tile)[..span.len() * h],
                kk: &mut kk.take(tile)[..nc],
                k: &mut k.take(tile)[..nc],
                b: &mut b.take(tile)[..nc],
            };
            time_mix::prepare(level, heads(ctx, tile), vectors, io);
        });
    }

    fn head<'a>(&'a self, config: &ModelConfig, task: usize) -> Head<'a> {
        let (window, h) = (task / config.n_head, task % config.n_head);
        let from = window * config.seq_len * config.c + h * config.head_size;
        Head {
            r: &self.r[from..],
            w: &self.w[from..],
            k: &self.k[from..],
            v: &self.v[from..],
            kk: &self.kk[from..],
            b: &self.b[from..],
            stride: config.c,
            tokens: config.seq_len,
            n: config.head_size,
        }
    }

    fn recur(&mut self, ctx: &Context<'_>, keep: bool) {
        let config = ctx.config;
        let n = config.head_size;
        let each = config.seq_len * n;
        let [mut y, mut sa, mut states] = [&mut self.y, &mut self.sa, &mut self.states].map(std::mem::take);
        {
            let (y, sa) = (Parts::new(&mut y, each), Parts::new(&mut sa, each));
            let states = Parts::new(&mut states, recurrence::states_len(config.seq_len, n));
            let this = &*self;
            ctx.team.each(ctx.windows * config.n_head, |task| {
                let states = keep.then(|| states.take(task));
                ctx.team.with_scratch(recurrence::forward_scratch_len(n), |scratch| {
                    let head = this.head(config, task);
                    recurrence::forward(ctx.level(), head, y.take(task), sa.take(task), states, scratch);
                });
            });
        }
        (self.y, self.sa, self.states) = (y, sa, states);
    }

    fn finish(&mut self, ctx: &Context<'_>, x: &mut [f32]) {
        let (c, h) = (ctx.config.c, ctx.config.n_head);
        let vectors = self.vectors(ctx.weights);
        let [yhat, yb, o] = [&mut self.yhat, &mut self.yb, &mut self.o].map(|x| Parts::tiles(x, c));
        let [rs, bonus] = [&mut self.rs, &mut self.bonus].map(|x| Parts::tiles(x, h));
        let (x, next) = (Parts::tiles(x, c), self.ffn.norm.tiles(ctx));
        let (y, r, k, v, g) = (&self.y, &self.r, &self.k, &self.v, &self.g);
        let output_w = self.p.output_w;
        ctx.team.each(ctx.tiles(), |tile| {
            let span = ctx.tile_rows(tile);
            let (nc, nh) = (span.len() * c, span.len() * h);
            let all = span.start * c..span.end * c;
            let o = &mut o.take(tile)[..nc];
            let io = Finish {
                y,
                r: &r[all.clone()],
                k: &k[all.clone()],
                v: &v[all.clone()],
                g: &g[all],
                yhat: &mut yhat.take(tile)[..nc],
                rs: &mut rs.take(tile)[..nh],
                bonus: &mut bonus.take(tile)[..nh],
                yb: &mut yb.take(tile)[..nc],
                o,
            };
            time_mix::finish(ctx.level(), heads(ctx, tile), vectors, io);
            let x = &mut x.take(tile)[..nc];
            ctx.team.with_scratch(nc, |out| {
                ctx.project(o, output_w, out);
                rows::add(ctx.level(), out, x);
            });
            next.run(tile, x);
        });
    }

    /// Backward pass: `dx` is the gradient of the block's output and becomes that of its input; gradients of its weights are written to
    /// `grads`. `norm` is the layer norm before the block. Blocks run last to first, so that `scratch.dfirst` is whole at the first.
    pub fn backward(
        &mut self,
        ctx: &Context<'_>,
        norm: &mut Norm,
        first_values: Option<&[f32]>,
        scratch: &mut RwkvScratch,
        (dx, dnext): (&mut Buffer, &mut Buffer),
        grads: &mut [f32],
    ) {
        self.finish_backward(ctx, scratch, dx);
        self.recur_backward(ctx, scratch);
        self.prepare_backward(ctx, first_values, scratch);
        self.shift_backward(ctx, norm, scratch, dnext);
        let mut packs = std::mem::take(&mut scratch.packs);
        let [ffn, ffn_norm] = self.ffn.sums();
        let sums = [&self.sums, norm.sums(), ffn, ffn_norm];
        gradients::write(ctx, &mut packs, &self.matrices(scratch, dx), &sums, grads);
        scratch.packs = packs;
        std::mem::swap(dx, dnext);
    }

    /// From the gradient of the block's output to that of the recurrence's.
    fn finish_backward(&mut self, ctx: &Context<'_>, s: &mut RwkvScratch, dout: &[f32]) {
        let (c, h) = (ctx.config.c, ctx.config.n_head);
        let vectors = self.vectors(ctx.weights);
        let [dyb, dg, dy] = [&mut s.dyb, &mut s.dg, &mut s.dy].map(|x| Parts::tiles(x, c));
        let dbonus = Parts::tiles(&mut s.dbonus, h);
        let sums = self.sums.tiles();
        let (r, k, v, g, yhat, rs) = (&self.r, &self.k, &self.v, &self.g, &self.yhat, &self.rs);
        let (yb, output_w) = (&self.yb, self.p.output_w);
        let level = ctx.level();
        self.ffn.backward(ctx, dout, &mut s.dmid, |tile, dmid| {
            let span = ctx.tile_rows(tile);
            let (n, nc) = (span.len(), span.len() * c);
            let (all, per_head) = (span.start * c..span.end * c, span.start * h..span.end * h);
            let dyb = &mut dyb.take(tile)[..nc];
            let dbonus = &mut dbonus.take(tile)[..n * h];
            ctx.project_back(dmid, output_w, dyb);
            let (r, k, yhat) = (&r[all.clone()], &k[all.clone()], &yhat[all.clone()]);
            let io = FinishBackward {
                d: dyb,
                v: &v[all.clone()],
                g: &g[all.clone()],
                yhat,
                rs: &rs[per_head],
                yb: &yb[all],
                dg: &mut dg.take(tile)[..nc],
                dbonus,
                dy: &mut dy.take(tile)[..nc],
            };
            time_mix::finish_backward(level, heads(ctx, tile), vectors, io);
            time_mix::bonus_sums(level, heads(ctx, tile), dbonus, r, k, sums.take(R_K, tile, n));
            rows::column_dots(level, dyb, yhat, c, sums.take(LN_X_W, tile, n));
            rows::column_sums(level, dyb, c, sums.take(LN_X_B, tile, n));
        });
    }

    fn recur_backward(&mut self, ctx: &Context<'_>, s: &mut RwkvScratch) {
        let config = ctx.config;
        let (n, each) = (config.head_size, config.seq_len * config.head_size);
        let states = recurrence::states_len(config.seq_len, n);
        let parts = s.recurrent.each_mut().map(|x| Parts::new(x, each));
        let dy = &s.dy;
        let this = &*self;
        ctx.team.each(ctx.windows * config.n_head, |task| {
            let [r, w, k, v, a, b] = std::array::from_fn(|i| parts[i].take(task));
            let from = task / config.n_head * config.seq_len * config.c + task % config.n_head * n;
            let (sa, states) = (&this.sa[task * each..][..each], &this.states[task * states..][..states]);
            let grads = HeadGrads { r, w, k, v, a, b };
            ctx.team.with_scratch(recurrence::backward_scratch_len(n), |scratch| {
                recurrence::backward(ctx.level(), this.head(config, task), sa, states, &dy[from..], grads, scratch);
            });
        });
    }

    /// From the recurrence's gradients to those of the six mixed inputs.
    fn prepare_backward(&mut self, ctx: &Context<'_>, first_values: Option<&[f32]>, s: &mut RwkvScratch) {
        let (c, d, h) = (ctx.config.c, ctx.config.lora, ctx.config.n_head);
        let vectors = self.vectors(ctx.weights);
        let p = &self.p;
        let [dr, dk0, dv, dz, dza, dzv, dfirst] =
            [&mut s.dr, &mut s.dk0, &mut s.dv, &mut s.dz, &mut s.dza, &mut s.dzv, &mut s.dfirst]
                .map(|x| Parts::tiles(x, c));
        let [dpw, dha, dpg, dhv] = [&mut s.dpw, &mut s.dha, &mut s.dpg, &mut s.dhv].map(|x| Parts::tiles(x, d));
        let dmixed = s.dmixed.each_mut().map(|x| Parts::tiles(x, c));
        let from = s.recurrent.each_ref();
        let from = Recurrent { r: from[0], w: from[1], k: from[2], v: from[3], a: from[4], b: from[5] };
        let (dyb, dg, dbonus) = (&s.dyb, &s.dg, &s.dbonus);
        let sums = self.sums.tiles();
        let this = [&self.r, &self.w, &self.k, &self.k0, &self.kk, &self.sw, &self.a];
        let (norm, bonus, v0, vs) = (&self.norm, &self.bonus, &self.v0, &self.vs);
        let (hw, hg) = (&self.hw, &self.hg);
        let level = ctx.level();
        ctx.team.each(ctx.tiles(), |tile| {
            let span = ctx.tile_rows(tile);
            let (n, nc, nd) = (span.len(), span.len() * c, span.len() * d);
            let all = span.start * c..span.end * c;
            let low = span.start * d..span.end * d;
            let per_head = span.start * h..span.end * h;
            let [r, w, k, k0, kk, sw, a] = this.map(|x| &x[all.clone()]);
            let kept = Kept { r, w, k, k0, kk, sw, a, norm: &norm[per_head.clone()], bonus: &bonus[per_head.clone()] };
            let [dr, dk0, dv, dz, dza] = [&dr, &dk0, &dv, &dz, &dza].map(|x| &mut x.take(tile)[..nc]);
            let dfirst = &mut dfirst.take(tile)[..nc];
            ctx.team.with_scratch(2 * nc, |scratch| {
                let (dq, dk) = scratch.split_at_mut(nc);
                let out = PrepareGrads { r: dr, k0: dk0, v: dv, z: dz, za: dza, q: dq, k: dk };
                let (dbonus, dyb) = (&dbonus[per_head.clone()], &dyb[all.clone()]);
                time_mix::prepare_backward(level, heads(ctx, tile), vectors, kept, from, dbonus, dyb, out);
                rows::column_dots(level, dq, k0, c, sums.take(K_K, tile, n));
                time_mix::key_rate_sums(level, dk, k0, a, c, sums.take(K_A, tile, n));
            });
            let [out_r, out_k, out_v, out_w, out_a, out_g] = std::array::from_fn(|i| &mut dmixed[i].take(tile)[..nc]);
            match first_values {
                None => {
                    rows::add(level, dfirst, dv);
                    ctx.project_back(dv, p.value_w, out_v);
                }
                Some(first) => {
                    let dzv = &mut dzv.take(tile)[..nc];
                    let dhv = &mut dhv.take(tile)[..nd];
                    let (v0, vs, first) = (&v0[all.clone()], &vs[all.clone()], &first[all.clone()]);
                    time_mix::value_backward(level, dv, v0, vs, first, dfirst, dzv);
                    rows::column_sums(level, dzv, c, sums.take(V0, tile, n));
                    ctx.project_back(dzv, p.v2, dhv);
                    ctx.project_back(dv, p.value_w, out_v);
                    ctx.team.with_scratch(nc, |low_rank| {
                        ctx.project_back(dhv, p.v1, low_rank);
                        rows::add(level, low_rank, out_v);
                    });
                }
            }
            rows::column_sums(level, dz, c, sums.take(W0, tile, n));
            rows::column_sums(level, dza, c, sums.take(A0, tile, n));
            let [dpw, dha, dpg] = [&dpw, &dha, &dpg].map(|x| &mut x.take(tile)[..nd]);
            ctx.project_back(dz, p.w2, dpw);
            time_mix::tanh_backward(level, dpw, &hw[low.clone()]);
            ctx.project_back(dza, p.a2, dha);
            ctx.project_back(&dg[all], p.g2, dpg);
            time_mix::sigmoid_backward(level, dpg, &hg[low]);
            ctx.project_back(dr, p.receptance_w, out_r);
            ctx.project_back(dk0, p.key_w, out_k);
            ctx.project_back(dpw, p.w1, out_w);
            ctx.project_back(dha, p.a1, out_a);
            ctx.project_back(dpg, p.g1, out_g);
        });
    }

    /// From the mixed inputs' gradients to that of the block's input, overwritten in `dx`.
    fn shift_backward(&mut self, ctx: &Context<'_>, norm: &mut Norm, s: &RwkvScratch, dx: &mut [f32]) {
        let c = ctx.config.c;
        let mixes = self.mixes(ctx.weights);
        let norm = norm.backward_tiles(ctx);
        let sums = self.sums.tiles();
        let dx = Parts::tiles(dx, c);
        ctx.team.each(ctx.tiles(), |tile| {
            let span = ctx.tile_rows(tile);
            let (n, window) = (span.len(), ctx.window(tile));
            let all = span.start * c..span.end * c;
            for (i, dxc) in s.dmixed.iter().enumerate() {
                let sums = sums.take(i, tile, n);
                rows::token_shift_mix_sums(ctx.level(), &dxc[all.clone()], norm.y, window, sums);
            }
            let dx = &mut dx.take(tile)[..n * c];
            dx.copy_from_slice(&s.dmid[all]);
            ctx.team.with_scratch(n * c, |du| {
                let dxc = s.dmixed.each_ref().map(|x| &**x);
                rows::token_shift_backward6(ctx.level(), dxc, window, mixes, du);
                norm.run(tile, du, dx);
            });
        });
    }

    /// Both sides of the block's matrix gradients.
    fn matrices<'a>(&'a self, s: &'a RwkvScratch, dout: &'a [f32]) -> Vec<MatrixGrad<'a>> {
        let (p, [xr, xk, xv, xw, xa, xg]) = (&self.p, self.mixed.each_ref());
        let mut all = vec![
            (p.receptance_w, xr, &s.dr),
            (p.key_w, xk, &s.dk0),
            (p.value_w, xv, &s.dv),
            (p.output_w, &self.o, &s.dmid),
            (p.w1, xw, &s.dpw),
            (p.w2, &self.hw, &s.dz),
            (p.a1, xa, &s.dha),
            (p.a2, &self.ha, &s.dza),
            (p.g1, xg, &s.dpg),
            (p.g2, &self.hg, &s.dg),
        ];
        if !self.first {
            all.extend([(p.v1, xv, &s.dhv), (p.v2, &self.hv, &s.dzv)]);
        }
        let mut matrices: Vec<_> = all.into_iter().map(|(id, x, dy)| MatrixGrad { id, x, dy }).collect();
        matrices.extend(self.ffn.matrices(dout));
        matrices
    }
}

fn heads(ctx: &Context<'_>, tile: usize) -> Heads {
    let config = ctx.config;
    Heads { first: ctx.tile_rows(tile).start, tokens: config.seq_len, heads: config.n_head, n: config.head_size }
}
