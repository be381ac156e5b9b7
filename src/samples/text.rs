//! The comparison as text.

use std::fmt::Write;
use std::path::Path;

use super::compare::{Comparisons, Finding, PairedComparison};
use super::gather::{Request, Samples};
use crate::cfmt;
use crate::report::{Align, Grid, p_text, paragraph};
use crate::stats::{ALPHA, Better, DRAWS, EXACT_PAIRS, Interval, Paired, Summary, seeds_needed};

/// Rows of a table; `--json` has all.
const MOST_ROWS: usize = 40;
/// Warnings and configurations without seeds that are listed.
const MOST_LINES: usize = 10;
/// Seeds that are listed.
const MOST_SEEDS: usize = 12;

/// The values described, the comparisons with the baseline's best, what follows from them, and what was left out.
pub fn text(path: &Path, samples: &Samples, comparisons: &Comparisons, request: &Request) -> String {
    let mut text = String::new();
    paragraph(&mut text, &title(path, samples, request), "");
    text.push('\n');
    text += &descriptions(samples, comparisons);
    for comparison in &comparisons.arms {
        if let (Some(paired), Some(baseline)) = (&comparison.paired, comparisons.baseline) {
            text.push('\n');
            text += &block(samples, comparison, paired, baseline);
        }
    }
    text += &exploratory(samples, comparisons);
    text.push('\n');
    for sentence in sentences(samples, comparisons, request) {
        paragraph(&mut text, &sentence, "");
    }
    for note in notes(samples, comparisons) {
        paragraph(&mut text, &format!("Note: {note}."), "  ");
    }
    for missing in limited(missing_seeds(samples), "configurations with missing seeds") {
        paragraph(&mut text, &format!("Missing: {missing}"), "  ");
    }
    for warning in limited(samples.warnings.clone(), "warnings") {
        paragraph(&mut text, &format!("Warning: {warning}"), "  ");
    }
    text
}

/// Six significant digits.
fn short(x: f64) -> String {
    let mut text = String::new();
    cfmt::general(&mut text, x, 6);
    text
}

fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

fn limited(mut lines: Vec<String>, what: &str) -> Vec<String> {
    if lines.len() > MOST_LINES {
        let more = lines.len() - MOST_LINES;
        lines.truncate(MOST_LINES);
        lines.push(format!("and {more} more {what}"));
    }
    lines
}

fn title(path: &Path, samples: &Samples, request: &Request) -> String {
    let direction = match samples.better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    };
    let guessed = if samples.guessed { " (by its name)" } else { "" };
    let rows = count(samples.rows, "row");
    let (configurations, seeds) = (samples.configurations.len(), samples.seeds.len());
    let (configurations, seeds) = (count(configurations, "configuration"), count(seeds, "seed"));
    format!("{}: {}, {direction}{guessed}; {rows}, {configurations}, {seeds}", path.display(), request.metric)
}

/// The configurations, best first.
fn descriptions(samples: &Samples, comparisons: &Comparisons) -> String {
    let right = |name| (name, Align::Right);
    let mut grid = Grid::new(&[
        ("configuration", Align::Left),
        right("n"),
        right("div"),
        right("none"),
        ("mean ± half of 95%", Align::Left),
        right("sd"),
        right("median"),
        right("iqm"),
        right("min"),
        right("max"),
    ]);
    let order = best_first(samples, comparisons);
    for i in order.iter().take(MOST_ROWS) {
        let (configuration, summary) = (&samples.configurations[*i], comparisons.summaries[*i]);
        let cell = |value: fn(&Summary) -> Option<f64>| summary.as_ref().and_then(value).map_or("-".to_owned(), short);
        let half = summary.and_then(|s| s.ci95).map(|i| format!(" ± {}", short((i.hi - i.lo) / 2.0)));
        grid.row(vec![
            configuration.label(),
            format!("{}/{}", configuration.values.len(), samples.seeds.len()),
            configuration.diverged.len().to_string(),
            (configuration.without_value.len() + configuration.absent.len()).to_string(),
            cell(|s| Some(s.mean)) + &half.unwrap_or_default(),
            cell(|s| s.sd),
            cell(|s| Some(s.median)),
            cell(|s| Some(s.iqm)),
            cell(|s| Some(s.min)),
            cell(|s| Some(s.max)),
        ]);
    }
    let mut text = grid.text();
    if order.len() > MOST_ROWS {
        let _ = writeln!(text, "... and {} more with --json", order.len() - MOST_ROWS);
    }
    text + "n: values of seeds; div: NaN or infinite, in no mean; none: no row or no number; sd with n - 1.\n"
}

