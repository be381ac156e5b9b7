//! The top of the page: the verdict, the size of the effect, and what a reader should know beside it.

use std::fmt::Write;

use super::super::metric::{better, metric_name, test_name};
use super::super::verdict::{ArmVerdict, Finding, Split};
use super::super::wording::{direction, label, p_text, value_text};
use super::page::Source;
use super::plot::{Axis, Group, Plot, Rule, Size, Style};
use super::scale::{Kind, Scale};
use super::text::{count, esc, slug, with_code};
use super::{drawing, table};
use crate::plan::Metric;
use crate::stats::{Better, Interval};

/// The section.
pub(super) fn section(source: &Source) -> String {
    let (plan, verdict) = (source.plan, &source.analysis.verdict);
    let mut html = format!(
        "<header><p class=\"kicker\">diesweep report</p><h1>{}</h1><p class=\"sub\">{}; {}</p>{}</header>\
         <section id=\"verdict\" class=\"{}\"><h2 class=\"visually-hidden\">Verdict</h2>",
        esc(&plan.name),
        esc(&format!("compared by {}, {}", metric_name(plan.compare.metric), direction(plan))),
        esc(&tally(source)),
        running(source),
        tone(source)
    );
    match (verdict.sentence.split_once(": "), verdict.arms.len()) {
        (Some((headline, rest)), 0 | 1) => {
            let _ = write!(
                html,
                "<p class=\"verdict\"><strong>{}:</strong> <span>{}</span></p>",
                with_code(headline),
                with_code(rest)
            );
        }
        _ => {
            let _ = write!(html, "<p class=\"verdict many\"><span>{}</span></p>", with_code(&verdict.sentence));
        }
    }
    verdict.arms.iter().for_each(|arm| html += &effect(source, arm));
    html += &best(source);
    if !verdict.best.is_empty() {
        let _ = write!(html, "<p class=\"sub\">{}</p>", esc(&selection(source)));
    }
    let remarks = remarks(source);
    if !remarks.is_empty() {
        html += "<ul class=\"notes\">";
        remarks.iter().for_each(|remark| {
            let _ = write!(html, "<li>{}</li>", with_code(remark));
        });
        html += "</ul>";
    }
    html += "</section>";
    html
}

/// How many runs ended how.
fn tally(source: &Source) -> String {
    let results = &source.analysis.configurations;
    let sum = |of: fn(&super::super::ConfigurationResults) -> usize| results.iter().map(of).sum::<usize>();
    let runs = results.iter().map(|r| r.seeds.len()).sum::<usize>();
    let mut text = format!("{} of {} finished", sum(|r| r.finished()), count(runs, "run"));
    for (n, what) in
        [(sum(|r| r.diverged()), "diverged"), (sum(|r| r.failed()), "failed"), (sum(|r| r.unfinished()), "not run yet")]
    {
        if n > 0 {
            let _ = write!(text, ", {n} {what}");
        }
    }
    text
}

/// That the sweep is at work, and how far it is.
fn running(source: &Source) -> String {
    let Some(running) = &source.running else {
        return String::new();
    };
    let results = &source.analysis.configurations;
    let (mut ended, mut runs) = (0, 0);
    for configuration in results {
        runs += configuration.seeds.len();
        ended += configuration.seeds.len() - configuration.unfinished();
    }
    format!(
        "<p class=\"running\"><strong>Still running.</strong> <span>{ended} of {} have ended ({:.0}%), as of {}; what \
         follows is preliminary. This page is made anew every {}: reload it to see how far the sweep is. Plots in files \
         and tables come at the end.</span> <progress max=\"{runs}\" value=\"{ended}\" aria-label=\"runs that have ended\">\
         </progress></p>",
        count(runs, "run"),
        if runs == 0 { 100.0 } else { 100.0 * ended as f64 / runs as f64 },
        esc(&running.as_of),
        esc(&running.every)
    )
}

/// The class of the verdict: what colour its edge has.
fn tone(source: &Source) -> &'static str {
    let findings: Vec<Finding> = source.analysis.verdict.arms.iter().map(|arm| arm.finding).collect();
    match findings.as_slice() {
        [Finding::Better] => "better",
        [Finding::Worse] => "worse",
        _ => "open",
    }
}

