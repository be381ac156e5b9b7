//! SR4: ternary weights over 4-bit accumulators.
//!
//! A tensor `[rows, cols]` has an accumulator q in `[-clamp, clamp]` a weight and a scale a column. The weight is
//! `scale[c] * t`, t = 0 where |q| < theta, else q's sign. A step moves q by the gradient, scaled so that the mean
//! move is `target_step`, with stochastic rounding from counted random numbers: weight `base + r*cols + c` of step s
//! draws the same number whatever thread asks. All kernels here take whole rows.

use crate::arith::sums::{SCALAR_PARTIALS, fold_scalar};
use crate::backend::cpu::simd::simd;
use crate::rng::{domain, first_word, unit24};
use crate::settings::{ScaleInit, Settings};

/// Moves are limited to this, or to the accumulators' whole range where that is more, before they become integers: a longer move
/// would end at the same rail.
const MOVE_LIMIT: i32 = 14;
/// Weights whose random numbers are made at a time.
const BLOCK: usize = 32;

/// SR4's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sr4 {
    /// Mean absolute move of the accumulators.
    pub target_step: f64,
    /// Accumulators live in `[-clamp, clamp]`.
    pub clamp: i32,
    /// Accumulators below this magnitude are weight zero.
    pub theta: i32,
    /// Stochastic rounding; off: halves round up.
    pub dither: bool,
    /// Seed of the accumulators' start and of the dither.
    pub seed: u64,
}

impl From<&Settings> for Sr4 {
    fn from(s: &Settings) -> Self {
        Self {
            target_step: s.target_step,
            clamp: i32::from(s.q_clamp),
            theta: i32::from(s.theta),
            dither: s.dither,
            seed: s.dither_seed,
        }
    }
}

/// A step's move of one tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    /// The move of a weight is the negative gradient times this.
    pub rate: f64,
    /// Step, from 0.
    pub step: u64,
    /// Random counter of the first weight.
    pub base: u64,
}

impl Sr4 {
    /// `target_step` over the mean magnitude, from the sum of the magnitudes of `n` gradients.
    ///
    /// None where the tensor stays as it is: no gradient at all, or one that is not finite.
    pub fn rate(&self, sum: f64, n: usize) -> Option<f64> {
        let mean = sum / n as f64;
        let rate = self.target_step / mean;
        (mean > 0.0 && mean.is_finite() && rate != 0.0 && rate.is_finite()).then_some(rate)
    }
}

/// The first scale of a tensor's columns.
pub fn initial_scale(init: ScaleInit, rows: usize) -> f32 {
    match init {
        ScaleInit::Unit => 1.0,
        ScaleInit::FanIn => (1.0 / libm::sqrt(rows as f64 * 4.0 / 7.0)) as f32,
    }
}

/// A weight without its scale: -1, 0 or 1.
#[inline(always)]
pub fn ternary(q: i8, theta: i32) -> i32 {
    let q = i32::from(q);
    i32::from(q >= theta) - i32::from(q <= -theta)
}

/// Largest integer not above x, for x within the limit of moves: only additions and moves of bits, which every vector
/// unit has. (`f32::floor` is a call on processors without SSE4.1, and a conversion by `as` checks its range.)
#[inline(always)]
fn floor(x: f32) -> i32 {
    /// 1.5 * 2^23: a sum with it holds the nearest integer in its low bits.
    const MAGIC: f32 = 12_582_912.0;
    let held = x + MAGIC;
    let nearest = held.to_bits() as i32 - MAGIC.to_bits() as i32;
    nearest - i32::from(held - MAGIC > x)
}

/// Moves a block of accumulators by gradients, scales and random numbers.
#[inline(always)]
fn move_block(q: &mut [i8; BLOCK], grad: &[f32; BLOCK], scale: &[f32; BLOCK], u: &[f32; BLOCK], rate: f64, clamp: i32) {
    let limit = MOVE_LIMIT.max(2 * clamp) as f32;
    // Two loops: the first is in f64, half as many to a vector.
    let mut x = [0.0f32; BLOCK];
    for i in 0..BLOCK {
        x[i] = (-rate * f64::from(grad[i] * scale[i])) as f32;
    }
    for i in 0..BLOCK {
        let moved = floor((x[i] + u[i]).clamp(-limit, limit));
        // Not `clamp`, whose check of its bounds stands in the way of vectors.
        q[i] = (i32::from(q[i]) + moved).max(-clamp).min(clamp) as i8;
    }
}

