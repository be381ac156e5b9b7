//! The recurrence's launches.

use super::pass::{Pass, Sizes};
use super::scratch::Scratch;
use crate::backend::cuda::die::{DieError, Launcher};
use crate::backend::cuda::memory::Memory;
use crate::backend::cuda::ops::recurrence as rec;

/// A block's buffers that the recurrence reads and writes, [L, R, C] but for the states; names are those of docs/arithmetic.md.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Recurrence<'a> {
    pub r: &'a Memory<f32>,
    pub w: &'a Memory<f32>,
    pub k: &'a Memory<f32>,
    pub v: &'a Memory<f32>,
    pub kk: &'a Memory<f32>,
    pub b: &'a Memory<f32>,
    pub y: &'a Memory<f32>,
    pub sa: &'a Memory<f32>,
    pub states: &'a Memory<f32>,
}

impl Recurrence<'_> {
    /// y, and, where a backward pass will follow, the states before each segment.
    pub fn forward<L: Launcher>(&self, pass: &mut Pass<'_, L>) -> Result<(), DieError> {
        let Sizes { windows, tokens, heads, n, .. } = pass.sizes;
        macro_rules! launch {
            ($name:ident) => {
                pass.to.launch(&rec::$name {
                    lanes: pass.lanes.clone(),
                    r: self.r.read(),
                    w: self.w.read(),
                    k: self.k.read(),
                    v: self.v.read(),
                    kk: self.kk.read(),
                    b: self.b.read(),
                    y: self.y.write(),
                    sa: self.sa.write(),
                    states: self.states.write(),
                    windows,
                    tokens,
                    heads,
                    n,
                    keep: u32::from(pass.keep),
                })
            };
        }
        match (n, rows_a_thread(&pass.sizes)) {
            (32, 1) => launch!(ForwardOf32),
            (32, 2) => launch!(ForwardOf32x2),
            (32, _) => launch!(ForwardOf32x4),
            (64, _) => launch!(ForwardOf64),
            (0..=16, _) => launch!(ForwardUpto16),
            (17..=31, _) => launch!(ForwardUpto32),
            (33..=63, _) => launch!(ForwardUpto64),
            _ => launch!(ForwardUpto128),
        }
    }

    /// From `t.dy` the gradients of r, w, k, v, A and b in `t.recurrent`.
    pub fn backward<L: Launcher>(&self, pass: &mut Pass<'_, L>, t: &Scratch) -> Result<(), DieError> {
        self.along_rows(pass, t)?;
        self.down_columns(pass, t)
    }

    fn along_rows<L: Launcher>(&self, pass: &mut Pass<'_, L>, t: &Scratch) -> Result<(), DieError> {
        let Sizes { windows, tokens, heads, n, .. } = pass.sizes;
        let [_, _, _, dv, ..] = &t.recurrent;
        macro_rules! launch {
            ($name:ident) => {
                pass.to.launch(&rec::$name {
                    lanes: pass.lanes.clone(),
                    r: self.r.read(),
                    w: self.w.read(),
                    k: self.k.read(),
                    kk: self.kk.read(),
                    b: self.b.read(),
                    dy: t.dy.read(),
                    dv: dv.write(),
                    h: t.h.write(),
                    gradients: t.state_gradients.write(),
                    windows,
                    tokens,
                    heads,
                    n,
                })
            };
        }
        match (n, rows_a_thread(&pass.sizes)) {
            (32, 1) => launch!(RowsOf32),
            (32, 2) => launch!(RowsOf32x2),
            (32, _) => launch!(RowsOf32x4),
            (64, _) => launch!(RowsOf64),
            (0..=16, _) => launch!(RowsUpto16),
            (17..=31, _) => launch!(RowsUpto32),
            (33..=63, _) => launch!(RowsUpto64),
            _ => launch!(RowsUpto128),
        }
    }

    fn down_columns<L: Launcher>(&self, pass: &mut Pass<'_, L>, t: &Scratch) -> Result<(), DieError> {
        let Sizes { windows, tokens, heads, n, .. } = pass.sizes;
        let [dr, dw, dk, _, da, db] = t.recurrent.each_ref().map(Memory::write);
        macro_rules! launch {
            ($name:ident) => {
                pass.to.launch(&rec::$name {
                    lanes: pass.lanes.clone(),
                    r: self.r.read(),
                    w: self.w.read(),
                    k: self.k.read(),
                    v: self.v.read(),
                    kk: self.kk.read(),
                    b: self.b.read(),
                    sa: self.sa.read(),
                    h: t.h.read(),
                    dy: t.dy.read(),
                    states: self.states.read(),
                    gradients: t.state_gradients.read(),
                    dr,
                    dw,
                    dk,
                    da,
                    db,
                    windows,
                    tokens,
                    heads,
                    n,
                })
            };
        }
        match n {
            32 => launch!(ColumnsOf32),
            64 => launch!(ColumnsOf64),
            0..=16 => launch!(ColumnsUpto16),
            17..=31 => launch!(ColumnsUpto32),
            33..=63 => launch!(ColumnsUpto64),
            _ => launch!(ColumnsUpto128),
        }
    }
}

fn rows_a_thread(s: &Sizes) -> u32 {
    rec::rows_a_thread(u64::from(s.lanes) * u64::from(s.windows) * u64::from(s.heads), s.n)
}
