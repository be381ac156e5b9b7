//! How many seeds a difference of the size seen would need.

use statrs::distribution::{ChiSquared, Continuous, ContinuousCDF, Normal};

use super::{ALPHA, smallest_p, t_critical};

/// Share of repeated sweeps that should find the difference.
pub const POWER: f64 = 0.8;

/// No plan has more seeds than this.
const MOST_SEEDS: u32 = 10_000;
/// Even number of parts of Simpson's rule.
const PARTS: u32 = 400;

/// The fewest pairs with which a two-sided paired t test at 5% finds a true effect of `cohen_dz` in 80% of all
/// sweeps, and with which a sign-flip test can reach 5% at all. `None` above 10,000 pairs and for no effect.
pub fn seeds_needed(cohen_dz: f64) -> Option<u32> {
    let enough = |n: u32| smallest_p(n as usize) <= ALPHA && power_paired_t(cohen_dz, n) >= POWER;
    if !enough(MOST_SEEDS) {
        return None;
    }
    // The power grows with n: halve the range that holds the first enough.
    let (mut too_few, mut plenty) = (1, MOST_SEEDS);
    while plenty - too_few > 1 {
        let middle = too_few + (plenty - too_few) / 2;
        if enough(middle) {
            plenty = middle;
        } else {
            too_few = middle;
        }
    }
    Some(plenty)
}

/// Power of the two-sided paired t test at 5% with `pairs` (at least 2) pairs and a true effect of `cohen_dz`
/// standard deviations.
///
/// The statistic has a noncentral t distribution: `(Z + δ) / S` with `δ = d_z sqrt(n)` and `S² = χ²(n - 1) / (n -
/// 1)`. The normal tails beyond the critical value are integrated over S by Simpson's rule, within 9 standard
/// deviations (about `1 / sqrt(2 (n - 1))`) of its mean.
pub fn power_paired_t(cohen_dz: f64, pairs: u32) -> f64 {
    let degrees = pairs - 1;
    let nu = f64::from(degrees);
    let (Ok(chi_squared), normal) = (ChiSquared::new(nu), Normal::standard()) else {
        return 0.0;
    };
    let shift = cohen_dz.abs() * f64::from(pairs).sqrt();
    let critical = t_critical(degrees);
    let (deviation, mean) = (1.0 / (2.0 * nu).sqrt(), 1.0);
    let (lo, hi) = ((mean - 9.0 * deviation).max(0.0), mean + 9.0 * deviation);
    // The density of S; its limit at 0, where that of χ² itself may have a pole.
    let density = |s: f64| {
        let s = s.max(1e-9);
        // Not `pdf`, whose powers overflow between 230 and 320 degrees of freedom.
        2.0 * nu * s * chi_squared.ln_pdf(nu * s * s).exp()
    };
    let beyond = |s: f64| normal.sf(critical * s - shift) + normal.cdf(-critical * s - shift);
    let width = (hi - lo) / f64::from(PARTS);
    let weighted = |i: u32| {
        let s = lo + width * f64::from(i);
        let weight = match i {
            0 | PARTS => 1.0,
            _ if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        weight * density(s) * beyond(s)
    };
    (0..=PARTS).map(weighted).sum::<f64>() * width / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_as_statsmodels_gives_it() {
        // statsmodels.stats.power.TTestPower().power(d, n, 0.05)
        for (d, n, want) in [
            (0.2, 10, 0.087_657_154_028),
            (0.5, 8, 0.232_077_004_639),
            (0.5, 34, 0.807_777_501_279),
            (1.0, 6, 0.506_841_979_958),
            (1.0, 10, 0.803_096_856_633),
            (2.0, 3, 0.470_749_431_278),
            (0.1, 500, 0.607_125_542_274),
            (3.0, 2, 0.260_770_714_229),
            (0.1, 250, 0.350_351_276_144),
            (0.15, 300, 0.735_576_610_626),
            (0.2, 260, 0.894_889_669_798),
            (0.05, 320, 0.144_883_261_453),
        ] {
            let got = power_paired_t(d, n);
            assert!((got - want).abs() < 1e-6, "d = {d}, n = {n}: {got} for {want}");
        }
    }

    #[test]
    fn seeds_as_statsmodels_gives_them() {
        // ceil of TTestPower().solve_power(d, None, 0.05, 0.8)
        for (d, want) in [
            (0.1, 787),
            (0.12, 547),
            (0.13, 467),
            (0.15, 351),
            (0.17, 274),
            (0.18, 245),
            (0.2, 199),
            (0.5, 34),
            (0.8, 15),
            (1.0, 10),
            (1.2, 8),
        ] {
            assert_eq!(seeds_needed(d), Some(want), "d = {d}");
            assert_eq!(seeds_needed(-d), Some(want));
        }
    }

    #[test]
    fn a_huge_effect_still_needs_six_seeds_and_none_needs_no_number() {
        assert_eq!(seeds_needed(50.0), Some(6));
        assert_eq!(seeds_needed(0.0), None);
        assert_eq!(seeds_needed(0.001), None);
        assert_eq!(seeds_needed(f64::NAN), None);
    }
}
