//! The verdict, over all that can happen to runs.

use super::{done, noise, results};
use crate::plan::{Metric, Plan};
use crate::report::{Finding, SeedState, Split, Verdict, verdict};
use crate::testing::plan;

const SEEDS: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// The best of adamw (the first rate) and of sr4 (the second) have these test values by seed; the others are worse on
/// validation.
fn two_arms(base: &[f64], other: &[f64]) -> Verdict {
    let seeds: Vec<u64> = (1..=base.len() as u64).collect();
    let plan = plan(&[("adamw", &["0.001", "0.003"]), ("sr4", &["0.001", "0.003"])], &seeds);
    let results = results(&plan, |c, seed| {
        let (values, best) = if c.arm == "adamw" { (base, "0.001") } else { (other, "0.003") };
        let test = values[seed as usize - 1];
        let worse = if c.axes[0].value == best { 0.0 } else { 0.5 };
        SeedState::Finished {
            value: test - 0.1 + worse,
            test: Some(test - worse), // looks better on the test split, which selection must not see
        }
    });
    verdict(&plan, &results)
}

// Means, intervals, p and seeds needed in these sentences: scipy and statsmodels on the same values.

const BASE: [f64; 8] = [2.31, 2.29, 2.35, 2.27, 2.33, 2.30, 2.28, 2.32];
const OTHER: [f64; 8] = [2.262, 2.233, 2.305, 2.231, 2.271, 2.256, 2.225, 2.283];

#[test]
fn the_better_arm_is_named_with_size_interval_n_and_p() {
    let verdict = two_arms(&BASE, &OTHER);
    assert_eq!(verdict.best, [("adamw".to_owned(), 0), ("sr4".to_owned(), 3)]);
    assert_eq!((verdict.baseline, verdict.split), (Some(0), Split::Test));
    assert_eq!(verdict.arms[0].finding, Finding::Better);
    assert_eq!(
        verdict.sentence,
        "sr4 (lr=0.003) is better than adamw (lr=0.001) on the test split: test_bpb is lower by 0.0480 on average, \
         95% interval of the difference -0.0549 to -0.0411 (n = 8 paired by seed, exact sign-flip p = 0.0078)."
    );
    assert_eq!(verdict.exploratory.len(), 3);
    assert!(verdict.exploratory.iter().all(|c| c.holm_p >= c.paired.map(|p| p.sign_flip_p)));
}

#[test]
fn a_worse_arm() {
    let verdict = two_arms(&OTHER, &BASE);
    assert_eq!(verdict.arms[0].finding, Finding::Worse);
    let start = "sr4 (lr=0.003) is worse than adamw (lr=0.001) on the test split: test_bpb is higher by 0.0480 on";
    assert!(verdict.sentence.starts_with(start), "{}", verdict.sentence);
}

#[test]
fn arms_that_cannot_be_told_apart() {
    let a = [2.17416, 2.27307, 2.29757, 2.30567, 2.22349, 2.27611, 2.25107, 2.25956, 2.35304, 2.25962];
    let b = [2.16351, 2.28076, 2.2759, 2.29344, 2.2157, 2.26739, 2.21657, 2.25108, 2.37022, 2.21868];
    let verdict = two_arms(&a, &b);
    assert_eq!(verdict.arms[0].finding, Finding::NoDifference);
    assert_eq!(
        verdict.sentence,
        "No difference is shown between sr4 (lr=0.003) and adamw (lr=0.001) on the test split: test_bpb is lower by 0.0120 on \
         average, 95% interval of the difference -0.0244 to 0.0004 (n = 10 paired by seed, exact sign-flip p = 0.0527). To see a \
         difference of this size about 19 seeds are needed."
    );
}

#[test]
fn five_seeds_are_not_enough_however_clear() {
    let a = [2.30006, 2.31494, 2.28629, 2.25547, 2.27727];
    let b = [2.24014, 2.26554, 2.24969, 2.20055, 2.22107];
    let verdict = two_arms(&a, &b);
    assert_eq!(verdict.arms[0].finding, Finding::NotEnoughSeeds);
    assert_eq!(
        verdict.sentence,
        "Not enough seeds to tell sr4 (lr=0.003) from adamw (lr=0.001) on the test split: 5 pairs of seeds cannot reach \
         p = 0.05, at least 6 are needed. So far test_bpb is lower by 0.0514 on average, 95% interval of the difference -0.0627 to \
         -0.0401 (n = 5 paired by seed, exact sign-flip p = 0.0625)."
    );
}

