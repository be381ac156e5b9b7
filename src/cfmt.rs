//! Numbers as C's `printf` writes them in the C locale.
//!
//! `%f` and `%g` of finite numbers and infinities are equal to glibc's to the byte. A NaN is `nan` whatever its sign
//! bit, which no computation defines (glibc writes `-nan` for half of them).

use std::fmt::Write;

/// Appends `%.<precision>f`.
pub fn fixed(out: &mut String, x: f64, precision: usize) {
    if !special(out, x) {
        // Writing to a string cannot fail.
        let _ = write!(out, "{x:.precision$}");
    }
}

/// Appends `%.<precision>g`.
pub fn general(out: &mut String, x: f64, precision: usize) {
    if special(out, x) {
        return;
    }
    let digits = precision.max(1);
    // The exponent after rounding to so many digits decides the style.
    let scientific = format!("{x:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let places = digits as i64 - 1 - i64::from(exponent);
    if exponent >= -4 && places >= 0 {
        let fixed = format!("{x:.*}", places as usize);
        out.push_str(without_trailing_zeros(&fixed));
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let mantissa = without_trailing_zeros(mantissa);
        let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
}

/// Appends `nan`, `inf` or `-inf` if the number is one.
fn special(out: &mut String, x: f64) -> bool {
    match crate::num::non_finite_text(x) {
        Some(text) => {
            out.push_str(text);
            true
        }
        None => false,
    }
}

fn without_trailing_zeros(decimal: &str) -> &str {
    if decimal.contains('.') { decimal.trim_end_matches('0').trim_end_matches('.') } else { decimal }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn f(x: f64, precision: usize) -> String {
        let mut out = String::new();
        fixed(&mut out, x, precision);
        out
    }

    fn g(x: f64, precision: usize) -> String {
        let mut out = String::new();
        general(&mut out, x, precision);
        out
    }

    #[test]
    fn fixed_known_answers() {
        for (x, precision, want) in [
            (1.234_566, 5, "1.23457"),
            (0.125, 2, "0.12"),
            (0.375, 2, "0.38"),
            (2.5, 0, "2"),
            (-0.0, 5, "-0.00000"),
            (-1e-9, 4, "-0.0000"),
            (1e22, 1, "10000000000000000000000.0"),
            (f64::NAN, 5, "nan"),
            (-f64::NAN, 5, "nan"),
            (f64::INFINITY, 5, "inf"),
            (f64::NEG_INFINITY, 1, "-inf"),
        ] {
            assert_eq!(f(x, precision), want);
        }
    }

    #[test]
    fn general_known_answers() {
        for (x, want) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1e-3, "0.001"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (9.9999e-5, "0.0001"),
            (9.99949e-5, "9.999e-05"),
            (12345.0, "1.234e+04"),
            (9999.5, "1e+04"),
            (9999.4, "9999"),
            (1.0, "1"),
            (0.123_45, "0.1235"),
            (1e100, "1e+100"),
            (5e-324, "4.941e-324"),
            (f64::MAX, "1.798e+308"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(g(x, 4), want);
        }
        assert_eq!(g(123.0, 0), "1e+02");
    }

    const C_PROGRAM: &str = r#"
        #include <stdio.h>
        int main(void) {
            double x;
            while (fread(&x, sizeof x, 1, stdin) == 1)
                printf("%.0f %.1f %.2f %.5f %.4g %.1g %.10g\n", x, x, x, x, x, x, x);
            return 0;
        }"#;

    /// Numbers of all sizes, halves and quarters (ties of rounding), decimals and their neighbours.
    fn awkward_numbers() -> Vec<f64> {
        let mut numbers = vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, 5e-324];
        for i in 0..4000_u32 {
            let words = crate::rng::philox([i, 0, 0, 0], 7);
            let bits = u64::from(words[0]) << 32 | u64::from(words[1]);
            let any = f64::from_bits(bits);
            if any.is_finite() {
                numbers.push(any);
            }
            let decimal = f64::from(i) / 8.0 - 200.0;
            numbers.extend([decimal, decimal / 1000.0, decimal.next_up(), f64::from(words[2]) * 1e-7]);
        }
        numbers
    }

    #[test]
    fn equal_to_c_printf() {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("p.c"), folder.path().join("p"));
        std::fs::write(&source, C_PROGRAM).unwrap();
        let built = Command::new("gcc").arg("-o").arg(&program).arg(&source).status();
        if !built.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED equal_to_c_printf: gcc is not here");
            return;
        }
        let numbers = awkward_numbers();
        let input = folder.path().join("in");
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        std::fs::write(&input, bytes).unwrap();
        let stdin = Stdio::from(std::fs::File::open(&input).unwrap());
        let output = Command::new(&program).stdin(stdin).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), numbers.len());
        for (line, x) in text.lines().zip(numbers) {
            let ours = [f(x, 0), f(x, 1), f(x, 2), f(x, 5), g(x, 4), g(x, 1), g(x, 10)].join(" ");
            assert_eq!(ours, line, "{x:e}");
        }
    }
}
