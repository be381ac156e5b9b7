//! Learning rates, in f64; cosines are the `libm` crate's, the same on every machine.

use crate::settings::{ScaleLrMode, Settings};

/// A cosine from `lr` to `lr_min`, with linear warm-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Rate at the start of the cosine.
    pub lr: f64,
    /// Rate from step `steps` on.
    pub lr_min: f64,
    /// Steps of warm-up, which multiplies the cosine and does not shift it; 0 = none.
    pub warmup_steps: u64,
    /// Length of the cosine.
    pub steps: u64,
}

impl From<&Settings> for Schedule {
    fn from(s: &Settings) -> Self {
        Self { lr: s.lr, lr_min: s.lr_min, warmup_steps: s.warmup_steps, steps: s.steps }
    }
}

impl Schedule {
    /// The rate of a step, from 0.
    pub fn at(&self, step: u64) -> f64 {
        let base = if step >= self.steps {
            self.lr_min
        } else {
            let angle = std::f64::consts::PI * step as f64 / self.steps as f64;
            self.lr_min + (self.lr - self.lr_min) * 0.5 * (1.0 + libm::cos(angle))
        };
        match self.warmup_steps {
            0 => base,
            // In floating point: step + 1 of the last u64 would overflow.
            warmup => base * ((step as f64 + 1.0) / warmup as f64).min(1.0),
        }
    }
}

/// How AdamW moves the scales of ternary tensors in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaleRate {
    /// Learning rate.
    pub lr: f64,
    /// What the scales' gradient is multiplied by first.
    pub factor: f64,
}

impl ScaleRate {
    /// For a step whose rate is `lr`, of a schedule that starts at `lr0`.
    pub fn new(mode: ScaleLrMode, scale_lr: f64, lr: f64, lr0: f64) -> Self {
        let quotient = |a: f64, b: f64| if b == 0.0 { 0.0 } else { a / b };
        match mode {
            ScaleLrMode::Lr => Self { lr: scale_lr * quotient(lr, lr0), factor: 1.0 },
            ScaleLrMode::Grad => Self { lr, factor: quotient(scale_lr, lr) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cosine_goes_from_lr_to_lr_min_and_stays() {
        let s = Schedule { lr: 1e-3, lr_min: 1e-4, warmup_steps: 0, steps: 1000 };
        assert_eq!(s.at(0), 1e-3);
        assert!((s.at(500) - 5.5e-4).abs() < 1e-15);
        assert_eq!(s.at(1000), 1e-4);
        assert_eq!(s.at(u64::MAX), 1e-4);
    }

    #[test]
    fn warm_up_multiplies_without_shifting() {
        let plain = Schedule { lr: 1e-3, lr_min: 1e-4, warmup_steps: 0, steps: 20 };
        let warm = Schedule { warmup_steps: 4, ..plain };
        for step in 0..20 {
            assert_eq!(warm.at(step), plain.at(step) * ((step + 1) as f64 / 4.0).min(1.0));
        }
    }

    #[test]
    fn scale_rates_of_both_modes() {
        let lr = ScaleRate::new(ScaleLrMode::Lr, 1e-2, 5e-4, 1e-3);
        assert_eq!(lr, ScaleRate { lr: 5e-3, factor: 1.0 });
        let grad = ScaleRate::new(ScaleLrMode::Grad, 1e-2, 5e-4, 1e-3);
        assert_eq!(grad, ScaleRate { lr: 5e-4, factor: 20.0 });
        assert_eq!(ScaleRate::new(ScaleLrMode::Lr, 1e-2, 5e-4, 0.0).lr, 0.0);
        assert_eq!(ScaleRate::new(ScaleLrMode::Grad, 1e-2, 0.0, 1e-3).factor, 0.0);
    }
}