#[test]
fn one_seed_says_what_it_can() {
    let plan = plan(&[("adamw", &[]), ("sr4", &[])], &[7]);
    let verdict = verdict(&plan, &results(&plan, |c, _| done(if c.arm == "sr4" { 2.0 } else { 2.5 })));
    assert_eq!(
        verdict.sentence,
        "Not enough seeds to tell sr4 from adamw on the test split: 1 pair of seeds cannot reach p = 0.05, at least 6 are needed. \
         So far test_bpb is lower by 0.5000 on average (n = 1 paired by seed, exact sign-flip p = 1.0000)."
    );
}

#[test]
fn several_arms_are_corrected_for_and_need_more_seeds() {
    let arms: [(&str, &[&str]); 3] = [("adamw", &[]), ("lion", &[]), ("sr4", &[])];
    let of = |seeds: &[u64]| {
        let plan = plan(&arms, seeds);
        verdict(
            &plan,
            &results(&plan, |c, seed| match c.arm.as_str() {
                "adamw" => done(2.3 + noise(seed, 0)),
                "lion" => done(2.3 + noise(seed, 1)),
                _ => done(2.2 + noise(seed, 2)),
            }),
        )
    };
    let six = of(&SEEDS[..6]);
    assert!(six.arms.iter().all(|arm| arm.finding == Finding::NotEnoughSeeds));
    assert!(six.sentence.contains("at least 7 are needed"), "{}", six.sentence);
    let eight = of(&SEEDS);
    assert_eq!((eight.arms[0].finding, eight.arms[1].finding), (Finding::NoDifference, Finding::Better));
    let sr4 = eight.arms[1].comparison.as_ref().unwrap();
    assert_eq!((sr4.paired.unwrap().sign_flip_p, sr4.holm_p), (0.0078125, Some(0.015625)));
    let want = "exact sign-flip p = 0.0078, corrected for 2 arms p = 0.0156).";
    assert!(eight.sentence.ends_with(want), "{}", eight.sentence);
}

#[test]
fn accuracy_is_better_when_higher() {
    let mut plan = plan(&[("adamw", &[]), ("sr4", &[])], &SEEDS);
    plan.compare.metric = Metric::ValAcc;
    let verdict = verdict(
        &plan,
        &results(&plan, |c, seed| {
            done(if c.arm == "sr4" { 0.4 } else { 0.3 } + noise(seed, c.axes.len() as u64) / 10.0 + seed as f64 / 1e4)
        }),
    );
    assert_eq!(verdict.arms[0].finding, Finding::Better);
    assert!(verdict.sentence.contains("test_acc is higher by"), "{}", verdict.sentence);
    assert_eq!(verdict.arms[0].comparison.as_ref().unwrap().paired.unwrap().prob_improvement, 1.0);
}

#[test]
fn a_configuration_that_diverges_is_not_chosen_for_its_mean() {
    let plan = plan(&[("adamw", &["0.001", "0.003"]), ("sr4", &["0.001", "0.003"])], &SEEDS);
    let verdict = verdict(
        &plan,
        &results(&plan, |c, seed| match (c.arm.as_str(), c.axes[0].value.as_str()) {
            ("sr4", "0.003") if seed == 3 => SeedState::Diverged,
            ("sr4", "0.003") => done(1.5),
            _ => done(2.3 + noise(seed, 0)),
        }),
    );
    assert_eq!(verdict.best[1], ("sr4".to_owned(), 2));
    assert!(!verdict.notes.iter().any(|note| note.contains("diverged")));
}

