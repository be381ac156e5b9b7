//! The top of the page: the verdict, the size of the effect, and what a reader should know beside it.

use std::fmt::Write;

use super::super::metric::{better, metric_name, test_name};
use super::super::verdict::{ArmVerdict, Finding, Split};
use super::super::wording::{direction, label, p_text, value_text};
use super::page::Source;
use super::plot::{Axis, Plot};
use super::scale::{Kind, Scale};
use super::text::{count, esc};
use crate::stats::{Better, Interval};

/// The section.
pub(super) fn section(source: &Source) -> String {
    let (plan, verdict) = (source.plan, &source.analysis.verdict);
    let mut html = format!(
        "<header><p class=\"kicker\">diesweep report</p><h1>{}</h1><p class=\"sub\">{}; {}</p></header>\
         <section id=\"verdict\" class=\"{}\"><h2 class=\"visually-hidden\">Verdict</h2>",
        esc(&plan.name),
        esc(&format!("compared by {}, {}", metric_name(plan.compare.metric), direction(plan))),
        esc(&tally(source)),
        tone(source)
    );
    match (verdict.sentence.split_once(": "), verdict.arms.len()) {
        (Some((headline, rest)), 0 | 1) => {
            let _ =
                write!(html, "<p class=\"verdict\"><strong>{}:</strong> <span>{}</span></p>", esc(headline), esc(rest));
        }
        _ => {
            let _ = write!(html, "<p class=\"verdict many\"><span>{}</span></p>", esc(&verdict.sentence));
        }
    }
    for (number, arm) in verdict.arms.iter().enumerate() {
        html += &effect(source, arm, number);
    }
    let remarks = remarks(source);
    if !remarks.is_empty() {
        html += "<ul class=\"notes\">";
        remarks.iter().for_each(|remark| {
            let _ = write!(html, "<li>{}</li>", esc(remark));
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

/// The class of the verdict: what colour its edge has.
fn tone(source: &Source) -> &'static str {
    let findings: Vec<Finding> = source.analysis.verdict.arms.iter().map(|arm| arm.finding).collect();
    match findings.as_slice() {
        [Finding::Better] => "better",
        [Finding::Worse] => "worse",
        _ => "open",
    }
}

/// An arm's difference from the baseline with its interval and what goes with it.
fn effect(source: &Source, arm: &ArmVerdict, number: usize) -> String {
    let (plan, verdict) = (source.plan, &source.analysis.verdict);
    let Some(comparison) = &arm.comparison else {
        return String::new();
    };
    let (Some(paired), Some(baseline)) = (&comparison.paired, verdict.baseline) else {
        return String::new();
    };
    let name = match verdict.split {
        Split::Test => test_name(verdict.metric),
        Split::Validation => metric_name(verdict.metric),
    };
    let (this, base) = (label(&plan.configurations[comparison.configuration]), label(&plan.configurations[baseline]));
    let ends = paired.ci95.map_or([paired.mean_diff; 2], |Interval { lo, hi }| [lo, hi]);
    let x = Scale::over(Kind::Linear, [0.0, ends[0], ends[1]], 0.12);
    let mut plot = Plot {
        id: format!("effect-{number}"),
        title: format!("{this} minus {base}, {name}"),
        description: format!(
            "Mean difference {:+.4}{}; zero means no difference.",
            paired.mean_diff,
            paired.ci95.map_or(String::new(), |i| format!(", 95% interval {:+.4} to {:+.4}", i.lo, i.hi))
        ),
        x: Axis::new(sides(better(verdict.metric)), x, 6),
        y: Axis { title: String::new(), scale: Scale { kind: Kind::Linear, lo: -1.0, hi: 1.0 }, ticks: Vec::new() },
        class: "chart effect",
        attributes: String::new(),
        body: String::new(),
    };
    plot.rule("zero", (0.0, -1.0), (0.0, 1.0));
    plot.open(&format!("k{}", comparison.configuration), "");
    plot.rule("whisker", (ends[0], 0.0), (ends[1], 0.0));
    plot.dot(paired.mean_diff, 0.0, &plot.description.clone());
    plot.close();
    let mut facts = vec![("difference", format!("{:+.4}", paired.mean_diff))];
    match paired.ci95 {
        Some(i) => facts.push(("95% interval", format!("{:+.4} to {:+.4}", i.lo, i.hi))),
        None => facts.push(("95% interval", "none: one pair of runs has no spread".to_owned())),
    }
    let holm = comparison.holm_p.filter(|_| verdict.arms.len() > 1);
    facts.push((if holm.is_some() { "p, corrected" } else { "p" }, p_text(holm.unwrap_or(paired.sign_flip_p))));
    facts.push(("pairs of runs", paired.n.to_string()));
    facts.push(("baseline’s mean", baseline_mean(source, baseline)));
    let mut html = plot.html() + "<dl class=\"facts\">";
    for (term, value) in facts {
        let _ = write!(html, "<div><dt>{}</dt><dd>{}</dd></div>", esc(term), esc(&value));
    }
    html + "</dl>"
}

fn sides(better: Better) -> &'static str {
    match better {
        Better::Lower => "← better · difference of paired runs · worse →",
        Better::Higher => "← worse · difference of paired runs · better →",
    }
}

fn baseline_mean(source: &Source, baseline: usize) -> String {
    let results = &source.analysis.configurations[baseline];
    let summary = match source.analysis.verdict.split {
        Split::Test => results.test_summary(),
        Split::Validation => results.summary(),
    };
    summary.map_or_else(|| "-".to_owned(), |s| value_text(s.mean))
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
