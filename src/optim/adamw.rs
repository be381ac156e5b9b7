//! AdamW (Loshchilov & Hutter, "Decoupled Weight Decay Regularization", 2019).

use crate::backend::cpu::simd::simd;
use crate::settings::Settings;

/// AdamW's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
}

impl From<&Settings> for AdamW {
    fn from(s: &Settings) -> Self {
        Self { beta1: s.beta1, beta2: s.beta2, eps: s.eps, weight_decay: s.weight_decay }
    }
}

impl AdamW {
    /// The constants of a step (from 0) at a rate; `decays` is whether weight decay acts. Formed in f64, rounded once.
    pub fn step(&self, step: u64, lr: f64, decays: bool) -> AdamWStep {
        let t = step as f64 + 1.0;
        AdamWStep {
            beta1: self.beta1 as f32,
            beta2: self.beta2 as f32,
            one_minus_beta1: (1.0 - self.beta1) as f32,
            one_minus_beta2: (1.0 - self.beta2) as f32,
            bias1: (1.0 - libm::pow(self.beta1, t)) as f32,
            bias2: (1.0 - libm::pow(self.beta2, t)) as f32,
            eps: self.eps as f32,
            lr: lr as f32,
            keep: if decays { (1.0 - lr * self.weight_decay) as f32 } else { 1.0 },
        }
    }
}

/// AdamW's constants in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // each is what its name says, of the formula in docs/arithmetic.md
pub struct AdamWStep {
    pub beta1: f32,
    pub beta2: f32,
    pub one_minus_beta1: f32,
    pub one_minus_beta2: f32,
    /// `1 - beta1^t`
    pub bias1: f32,
    /// `1 - beta2^t`
    pub bias2: f32,
    pub eps: f32,
    pub lr: f32,
    /// `1 - lr * weight_decay`
    pub keep: f32,
}

simd! {
    /// Updates parameters p and moments m, v by gradients g; all of one length.
    pub fn adamw_chunk(p: &mut [f32], g: &[f32], m: &mut [f32], v: &mut [f32], by: &AdamWStep) {
        let by = *by;
        let n = p.len();
        let (g, m, v) = (&g[..n], &mut m[..n], &mut v[..n]);
        for i in 0..n {
            m[i] = by.beta1.mul_add(m[i], by.one_minus_beta1 * g[i]);
            v[i] = by.beta2.mul_add(v[i], (by.one_minus_beta2 * g[i]) * g[i]);
            let direction = (m[i] / by.bias1) / ((v[i] / by.bias2).sqrt() + by.eps);
            p[i] = (-by.lr).mul_add(direction, p[i] * by.keep);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::simd::Level;

    const ADAMW: AdamW = AdamW { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.1 };

    /// One element at a time, as docs/arithmetic.md says it.
    fn by_definition(p: f32, g: f32, m: f32, v: f32, s: &AdamWStep) -> [u32; 3] {
        let m = f32::mul_add(s.beta1, m, s.one_minus_beta1 * g);
        let v = f32::mul_add(s.beta2, v, (s.one_minus_beta2 * g) * g);
        let p = f32::mul_add(-s.lr, (m / s.bias1) / ((v / s.bias2).sqrt() + s.eps), p * s.keep);
        [p, m, v].map(f32::to_bits)
    }

    #[test]
    fn every_level_gives_the_bytes_of_the_definition() {
        let n = 77;
        let wave = |k: usize| -> Vec<f32> { (0..n).map(|i| ((i * k) as f32).sin() * 0.1).collect() };
        let step = ADAMW.step(2, 1e-3, true);
        for level in Level::available() {
            let (mut p, g, mut m) = (wave(3), wave(5), wave(7));
            let mut v: Vec<f32> = wave(11).iter().map(|x| x * x).collect();
            let expected: Vec<_> = (0..n).map(|i| by_definition(p[i], g[i], m[i], v[i], &step)).collect();
            adamw_chunk(level, &mut p, &g, &mut m, &mut v, &step);
            let got: Vec<_> = (0..n).map(|i| [p[i], m[i], v[i]].map(f32::to_bits)).collect();
            assert_eq!(got, expected, "{level}");
        }
    }

    #[test]
    fn zeros_stay_zeros() {
        let step = ADAMW.step(0, 1e-3, true);
        let (mut p, mut m, mut v) = ([0.0; 5], [0.0; 5], [0.0; 5]);
        adamw_chunk(Level::PORTABLE, &mut p, &[0.0; 5], &mut m, &mut v, &step);
        assert!(p.iter().chain(&m).chain(&v).all(|x| x.to_bits() == 0));
    }

    #[test]
    fn one_minus_beta2_is_rounded_once() {
        let step = ADAMW.step(0, 1e-3, false);
        assert_eq!(step.one_minus_beta2, 0.001);
        assert_ne!(step.one_minus_beta2, 1.0 - step.beta2);
        assert_eq!(step.keep, 1.0);
    }
}
