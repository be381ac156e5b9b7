//! The closing text, as text.

use std::path::Path;

use super::{done, noise, results};
use crate::plan::Plan;
use crate::report::{Analysis, ConfigurationResults, SeedState, closing_text, verdict};
use crate::testing::plan;

pub(super) fn analysis(plan: &Plan, configurations: Vec<ConfigurationResults>) -> Analysis {
    Analysis { verdict: verdict(plan, &configurations), configurations, strangers: Vec::new(), warnings: Vec::new() }
}

fn text(plan: &Plan, analysis: &Analysis) -> String {
    closing_text(plan, analysis, Path::new("results/test"), false)
}

/// A sweep in which runs finished, diverged and failed.
pub(super) fn mixed() -> (Plan, Analysis) {
    let plan = plan(&[("adamw", &["0.001", "0.003"]), ("sr4", &["0.001", "0.003"])], &[1, 2, 3, 4, 5, 6]);
    let configurations = results(&plan, |c, seed| match (c.arm.as_str(), c.axes[0].value.as_str(), seed) {
        ("sr4", "0.001", _) => SeedState::Diverged,
        ("sr4", _, 6) => SeedState::Failed,
        ("sr4", ..) => done(2.2 + noise(seed, 1)),
        (_, "0.001", _) => done(2.3 + noise(seed, 2)),
        _ => done(2.35 + noise(seed, 3)),
    });
    let analysis = analysis(&plan, configurations);
    (plan, analysis)
}

#[test]
fn a_sweep_with_all_kinds_of_endings() {
    let (plan, mut analysis) = mixed();
    analysis.strangers = vec!["old_s1-00000000000000aa".to_owned()];
    analysis.warnings = vec!["runs/x: log.csv is missing; the run counts as unfinished".to_owned()];
    assert_eq!(text(&plan, &analysis), include_str!("closing.txt"));
}

#[test]
fn many_long_configurations_stay_within_the_width() {
    let rates: Vec<String> = (0..60).map(|i| format!("0.{:030}", i + 1)).collect();
    let rates: Vec<&str> = rates.iter().map(String::as_str).collect();
    let plan = plan(&[("adamw", &rates), ("a_very_long_name_of_an_arm_indeed", &rates)], &[1, 2, 3, 4, 5, 6, 7]);
    let analysis = analysis(&plan, results(&plan, |c, seed| done(2.0 + noise(seed, c.runs[0] as u64))));
    let text = text(&plan, &analysis);
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(100), "{longest:?}\n{text}");
    assert!(text.contains("... and 80 more in summary.csv"));
}

#[test]
fn escape_codes_only_for_a_terminal() {
    let plan = plan(&[("adamw", &[])], &[1]);
    let analysis = analysis(&plan, results(&plan, |_, _| SeedState::Unfinished));
    assert!(!text(&plan, &analysis).contains('\u{1b}'));
    let coloured = closing_text(&plan, &analysis, Path::new("results/test"), true);
    assert!(coloured.contains("\u{1b}[1mNo verdict: none of the 1 run has finished.\u{1b}[0m"), "{coloured}");
}
