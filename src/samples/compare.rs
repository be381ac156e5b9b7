//! The comparisons with the baseline's best configuration.

use rayon::prelude::*;

use super::gather::{Configuration, Samples};
use crate::stats::{ALPHA, Better, Paired, Summary, holm, holm_smallest, pair_by_seed};

/// What a comparison shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The arm is better.
    Better,
    /// The arm is worse.
    Worse,
    /// The seeds would have sufficed to tell, and did not.
    NoDifference,
    /// No outcome of so few pairs can be significant.
    NotEnoughSeeds,
    /// No seed has a value on both sides.
    NoCommonSeed,
    /// The arm has no value.
    NoValue,
}

/// A configuration compared with the baseline's best one.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedComparison {
    /// Its number.
    pub configuration: usize,
    /// The statistics; absent without a common seed.
    pub paired: Option<Paired>,
    /// Numbers of the seeds that have a value on one side only.
    pub unpaired: Vec<u64>,
    /// The sign-flip p, Holm-corrected over the comparisons of its kind.
    pub holm_p: Option<f64>,
    /// What follows.
    pub finding: Finding,
}

/// All comparisons of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparisons {
    /// Each configuration's values described.
    pub summaries: Vec<Option<Summary>>,
    /// The best configuration of each arm that has a value, in the file's order.
    pub best: Vec<usize>,
    /// Number of the baseline's best configuration, if it has a value.
    pub baseline: Option<usize>,
    /// Whether the arms were compared on other values than those of selection.
    pub on_test: bool,
    /// The best configurations of the other arms.
    pub arms: Vec<PairedComparison>,
    /// Every configuration but the baseline's best against that, on the values of selection; empty if no arm has two configurations.
    pub exploratory: Vec<PairedComparison>,
}

impl Comparisons {
    /// Compares. An arm's best configuration is, among those with the fewest runs that diverged or have
    /// no value, the one with the best mean.
    pub fn of(samples: &Samples, baseline: &str, on_test: bool) -> Self {
        let describe = |c: &Configuration| Summary::of(&c.values.iter().map(|(_, x)| *x).collect::<Vec<_>>());
        let summaries: Vec<Option<Summary>> = samples.configurations.iter().map(describe).collect();
        let mut arms: Vec<&str> = Vec::new();
        for configuration in &samples.configurations {
            if !arms.contains(&configuration.arm.as_str()) {
                arms.push(&configuration.arm);
            }
        }
        let best_of = |arm: &str| best_configuration(samples, &summaries, arm);
        let best = arms.iter().filter_map(|arm| best_of(arm)).collect();
        let base = best_of(baseline);
        let others = arms.iter().filter(|arm| **arm != baseline);
        let first_of = |arm: &str| samples.configurations.iter().position(|c| c.arm == arm).unwrap_or(0);
        let chosen = others.map(|arm| best_of(arm).unwrap_or_else(|| first_of(arm))).collect();
        let several = arms.len() < samples.configurations.len();
        let rest = if several { (0..summaries.len()).filter(|i| Some(*i) != base).collect() } else { Vec::new() };
        Self {
            arms: compare(samples, base, chosen, on_test),
            exploratory: if base.is_some() { compare(samples, base, rest, false) } else { Vec::new() },
            best,
            baseline: base,
            on_test,
            summaries,
        }
    }

    /// Whether every arm could be compared with the baseline.
    pub fn all_compared(&self) -> bool {
        self.arms.iter().all(|arm| arm.paired.is_some())
    }
}

fn best_configuration(samples: &Samples, summaries: &[Option<Summary>], arm: &str) -> Option<usize> {
    let mut best: Option<(usize, usize, f64)> = None;
    for (i, (configuration, summary)) in samples.configurations.iter().zip(summaries).enumerate() {
        let Some(summary) = summary.filter(|_| configuration.arm == arm) else {
            continue;
        };
        let lost = configuration.diverged.len() + configuration.without_value.len();
        let wins = best.is_none_or(|(_, fewest, mean)| {
            lost < fewest || lost == fewest && samples.better.is_better(summary.mean, mean)
        });
        if wins {
            best = Some((i, lost, summary.mean));
        }
    }
    best.map(|(i, ..)| i)
}

/// A family of comparisons with the baseline, corrected together.
fn compare(samples: &Samples, baseline: Option<usize>, chosen: Vec<usize>, on_test: bool) -> Vec<PairedComparison> {
    let values = |i: usize| {
        if on_test {
            samples.configurations[i].test_values.as_slice()
        } else {
            samples.configurations[i].values.as_slice()
        }
    };

    let one = |configuration: usize| {
        let pairing = pair_by_seed(baseline.map_or(&[][..], values), values(configuration));
        let paired = Paired::of(&pairing.values, samples.better);
        let nothing = samples.configurations[configuration].values.is_empty() || baseline.is_none();
        let finding = if nothing { Finding::NoValue } else { Finding::NoCommonSeed };
        PairedComparison { configuration, paired, unpaired: pairing.unpaired, holm_p: None, finding }
    };
    let mut comparisons: Vec<PairedComparison> = chosen.into_par_iter().map(one).collect();
    let tested = || comparisons.iter().filter_map(|c| c.paired);
    let corrected = holm(&tested().map(|p| p.sign_flip_p).collect::<Vec<_>>());
    let reachable = holm_smallest(&tested().map(|p| p.n).collect::<Vec<_>>());
    let mut corrections = corrected.into_iter().zip(reachable);
    for comparison in &mut comparisons {
        let Some((paired, (p, smallest))) = comparison.paired.and_then(|paired| Some((paired, corrections.next()?)))
        else {
            continue;
        };
        comparison.holm_p = Some(p);
        comparison.finding = finding(&paired, p, smallest, samples.better);
    }
    comparisons
}

fn finding(paired: &Paired, p: f64, smallest: f64, better: Better) -> Finding {
    if smallest > ALPHA {
        Finding::NotEnoughSeeds
    } else if p > ALPHA {
        Finding::NoDifference
    } else if better.is_better(paired.mean_diff, 0.0) {
        Finding::Better
    } else {
        Finding::Worse
    }
}
