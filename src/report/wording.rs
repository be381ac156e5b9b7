//! The verdict in plain words.

use std::collections::BTreeSet;

use super::analysis::ConfigurationResults;
use super::metric::{better, metric_name, test_name};
use super::verdict::{ArmVerdict, Comparison, Finding, Split, Verdict, arms_of};
use crate::plan::{Configuration, Plan};
use crate::stats::{ALPHA, Better, DRAWS, EXACT_PAIRS, Paired, holm_smallest, seeds_needed};

/// A configuration's name: the arm and its axes, `sr4 lr=0.001 target_step=0.003`.
pub(super) fn label(configuration: &Configuration) -> String {
    let mut label = configuration.arm.clone();
    for axis in &configuration.axes {
        label += &format!(" {}={}", axis.axis, axis.value);
    }
    label
}

/// A configuration's name where its arm is named already: its axes, or the arm if it has none.
pub(super) fn short_label(configuration: &Configuration) -> String {
    let axes: Vec<String> = configuration.axes.iter().map(|a| format!("{}={}", a.axis, a.value)).collect();
    if axes.is_empty() { configuration.arm.clone() } else { axes.join(" ") }
}

/// A configuration's name within a sentence: `sr4 (lr=0.001, target_step=0.003)`.
fn in_brackets(configuration: &Configuration) -> String {
    let axes: Vec<String> = configuration.axes.iter().map(|a| format!("{}={}", a.axis, a.value)).collect();
    match axes.as_slice() {
        [] => configuration.arm.clone(),
        axes => format!("{} ({})", configuration.arm, axes.join(", ")),
    }
}

/// A p value: four digits after the point, or `<0.0001`.
pub(crate) fn p_text(p: f64) -> String {
    if p < 1e-4 { "<0.0001".to_owned() } else { format!("{p:.4}") }
}

fn p_is(p: f64) -> String {
    match p_text(p).strip_prefix('<') {
        Some(bound) => format!("p < {bound}"),
        None => format!("p = {}", p_text(p)),
    }
}

/// A value of the metric: four digits after the point.
pub(super) fn value_text(x: f64) -> String {
    format!("{x:.4}")
}

fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

pub(super) fn sentence(plan: &Plan, results: &[ConfigurationResults], verdict: &Verdict) -> String {
    let total = tally(results.iter());
    if total.finished == 0 {
        return format!("No verdict: none of the {} has finished{}.", count(total.runs, "run"), total.brackets());
    }
    if verdict.arms.is_empty() {
        return format!("No verdict: `{}` is the only arm of the sweep.", plan.compare.baseline);
    }
    let Some(baseline) = verdict.baseline else {
        let arm = &plan.compare.baseline;
        let runs = tally_of_arm(plan, results, arm);
        return format!("No verdict: no run of the baseline `{arm}` has finished{}.", runs.brackets());
    };
    let base = in_brackets(&plan.configurations[baseline]);
    let mut sentences: Vec<String> =
        verdict.arms.iter().map(|arm| arm_sentence(plan, results, verdict, arm, &base)).collect();
    if total.stopped > 0 {
        let all = count(total.runs, "run");
        sentences.insert(0, format!("With early stopping: {} of {all} were not trained to their ends.", total.stopped));
    }
    if total.finished + total.diverged + total.stopped < total.runs {
        let ended = total.finished + total.diverged;
        sentences.insert(0, format!("Preliminary, with {ended} of {}.", count(total.runs, "run")));
    }
    sentences.join(" ")
}

