//! How far a case is from its known answers.

use std::fmt;

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What was compared.
    pub what: String,
    /// Largest error; infinite where a value was not a number.
    pub error: f64,
    /// Largest error allowed; 0 asks for equality.
    pub tolerance: f64,
}

impl Check {
    /// Whether the error is within the tolerance.
    pub fn passed(&self) -> bool {
        self.error <= self.tolerance
    }

    /// Error in units of the tolerance; exact and equal is 0, exact and unequal infinite.
    fn severity(&self) -> f64 {
        if self.error == 0.0 { 0.0 } else { self.error / self.tolerance }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tolerance {
            0.0 => write!(f, "{}: error {:.3e}, must be equal", self.what, self.error),
            _ => write!(f, "{}: error {:.3e}, tolerance {:.1e}", self.what, self.error, self.tolerance),
        }
    }
}

/// All comparisons of a case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// In the order in which they were made.
    pub checks: Vec<Check>,
}

impl Report {
    /// Adds a comparison.
    pub fn add(&mut self, what: impl Into<String>, error: f64, tolerance: f64) {
        let error = if error.is_nan() { f64::INFINITY } else { error };
        self.checks.push(Check { what: what.into(), error, tolerance });
    }

    /// Adds a comparison of two numbers.
    pub fn number(&mut self, what: impl Into<String>, got: f64, expected: f64, tolerance: f64) {
        self.add(what, difference(got, expected), tolerance);
    }

    /// Adds a comparison of lists, in which the error is the number of unequal elements, and none may be.
    pub fn equal<T: PartialEq>(&mut self, what: impl Into<String>, got: &[T], expected: &[T]) {
        let unequal = got.iter().zip(expected).filter(|(a, b)| a != b).count();
        self.add(what, (unequal + got.len().abs_diff(expected.len())) as f64, 0.0);
    }

    /// Comparisons that fell short.
    pub fn failed(&self) -> usize {
        self.checks.iter().filter(|c| !c.passed()).count()
    }

    /// The comparison nearest to, or furthest beyond, its tolerance.
    pub fn worst(&self) -> Option<&Check> {
        self.checks.iter().max_by(|a, b| a.severity().total_cmp(&b.severity()))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.worst() {
            Some(worst) if worst.error == 0.0 => f.write_str("all equal")?,
            Some(worst) => write!(f, "{worst}")?,
            None => f.write_str("nothing compared")?,
        }
        match self.failed() {
            0 => write!(f, " ({} checks)", self.checks.len()),
            failed => write!(f, " ({failed} of {} checks fall short)", self.checks.len()),
        }
    }
}

/// Distance of two numbers, 0 where both are the same infinity or not a number.
pub(super) fn difference(a: f64, b: f64) -> f64 {
    if a == b || (a.is_nan() && b.is_nan()) { 0.0 } else { (a - b).abs() }
}

/// Largest distance of two lists of one length.
pub(super) fn largest_difference(got: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(got.len(), expected.len(), "lists of one length");
    got.iter().zip(expected).fold(0.0, |worst, (&a, &b)| {
        let d = difference(f64::from(a), b);
        // Not `max`, which would let a NaN pass.
        if d > worst || d.is_nan() { d } else { worst }
    })
}

/// Largest magnitude.
pub(super) fn magnitude(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |m, x| m.max(x.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_check_is_named_with_its_tolerance() {
        let mut report = Report::default();
        report.add("a", 1e-6, 1e-5);
        report.add("b", 5e-5, 1e-4);
        report.equal("c", &[1, 2], &[1, 2]);
        assert_eq!(report.to_string(), "b: error 5.000e-5, tolerance 1.0e-4 (3 checks)");
        let mut exact = Report::default();
        exact.number("e", 1.0, 1.0, 1e-3);
        assert_eq!(exact.to_string(), "all equal (1 checks)");
        report.equal("d", &[1, 2, 3], &[1, 3]);
        assert_eq!(report.to_string(), "d: error 2.000e0, must be equal (1 of 4 checks fall short)");
    }

    #[test]
    fn not_a_number_is_never_within_a_tolerance() {
        let mut report = Report::default();
        report.number("x", f64::NAN, 1.0, 1e9);
        report.add("y", largest_difference(&[1.0, f32::NAN, 1.0], &[1.0, 1.0, 1.0]), 1e9);
        assert_eq!(report.failed(), 2);
    }
}
