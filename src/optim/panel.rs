//! The state of the ternary weights at a logged step.

use crate::arith::sums::scalar_sum;
use crate::backend::cpu::simd::{Level, simd};
use crate::run::Panel;

use super::sr4::{Sr4, ternary};

/// Weights counted at a time: few enough for a count in a byte.
const BLOCK: usize = 128;

/// Remembers the ternary weights of the previous logged step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PanelState {
    /// Ternary value of every weight at the previous log; none before the first.
    pub previous: Option<Vec<i8>>,
}

/// How many weights there are of each sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    changed: u64,
    negative: u64,
    positive: u64,
    rail: u64,
    dead: u64,
}

simd! {
    /// Counts the weights of q, and replaces their previous ternary values t.
    fn count(q: &[i8], t: &mut [i8], theta: i32, clamp: i32) -> Counts {
        let mut all = Counts::default();
        for (q, t) in q.chunks(BLOCK).zip(t.chunks_mut(BLOCK)) {
            let (mut changed, mut negative, mut positive, mut rail, mut dead) = (0u8, 0u8, 0u8, 0u8, 0u8);
            for (&q, t) in q.iter().zip(t) {
                let now = ternary(q, theta) as i8;
                let size = i32::from(q).abs();
                changed += u8::from(now != *t);
                negative += u8::from(now < 0);
                positive += u8::from(now > 0);
                rail += u8::from(size == clamp);
                dead += u8::from(size < theta);
                *t = now;
            }
            all.changed += u64::from(changed);
            all.negative += u64::from(negative);
            all.positive += u64::from(positive);
            all.rail += u64::from(rail);
            all.dead += u64::from(dead);
        }
        all
    }
}

impl PanelState {
    /// Measures accumulators and scales, and remembers the ternary values for the next churn.
    ///
    /// Counts are whole numbers and the mean of the scales is an S5 sum: any number of threads gives the same bytes.
    pub fn measure(&mut self, level: Level, q: &[i8], scale: &[f32], by: &Sr4) -> Panel {
        let first = self.previous.is_none();
        let previous = self.previous.get_or_insert_with(|| vec![0; q.len()]);
        let counts = count(level, q, previous, by.theta, by.clamp);
        let n = q.len() as u64;
        let share = |count: u64| count as f64 / n as f64;
        let widened = |fold: fn(f64, f64) -> f64, from: f64| scale.iter().map(|&s| f64::from(s)).fold(from, fold);
        Panel {
            churn: if first { 0.0 } else { share(counts.changed) },
            pct_neg: share(counts.negative),
            pct_zero: share(n - counts.negative - counts.positive),
            pct_pos: share(counts.positive),
            rail_pct: share(counts.rail),
            dead_pct: share(counts.dead),
            scale_mean: scalar_sum(scale.len(), |i| f64::from(scale[i])) / scale.len() as f64,
            scale_min: widened(f64::min, f64::INFINITY),
            scale_max: widened(f64::max, f64::NEG_INFINITY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SR4: Sr4 = Sr4 { target_step: 0.3, clamp: 7, theta: 2, dither: true, seed: 42 };

    #[test]
    fn shares_and_churn_at_every_level() {
        for level in Level::available() {
            let mut state = PanelState::default();
            let mut q = vec![0i8; 1000];
            q[..500].fill(7);
            q[500..600].fill(-7);
            q[600] = 1;
            let first = state.measure(level, &q, &[1.0, -0.5, 4.0, 0.5], &SR4);
            let expected = Panel {
                churn: 0.0,
                pct_neg: 0.1,
                pct_zero: 0.4,
                pct_pos: 0.5,
                rail_pct: 0.6,
                dead_pct: 0.4,
                scale_mean: 1.25,
                scale_min: -0.5,
                scale_max: 4.0,
            };
            assert_eq!(first, expected, "{level}");
            // Within its sign an accumulator may move without churn.
            q[0] = 2;
            q[1] = 1;
            q[600] = -2;
            let second = state.measure(level, &q, &[1.0], &SR4);
            assert_eq!((second.churn, second.rail_pct), (0.002, 0.598), "{level}");
            assert_eq!(state.measure(level, &q, &[1.0], &SR4).churn, 0.0, "{level}");
        }
    }
}
