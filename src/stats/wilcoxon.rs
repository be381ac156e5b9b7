//! The Wilcoxon signed-rank test.

use super::normal::normal_cdf;

/// Up to so many pairs the distribution of the statistic is counted.
const EXACT_PAIRS: usize = 50;

/// Two-sided p of Wilcoxon's signed-rank test (Wilcoxon 1945).
///
/// Zeros are dropped and ties share their mean rank, as `scipy.stats.wilcoxon(zero_method="wilcox")` does;
/// differences tie when their magnitudes are equal in bits. Up to 50 pairs are left, the p is exact, over all
/// signings of the ranks at hand: without ties scipy's `method="exact"`, with them its permutation method (which it
/// takes by itself up to 13 pairs). Above, the normal approximation with the correction for ties and none for
/// continuity, which scipy takes by itself there. Where nothing differs p is 1.
pub fn wilcoxon_p(differences: &[f64]) -> f64 {
    let mut kept: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    if kept.is_empty() {
        return 1.0;
    }
    kept.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_ranks(&kept);
    let positive: u32 = kept.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, r)| r).sum();
    if kept.len() <= EXACT_PAIRS { exact(&ranks, positive) } else { asymptotic(&ranks, positive) }
}

/// Twice the mid-rank of each value of a list sorted by magnitude: whole numbers.
fn doubled_ranks(sorted: &[f64]) -> Vec<u32> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for tied in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
        let below = ranks.len() as u32;
        let doubled = 2 * below + tied.len() as u32 + 1;
        ranks.resize(ranks.len() + tied.len(), doubled);
    }
    ranks
}

/// Counts the signings by their sum of positive ranks. At most 2^50 signings: the counts are exact.
fn exact(ranks: &[u32], positive: u32) -> f64 {
    let total: u32 = ranks.iter().sum();
    let mut counts = vec![0_u64; total as usize + 1];
    counts[0] = 1;
    for rank in ranks {
        let rank = *rank as usize;
        for sum in (rank..counts.len()).rev() {
            counts[sum] += counts[sum - rank];
        }
    }
    let smaller = positive.min(total - positive) as usize;
    let tail: u64 = counts[..=smaller].iter().sum();
    let signings = (1_u64 << ranks.len()) as f64;
    (2.0 * tail as f64 / signings).min(1.0)
}

fn asymptotic(ranks: &[u32], positive: u32) -> f64 {
    let total: f64 = ranks.iter().map(|r| f64::from(*r)).sum();
    let squares: f64 = ranks.iter().map(|r| f64::from(*r) * f64::from(*r)).sum();
    // Each rank r is in the sum with probability 1/2: mean r/2, variance r²/4 (mid-ranks hold the correction for ties).
    let distance = (f64::from(positive) - total / 2.0).abs();
    2.0 * normal_cdf(-distance / (squares / 4.0).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_values_of_the_published_table() {
        // Rank sums at the two-sided 5% level of Wilcoxon's table: n = 6: 0; n = 8: 3; n = 10: 8.
        let with_negative = |n: u32, negative: &[u32]| -> Vec<f64> {
            (1..=n).map(|r| if negative.contains(&r) { -f64::from(r) } else { f64::from(r) }).collect()
        };
        assert_eq!(wilcoxon_p(&with_negative(6, &[])), 2.0 / 64.0);
        assert_eq!(wilcoxon_p(&with_negative(8, &[3])), 2.0 * 5.0 / 256.0);
        assert_eq!(wilcoxon_p(&with_negative(10, &[8])), 2.0 * 25.0 / 1024.0);
    }

    #[test]
    fn ties_share_ranks_and_zeros_are_dropped() {
        assert_eq!(doubled_ranks(&[1.0, -1.0, 2.0, 3.0, 3.0, -3.0]), [3, 3, 6, 10, 10, 10]);
        // scipy.stats.wilcoxon([1, 1, -1, 2, 3, 0, 0]) gives 0.25, by permutation
        let p = wilcoxon_p(&[1.0, 1.0, -1.0, 2.0, 3.0, 0.0, 0.0]);
        assert_eq!(p, 0.25);
        assert_eq!(wilcoxon_p(&[0.0, 0.0]), 1.0);
        assert_eq!(wilcoxon_p(&[]), 1.0);
    }

    #[test]
    fn sign_and_scale_do_not_matter() {
        let sample = [0.3, -0.1, 0.25, 0.9, 0.05, -0.4, -0.2];
        let flipped = sample.map(|x: f64| -8.0 * x);
        assert_eq!(wilcoxon_p(&sample), wilcoxon_p(&flipped));
    }

    #[test]
    fn many_pairs_as_scipy_approximates_them() {
        // scipy.stats.wilcoxon(d), with ties and a zero.
        let d: Vec<f64> = (0..70).map(|i| f64::from(((i * 37) % 101 - 40_i32).div_euclid(2)) / 10.0).collect();
        let want = 0.013_408_303_006_397_771;
        let got = wilcoxon_p(&d);
        assert!((got - want).abs() <= 1e-12 * want, "{got}");
    }
}