fn best_first(samples: &Samples, comparisons: &Comparisons) -> Vec<usize> {
    let key = |i: &usize| match (comparisons.summaries[*i], samples.better) {
        (None, _) => f64::INFINITY,
        (Some(summary), Better::Lower) => summary.mean,
        (Some(summary), Better::Higher) => -summary.mean,
    };
    let mut order: Vec<usize> = (0..samples.configurations.len()).collect();
    order.sort_by(|a, b| key(a).total_cmp(&key(b)));
    order
}

fn interval(interval: Option<Interval>) -> String {
    interval.map_or("-".to_owned(), |i| format!("[{}, {}]", short(i.lo), short(i.hi)))
}

/// All that is known of a comparison.
fn block(samples: &Samples, comparison: &PairedComparison, paired: &Paired, baseline: usize) -> String {
    let label = |i: usize| samples.configurations[i].label();
    let mut text = String::new();
    let title =
        format!("{} minus {}, {} by seed", label(comparison.configuration), label(baseline), count(paired.n, "pair"));
    paragraph(&mut text, &title, "  ");
    let kind = if paired.n <= EXACT_PAIRS { "exact".to_owned() } else { format!("{DRAWS} random signings") };
    let optional = |x: Option<f64>, form: fn(f64) -> String| x.map_or("-".to_owned(), form);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22}{value}");
    };
    line("mean difference", short(paired.mean_diff));
    line("95% interval (t)", interval(paired.ci95));
    line("95% interval (BCa)", interval(paired.bca));
    line("sign-flip p", format!("{} ({kind})", p_text(paired.sign_flip_p)));
    line("  corrected (Holm)", optional(comparison.holm_p, p_text));
    line("Wilcoxon p", p_text(paired.wilcoxon_p));
    line("paired t p", optional(paired.t_p, p_text));
    line("Cohen's d_z", optional(paired.cohen_dz, short));
    line("P(improvement)", short(paired.prob_improvement));
    if !comparison.unpaired.is_empty() {
        line("on one side only", seed_list(samples, &comparison.unpaired));
    }
    text
}

fn seed_list(samples: &Samples, numbers: &[u64]) -> String {
    let names = numbers.iter().take(MOST_SEEDS).filter_map(|n| samples.seeds.get(*n as usize).cloned());
    let names = names.collect::<Vec<_>>().join(", ");
    let more =
        if numbers.len() > MOST_SEEDS { format!(" and {} more", numbers.len() - MOST_SEEDS) } else { String::new() };
    format!("{}{names}{more}", if numbers.len() == 1 { "seed " } else { "seeds " })
}

fn exploratory(samples: &Samples, comparisons: &Comparisons) -> String {
    let Some(baseline) = comparisons.baseline.filter(|_| !comparisons.exploratory.is_empty()) else {
        return String::new();
    };
    let mut grid = Grid::new(&[
        ("configuration", Align::Left),
        ("pairs", Align::Right),
        ("difference [95%]", Align::Left),
        ("p", Align::Right),
        ("p (Holm)", Align::Right),
    ]);
    for comparison in comparisons.exploratory.iter().take(MOST_ROWS) {
        let difference = match &comparison.paired {
            Some(paired) => {
                let interval = paired.ci95.map(|i| format!(" {}", interval(Some(i))));
                short(paired.mean_diff) + &interval.unwrap_or_default()
            }
            None => "no seed in common".to_owned(),
        };
        grid.row(vec![
            samples.configurations[comparison.configuration].label(),
            comparison.paired.map_or(0, |p| p.n).to_string(),
            difference,
            comparison.paired.map_or(String::new(), |p| p_text(p.sign_flip_p)),
            comparison.holm_p.map_or(String::new(), p_text),
        ]);
    }
    let label = samples.configurations[baseline].label();
    let mut text = format!("\nFor exploration only: every configuration against {label}\n") + &grid.text();
    if comparisons.exploratory.len() > MOST_ROWS {
        let _ = writeln!(text, "... and {} more with --json", comparisons.exploratory.len() - MOST_ROWS);
    }
    text
}

fn sentences(samples: &Samples, comparisons: &Comparisons, request: &Request) -> Vec<String> {
    if comparisons.arms.is_empty() {
        return vec![format!("No verdict: `{}` is the only arm.", request.baseline)];
    }
    let Some(baseline) = comparisons.baseline else {
        return vec![format!("No verdict: the baseline `{}` has no value.", request.baseline)];
    };
    let base = samples.configurations[baseline].label();
    let name = request.test.as_ref().unwrap_or(&request.metric);
    comparisons.arms.iter().map(|comparison| sentence(samples, comparisons, comparison, &base, name)).collect()
}

