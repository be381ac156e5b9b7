//! summary.csv: a row for each configuration.

use super::analysis::{Analysis, ConfigurationResults};
use super::columns::{AxisForms, Table, ends, header, optional};
use super::metric::metric_name;
use crate::plan::Plan;

/// After arm and axes. `test_*` describe the metric's counterpart on the test split.
const COLUMNS: [&str; 16] = [
    "n",
    "n_diverged",
    "n_failed",
    "metric",
    "mean",
    "sd",
    "sem",
    "ci95_lo",
    "ci95_hi",
    "median",
    "iqm",
    "min",
    "max",
    "test_mean",
    "test_ci95_lo",
    "test_ci95_hi",
];

/// The table, in the plan's order.
pub(super) fn summary_csv(plan: &Plan, analysis: &Analysis) -> Vec<u8> {
    let mut table = Table::new(header(plan, &COLUMNS));
    let forms = AxisForms::of(plan);
    for (configuration, results) in plan.configurations.iter().zip(&analysis.configurations) {
        let mut row = forms.first_cells(plan, &configuration.arm, &configuration.axes);
        row.extend(cells(results, metric_name(plan.compare.metric)));
        table.row(row);
    }
    table.into_csv()
}

fn cells(results: &ConfigurationResults, metric: &str) -> Vec<String> {
    let mut cells = vec![
        results.finished().to_string(),
        results.diverged().to_string(),
        results.failed().to_string(),
        metric.to_owned(),
    ];
    let summary = results.summary();
    cells.push(optional(summary.map(|s| s.mean)));
    cells.push(optional(summary.and_then(|s| s.sd)));
    cells.push(optional(summary.and_then(|s| s.sem)));
    cells.extend(ends(summary.and_then(|s| s.ci95)));
    cells.push(optional(summary.map(|s| s.median)));
    cells.push(optional(summary.map(|s| s.iqm)));
    cells.push(optional(summary.map(|s| s.min)));
    cells.push(optional(summary.map(|s| s.max)));
    let test = results.test_summary();
    cells.push(optional(test.map(|s| s.mean)));
    cells.extend(ends(test.and_then(|s| s.ci95)));
    cells
}