fn arm_sentence(
    plan: &Plan,
    results: &[ConfigurationResults],
    verdict: &Verdict,
    arm: &ArmVerdict,
    base: &str,
) -> String {
    let Some(comparison) = &arm.comparison else {
        let runs = tally_of_arm(plan, results, &arm.arm);
        return format!("No verdict on `{}`: no run of it has finished{}.", arm.arm, runs.brackets());
    };
    if let Some((_, why)) = verdict.confounded.iter().find(|(name, _)| *name == arm.arm) {
        return format!("No verdict on `{}`: {why} (`diesweep compare --force` compares all the same).", arm.arm);
    }
    let this = in_brackets(&plan.configurations[comparison.configuration]);
    let Some(paired) = &comparison.paired else {
        return format!("No verdict on {this} against {base}: no seed has finished on both sides.");
    };
    let (on, name) = match verdict.split {
        Split::Test => ("on the test split", test_name(verdict.metric)),
        Split::Validation => ("on validation", metric_name(verdict.metric)),
    };
    let difference = difference_text(name, paired);
    let test = test_text(verdict, comparison, paired);
    match arm.finding {
        Finding::Better => format!("{this} is better than {base} {on}: {difference} ({test})."),
        Finding::Worse => format!("{this} is worse than {base} {on}: {difference} ({test})."),
        Finding::NoDifference => {
            let needed = paired.cohen_dz.and_then(seeds_needed).filter(|n| *n as usize > paired.n);
            let needed = needed.map(|n| format!(" To see a difference of this size about {n} seeds are needed."));
            let needed = needed.unwrap_or_default();
            format!("No difference is shown between {this} and {base} {on}: {difference} ({test}).{needed}")
        }
        _ => {
            let (n, least) = (count(paired.n, "pair"), pairs_needed(verdict.arms.len()));
            let why = format!("{n} of seeds cannot reach p = {ALPHA}, at least {least} are needed");
            format!("Not enough seeds to tell {this} from {base} {on}: {why}. So far {difference} ({test}).")
        }
    }
}

fn difference_text(name: &str, paired: &Paired) -> String {
    let size = value_text(paired.mean_diff.abs());
    let direction = match paired.mean_diff {
        d if d < 0.0 => format!("lower by {size}"),
        d if d > 0.0 => format!("higher by {size}"),
        _ => "the same".to_owned(),
    };
    let interval = paired.ci95.map(|i| {
        let (lo, hi) = (value_text(i.lo), value_text(i.hi));
        format!(", 95% interval of the difference {lo} to {hi}")
    });
    format!("{name} is {direction} on average{}", interval.unwrap_or_default())
}

fn test_text(verdict: &Verdict, comparison: &Comparison, paired: &Paired) -> String {
    let kind = if paired.n <= EXACT_PAIRS {
        "exact sign-flip".to_owned()
    } else {
        format!("sign-flip, {DRAWS} random signings,")
    };
    let mut text = format!("n = {} paired by seed, {kind} {}", paired.n, p_is(paired.sign_flip_p));
    if let (Some(holm_p), true) = (comparison.holm_p, verdict.arms.len() > 1) {
        text += &format!(", corrected for {} arms {}", verdict.arms.len(), p_is(holm_p));
    }
    text
}

/// The fewest pairs with which each of so many arms can be significant.
fn pairs_needed(arms: usize) -> usize {
    let reaches = |n: &usize| holm_smallest(&vec![*n; arms]).iter().all(|p| *p <= ALPHA);
    (1..).find(reaches).unwrap_or(usize::MAX)
}

/// How many runs ended how.
#[derive(Default)]
struct Tally {
    runs: usize,
    finished: usize,
    diverged: usize,
    failed: usize,
    stopped: usize,
}

impl Tally {
    /// ` (6 diverged, 2 failed)`, or nothing.
    fn brackets(&self) -> String {
        let counts = [(self.diverged, "diverged"), (self.failed, "failed"), (self.stopped, "stopped early")];
        let texts: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        if texts.is_empty() { String::new() } else { format!(" ({})", texts.join(", ")) }
    }
}

fn tally<'a>(results: impl Iterator<Item = &'a ConfigurationResults>) -> Tally {
    results.fold(Tally::default(), |sum, r| Tally {
        runs: sum.runs + r.seeds.len(),
        finished: sum.finished + r.finished(),
        diverged: sum.diverged + r.diverged(),
        failed: sum.failed + r.failed(),
        stopped: sum.stopped + r.stopped(),
    })
}

