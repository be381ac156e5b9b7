//! Which arm is better, and how sure that is.
//!
//! Each arm's best configuration is chosen on validation. The verdict compares those of the arms with the baseline's
//! on the test split, paired by seed, by the sign-flip p, Holm-corrected over the other arms. All else is
//! exploratory.

use rayon::prelude::*;

use super::analysis::ConfigurationResults;
use super::metric::better;
use super::wording;
use crate::plan::{Metric, Plan};
use crate::stats::{ALPHA, Better, Paired, Pairing, holm, holm_smallest, pair_by_seed};

/// What a comparison's values were measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// The test split, which selection never sees.
    Test,
    /// What the best configurations were chosen on, for want of a test split.
    Validation,
}

/// What a comparison with the baseline's best configuration shows.
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
    /// No seed finished on both sides.
    NoCommonSeed,
    /// No run of the arm finished.
    NothingFinished,
    /// The arm's runs were made on other kinds of device than the baseline's, whose arithmetic differs.
    Confounded,
}

/// A configuration compared with the baseline's best one.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Index of the configuration in the plan.
    pub configuration: usize,
    /// The paired statistics; absent without a common seed.
    pub paired: Option<Paired>,
    /// Seeds that finished on one side only.
    pub unpaired: Vec<u64>,
    /// The sign-flip p, Holm-corrected over the comparisons of its role.
    pub holm_p: Option<f64>,
}

/// What is said of an arm other than the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmVerdict {
    /// Arm.
    pub arm: String,
    /// Its best configuration against the baseline's; absent where either has none.
    pub comparison: Option<Comparison>,
    /// What follows.
    pub finding: Finding,
}

/// The verdict of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Metric of selection.
    pub metric: Metric,
    /// What the arms were compared on.
    pub split: Split,
    /// The best configuration of each arm that has one, as (arm, index), in the plan's order.
    pub best: Vec<(String, usize)>,
    /// Index of the baseline's best configuration, if a run of it finished.
    pub baseline: Option<usize>,
    /// The other arms.
    pub arms: Vec<ArmVerdict>,
    /// Every other configuration against the baseline's best, on validation.
    pub exploratory: Vec<Comparison>,
    /// Arms that cannot be told from the devices that made their runs, each with why.
    pub confounded: Vec<(String, String)>,
    /// All of it in plain words.
    pub sentence: String,
    /// What a reader should know beside it.
    pub notes: Vec<String>,
}

/// Forms the verdict. `results` are those of the plan's configurations, in its order.
pub fn verdict(plan: &Plan, results: &[ConfigurationResults]) -> Verdict {
    verdict_on(plan, results, &|_| None)
}

/// The same; of an arm that `confounded` gives a reason for there is none.
pub(super) fn verdict_on(
    plan: &Plan,
    results: &[ConfigurationResults],
    confounded: &dyn Fn(&str) -> Option<String>,
) -> Verdict {
    let arms = arms_of(plan);
    let best_of = |arm: &str| best_configuration(plan, results, arm);
    let best: Vec<(String, usize)> = arms.iter().filter_map(|arm| Some((arm.clone(), best_of(arm)?))).collect();
    let baseline = best_of(&plan.compare.baseline);
    let split = split_of(results, &best);
    let others = arms.iter().filter(|arm| **arm != plan.compare.baseline);
    let mut verdict = Verdict {
        metric: plan.compare.metric,
        split,
        baseline,
        arms: judge_arms(plan, results, others, baseline, split),
        exploratory: explore(plan, results, baseline),
        confounded: Vec::new(),
        best,
        sentence: String::new(),
        notes: Vec::new(),
    };
    for arm in verdict.arms.iter_mut().filter(|arm| arm.comparison.is_some()) {
        if let Some(why) = confounded(&arm.arm) {
            arm.finding = Finding::Confounded;
            verdict.confounded.push((arm.arm.clone(), why));
        }
    }
    verdict.sentence = wording::sentence(plan, results, &verdict);
    verdict.notes = wording::notes(plan, results, &verdict);
    verdict
}

/// The arms in the order of the plan's configurations.
pub(super) fn arms_of(plan: &Plan) -> Vec<String> {
    let mut arms: Vec<String> = Vec::new();
    for configuration in &plan.configurations {
        if !arms.contains(&configuration.arm) {
            arms.push(configuration.arm.clone());
        }
    }
    arms
}