/// A block whose first elements are those of a slice.
#[inline(always)]
fn padded<T: Copy + Default>(x: &[T]) -> [T; BLOCK] {
    let mut block = [T::default(); BLOCK];
    block[..x.len()].copy_from_slice(x);
    block
}

simd! {
    /// Draws the accumulators' start, uniform in -3..=3: q holds weights from counter `base` on.
    pub fn start(q: &mut [i8], base: u64, by: &Sr4) {
        let by = *by;
        for (b, q) in q.chunks_mut(BLOCK).enumerate() {
            let first = base + (b * BLOCK) as u64;
            let mut drawn = [0i32; BLOCK];
            for (i, drawn) in drawn.iter_mut().enumerate() {
                // Exactly floor(7u) - 3: in f32, 7u would round up in rare cases.
                let word = first_word(by.seed, first.wrapping_add(i as u64), domain::START);
                *drawn = ((u64::from(word >> 8) * 7) >> 24) as i32 - 3;
            }
            for (q, drawn) in q.iter_mut().zip(drawn) {
                *q = drawn.clamp(-by.clamp, by.clamp) as i8;
            }
        }
    }

    /// Weights from accumulators q `[rows, cols]` and scales `[cols]`: w = scale·t.
    pub fn weights(q: &[i8], scale: &[f32], theta: i32, w: &mut [f32]) {
        let cols = scale.len();
        for (q, w) in q.chunks_exact(cols).zip(w.chunks_exact_mut(cols)) {
            for c in 0..cols {
                w[c] = scale[c] * ternary(q[c], theta) as f32;
            }
        }
    }

    /// From the weights' gradient `[rows, cols]`: the scales' gradient Σ_r grad·t, in f64 with rows ascending, added to
    /// `columns`, one a column; returns S5 of |grad·scale|.
    pub fn gradients(grad: &[f32], q: &[i8], scale: &[f32], theta: i32, columns: &mut [f64]) -> f64 {
        let cols = scale.len();
        let columns = &mut columns[..cols];
        let mut partials = [0.0f64; SCALAR_PARTIALS];
        let mut at = 0;
        for (grad, q) in grad.chunks_exact(cols).zip(q.chunks_exact(cols)) {
            for c in 0..cols {
                // The product with -1, 0 or 1 is exact in f32 as well.
                columns[c] += f64::from(grad[c] * ternary(q[c], theta) as f32);
            }
            // The flat order: partial sums go round and round over the rows.
            let mut c = 0;
            while c < cols {
                let n = (cols - c).min(SCALAR_PARTIALS - at);
                let (grad, scale, partials) = (&grad[c..c + n], &scale[c..c + n], &mut partials[at..at + n]);
                for i in 0..n {
                    partials[i] += f64::from((grad[i] * scale[i]).abs());
                }
                c += n;
                at = (at + n) % SCALAR_PARTIALS;
            }
        }
        fold_scalar(partials)
    }

    /// Moves accumulators q `[rows, cols]` by the weights' gradient of that shape, with the scales `[cols]` of before the step.
    pub fn accumulate(q: &mut [i8], grad: &[f32], scale: &[f32], to: &Move, by: &Sr4) {
        let (to, by, cols) = (*to, *by, scale.len());
        let mut first = to.base;
        for (q, grad) in q.chunks_exact_mut(cols).zip(grad.chunks_exact(cols)) {
            let blocks = q.chunks_mut(BLOCK).zip(grad.chunks(BLOCK)).zip(scale.chunks(BLOCK));
            for ((q, grad), scale) in blocks {
                let mut u = [0.5f32; BLOCK];
                if by.dither {
                    for (i, u) in u.iter_mut().enumerate() {
                        *u = unit24(first_word(by.seed, first.wrapping_add(i as u64), to.step));
                    }
                }
                first = first.wrapping_add(q.len() as u64);
                if let (Ok(q), Ok(grad), Ok(scale)) = (<&mut [i8; BLOCK]>::try_from(&mut *q), grad.try_into(), scale.try_into()) {
                    move_block(q, grad, scale, &u, to.rate, by.clamp);
                } else {
                    let mut block = padded(q);
                    move_block(&mut block, &padded(grad), &padded(scale), &u, to.rate, by.clamp);
                    q.copy_from_slice(&block[..q.len()]);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "sr4_tests.rs"]
mod tests;
