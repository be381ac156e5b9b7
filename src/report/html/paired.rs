//! The differences by seed, of each arm's best from the baseline's.

use super::super::metric::{better, metric_name, test_name};
use super::super::verdict::{Comparison, Split};
use super::super::wording::label;
use super::drawing;
use super::hero::sides;
use super::page::Source;
use super::plot::{Axis, Group, Plot, Rule, Size, Style};
use super::scale::{Kind, Scale};
use super::text::{count, slug};
use crate::stats::{Interval, pair_by_seed};

/// Seeds of one plot.
const MOST_SEEDS: usize = 60;

/// The section; nothing if there is no pair.
pub(super) fn section(source: &Source) -> String {
    let plots: String = plots(source).iter().map(drawing::figure).collect();
    if plots.is_empty() {
        return plots;
    }
    let on = match source.analysis.verdict.split {
        Split::Test => "on the test split",
        Split::Validation => "on validation",
    };
    format!(
        "<section id=\"paired\"><h2>Differences by seed</h2><p class=\"sub\">Each dot is a pair of runs with one seed, \
         {on}; the last row is the mean with its 95% t interval. What is consistent over seeds lies on one side of the \
         dashed line.</p><div class=\"grid2\">{plots}</div></section>"
    )
}

/// A plot for each arm that has pairs with the baseline.
pub(in crate::report) fn plots(source: &Source) -> Vec<Plot> {
    let arms = source.analysis.verdict.arms.iter();
    arms.filter_map(|arm| plot(source, arm.comparison.as_ref()?, &arm.arm)).collect()
}

fn plot(source: &Source, comparison: &Comparison, arm: &str) -> Option<Plot> {
    let (plan, analysis) = (source.plan, source.analysis);
    let (baseline, paired) = (analysis.verdict.baseline?, comparison.paired?);
    let values = |index: usize| match analysis.verdict.split {
        Split::Test => analysis.configurations[index].test_values(),
        Split::Validation => analysis.configurations[index].values(),
    };
    let pairing = pair_by_seed(&values(baseline), &values(comparison.configuration));
    let differences: Vec<(u64, f64)> =
        pairing.seeds.iter().zip(&pairing.values).map(|(seed, (a, b))| (*seed, b - a)).collect();
    let shown = &differences[..differences.len().min(MOST_SEEDS)];
    let ends = paired.ci95.map_or([paired.mean_diff; 2], |Interval { lo, hi }| [lo, hi]);
    let x = Scale::over(Kind::Linear, shown.iter().map(|d| d.1).chain(ends).chain([0.0]), 0.06);
    let rows = shown.len() as f64;
    let name = match analysis.verdict.split {
        Split::Test => test_name(analysis.verdict.metric),
        Split::Validation => metric_name(analysis.verdict.metric),
    };
    let (this, base) = (label(&plan.configurations[comparison.configuration]), label(&plan.configurations[baseline]));
    let mut ticks: Vec<(f64, String)> = vec![(0.0, "mean".to_owned())];
    let every = shown.len().div_ceil(20).max(1);
    ticks.extend(shown.iter().enumerate().step_by(every).map(|(i, (seed, _))| (rows - i as f64, seed.to_string())));
    let left_out = differences.len() - shown.len();
    let more = if left_out > 0 { format!(", {} more not drawn", count(left_out, "seed")) } else { String::new() };
    let list: Vec<String> = shown.iter().map(|(seed, d)| format!("seed {seed}: {d:+.4}")).collect();
    let y = Scale { kind: Kind::Linear, lo: -0.8, hi: rows + 0.8 };
    let mut plot = Plot::new(
        format!("paired-{}", slug(arm)),
        format!("{this} minus {base}"),
        Axis::new(sides(better(analysis.verdict.metric), name), x, 5),
        Axis { title: format!("seed{more}"), scale: y, ticks },
        if shown.len() > 12 { Size::Large } else { Size::Medium },
    );
    plot.description = format!("Differences in {name}. {}; mean {:+.4}.", list.join("; "), paired.mean_diff);
    plot.rule(Rule::Reference, (0.0, -0.8), (0.0, rows + 0.8));
    plot.open(Group::new(comparison.configuration, Style::Solid));
    for (i, (seed, difference)) in shown.iter().enumerate() {
        plot.rule(Rule::Stem, (0.0, rows - i as f64), (*difference, rows - i as f64));
        plot.dot(*difference, rows - i as f64, format!("seed {seed}: {difference:+.4}"));
    }
    plot.rule(Rule::Whisker, (ends[0], 0.0), (ends[1], 0.0));
    plot.dot(paired.mean_diff, 0.0, format!("mean: {:+.4}", paired.mean_diff));
    plot.close();
    Some(plot)
}
