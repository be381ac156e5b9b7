//! Elementary functions in f32 whose bytes are the same everywhere.
//!
//! Each is a straight line of additions, multiplications, fused multiply-adds and selections, so that a loop over it vectorises.
//! Coefficients are those of the Cephes library's single-precision functions (S. Moshier, expf.c, tanhf.c, logf.c).

// Coefficients stand as published; their last digits decide the rounding.
#![allow(clippy::excessive_precision)]

/// 1.5 * 2^23: adding it rounds to the nearest integer, which then stands in the low bits.
const ROUND: f32 = 12_582_912.0;
/// High part of ln 2: few bits, so that its product with an exponent is exact.
const LN2_HIGH: f32 = 0.693_359_375;
/// ln 2 less its high part.
const LN2_LOW: f32 = -2.121_944_40e-4;
/// Largest argument of [`exp`] with a finite result here.
pub const EXP_MAX: f32 = 88.0;
/// Smallest argument of [`exp`] with a result other than 0 here.
pub const EXP_MIN: f32 = -87.0;

/// e^x, at most 1 unit in the last place off; 0 below [`EXP_MIN`], infinite above [`EXP_MAX`].
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let z = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = z - ROUND;
    let high = n.mul_add(-LN2_HIGH, x);
    let low = n * -LN2_LOW;
    let r = high + low;
    let mut p = 1.0 / 40320.0;
    p = r.mul_add(p, 1.0 / 5040.0);
    p = r.mul_add(p, 1.0 / 720.0);
    p = r.mul_add(p, 1.0 / 120.0);
    p = r.mul_add(p, 1.0 / 24.0);
    p = r.mul_add(p, 1.0 / 6.0);
    p = r.mul_add(p, 0.5);
    let y = (high + p.mul_add(r * r, low)) + 1.0;
    let power = f32::from_bits((z.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    let y = y * power;
    let y = if x > EXP_MAX { f32::INFINITY } else { y };
    if x < EXP_MIN { 0.0 } else { y }
}

/// 1/(1 + e^-x), from the exponential of -|x|; what the sum 1 + e loses to rounding is exact (Dekker's fast two-sum) and is put back.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let e = exp(-x.abs());
    let numerator = if x < 0.0 { e } else { 1.0 };
    let sum = 1.0 + e;
    let lost = e - (sum - 1.0);
    let quotient = numerator / sum;
    (-quotient).mul_add(lost, quotient)
}

/// Hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let z = x * x;
    let mut p = -5.704_988_727_45e-3;
    p = z.mul_add(p, 2.063_908_879_54e-2);
    p = z.mul_add(p, -5.373_971_555_31e-2);
    p = z.mul_add(p, 1.333_144_220_36e-1);
    p = z.mul_add(p, -3.333_328_194_22e-1);
    let small = (z * p).mul_add(x, x);
    let magnitude = x.abs();
    let large = (1.0 - 2.0 / (exp(2.0 * magnitude) + 1.0)).copysign(x);
    if magnitude < 0.625 { small } else { large }
}

/// Natural logarithm of a positive normal number.
#[inline(always)]
pub fn log(x: f32) -> f32 {
    // Bits of sqrt(1/2): the mantissa is brought to [sqrt(1/2), sqrt(2)).
    const SQRT_HALF: u32 = 0x3f35_04f3;
    let bits = x.to_bits();
    let exponent = (bits.wrapping_sub(SQRT_HALF) as i32) >> 23;
    let m = f32::from_bits(bits.wrapping_sub((exponent << 23) as u32)) - 1.0;
    let e = exponent as f32;
    let z = m * m;
    let mut p = 7.037_683_629_2e-2;
    p = m.mul_add(p, -1.151_461_031_0e-1);
    p = m.mul_add(p, 1.167_699_874_0e-1);
    p = m.mul_add(p, -1.242_014_084_6e-1);
    p = m.mul_add(p, 1.424_932_278_7e-1);
    p = m.mul_add(p, -1.666_805_766_5e-1);
    p = m.mul_add(p, 2.000_071_476_5e-1);
    p = m.mul_add(p, -2.499_999_399_3e-1);
    p = m.mul_add(p, 3.333_333_117_4e-1);
    let y = (p * m) * z;
    let y = e.mul_add(LN2_LOW, y);
    let y = z.mul_add(-0.5, y);
    e.mul_add(LN2_HIGH, m + y)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Error in units in the last place of the exact result.
    fn ulps(got: f32, exact: f64) -> f64 {
        let magnitude = (exact.abs() as f32).max(f32::MIN_POSITIVE);
        let ulp = f64::from(f32::from_bits(magnitude.to_bits() + 1)) - f64::from(magnitude);
        (f64::from(got) - exact).abs() / ulp
    }

    /// Largest error over `n` evenly spaced arguments from `a` to `b` and their neighbours.
    fn worst(a: f64, b: f64, n: u32, ours: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
        (0..=n)
            .flat_map(|i| {
                let x = (a + (b - a) * f64::from(i) / f64::from(n)) as f32;
                [x, x.next_up(), x.next_down()]
            })
            .map(|x| ulps(ours(x), exact(f64::from(x))))
            .fold(0.0, f64::max)
    }

    #[test]
    fn functions_are_within_two_units_in_the_last_place() {
        let sigmoid64 = |x: f64| 1.0 / (1.0 + libm::exp(-x));
        for (name, error) in [
            ("exp", worst(-86.9, 87.9, 2_000_000, exp, libm::exp)),
            ("exp near 0", worst(-1.0, 1.0, 2_000_000, exp, libm::exp)),
            ("sigmoid", worst(-80.0, 80.0, 2_000_000, sigmoid, sigmoid64)),
            ("tanh", worst(-20.0, 20.0, 2_000_000, tanh, libm::tanh)),
            ("tanh near 0", worst(-0.7, 0.7, 2_000_000, tanh, libm::tanh)),
            ("log", worst(1e-3, 300.0, 2_000_000, log, libm::log)),
            ("log near 1", worst(0.5, 2.0, 2_000_000, log, libm::log)),
        ] {
            println!("{name}: {error:.3} units in the last place");
            assert!(error <= 2.0, "{name}: {error}");
        }
    }

    #[test]
    fn edges_are_what_the_contract_says() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-87.1), 0.0);
        assert_eq!(exp(88.1), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan() && tanh(f32::NAN).is_nan() && sigmoid(f32::NAN).is_nan());
        assert_eq!((sigmoid(200.0), sigmoid(-200.0)), (1.0, 0.0));
        assert_eq!((tanh(100.0), tanh(-100.0), tanh(0.0)), (1.0, -1.0, 0.0));
        assert_eq!(log(1.0), 0.0);
    }
}
