//! The standard normal distribution, on `libm` so that bytes do not change with the platform.

/// `P(Z <= z)`.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// The z with `P(Z <= z) = p`, by halving the range in which it lies until that has no number inside.
///
/// `p` outside `(0, 1)` gives an infinity or NaN.
pub fn normal_quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    if p == 1.0 {
        return f64::INFINITY;
    }
    if p == 0.5 {
        return 0.0;
    }
    // The upper half is the mirror image of the lower one, where p keeps its digits.
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    let (mut lo, mut hi) = (-40.0, 0.0);
    loop {
        let middle = 0.5 * (lo + hi);
        if middle <= lo || middle >= hi {
            return hi;
        }
        if normal_cdf(middle) < p {
            lo = middle;
        } else {
            hi = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, Normal};

    use super::*;

    #[test]
    fn agrees_with_statrs() {
        let normal = Normal::standard();
        for i in 1..1000 {
            let p = f64::from(i) / 1000.0;
            let z = normal_quantile(p);
            assert!((normal_cdf(z) - p).abs() <= 1e-15, "{p}");
            assert!((z - normal.inverse_cdf(p)).abs() <= 1e-9, "{p}: {z}");
        }
    }

    #[test]
    fn known_values() {
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-14);
        assert!((normal_cdf(-10.0) / 7.619_853_024_160_527e-24 - 1.0).abs() < 1e-13);
        assert_eq!(normal_quantile(0.5), 0.0);
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert!(normal_quantile(1.5).is_nan());
    }
}
