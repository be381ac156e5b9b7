//! comparisons.csv: a row for each comparison with the baseline's best configuration.

use super::analysis::Analysis;
use super::columns::{AxisForms, Table, ends, header, optional};
use super::verdict::{Comparison, Split};
use super::wording::label;
use crate::plan::Plan;

/// After arm and axes.
const COLUMNS: [&str; 16] = [
    "baseline",
    "n_pairs",
    "seeds_unpaired",
    "mean_diff",
    "ci95_lo",
    "ci95_hi",
    "bca_lo",
    "bca_hi",
    "sign_flip_p",
    "wilcoxon_p",
    "t_p",
    "holm_p",
    "cohen_dz",
    "prob_improvement",
    "split",
    "role",
];

/// The table: the verdict's rows, then the exploratory ones, each in the plan's order.
pub(super) fn comparisons_csv(plan: &Plan, analysis: &Analysis) -> Vec<u8> {
    let mut table = Table::new(header(plan, &COLUMNS));
    let forms = AxisForms::of(plan);
    let verdict = &analysis.verdict;
    let Some(baseline) = verdict.baseline.map(|index| label(&plan.configurations[index])) else {
        return table.into_csv();
    };
    let split = match verdict.split {
        Split::Test => "test",
        Split::Validation => "validation",
    };
    let role = |comparison: &Comparison, role: &'static str| {
        let arm = &plan.configurations[comparison.configuration].arm;
        if verdict.confounded.iter().any(|(name, _)| name == arm) { "confounded" } else { role }
    };
    for comparison in verdict.arms.iter().filter_map(|arm| arm.comparison.as_ref()) {
        table.row(row(plan, &forms, &baseline, comparison, [split, role(comparison, "verdict")]));
    }
    for comparison in &verdict.exploratory {
        table.row(row(plan, &forms, &baseline, comparison, ["validation", role(comparison, "exploratory")]));
    }
    table.into_csv()
}

fn row(plan: &Plan, forms: &AxisForms, baseline: &str, comparison: &Comparison, last: [&str; 2]) -> Vec<String> {
    let configuration = &plan.configurations[comparison.configuration];
    let mut row = forms.first_cells(plan, &configuration.arm, &configuration.axes);
    let paired = comparison.paired.as_ref();
    let unpaired: Vec<String> = comparison.unpaired.iter().map(u64::to_string).collect();
    row.extend([
        baseline.to_owned(),
        paired.map_or(0, |p| p.n).to_string(),
        format!("[{}]", unpaired.join(" ")),
        optional(paired.map(|p| p.mean_diff)),
    ]);
    row.extend(ends(paired.and_then(|p| p.ci95)));
    row.extend(ends(paired.and_then(|p| p.bca)));
    row.extend([
        optional(paired.map(|p| p.sign_flip_p)),
        optional(paired.map(|p| p.wilcoxon_p)),
        optional(paired.and_then(|p| p.t_p)),
        optional(comparison.holm_p),
        optional(paired.and_then(|p| p.cohen_dz)),
        optional(paired.map(|p| p.prob_improvement)),
    ]);
    row.extend(last.map(str::to_owned));
    row
}
