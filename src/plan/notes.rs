//! What the user is told about a plan before it runs.

use std::collections::BTreeSet;

use super::{Configuration, PlannedRun};
use crate::settings::Value;

/// The level of significance that the verdict speaks of.
const LEVEL: f64 = 0.05;

/// A warning where `pairs` pairs of runs cannot show a difference between the baseline and each of `others` arms.
///
/// The smallest two-sided p of an exact sign-flip test of n pairs is `2/2^n`; Holm's correction multiplies the smallest
/// of m p-values by m.
pub fn power(pairs: usize, others: usize) -> Option<String> {
    let smallest = smallest_p(pairs);
    if smallest * (others.max(1) as f64) < LEVEL {
        return None;
    }
    let enough = (pairs..).find(|&n| smallest_p(n) * (others.max(1) as f64) < LEVEL)?;
    let of = if pairs == 1 { "1 pair of runs".to_owned() } else { format!("{pairs} pairs of runs") };
    let mut note =
        format!("{of} cannot show a significant difference: the smallest two-sided p is 2/2^{pairs} = {smallest}");
    if others > 1 {
        note.push_str(&format!(", to be multiplied by {others} for as many arms beside the baseline"));
    }
    note.push_str(&format!("; with {enough} seeds p < {LEVEL} becomes possible"));
    Some(note)
}

fn smallest_p(pairs: usize) -> f64 {
    // No pairs: nothing can be shown.
    (2.0 * 0.5f64.powi(i32::try_from(pairs).unwrap_or(i32::MAX))).min(1.0)
}

/// Fewest seeds that a configuration of the baseline and one of another arm have in common.
pub(super) fn fewest_pairs(configurations: &[Configuration], runs: &[PlannedRun], baseline: &str) -> usize {
    let seeds = |c: &Configuration| -> BTreeSet<u64> { c.runs.iter().map(|&i| runs[i].seed).collect() };
    // Most sweeps give all configurations the same seeds: equal sets are compared once.
    let distinct = |of_baseline: bool| -> BTreeSet<BTreeSet<u64>> {
        configurations.iter().filter(|c| (c.arm == baseline) == of_baseline).map(seeds).collect()
    };
    let (ours, theirs) = (distinct(true), distinct(false));
    let pairs = ours.iter().flat_map(|a| theirs.iter().map(move |b| a.intersection(b).count()));
    pairs.min().unwrap_or(0)
}

/// A note on configurations whose learning rate rises along the cosine, which is seldom meant.
pub(super) fn rising_rates(configurations: &[Configuration], runs: &[PlannedRun]) -> Option<String> {
    let settings = configurations.iter().filter_map(|c| c.runs.first()).map(|&i| &runs[i].settings);
    let mut rising = settings.filter(|s| s.lr_min > s.lr);
    let first = rising.next()?;
    let [low, high] = [first.lr, first.lr_min].map(Value::Float);
    let others = match rising.count() {
        0 => String::new(),
        n => format!(", and so in {n} more"),
    };
    Some(format!("a configuration has lr = {low} below lr_min = {high}{others}: the learning rate rises over the run"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_pairs_cannot_and_six_can() {
        assert_eq!(power(6, 1), None);
        assert_eq!(
            power(5, 1).unwrap(),
            "5 pairs of runs cannot show a significant difference: the smallest two-sided p is 2/2^5 = 0.0625; \
             with 6 seeds p < 0.05 becomes possible"
        );
        assert_eq!(
            power(6, 2).unwrap(),
            "6 pairs of runs cannot show a significant difference: the smallest two-sided p is 2/2^6 = 0.03125, \
             to be multiplied by 2 for as many arms beside the baseline; with 7 seeds p < 0.05 becomes possible"
        );
        assert!(power(0, 1).unwrap().contains("with 6 seeds"));
        assert!(power(1, 1).unwrap().starts_with("1 pair of runs cannot"));
    }
}
