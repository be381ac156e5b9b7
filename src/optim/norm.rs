//! The gradient's norm, and clipping.

use crate::arith::sums::scalar_sum;
use crate::backend::cpu::simd::simd;

/// Elements of a piece, whose squares are summed on their own.
pub const PIECE: usize = 16_384;

simd! {
    /// S5 of the squares of one piece, in f64 (where the squares are exact).
    pub fn squares(g: &[f32]) -> f64 {
        scalar_sum(g.len(), |i| f64::from(g[i]) * f64::from(g[i]))
    }

    /// Multiplies every element.
    pub fn scale_in_place(x: &mut [f32], factor: f32) {
        for x in x {
            *x *= factor;
        }
    }
}

/// What clipping to `limit` (0: none) multiplies every gradient by; none where the norm is within it, or not a number.
pub fn clip_factor(norm: f64, limit: f64) -> Option<f32> {
    (limit > 0.0 && norm > limit).then(|| (limit / norm) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::simd::Level;

    #[test]
    fn squares_are_the_same_at_every_level() {
        let g: Vec<f32> = (0..5003).map(|i| ((i * 7) as f32).sin()).collect();
        let expected = scalar_sum(g.len(), |i| f64::from(g[i]) * f64::from(g[i]));
        for level in Level::available() {
            assert_eq!(squares(level, &g).to_bits(), expected.to_bits(), "{level}");
        }
        let plain: f64 = g.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        assert!((expected - plain).abs() < 1e-9 * plain);
    }

    #[test]
    fn clipping_acts_above_its_limit_only() {
        assert_eq!(clip_factor(2.0, 0.0), None);
        assert_eq!(clip_factor(2.0, 2.0), None);
        assert_eq!(clip_factor(4.0, 1.0), Some(0.25));
        assert_eq!(clip_factor(f64::NAN, 1.0), None);
        assert_eq!(clip_factor(f64::INFINITY, 1.0), Some(0.0));
    }
}
