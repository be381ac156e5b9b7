//! Two samples paired by seed.

use std::collections::BTreeMap;

use super::bootstrap::bca_mean;
use super::sign_flip::sign_flip_p;
use super::student::{t_critical, t_two_sided};
use super::summary::{Interval, mean, standard_deviation};
use super::wilcoxon::wilcoxon_p;

/// Which values are the better ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Bits per byte, losses.
    Lower,
    /// Accuracies.
    Higher,
}

impl Better {
    /// Whether `a` is strictly better than `b`.
    pub fn is_better(self, a: f64, b: f64) -> bool {
        match self {
            Self::Lower => a < b,
            Self::Higher => a > b,
        }
    }
}

/// Two sides joined by seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairing {
    /// Seeds that both sides have, ascending.
    pub seeds: Vec<u64>,
    /// Their values: (baseline, other).
    pub values: Vec<(f64, f64)>,
    /// Seeds that only one side has, ascending.
    pub unpaired: Vec<u64>,
}

/// Joins the values of two sides by seed, whatever their order. Of a seed that a side has twice the last value counts.
pub fn pair_by_seed(baseline: &[(u64, f64)], other: &[(u64, f64)]) -> Pairing {
    let mut seeds: BTreeMap<u64, (Option<f64>, Option<f64>)> = BTreeMap::new();
    for (seed, x) in baseline {
        seeds.entry(*seed).or_default().0 = Some(*x);
    }
    for (seed, x) in other {
        seeds.entry(*seed).or_default().1 = Some(*x);
    }
    let mut pairing = Pairing::default();
    for (seed, sides) in seeds {
        match sides {
            (Some(a), Some(b)) => {
                pairing.seeds.push(seed);
                pairing.values.push((a, b));
            }
            _ => pairing.unpaired.push(seed),
        }
    }
    pairing
}

/// A paired comparison. Differences are `other - baseline`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// Number of pairs.
    pub n: usize,
    /// Mean difference.
    pub mean_diff: f64,
    /// Its 95% interval, `mean ± t(n - 1) sd / sqrt(n)`; absent for one pair.
    pub ci95: Option<Interval>,
    /// Its 95% BCa bootstrap interval, see [`bca_mean`].
    pub bca: Option<Interval>,
    /// See [`sign_flip_p`].
    pub sign_flip_p: f64,
    /// See [`wilcoxon_p`].
    pub wilcoxon_p: f64,
    /// Two-sided p of the paired t test (Student 1908); absent for one pair and where all differences are equal
    /// but for the rounding of their decimals, since there is then no spread to measure by.
    pub t_p: Option<f64>,
    /// Cohen's d_z: mean difference over the differences' standard deviation (Cohen 1988); absent as `t_p` is.
    pub cohen_dz: Option<f64>,
    /// See [`probability_of_improvement`].
    pub prob_improvement: f64,
}

impl Paired {
    /// Compares pairs (baseline, other); `None` for no pair.
    pub fn of(pairs: &[(f64, f64)], better: Better) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
        let n = pairs.len();
        let mean_diff = mean(&differences)?;
        let degrees = u32::try_from(n - 1).ok()?;
        let sd = standard_deviation(&differences, mean_diff);
        let sem = sd.map(|sd| sd / (n as f64).sqrt());
        let spread = sd.filter(|sd| *sd > resolution(pairs));
        let baseline: Vec<f64> = pairs.iter().map(|p| p.0).collect();
        let other: Vec<f64> = pairs.iter().map(|p| p.1).collect();
        Some(Self {
            n,
            mean_diff,
            ci95: sem.map(|sem| Interval::around(mean_diff, sem * t_critical(degrees))),
            bca: bca_mean(&differences),
            sign_flip_p: sign_flip_p(&differences, resolution(pairs)),
            wilcoxon_p: wilcoxon_p(&differences),
            t_p: spread.map(|sd| t_two_sided(mean_diff / (sd / (n as f64).sqrt()), degrees)),
            cohen_dz: spread.map(|sd| mean_diff / sd),
            prob_improvement: probability_of_improvement(&baseline, &other, better)?,
        })
    }
}

