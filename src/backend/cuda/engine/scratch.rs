//! Buffers of the backward pass that blocks use one after the other.

use super::columns::Columns;
use super::pass::Sizes;
use crate::backend::cuda::die::{Die, DieError};
use crate::backend::cuda::memory::Memory;
use crate::backend::cuda::ops::recurrence::states_len;
use crate::model::ModelParams;

/// The buffers. [L, R, C] unless their line says otherwise.
#[allow(missing_docs)] // gradients of what their names say, as in docs/arithmetic.md
pub struct Scratch {
    /// Gradient that runs down the residual.
    pub dx: Memory<f32>,
    /// Gradient of a norm's output.
    pub du: Memory<f32>,
    /// [L, R, F].
    pub dh: Memory<f32>,
    /// Gradient of a mixer's output before its last product.
    pub d_o: Memory<f32>,
    /// [L, 6, R, C].
    pub dmixed: Memory<f32>,
    /// Gradients of vectors.
    pub columns: Columns,
    pub dg: Memory<f32>,
    pub dr: Memory<f32>,
    pub dk: Memory<f32>,
    pub dv: Memory<f32>,
    pub dy: Memory<f32>,
    /// [L, R, H, 3]: mean and scale of y over a head, gradient of the bonus.
    pub heads_of: Memory<f32>,
    /// From the recurrence: r, w, k, v, a, b.
    pub recurrent: [Memory<f32>; 6],
    /// Sums along the rows of the state's gradient.
    pub h: Memory<f32>,
    /// The state's gradients after each segment, as the block keeps the states.
    pub state_gradients: Memory<f32>,
    pub dk0: Memory<f32>,
    pub dv0: Memory<f32>,
    pub dz: Memory<f32>,
    pub dza: Memory<f32>,
    pub dzv: Memory<f32>,
    pub dq: Memory<f32>,
    /// [L, R, D].
    pub low_w: Memory<f32>,
    pub low_a: Memory<f32>,
    pub low_g: Memory<f32>,
    pub low_v: Memory<f32>,
    /// Gradient of the first RWKV block's values, summed over the later ones.
    pub dvfirst: Memory<f32>,
    /// Gradients of attention's shares, [L, B, H, T, T].
    pub ds: Memory<f32>,
}

impl Scratch {
    /// Allocates them; what a model without attention, or without RWKV blocks, does not use is empty.
    pub fn new(die: &Die, sizes: &Sizes, params: &ModelParams) -> Result<Self, DieError> {
        let s = *sizes;
        let (rwkv, attention) = (!params.rwkv.is_empty(), !params.attn.is_empty());
        let rows = |width: u32| s.rows_of(die, width);
        let mixer = |used: bool, width: u32| s.rows_of(die, if used { width } else { 0 });
        let states = s.lanes as usize * states_len(s.windows, s.tokens, s.heads, s.n);
        let c = |used: bool| mixer(used, s.c);
        Ok(Self {
            dx: rows(s.c)?,
            du: rows(s.c)?,
            dh: rows(s.ffn)?,
            d_o: rows(s.c)?,
            dmixed: rows(6 * s.c)?,
            columns: Columns::new(die, sizes, params)?,
            dg: c(rwkv)?,
            dr: rows(s.c)?,
            dk: rows(s.c)?,
            dv: rows(s.c)?,
            dy: c(rwkv)?,
            heads_of: mixer(rwkv, 3 * s.heads)?,
            h: c(rwkv)?,
            state_gradients: die.zeroed(if rwkv { states } else { 0 })?,
            recurrent: [c(rwkv)?, c(rwkv)?, c(rwkv)?, c(rwkv)?, c(rwkv)?, c(rwkv)?],
            dk0: c(rwkv)?,
            dv0: c(rwkv)?,
            dz: c(rwkv)?,
            dza: c(rwkv)?,
            dzv: c(rwkv)?,
            dq: c(rwkv)?,
            low_w: mixer(rwkv, s.lora)?,
            low_a: mixer(rwkv, s.lora)?,
            low_g: mixer(rwkv, s.lora)?,
            low_v: mixer(rwkv, s.lora)?,
            dvfirst: c(rwkv)?,
            ds: mixer(attention, s.heads * s.tokens)?,
        })
    }
}