/// An arm's difference from the baseline: a plot of it, and what goes with it.
fn effect(source: &Source, arm: &ArmVerdict) -> String {
    let verdict = &source.analysis.verdict;
    let (Some(plot), Some(comparison), Some(baseline)) = (effect_plot(source, arm), &arm.comparison, verdict.baseline)
    else {
        return String::new();
    };
    let Some(paired) = &comparison.paired else {
        return String::new();
    };
    let mut facts = vec![("difference", format!("{:+.4}", paired.mean_diff))];
    match paired.ci95 {
        Some(i) => facts.push(("95% interval", format!("{:+.4} to {:+.4}", i.lo, i.hi))),
        None => facts.push(("95% interval", "none: one pair of runs has no spread".to_owned())),
    }
    if let Some(share) = relative(source, paired.mean_diff, baseline) {
        facts.push(("of the baseline’s mean", share));
    }
    let holm = comparison.holm_p.filter(|_| verdict.arms.len() > 1);
    facts.push((if holm.is_some() { "p, corrected" } else { "p" }, p_text(holm.unwrap_or(paired.sign_flip_p))));
    facts.push(("pairs of runs", paired.n.to_string()));
    let mut html = drawing::figure(&plot) + "<dl class=\"facts\">";
    for (term, value) in facts {
        let _ = write!(html, "<div><dt>{}</dt><dd>{}</dd></div>", esc(term), esc(&value));
    }
    html + "</dl>"
}

/// The plots of the arms' differences from the baseline.
pub(in crate::report) fn plots(source: &Source) -> Vec<Plot> {
    source.analysis.verdict.arms.iter().filter_map(|arm| effect_plot(source, arm)).collect()
}

fn effect_plot(source: &Source, arm: &ArmVerdict) -> Option<Plot> {
    let (plan, verdict) = (source.plan, &source.analysis.verdict);
    let comparison = arm.comparison.as_ref()?;
    let (paired, baseline) = (comparison.paired.as_ref()?, verdict.baseline?);
    let name = verdict_metric(source);
    let (this, base) = (label(&plan.configurations[comparison.configuration]), label(&plan.configurations[baseline]));
    let ends = paired.ci95.map_or([paired.mean_diff; 2], |Interval { lo, hi }| [lo, hi]);
    let x = Scale::over(Kind::Linear, [0.0, ends[0], ends[1]], 0.12);
    let y = Axis { title: String::new(), scale: Scale { kind: Kind::Linear, lo: -1.0, hi: 1.0 }, ticks: Vec::new() };
    let mut plot = Plot::new(
        format!("effect-{}", slug(&arm.arm)),
        format!("{this} minus {base}, {name}"),
        Axis::new(sides(better(verdict.metric), name), x, 6),
        y,
        Size::Effect,
    );
    plot.description = format!(
        "Mean difference {:+.4}{}; zero means no difference.",
        paired.mean_diff,
        paired.ci95.map_or(String::new(), |i| format!(", 95% interval {:+.4} to {:+.4}", i.lo, i.hi))
    );
    plot.rule(Rule::Reference, (0.0, -1.0), (0.0, 1.0));
    plot.open(Group::new(comparison.configuration, Style::Solid));
    plot.rule(Rule::Whisker, (ends[0], 0.0), (ends[1], 0.0));
    plot.dot(paired.mean_diff, 0.0, plot.description.clone());
    plot.close();
    Some(plot)
}

/// The name of what the verdict compares.
fn verdict_metric(source: &Source) -> &'static str {
    match source.analysis.verdict.split {
        Split::Test => test_name(source.analysis.verdict.metric),
        Split::Validation => metric_name(source.analysis.verdict.metric),
    }
}

/// The title of an axis of differences.
pub(super) fn sides(better: Better, name: &str) -> String {
    match better {
        Better::Lower => format!("← better · difference in {name} · worse →"),
        Better::Higher => format!("← worse · difference in {name} · better →"),
    }
}

/// A difference in percent of the baseline's mean.
fn relative(source: &Source, difference: f64, baseline: usize) -> Option<String> {
    let results = &source.analysis.configurations[baseline];
    let summary = match source.analysis.verdict.split {
        Split::Test => results.test_summary(),
        Split::Validation => results.summary(),
    };
    let mean = summary?.mean;
    (mean > 0.0).then(|| format!("{:+.1}%", 100.0 * difference / mean))
}