/// The probability that a run of `other` is better than a run of `baseline`, both drawn at random: the share of all
/// pairs of values, ties counting half (the Mann-Whitney statistic over its largest value; Agarwal et al. 2021).
/// `None` if a side is empty.
pub fn probability_of_improvement(baseline: &[f64], other: &[f64], better: Better) -> Option<f64> {
    if baseline.is_empty() || other.is_empty() {
        return None;
    }
    let mut halves = 0_u64;
    for b in other {
        for a in baseline {
            halves += 2 * u64::from(better.is_better(*b, *a)) + u64::from(a == b);
        }
    }
    Some(halves as f64 / (2 * baseline.len() * other.len()) as f64)
}

/// What a sum of differences may be off by for each pair, twice over since two sums are compared. With M the largest
/// value and D the largest difference: two values read from decimals, half an ulp each (M ε), their difference
/// rounded (D ε / 2), and n - 1 additions of sums up to n D (n D ε / 2 for each pair).
fn resolution(pairs: &[(f64, f64)]) -> f64 {
    let largest = pairs.iter().fold(0.0_f64, |m, (a, b)| m.max(a.abs()).max(b.abs()));
    let apart = pairs.iter().fold(0.0_f64, |m, (a, b)| m.max((b - a).abs()));
    let additions = pairs.len() as f64;
    f64::EPSILON * (2.0 * largest + apart * (1.0 + additions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_joined_in_any_order_and_the_rest_is_named() {
        let pairing = pair_by_seed(&[(3, 0.3), (1, 0.1), (9, 0.9)], &[(1, 1.1), (2, 1.2), (3, 1.3)]);
        assert_eq!(pairing.seeds, [1, 3]);
        assert_eq!(pairing.values, [(0.1, 1.1), (0.3, 1.3)]);
        assert_eq!(pairing.unpaired, [2, 9]);
        assert_eq!(pair_by_seed(&[(1, 0.0)], &[(2, 0.0)]).values, []);
    }

    #[test]
    fn no_pair_and_one_pair() {
        assert_eq!(Paired::of(&[], Better::Lower), None);
        let one = Paired::of(&[(2.0, 1.5)], Better::Lower).unwrap();
        assert_eq!((one.n, one.mean_diff, one.sign_flip_p, one.wilcoxon_p), (1, -0.5, 1.0, 1.0));
        assert_eq!((one.ci95, one.bca, one.t_p, one.cohen_dz), (None, None, None, None));
    }

    #[test]
    fn equal_differences_have_no_t_test() {
        let pairs: Vec<_> = (0..6).map(|i| (f64::from(i), f64::from(i) - 0.5)).collect();
        let paired = Paired::of(&pairs, Better::Lower).unwrap();
        assert_eq!((paired.t_p, paired.cohen_dz, paired.bca), (None, None, None));
        assert_eq!(paired.ci95, Some(Interval { lo: -0.5, hi: -0.5 }));
        assert_eq!(paired.sign_flip_p, 0.03125);
        // 0.1 five times over, though not in bits.
        let pairs = [(2.2, 2.3), (1.2, 1.3), (3.2, 3.3), (1.0, 1.1), (0.7, 0.8)];
        let paired = Paired::of(&pairs, Better::Lower).unwrap();
        assert_eq!((paired.t_p, paired.cohen_dz), (None, None));
    }

    #[test]
    fn improvement_follows_the_direction() {
        let (a, b) = ([1.0, 2.0, 3.0], [0.5, 2.0]);
        assert_eq!(probability_of_improvement(&a, &b, Better::Lower), Some(4.5 / 6.0));
        assert_eq!(probability_of_improvement(&a, &b, Better::Higher), Some(1.5 / 6.0));
        assert_eq!(probability_of_improvement(&a, &[], Better::Higher), None);
    }
}