fn sentence(samples: &Samples, all: &Comparisons, comparison: &PairedComparison, base: &str, name: &str) -> String {
    let this = samples.configurations[comparison.configuration].label();
    let Some(paired) = &comparison.paired else {
        return match comparison.finding {
            Finding::NoValue => format!("No verdict on {this}: it has no value."),
            _ => format!("No verdict on {this} against {base}: no seed has a value on both sides."),
        };
    };
    let direction = match paired.mean_diff {
        d if d < 0.0 => format!("lower by {}", short(-d)),
        d if d > 0.0 => format!("higher by {}", short(d)),
        _ => "the same".to_owned(),
    };
    let difference = format!("{name} is {direction} on average");
    let corrected = match comparison.holm_p {
        Some(p) if all.arms.len() > 1 => format!(", corrected for {} arms {}", all.arms.len(), p_is(p)),
        _ => String::new(),
    };
    let test = format!("n = {} paired by seed, sign-flip {}{corrected}", paired.n, p_is(paired.sign_flip_p));
    match comparison.finding {
        Finding::Better => format!("{this} is better than {base}: {difference} ({test})."),
        Finding::Worse => format!("{this} is worse than {base}: {difference} ({test})."),
        Finding::NoDifference => {
            let needed = paired.cohen_dz.and_then(seeds_needed).filter(|n| *n as usize > paired.n);
            let needed = needed.map(|n| format!(" To see a difference of this size about {n} seeds are needed."));
            format!(
                "No difference is shown between {this} and {base}: {difference} ({test}).{}",
                needed.unwrap_or_default()
            )
        }
        _ => {
            let corrected =
                if all.arms.len() > 1 { format!(", corrected for {} arms", all.arms.len()) } else { String::new() };
            let pairs = count(paired.n, "pair");
            format!(
                "Not enough seeds to tell {this} from {base}: {pairs} cannot reach p = {ALPHA}{corrected}. So far {difference} ({test})."
            )
        }
    }
}

fn p_is(p: f64) -> String {
    match p_text(p).strip_prefix('<') {
        Some(bound) => format!("p < {bound}"),
        None => format!("p = {}", p_text(p)),
    }
}

/// What a reader should know beside the verdict.
pub(super) fn notes(samples: &Samples, comparisons: &Comparisons) -> Vec<String> {
    let mut notes = Vec::new();
    let arms = arms_with_sizes(samples);
    let several = arms.iter().any(|(_, n)| *n > 1);
    if several && !comparisons.on_test {
        notes.push(
            "each arm's best was chosen and compared on the same numbers, which flatters it; give a column of other numbers with --test".to_owned(),
        );
    }
    if several && arms.windows(2).any(|pair| pair[0].1 != pair[1].1) {
        let list: Vec<String> = arms.iter().map(|(arm, n)| format!("{arm} {n}")).collect();
        notes.push(format!("the arms had unequal numbers of configurations to choose from: {}", list.join(", ")));
    }
    for i in &comparisons.best {
        let configuration = &samples.configurations[*i];
        if !configuration.diverged.is_empty() {
            let (n, seeds) = (configuration.diverged.len(), seed_list(samples, &configuration.diverged));
            notes.push(format!(
                "{}: {} diverged and {} in no mean, {seeds}",
                configuration.label(),
                count(n, "run"),
                if n == 1 { "is" } else { "are" }
            ));
        }
        if configuration.values.len() == 1 {
            notes.push(format!("{} has one value: there is no interval", configuration.label()));
        }
    }
    notes
}

fn arms_with_sizes(samples: &Samples) -> Vec<(&str, usize)> {
    let mut arms: Vec<(&str, usize)> = Vec::new();
    for configuration in &samples.configurations {
        match arms.iter_mut().find(|(arm, _)| *arm == configuration.arm) {
            Some((_, n)) => *n += 1,
            None => arms.push((&configuration.arm, 1)),
        }
    }
    arms
}

/// The configurations that lack seeds of the file.
fn missing_seeds(samples: &Samples) -> Vec<String> {
    let mut lines = Vec::new();
    for configuration in &samples.configurations {
        for (seeds, what) in [(&configuration.absent, "no row"), (&configuration.without_value, "no value")] {
            if !seeds.is_empty() {
                lines.push(format!("{} has {what} for {}", configuration.label(), seed_list(samples, seeds)));
            }
        }
    }
    lines
}