fn tally_of_arm(plan: &Plan, results: &[ConfigurationResults], arm: &str) -> Tally {
    let of_arm = plan.configurations.iter().zip(results).filter(|(c, _)| c.arm == arm);
    tally(of_arm.map(|(_, r)| r))
}

pub(super) fn notes(plan: &Plan, results: &[ConfigurationResults], verdict: &Verdict) -> Vec<String> {
    let mut notes = Vec::new();
    for arm in &verdict.arms {
        if let Some(comparison) = arm.comparison.as_ref().filter(|c| !c.unpaired.is_empty()) {
            let this = label(&plan.configurations[comparison.configuration]);
            let seeds: Vec<String> = comparison.unpaired.iter().map(u64::to_string).collect();
            let noun = if seeds.len() == 1 { "seed" } else { "seeds" };
            let left_out = format!("left out of the verdict on {this}, as only one side finished");
            notes.push(format!("{left_out}: {noun} {}", seeds.join(", ")));
        }
    }
    for (_, index) in &verdict.best {
        let (configuration, result) = (&plan.configurations[*index], &results[*index]);
        if result.diverged() > 0 {
            let (diverged, runs) = (result.diverged(), count(result.seeds.len(), "run"));
            notes.push(format!("{}: {diverged} of {runs} diverged and are in no mean", label(configuration)));
        }
    }
    if verdict.split == Split::Validation && verdict.arms.iter().any(|a| a.comparison.is_some()) {
        notes.push(
            "there is no test split: the best were chosen and compared on the same values, which flatters them".into(),
        );
    }
    notes.extend(unequal_tuning(plan));
    notes.extend(verdict.best.iter().flat_map(|(_, index)| edges(plan, *index)));
    notes
}

/// The arm with more configurations had more chances to be lucky.
fn unequal_tuning(plan: &Plan) -> Option<String> {
    let arms = arms_of(plan);
    let sizes = arms.iter().map(|arm| plan.configurations.iter().filter(|c| c.arm == *arm).count());
    let sizes: Vec<usize> = sizes.collect();
    if sizes.windows(2).all(|pair| pair[0] == pair[1]) {
        return None;
    }
    let list: Vec<String> = arms.iter().zip(&sizes).map(|(arm, n)| format!("{arm} {n}")).collect();
    Some(format!("the arms had unequal numbers of configurations to choose from: {}", list.join(", ")))
}

/// The axes at whose end the best configuration lies, of those with several numbers.
fn edges(plan: &Plan, best: usize) -> Vec<String> {
    let best = &plan.configurations[best];
    let of_arm = || plan.configurations.iter().filter(|c| c.arm == best.arm);
    let mut notes = Vec::new();
    for axis in &best.axes {
        let same_axis = of_arm().flat_map(|c| &c.axes).filter(|a| a.axis == axis.axis);
        let texts: BTreeSet<&str> = same_axis.map(|a| a.value.as_str()).collect();
        let numbers: Result<Vec<f64>, _> = texts.iter().map(|t| t.parse()).collect();
        let (Ok(numbers), Ok(value)) = (numbers, axis.value.parse::<f64>()) else {
            continue;
        };
        let end = if numbers.len() < 2 {
            continue;
        } else if numbers.iter().all(|x| *x >= value) {
            "smallest"
        } else if numbers.iter().all(|x| *x <= value) {
            "largest"
        } else {
            continue;
        };
        let (arm, name) = (&best.arm, &axis.axis);
        notes.push(format!(
            "the best {name} of {arm}, {}, is the {end} that was tried: a better one may lie beyond",
            axis.value
        ));
    }
    notes
}

/// `lower is better` or `higher is better`.
pub(super) fn direction(plan: &Plan) -> &'static str {
    match better(plan.compare.metric) {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    }
}
