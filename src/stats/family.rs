//! Several tests at once, and what a number of pairs can show at all.

/// Holm's step-down adjustment of a family of p values (Holm 1979), in the order given: the i-th smallest of m is
/// multiplied by `m - i + 1`, may not fall below the one before, and is at most 1.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        largest = largest.max((p.len() - rank) as f64 * p[index]).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// The smallest two-sided p that a sign-flip test of `pairs` pairs can reach: all differences of one sign, `2 /
/// 2^pairs` (1 for no pair).
pub fn smallest_p(pairs: usize) -> f64 {
    let halvings = i32::try_from(pairs).unwrap_or(i32::MAX).saturating_sub(1).clamp(0, 1074);
    (0..halvings).fold(1.0, |p, _| p / 2.0)
}

/// The smallest Holm-adjusted p that each comparison of a family can reach, if every one of them comes out as clear
/// as its pairs allow.
pub fn holm_smallest(pairs: &[usize]) -> Vec<f64> {
    let smallest: Vec<f64> = pairs.iter().map(|n| smallest_p(*n)).collect();
    holm(&smallest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_steps_down() {
        assert_eq!(holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
        assert_eq!(holm(&[0.5, 0.9]), [1.0, 1.0]);
        assert_eq!(holm(&[0.02]), [0.02]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn five_pairs_cannot_reach_five_percent() {
        assert_eq!(smallest_p(0), 1.0);
        assert_eq!(smallest_p(1), 1.0);
        assert_eq!(smallest_p(5), 0.0625);
        assert_eq!(smallest_p(6), 0.03125);
        assert!(smallest_p(100_000) >= 0.0);
    }

    #[test]
    fn a_family_needs_more_pairs() {
        assert_eq!(holm_smallest(&[6]), [0.03125]);
        assert_eq!(holm_smallest(&[6, 6]), [0.0625, 0.0625]);
        assert_eq!(holm_smallest(&[6, 8]), [0.03125, 0.015625]);
    }
}
