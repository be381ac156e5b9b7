//! Student's t distribution for whole degrees of freedom.
//!
//! Formed by basic operations and square roots only: a table's bytes must not hang on the `exp` and `log` of the
//! machine at hand. Tested against statrs and scipy.

use super::{ALPHA, CONFIDENCE};

const FRACTION_STEPS: u32 = 100_000;
const NEWTON_STEPS: u32 = 200;

/// `P(|T| >= |t|)` for `degrees` degrees of freedom: the two-sided p of a t test.
///
/// It is the regularised incomplete beta function `I_x(degrees/2, 1/2)` at `x = degrees / (degrees + t²)`
/// (Abramowitz and Stegun 26.7.1 with 26.5.27), by the continued fraction of DLMF 8.17.22.
///
/// # Panics
/// If `degrees` is 0.
pub fn t_two_sided(t: f64, degrees: u32) -> f64 {
    assert!(degrees > 0, "a t distribution has at least one degree of freedom");
    if t.is_nan() {
        return f64::NAN;
    }
    let nu = f64::from(degrees);
    let square = t * t;
    if square == 0.0 {
        return 1.0;
    }
    if square.is_infinite() {
        return 0.0;
    }
    let (x, rest) = (nu / (nu + square), square / (nu + square));
    let (a, b) = (nu / 2.0, 0.5);
    // x^a (1 - x)^b / B(a, b), the factor before both forms of the fraction.
    let front = half_power(x, degrees) * rest.sqrt() * inverse_beta_half(degrees);
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(x, a, b) / a
    } else {
        1.0 - front * beta_fraction(rest, b, a) / b
    }
}

/// The t beyond which lies 5% of the distribution on both sides together.
///
/// Newton's method on the tail, from the normal quantile. The tail is convex and the normal quantile below the root,
/// so that the steps rise to it and never pass it by more than rounding.
///
/// # Panics
/// If `degrees` is 0.
pub fn t_critical(degrees: u32) -> f64 {
    debug_assert!((ALPHA + CONFIDENCE - 1.0).abs() < f64::EPSILON);
    const NORMAL_QUANTILE: f64 = 1.959_963_984_540_054;
    let mut t = NORMAL_QUANTILE;
    for _ in 0..NEWTON_STEPS {
        let step = (t_two_sided(t, degrees) - ALPHA) / (2.0 * t_density(t, degrees));
        t += step;
        if step.abs() <= 2.0 * f64::EPSILON * t {
            break;
        }
    }
    t
}

/// Density: `(1 + t²/degrees)^(-(degrees + 1)/2) / (sqrt(degrees) B(degrees/2, 1/2))`.
fn t_density(t: f64, degrees: u32) -> f64 {
    let nu = f64::from(degrees);
    half_power(nu / (nu + t * t), degrees + 1) * inverse_beta_half(degrees) / nu.sqrt()
}

/// `x^(twice/2)` by squaring.
fn half_power(x: f64, twice: u32) -> f64 {
    let mut result = if twice % 2 == 1 { x.sqrt() } else { 1.0 };
    let (mut base, mut exponent) = (x, twice / 2);
    while exponent > 0 {
        if exponent % 2 == 1 {
            result *= base;
        }
        base *= base;
        exponent /= 2;
    }
    result
}

/// `1 / B(degrees/2, 1/2)`, by the recurrence of the gamma function from 1 and 2 degrees.
fn inverse_beta_half(degrees: u32) -> f64 {
    let (mut value, first) = if degrees % 2 == 1 { (std::f64::consts::FRAC_1_PI, 1) } else { (0.5, 2) };
    for nu in (first..degrees).step_by(2) {
        value *= f64::from(nu + 1) / f64::from(nu);
    }
    value
}

/// The continued fraction of the incomplete beta function (DLMF 8.17.22), by the modified method of Lentz.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let keep_away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / keep_away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in 1..FRACTION_STEPS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / keep_away_from_zero(1.0 + even * d);
        c = keep_away_from_zero(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / keep_away_from_zero(1.0 + odd * d);
        c = keep_away_from_zero(1.0 + odd / c);
        let factor = d * c;
        value *= factor;
        if (factor - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, StudentsT};

    use super::*;

    fn assert_close(got: f64, want: f64, relative: f64, what: &str) {
        assert!((got - want).abs() <= relative * want.abs(), "{what}: {got:e} for {want:e}");
    }

    #[test]
    fn one_and_two_degrees_have_closed_forms() {
        for t in [1e-8, 0.1, 0.5, 1.0, 2.0, 5.0, 40.0, 1e3, 1e6] {
            let cauchy = 2.0 * libm::atan(1.0 / t) / std::f64::consts::PI;
            assert_close(t_two_sided(t, 1), cauchy, 1e-13, "1 degree");
            let root = (2.0 + t * t).sqrt();
            let two = 2.0 / (root * (root + t)); // 1 - t/root, without the cancellation
            assert_close(t_two_sided(t, 2), two, 1e-13, "2 degrees");
            assert_eq!(t_two_sided(-t, 2), t_two_sided(t, 2));
        }
    }

    #[test]
    fn tails_agree_with_statrs() {
        for degrees in [1, 2, 3, 4, 7, 9, 15, 30, 99, 100, 999, 5_000] {
            let t_distribution = StudentsT::new(0.0, 1.0, f64::from(degrees)).unwrap();
            for t in [0.01, 0.3, 1.0, 1.7, 2.2, 3.0, 6.0, 12.0] {
                let want = 2.0 * t_distribution.sf(t);
                assert_close(t_two_sided(t, degrees), want, 1e-10, &format!("{degrees} degrees, t = {t}"));
            }
        }
    }

    #[test]
    fn the_ends_of_the_range() {
        assert_eq!(t_two_sided(0.0, 3), 1.0);
        assert_eq!(t_two_sided(f64::INFINITY, 3), 0.0);
        assert_eq!(t_two_sided(1e200, 3), 0.0);
        assert!(t_two_sided(f64::NAN, 3).is_nan());
    }

    #[test]
    fn critical_values_have_their_tail() {
        for degrees in (1..200).chain([1_000, 10_000, 99_999]) {
            // The power multiplies the rounding of its base by half the degrees.
            let relative = 1e-13 + f64::from(degrees) * f64::EPSILON;
            assert_close(t_two_sided(t_critical(degrees), degrees), ALPHA, relative, "tail");
        }
    }
}
