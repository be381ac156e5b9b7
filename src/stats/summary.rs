//! One sample described.

use super::student::t_critical;

/// A two-sided interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}

impl Interval {
    /// `centre ± half`.
    pub fn around(centre: f64, half: f64) -> Self {
        Self { lo: centre - half, hi: centre + half }
    }
}

/// A sample of at least one value, described. Values must be finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with `n - 1`; absent for one value.
    pub sd: Option<f64>,
    /// Standard error of the mean, `sd / sqrt(n)`; absent for one value.
    pub sem: Option<f64>,
    /// 95% interval of the mean, `mean ± t(n - 1) sem`; absent for one value.
    pub ci95: Option<Interval>,
    /// Median; the mean of the middle two for an even number.
    pub median: f64,
    /// Interquartile mean, see [`interquartile_mean`].
    pub iqm: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
}

impl Summary {
    /// Describes a sample; `None` for an empty one.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        let mean = mean(values)?;
        let sorted = sorted(values);
        let sd = standard_deviation(values, mean);
        let sem = sd.map(|sd| sd / (n as f64).sqrt());
        let degrees = u32::try_from(n - 1).ok()?;
        Some(Self {
            n,
            mean,
            sd,
            sem,
            ci95: sem.map(|sem| Interval::around(mean, sem * t_critical(degrees))),
            median: median_of_sorted(&sorted),
            iqm: trimmed_mean(&sorted),
            min: sorted[0],
            max: sorted[n - 1],
        })
    }
}

/// Arithmetic mean; `None` for an empty sample.
///
/// Deviations from the first value are summed, so that equal values have exactly themselves as mean.
pub fn mean(values: &[f64]) -> Option<f64> {
    let first = *values.first()?;
    let sum: f64 = values.iter().map(|x| x - first).sum();
    Some(first + sum / values.len() as f64)
}

/// Median; `None` for an empty sample.
pub fn median(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| median_of_sorted(&sorted(values)))
}

/// Mean of the values left when the lowest and the highest `floor(n / 4)` are taken away, as
/// `scipy.stats.trim_mean(x, 0.25)`; `None` for an empty sample. Recommended for few seeds by Agarwal et al.,
/// "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (2021).
pub fn interquartile_mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| trimmed_mean(&sorted(values)))
}

/// Standard deviation about a mean, with `n - 1`; `None` for fewer than two values.
pub(super) fn standard_deviation(values: &[f64], mean: f64) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

fn trimmed_mean(sorted: &[f64]) -> f64 {
    let cut = sorted.len() / 4;
    let kept = &sorted[cut..sorted.len() - cut];
    mean(kept).unwrap_or(f64::NAN) // never empty: at most half is cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_no_spread() {
        let summary = Summary::of(&[2.5]).unwrap();
        assert_eq!((summary.n, summary.mean, summary.median), (1, 2.5, 2.5));
        assert_eq!((summary.sd, summary.sem, summary.ci95), (None, None, None));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn equal_values_have_no_deviation_at_all() {
        for n in 2..40 {
            let summary = Summary::of(&vec![0.1; n]).unwrap();
            assert_eq!((summary.mean, summary.sd), (0.1, Some(0.0)));
        }
    }

    #[test]
    fn the_interquartile_mean_cuts_whole_values() {
        assert_eq!(interquartile_mean(&[9.0, 1.0, 2.0]), Some(4.0));
        assert_eq!(interquartile_mean(&[9.0, 1.0, 2.0, 4.0]), Some(3.0));
        assert_eq!(interquartile_mean(&[100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), Some(4.5));
    }
}
