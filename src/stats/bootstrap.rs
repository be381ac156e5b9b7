//! BCa bootstrap of a mean.

use super::normal::{normal_cdf, normal_quantile};
use super::summary::mean;
use super::{ALPHA, Interval};
use crate::rng::philox;

/// Resamples of the bootstrap.
pub const RESAMPLES: u32 = 9_999;

/// Philox seed of the bootstrap ("BOOT").
const SEED: u64 = 0x424F_4F54;

/// 95% bias-corrected and accelerated bootstrap interval of a mean; `None` for fewer than two values and for equal
/// ones, which have no spread to draw from.
///
/// Efron, "Better Bootstrap Confidence Intervals" (1987): the resamples' quantiles at `Φ(z0 + (z0 + z) / (1 - a (z0 +
/// z)))` for `z = ∓1.96`, where `z0` is the normal quantile of the share of resamples below the mean (ties count
/// half) and `a` the acceleration from the jackknife. Quantiles are interpolated between neighbours, as numpy and
/// `scipy.stats.bootstrap` do. Resample r takes value `word · n / 2^32` for the words of Philox at counters `(i / 4,
/// r, n, 0)`, so the interval is the same wherever it is formed.
pub fn bca_mean(values: &[f64]) -> Option<Interval> {
    let n = values.len();
    let centre = mean(values)?;
    if n < 2 || values.iter().all(|x| *x == values[0]) {
        return None;
    }
    let whole = weighted_mean(values, &vec![1; n]);
    let mut means: Vec<f64> = (0..RESAMPLES).map(|r| weighted_mean(values, &resample(n, r))).collect();
    means.sort_by(f64::total_cmp);

    let below = means.partition_point(|m| *m < whole);
    let not_above = means.partition_point(|m| *m <= whole);
    let z0 = normal_quantile((below + not_above) as f64 / (2.0 * f64::from(RESAMPLES)));
    let acceleration = acceleration(values, centre);
    let z = normal_quantile(ALPHA / 2.0);
    let end = |z: f64| {
        let shifted = z0 + z;
        quantile(&means, normal_cdf(z0 + shifted / (1.0 - acceleration * shifted)))
    };
    Some(Interval { lo: end(z), hi: end(-z) })
}

/// How often each value is drawn in a resample.
fn resample(n: usize, number: u32) -> Vec<u32> {
    let mut counts = vec![0; n];
    for block in 0..n.div_ceil(4) {
        let words = philox([block as u32, number, n as u32, 0], SEED);
        for word in words.iter().take(n - 4 * block) {
            counts[((u64::from(*word) * n as u64) >> 32) as usize] += 1;
        }
    }
    counts
}

/// Mean of a resample, summed in the order of the values: equal resamples have equal means to the last bit, however
/// they were drawn.
fn weighted_mean(values: &[f64], counts: &[u32]) -> f64 {
    let sum: f64 = values.iter().zip(counts).map(|(x, c)| x * f64::from(*c)).sum();
    sum / values.len() as f64
}

/// Efron's acceleration: a sixth of the skewness of the jackknife's influence values, which for a mean are the
/// deviations.
fn acceleration(values: &[f64], centre: f64) -> f64 {
    let deviations = values.iter().map(|x| x - centre);
    let cubes: f64 = deviations.clone().map(|d| d * d * d).sum();
    let squares: f64 = deviations.map(|d| d * d).sum();
    cubes / (6.0 * squares * squares.sqrt())
}

/// Quantile of sorted values, interpolated between the two neighbours of `p (n - 1)`.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let place = p * (sorted.len() - 1) as f64;
    let below = place.floor();
    let (lo, hi) = (sorted[below as usize], sorted[place.ceil() as usize]);
    lo + (hi - lo) * (place - below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Summary;

    #[test]
    fn no_spread_no_interval() {
        assert_eq!(bca_mean(&[]), None);
        assert_eq!(bca_mean(&[1.0]), None);
        assert_eq!(bca_mean(&[0.1, 0.1, 0.1]), None);
    }

    #[test]
    fn the_interval_holds_the_mean_and_follows_shift_and_scale() {
        let sample = [0.3, -0.1, 0.25, 0.9, 0.05, 0.4, -0.2, 0.6];
        let interval = bca_mean(&sample).unwrap();
        assert!(interval.lo < 0.275 && 0.275 < interval.hi, "{interval:?}");
        let moved: Vec<f64> = sample.iter().map(|x| 4.0 * x + 16.0).collect();
        let moved = bca_mean(&moved).unwrap();
        assert!((moved.lo - (4.0 * interval.lo + 16.0)).abs() < 1e-12, "{moved:?}");
        assert!((moved.hi - (4.0 * interval.hi + 16.0)).abs() < 1e-12, "{moved:?}");
    }

    #[test]
    fn agrees_with_scipy_within_the_noise_of_resampling() {
        // scipy.stats.bootstrap(method="BCa", n_resamples=99999) of two samples of differences.
        let five = [-0.059_92, -0.0494, -0.0366, -0.054_92, -0.0562];
        let ten = [-0.01065, 0.00769, -0.02167, -0.01223, -0.00779, -0.00872, -0.0345, -0.00848, 0.01718, -0.04094];
        let cases = [(&five[..], -0.056_688, -0.041_264), (&ten[..], -0.022_364, -0.002_004)];
        for (sample, lo, hi) in cases {
            let got = bca_mean(sample).unwrap();
            let sem = Summary::of(sample).unwrap().sem.unwrap();
            // The 2.5% quantile of 9,999 draws has a standard error of 0.0016 in probability, which is 0.027 standard
            // errors of the mean near a normal quantile; five of them.
            let noise = 5.0 * 0.027 * sem;
            assert!((got.lo - lo).abs() < noise && (got.hi - hi).abs() < noise, "{got:?}");
        }
    }

    #[test]
    fn skewness_moves_the_interval_to_the_long_tail() {
        let interval = bca_mean(&[0.0, 0.1, 0.2, 0.1, 0.0, 0.2, 0.1, 3.0]).unwrap();
        let mean = 3.7 / 8.0;
        assert!(interval.hi - mean > 1.5 * (mean - interval.lo), "{interval:?}");
    }

    #[test]
    fn draws_are_even() {
        let mut counts = [0_u64; 7];
        for r in 0..RESAMPLES {
            for (sum, c) in counts.iter_mut().zip(resample(7, r)) {
                *sum += u64::from(c);
            }
        }
        // Binomial(69,993, 1/7): standard deviation 92.6; five of them.
        let mean = u64::from(RESAMPLES);
        assert!(counts.iter().all(|c| c.abs_diff(mean) < 463), "{counts:?}");
    }
}
