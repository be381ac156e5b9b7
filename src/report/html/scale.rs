//! From values to places in a plot, and the values at which an axis is marked.

/// Side of a plot's square of coordinates.
pub(in crate::report) const SIDE: f64 = 1000.0;

/// How places follow values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Kind {
    /// In proportion.
    Linear,
    /// By the logarithm; values must be positive.
    Log,
}

impl Kind {
    /// Its name in the page.
    pub(in crate::report) fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Log => "log",
        }
    }
}

/// An axis' range.
#[derive(Clone, Copy, Debug)]
pub(in crate::report) struct Scale {
    /// How places follow values.
    pub(in crate::report) kind: Kind,
    /// Value at place 0.
    pub(in crate::report) lo: f64,
    /// Value at place 1000.
    pub(in crate::report) hi: f64,
}

impl Scale {
    /// A range that holds the finite values (on a logarithmic axis the positive ones) with `margin` of its extent at
    /// either end. Without such values it is 0 to 1, or 1 to 10.
    pub(in crate::report) fn over(kind: Kind, values: impl IntoIterator<Item = f64>, margin: f64) -> Self {
        let usable = |x: &f64| x.is_finite() && (kind == Kind::Linear || *x > 0.0);
        let values = values.into_iter().filter(usable);
        let (lo, hi) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (lo.min(x), hi.max(x)));
        if lo > hi {
            let (lo, hi) = if kind == Kind::Log { (1.0, 10.0) } else { (0.0, 1.0) };
            return Self { kind, lo, hi };
        }
        let (a, b) = (forth(kind, lo), forth(kind, hi));
        // A single value stands in the middle of a range of its own size.
        let extent = if b > a { b - a } else { a.abs().max(1e-3) };
        let margin = if b > a { margin } else { 0.5 };
        Self { kind, lo: back(kind, a - margin * extent), hi: back(kind, b + margin * extent) }
    }

    /// Whether the scale has a place for the value.
    pub(in crate::report) fn has(&self, x: f64) -> bool {
        x.is_finite() && (self.kind == Kind::Linear || x > 0.0)
    }

    /// The place of a value, from 0 to 1000 within the range.
    pub(in crate::report) fn at(&self, x: f64) -> f64 {
        let (a, b) = (forth(self.kind, self.lo), forth(self.kind, self.hi));
        SIDE * (forth(self.kind, x) - a) / (b - a)
    }

    /// Values to mark, at most `most`, with their texts.
    pub(in crate::report) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        if self.kind == Kind::Log {
            for factors in [&[1.0, 2.0, 5.0][..], &[1.0]] {
                let ticks = self.log_ticks(factors);
                if (3..=most).contains(&ticks.len()) {
                    return ticks.into_iter().map(|x| (x, plain(x))).collect();
                }
            }
            let decades = self.log_ticks(&[1.0]);
            if decades.len() > most {
                let every = decades.len().div_ceil(most);
                return decades.into_iter().step_by(every).map(|x| (x, plain(x))).collect();
            }
        }
        let step = nice_step((self.hi - self.lo) / most as f64);
        let digits = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let first = (self.lo / step).ceil() as i64;
        let last = (self.hi / step).floor() as i64;
        let text = |x: f64| if digits == 0 && x.abs() >= 1e6 { plain(x) } else { format!("{x:.digits$}") };
        // `+ 0.0` turns -0 into 0.
        (first..=last).map(|i| i as f64 * step + 0.0).map(|x| (x, text(x))).collect()
    }

    fn log_ticks(&self, factors: &[f64]) -> Vec<f64> {
        let decades = self.lo.log10().floor() as i32..=self.hi.log10().ceil() as i32;
        let ticks = decades.flat_map(|decade| factors.iter().map(move |f| f * 10_f64.powi(decade)));
        ticks.filter(|x| (self.lo..=self.hi).contains(x)).collect()
    }
}

fn forth(kind: Kind, x: f64) -> f64 {
    if kind == Kind::Log { x.log10() } else { x }
}

fn back(kind: Kind, x: f64) -> f64 {
    if kind == Kind::Log { 10_f64.powf(x) } else { x }
}

/// The smallest 1, 2 or 5 times a power of ten that is at least `x`.
fn nice_step(x: f64) -> f64 {
    let power = 10_f64.powf(x.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= x * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// A round number in its shortest form.
fn plain(x: f64) -> String {
    let rounded: f64 = format!("{x:.2e}").parse().unwrap_or(x);
    if (1e-4..1e6).contains(&rounded.abs()) || rounded == 0.0 { format!("{rounded}") } else { format!("{rounded:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(kind: Kind, lo: f64, hi: f64) -> Vec<String> {
        Scale { kind, lo, hi }.ticks(6).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(texts(Kind::Linear, 0.0, 399.0), ["0", "100", "200", "300"]);
        assert_eq!(texts(Kind::Linear, -0.03, 0.11), ["0.00", "0.05", "0.10"]);
        assert_eq!(texts(Kind::Linear, 0.0, 5e6), ["0", "1e6", "2e6", "3e6", "4e6", "5e6"]);
        assert_eq!(texts(Kind::Log, 1e-4, 1.0), ["0.0001", "0.001", "0.01", "0.1", "1"]);
        assert_eq!(texts(Kind::Log, 1.1, 8.5), ["2", "4", "6", "8"]);
        assert_eq!(texts(Kind::Log, 1e-12, 1.0), ["1e-12", "1e-9", "1e-6", "0.001", "1"]);
    }

    #[test]
    fn ranges_hold_their_values() {
        let scale = Scale::over(Kind::Linear, [1.0, f64::NAN, 3.0, f64::INFINITY], 0.0);
        assert_eq!((scale.at(1.0), scale.at(2.0), scale.at(3.0)), (0.0, 500.0, 1000.0));
        let scale = Scale::over(Kind::Log, [0.0, 1.0, 100.0], 0.0);
        assert_eq!((scale.at(1.0), scale.at(10.0), scale.has(0.0)), (0.0, 500.0, false));
        let one = Scale::over(Kind::Linear, [2.0], 0.1);
        assert_eq!(one.at(2.0), 500.0);
        let none = Scale::over(Kind::Linear, [], 0.1);
        assert_eq!((none.lo, none.hi), (0.0, 1.0));
    }
}
