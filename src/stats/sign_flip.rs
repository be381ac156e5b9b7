//! The sign-flip permutation test of paired differences.

use crate::rng::philox;

/// Up to so many pairs that differ, every one of the `2^n` signings is counted.
pub const EXACT_PAIRS: usize = 20;
/// Random signings above that.
pub const DRAWS: u32 = 99_999;

/// Philox seed of the random signings ("FLIP").
const SEED: u64 = 0x464C_4950;

/// Two-sided p of "the differences are as often positive as negative": the share of all signings of `differences`
/// whose sum is at least as far from 0 as the sum seen (Fisher 1935; Good, "Permutation Tests", 2000).
///
/// Pairs that do not differ have no sign and change nothing. With up to [`EXACT_PAIRS`] others it is exact, by
/// joining the sorted sums of two halves; above, `(1 + hits) / (1 + draws)` over [`DRAWS`] signings from Philox
/// (Phipson and Smyth 2010). Sums that differ by less than `resolution` per pair count as equal: differences of
/// decimal fractions such as 2.3 - 2.2 and 1.3 - 1.2 are equal in meaning and not in bits. An empty sample has p 1.
pub fn sign_flip_p(differences: &[f64], resolution: f64) -> f64 {
    let magnitudes: Vec<f64> = differences.iter().map(|d| d.abs()).filter(|d| *d > 0.0).collect();
    if magnitudes.is_empty() {
        return 1.0;
    }
    let seen = differences.iter().sum::<f64>().abs();
    let reach = seen - resolution * magnitudes.len() as f64;
    if reach <= 0.0 {
        return 1.0;
    }
    if magnitudes.len() <= EXACT_PAIRS { exact(&magnitudes, reach) } else { monte_carlo(&magnitudes, reach) }
}

/// Share of the signings whose sum is at least `reach` or at most `-reach`. The signings are symmetric, so the upper
/// ones are counted and doubled (`reach` is positive, so none is both).
fn exact(magnitudes: &[f64], reach: f64) -> f64 {
    let (left, right) = magnitudes.split_at(magnitudes.len() / 2);
    let (left, right) = (signed_sums(left), signed_sums(right));
    // As the left sum falls, the right one must rise: one walk over each half.
    let mut hits = 0_u64;
    let mut start = 0;
    for sum in left.iter().rev() {
        while start < right.len() && sum + right[start] < reach {
            start += 1;
        }
        hits += (right.len() - start) as u64;
    }
    let signings = (left.len() * right.len()) as f64;
    2.0 * hits as f64 / signings
}

/// The sums under every signing, ascending.
fn signed_sums(magnitudes: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for m in magnitudes {
        sums = sums.iter().flat_map(|s| [s - m, s + m]).collect();
    }
    sums.sort_by(f64::total_cmp);
    sums
}

/// Signings summed side by side. Each sum still runs over the pairs in their order; one alone would wait for every
/// addition.
const SIDE_BY_SIDE: usize = 8;

fn monte_carlo(magnitudes: &[f64], reach: f64) -> f64 {
    let n = magnitudes.len();
    let mut hits = 0_u32;
    for first in (0..DRAWS).step_by(SIDE_BY_SIDE) {
        let draws: [u32; SIDE_BY_SIDE] = std::array::from_fn(|k| first + k as u32);
        let mut sums = [0.0_f64; SIDE_BY_SIDE];
        for (block, chunk) in magnitudes.chunks(128).enumerate() {
            let words = draws.map(|draw| philox([block as u32, draw, n as u32, 0], SEED));
            for (word, chunk) in chunk.chunks(32).enumerate() {
                let bits = words.map(|words| words[word]);
                for (i, m) in chunk.iter().enumerate() {
                    for (sum, bits) in sums.iter_mut().zip(bits) {
                        // The random bit becomes the sign bit: a branch on it would be mispredicted half the time.
                        *sum += f64::from_bits(m.to_bits() ^ u64::from(bits >> i & 1) << 63);
                    }
                }
            }
        }
        let reached = |(draw, sum): &(u32, f64)| *draw < DRAWS && sum.abs() >= reach;
        hits += draws.into_iter().zip(sums).filter(reached).count() as u32;
    }
    f64::from(1 + hits) / f64::from(1 + DRAWS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every signing, one by one.
    fn by_hand(differences: &[f64], resolution: f64) -> f64 {
        let seen = differences.iter().sum::<f64>().abs();
        let tolerance = resolution * differences.iter().filter(|d| **d != 0.0).count() as f64;
        let hits = (0..1_u32 << differences.len())
            .filter(|signs| {
                let signed = |(i, d): (usize, &f64)| if signs >> i & 1 == 1 { -d } else { *d };
                let sum: f64 = differences.iter().enumerate().map(signed).sum();
                sum.abs() >= seen - tolerance
            })
            .count();
        hits as f64 / f64::from(1_u32 << differences.len())
    }

    proptest! {
        #[test]
        fn equals_the_count_over_all_signings(tenths in prop::collection::vec(-30_i32..40, 0..11)) {
            let differences: Vec<f64> = tenths.iter().map(|x| f64::from(*x) / 10.0).collect();
            prop_assert_eq!(sign_flip_p(&differences, 1e-14), by_hand(&differences, 1e-14));
        }
    }

    #[test]
    fn one_sided_samples_reach_the_smallest_p() {
        for n in 1..=EXACT_PAIRS {
            let differences: Vec<f64> = (0..n).map(|i| -0.01 - i as f64 * 1e-3).collect();
            assert_eq!(sign_flip_p(&differences, 1e-15), 2.0 / f64::from(1_u32 << n));
        }
    }

    #[test]
    fn nothing_differs() {
        assert_eq!(sign_flip_p(&[], 1e-16), 1.0);
        assert_eq!(sign_flip_p(&[0.0; 30], 1e-16), 1.0);
        assert_eq!(sign_flip_p(&[0.0, 0.5, -0.5], 1e-16), 1.0);
    }

    #[test]
    fn equal_decimals_are_equal_sums() {
        // The bits of these differences vary; in decimals they are 0.1 four times over.
        let pairs = [(2.2, 2.3), (1.2, 1.3), (3.2, 3.3), (1.1, 1.0)];
        let differences = pairs.map(|(b, a): (f64, f64)| b - a);
        assert!(differences[0] != differences[1]);
        // The sum is 2 tenths; of 16 signings 2 (1 + 4) reach that.
        assert_eq!(sign_flip_p(&differences, 4.0 * f64::EPSILON), 10.0 / 16.0);
    }

    #[test]
    fn many_pairs_are_drawn_close_to_the_normal_limit() {
        // The sum of 400 differences ±1 is 40 = two standard deviations; P(|S| >= 40) = 0.0510 (binomial).
        let differences: Vec<f64> = (0..400).map(|i| if i < 220 { 1.0 } else { -1.0 }).collect();
        let p = sign_flip_p(&differences, 1e-12);
        // Five standard errors of 99,999 draws.
        assert!((p - 0.0510).abs() < 5.0 * (0.051_f64 * 0.949 / 99_999.0).sqrt(), "{p}");
        assert_eq!(p, sign_flip_p(&differences, 1e-12));
    }
}