/// An arm's best configuration: among those with the fewest diverged runs, the one with the best mean over its
/// finished runs; the first of equal ones. `None` if no run of the arm finished.
///
/// A configuration that diverges on some seeds is no better for its mean over the others.
fn best_configuration(plan: &Plan, results: &[ConfigurationResults], arm: &str) -> Option<usize> {
    let better = better(plan.compare.metric);
    let mut best: Option<(usize, usize, f64)> = None;
    for (index, (configuration, result)) in plan.configurations.iter().zip(results).enumerate() {
        let Some(summary) = result.summary().filter(|_| configuration.arm == arm) else {
            continue;
        };
        let diverged = result.diverged();
        let wins = best.is_none_or(|(_, fewest, mean)| {
            diverged < fewest || diverged == fewest && better.is_better(summary.mean, mean)
        });
        if wins {
            best = Some((index, diverged, summary.mean));
        }
    }
    best.map(|(index, ..)| index)
}

/// The test split, if every finished run of the best configurations has a value on it.
fn split_of(results: &[ConfigurationResults], best: &[(String, usize)]) -> Split {
    let complete = |index: &usize| results[*index].test_values().len() == results[*index].finished();
    if !best.is_empty() && best.iter().all(|(_, index)| complete(index)) { Split::Test } else { Split::Validation }
}

fn judge_arms<'a>(
    plan: &Plan,
    results: &[ConfigurationResults],
    arms: impl Iterator<Item = &'a String>,
    baseline: Option<usize>,
    split: Split,
) -> Vec<ArmVerdict> {
    let better = better(plan.compare.metric);
    let values = |index: usize| match split {
        Split::Test => results[index].test_values(),
        Split::Validation => results[index].values(),
    };
    let mut verdicts: Vec<ArmVerdict> = arms
        .map(|arm| {
            let best = baseline.zip(best_configuration(plan, results, arm));
            let compare = |(base, other)| compare(other, &pair_by_seed(&values(base), &values(other)), better);
            ArmVerdict { arm: arm.clone(), comparison: best.map(compare), finding: Finding::NothingFinished }
        })
        .collect();
    correct(verdicts.iter_mut().filter_map(|v| v.comparison.as_mut()));
    let pairs: Vec<usize> = verdicts.iter().filter_map(pairs_of).collect();
    let mut reachable = holm_smallest(&pairs).into_iter();
    for verdict in &mut verdicts {
        let smallest = pairs_of(verdict).and_then(|_| reachable.next());
        verdict.finding = finding(verdict.comparison.as_ref(), smallest, better);
    }
    verdicts
}

fn pairs_of(verdict: &ArmVerdict) -> Option<usize> {
    verdict.comparison.as_ref()?.paired.as_ref().map(|paired| paired.n)
}

fn finding(comparison: Option<&Comparison>, smallest: Option<f64>, better: Better) -> Finding {
    let Some(comparison) = comparison else {
        return Finding::NothingFinished;
    };
    let (Some(paired), Some(p), Some(smallest)) = (&comparison.paired, comparison.holm_p, smallest) else {
        return Finding::NoCommonSeed;
    };
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

fn explore(plan: &Plan, results: &[ConfigurationResults], baseline: Option<usize>) -> Vec<Comparison> {
    let Some(baseline) = baseline else {
        return Vec::new();
    };
    let reference = results[baseline].values();
    let others = (0..results.len()).into_par_iter().filter(|index| *index != baseline);
    let compare_one = |index: usize| {
        let pairing = pair_by_seed(&reference, &results[index].values());
        compare(index, &pairing, better(plan.compare.metric))
    };
    let mut comparisons: Vec<Comparison> = others.map(compare_one).collect();
    correct(comparisons.iter_mut());
    comparisons
}

fn compare(configuration: usize, pairing: &Pairing, better: Better) -> Comparison {
    Comparison {
        configuration,
        paired: Paired::of(&pairing.values, better),
        unpaired: pairing.unpaired.clone(),
        holm_p: None,
    }
}

/// Holm's correction over the comparisons that have a p.
fn correct<'a>(comparisons: impl Iterator<Item = &'a mut Comparison>) {
    let mut tested: Vec<&mut Comparison> = comparisons.filter(|c| c.paired.is_some()).collect();
    let p: Vec<f64> = tested.iter().filter_map(|c| c.paired.as_ref()).map(|paired| paired.sign_flip_p).collect();
    for (comparison, adjusted) in tested.iter_mut().zip(holm(&p)) {
        comparison.holm_p = Some(adjusted);
    }
}