/// The best configuration of each arm, with the values that the verdict is on.
fn best(source: &Source) -> String {
    let (plan, analysis) = (source.plan, source.analysis);
    let verdict = &analysis.verdict;
    if verdict.best.is_empty() {
        return String::new();
    }
    let on_test = verdict.split == Split::Test;
    let of = |c: usize| {
        let results = &analysis.configurations[c];
        if on_test { results.test_summary() } else { results.summary() }
    };
    let scale = table::scale(verdict.best.iter().filter_map(|(_, c)| of(*c)));
    let chosen_by = metric_name(verdict.metric);
    let mut html = format!(
        "<div class=\"scroll\"><table class=\"best\"><thead><tr><th scope=\"col\">best of each arm</th>\
         <th scope=\"col\" class=\"num desk\">chosen from</th><th scope=\"col\" class=\"num desk\">n</th>{}\
         <th scope=\"col\" class=\"num\">{}</th><th scope=\"col\" class=\"wide\">95% interval, {} to {}</th></tr></thead><tbody>",
        if on_test { format!("<th scope=\"col\" class=\"num desk\">{chosen_by}</th>") } else { String::new() },
        verdict_metric(source),
        value_text(scale.lo),
        value_text(scale.hi)
    );
    for (arm, c) in &verdict.best {
        let results = &analysis.configurations[*c];
        let from = plan.configurations.iter().filter(|other| other.arm == *arm).count();
        let validation = results.summary().map_or_else(|| "–".to_owned(), |s| value_text(s.mean));
        let _ = write!(
            html,
            "<tr class=\"k{c}\"><th scope=\"row\"{}><span class=\"chip\"></span>{}</th><td class=\"num desk\">{}</td>\
             <td class=\"num desk\">{}</td>{}<td class=\"num\"><b>{}</b></td><td class=\"wide\">{}</td></tr>",
            table::width_class(&label(&plan.configurations[*c])),
            esc(&label(&plan.configurations[*c])),
            count(from, "configuration"),
            results.finished(),
            if on_test { format!("<td class=\"num desk\">{validation}</td>") } else { String::new() },
            esc(&table::mean_text(of(*c))),
            table::bar(of(*c), &scale)
        );
    }
    html + "</tbody></table></div>"
}

/// How the best were chosen, and whether the arms had equal chances.
fn selection(source: &Source) -> String {
    let (plan, verdict) = (source.plan, &source.analysis.verdict);
    let metric = metric_name(verdict.metric);
    let arms = super::super::verdict::arms_of(plan);
    let sizes: Vec<usize> =
        arms.iter().map(|arm| plan.configurations.iter().filter(|c| c.arm == *arm).count()).collect();
    let mut text = match verdict.split {
        Split::Test => format!(
            "Each arm’s best configuration was chosen by {metric}, on {}, and is compared by {} on the test split, which \
             nothing else reads.",
            if verdict.metric == Metric::TrainBpb { "training data" } else { "validation" },
            test_name(verdict.metric)
        ),
        Split::Validation => format!("Each arm’s best configuration was chosen and is compared by {metric}."),
    };
    match sizes.first() {
        Some(1) if sizes.iter().all(|n| *n == 1) => {
            text = "Each arm has one configuration: nothing was chosen.".to_owned();
        }
        Some(n) if sizes.len() > 1 && sizes.iter().all(|other| other == n) => {
            let _ = write!(text, " All arms had the same number of configurations to choose from: {n}.");
        }
        _ => {}
    }
    text
}

/// Notes of the verdict, warnings, and what is missing.
fn remarks(source: &Source) -> Vec<String> {
    let (plan, analysis) = (source.plan, source.analysis);
    let mut remarks: Vec<String> = analysis.verdict.notes.iter().map(|note| sentence(note)).collect();
    let results = &analysis.configurations;
    let runs: usize = results.iter().map(|r| r.seeds.len()).sum();
    if runs > 0 && results.iter().map(|r| r.diverged()).sum::<usize>() == runs {
        remarks.push("Every run diverged: there is no value to compare. A smaller learning rate may help.".to_owned());
    }
    if runs > 0 && results.iter().map(|r| r.failed()).sum::<usize>() == runs {
        remarks.push("Every run failed: their causes are below.".to_owned());
    }
    let seeds: std::collections::BTreeSet<u64> = plan.runs.iter().map(|run| run.seed).collect();
    if let (1, Some(seed)) = (seeds.len(), seeds.first()) {
        remarks.push(format!(
            "The sweep has one seed ({seed}): nothing here can be told from chance, and no interval can be given."
        ));
    }
    remarks.extend(analysis.warnings.iter().map(|warning| format!("Warning: {}", sentence(warning))));
    if !analysis.strangers.is_empty() {
        let runs = count(analysis.strangers.len(), "run");
        remarks.push(format!("Kept in the folder, but in no table: {runs} of another plan."));
    }
    remarks
}

/// A fragment as a sentence.
fn sentence(fragment: &str) -> String {
    let mut chars = fragment.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    // A configuration's name keeps its letters.
    let keeps = fragment
        .split([':', ' '])
        .next()
        .is_some_and(|word| word.contains('=') || fragment[word.len()..].starts_with(':'));
    let text = if keeps { fragment.to_owned() } else { first + chars.as_str() };
    if text.ends_with('.') { text } else { text + "." }
}