#[test]
fn missing_seeds_are_left_out_of_pairs_and_listed() {
    let plan = plan(&[("adamw", &[]), ("sr4", &[])], &SEEDS);
    let verdict = verdict(
        &plan,
        &results(&plan, |c, seed| match (c.arm.as_str(), seed) {
            ("adamw", 2) => SeedState::Failed,
            ("sr4", 5) => SeedState::Diverged,
            ("sr4", _) => done(2.0 + noise(seed, 1)),
            _ => done(2.3 + noise(seed, 2)),
        }),
    );
    let comparison = verdict.arms[0].comparison.as_ref().unwrap();
    assert_eq!((comparison.paired.unwrap().n, comparison.unpaired.as_slice()), (6, &[2, 5][..]));
    assert!(verdict.sentence.starts_with("Preliminary, with 15 of 16 runs. sr4 is better"), "{}", verdict.sentence);
    assert_eq!(
        verdict.notes,
        [
            "left out of the verdict on sr4, as only one side finished: seeds 2, 5",
            "sr4: 1 of 8 runs diverged and are in no mean",
        ]
    );
}

#[test]
fn no_common_seed_is_no_verdict() {
    let plan = plan(&[("adamw", &[]), ("sr4", &[])], &[1, 2]);
    let verdict = verdict(
        &plan,
        &results(&plan, |c, seed| if (c.arm == "sr4") == (seed == 1) { done(2.0) } else { SeedState::Failed }),
    );
    assert_eq!(verdict.arms[0].finding, Finding::NoCommonSeed);
    assert_eq!(
        verdict.sentence,
        "Preliminary, with 2 of 4 runs. No verdict on sr4 against adamw: no seed has finished on both sides."
    );
}

#[test]
fn without_a_test_split_it_is_labelled() {
    let plan = plan(&[("adamw", &[]), ("sr4", &[])], &SEEDS);
    let verdict = verdict(
        &plan,
        &results(&plan, |c, seed| SeedState::Finished {
            value: if c.arm == "sr4" { 2.0 } else { 2.3 } + noise(seed, c.arm.len() as u64),
            test: None,
        }),
    );
    assert_eq!((verdict.split, verdict.arms[0].finding), (Split::Validation, Finding::Better));
    assert!(verdict.sentence.starts_with("sr4 is better than adamw on validation: val_bpb is lower by"));
    assert_eq!(
        verdict.notes,
        ["there is no test split: the best were chosen and compared on the same values, which flatters them"]
    );
}

#[test]
fn nothing_to_compare() {
    let sentence = |plan: &Plan, state: &dyn Fn(&str, u64) -> SeedState| {
        verdict(plan, &results(plan, |c, seed| state(&c.arm, seed))).sentence
    };
    let two = plan(&[("adamw", &[]), ("sr4", &[])], &[1, 2]);
    assert_eq!(sentence(&two, &|_, _| SeedState::Unfinished), "No verdict: none of the 4 runs has finished.");
    assert_eq!(
        sentence(&two, &|arm, _| if arm == "sr4" { SeedState::Diverged } else { SeedState::Failed }),
        "No verdict: none of the 4 runs has finished (2 diverged, 2 failed)."
    );
    assert_eq!(
        sentence(&two, &|arm, _| if arm == "sr4" { done(2.0) } else { SeedState::Diverged }),
        "No verdict: no run of the baseline `adamw` has finished (2 diverged)."
    );
    assert_eq!(
        sentence(&two, &|arm, _| if arm == "sr4" { SeedState::Diverged } else { done(2.0) }),
        "No verdict on `sr4`: no run of it has finished (2 diverged)."
    );
    let one = plan(&[("adamw", &["0.1", "0.2"])], &[1, 2]);
    assert_eq!(sentence(&one, &|_, _| done(2.0)), "No verdict: `adamw` is the only arm of the sweep.");
}

#[test]
fn chances_and_edges_are_pointed_out() {
    let plan = plan(&[("adamw", &["0.001", "0.003", "0.01"]), ("sr4", &["0.001"])], &SEEDS);
    let verdict = verdict(
        &plan,
        &results(&plan, |c, seed| {
            let lr: f64 = c.axes[0].value.parse().unwrap();
            done(2.3 - lr + noise(seed, 9))
        }),
    );
    assert_eq!(
        verdict.notes,
        [
            "the arms had unequal numbers of configurations to choose from: adamw 3, sr4 1",
            "the best lr of adamw, 0.01, is the largest that was tried: a better one may lie beyond",
        ]
    );
}
