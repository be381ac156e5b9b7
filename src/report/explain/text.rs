//! The facts as text.

use std::fmt::Write;

use super::super::columns::optional;
use super::super::grid::{Align, Grid};
use super::facts::{ComparisonFacts, ConfigurationFacts, Explanation, FileFacts, Places, RunFacts};

/// What stands behind a number, in words.
pub fn text(explanation: &Explanation) -> String {
    match explanation {
        Explanation::Run(facts) => run(facts),
        Explanation::Configurations(list) => list.iter().map(configuration).collect::<Vec<_>>().join("\n"),
        Explanation::Comparison(facts) => comparison(facts),
        Explanation::Step { log_row, text, run: facts } => {
            format!("row {log_row} of the log: {text}\n\n{}", run(facts))
        }
    }
}

fn line(out: &mut String, name: &str, value: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "  {name:<12}{value}");
}

fn run(facts: &RunFacts) -> String {
    let mut out = format!("{}, run {}: {}\n", facts.name, facts.run_id, facts.status);
    line(&mut out, "folder", &facts.folder.display().to_string());
    if let Some(value) = facts.value {
        let test = facts.test.map(|test| format!(", {} on the test split", optional(Some(test))));
        line(&mut out, "metric", &(optional(Some(value)) + &test.unwrap_or_default()));
    }
    if let Some(log) = &facts.log {
        let published = match facts.log_is_as_published {
            Some(true) => ", as result.json says",
            Some(false) => ", NOT the one whose digest result.json holds",
            None => "",
        };
        line(&mut out, "log.csv", &(file(log) + published));
    }
    if let Some(result) = &facts.result {
        line(&mut out, "result.json", &file(result));
    }
    if let Some(corpus) = &facts.corpus {
        line(&mut out, "corpus", &format!("blake3 {corpus}"));
    }
    if let (Some(device), Some(die), Some(host)) = (&facts.device, &facts.die, &facts.host) {
        let numerics = facts.numerics.map_or(String::new(), |n| format!(", numerics {n}"));
        line(&mut out, "made by", &format!("die {die} ({device}) of {host}{numerics}"));
    }
    if let (Some(started), Some(ended)) = (&facts.started, &facts.ended) {
        line(&mut out, "time", &format!("{started} to {ended}"));
    }
    for attempt in &facts.attempts {
        let rows = attempt.rows.map_or("no log".to_owned(), |n| format!("{n} rows logged"));
        let failure = attempt.failure.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
        line(&mut out, &format!("attempt {}", attempt.number), &(rows + &failure));
    }
    line(&mut out, "stands in", &places(&facts.places));
    out
}

fn file(facts: &FileFacts) -> String {
    format!("{} bytes, blake3 {}", facts.bytes, facts.blake3)
}

fn places(places: &Places) -> String {
    let rows = |rows: &[usize]| {
        let list: Vec<String> = rows.iter().map(usize::to_string).collect();
        format!("row{} {}", if rows.len() == 1 { "" } else { "s" }, list.join(", "))
    };
    let mut parts = Vec::new();
    parts.extend(places.comparison.map(|row| format!("comparison.csv row {row}")));
    if !places.summary.is_empty() {
        parts.push(format!("summary.csv {}", rows(&places.summary)));
    }
    if !places.comparisons.is_empty() {
        parts.push(format!("comparisons.csv {}", rows(&places.comparisons)));
    }
    parts.extend(places.curves.map(|(first, last)| format!("curves.csv rows {first} to {last}")));
    parts.join("; ")
}

fn configuration(facts: &ConfigurationFacts) -> String {
    let best = if facts.is_best { ", its arm's best" } else { "" };
    let test = facts.test_mean.map(|test| format!(", {} on the test split", optional(Some(test))));
    let mean =
        facts.mean.map_or("no mean".to_owned(), |mean| format!("mean {} {}", facts.metric, optional(Some(mean))));
    let mut out = format!(
        "{}{best}: {mean}{} over {} of {} runs\n",
        facts.name,
        test.unwrap_or_default(),
        facts.n,
        facts.runs.len()
    );
    line(&mut out, "stands in", &places(&facts.places));
    out + &runs(&facts.runs)
}

fn runs(list: &[RunFacts]) -> String {
    let left = |name| (name, Align::Left);
    let mut grid = Grid::new(&[
        left("  run"),
        ("seed", Align::Right),
        left("status"),
        left("value"),
        left("test"),
        left("log.csv"),
        left("device"),
        left("die"),
        left("host"),
        ("tries", Align::Right),
    ])
    .whole();
    for run in list {
        let short = |digest: &String| digest.get(..12).unwrap_or(digest).to_owned();
        let status = run.status.split(['(', ':']).next().unwrap_or_default().trim().to_owned();
        grid.row(vec![
            format!("  {}", run.run_id),
            run.seed.to_string(),
            status,
            optional(run.value),
            optional(run.test),
            run.log.as_ref().map(|log| short(&log.blake3)).unwrap_or_default(),
            run.device.clone().unwrap_or_default(),
            run.die.clone().unwrap_or_default(),
            run.host.clone().unwrap_or_default(),
            run.attempts.len().to_string(),
        ]);
    }
    grid.text()
}

fn comparison(facts: &ComparisonFacts) -> String {
    let role = if facts.verdict { "verdict" } else { "exploratory" };
    let mean = facts.mean_difference.map_or("no pair".to_owned(), |d| format!("mean difference {}", optional(Some(d))));
    let mut out = format!(
        "comparisons.csv row {} ({role}): {} minus {} in {}: {mean} over {} pairs\n",
        facts.row,
        facts.other.name,
        facts.baseline.name,
        facts.values,
        facts.pairs.len()
    );
    let right = |name| (name, Align::Right);
    let mut grid = Grid::new(&[("  seed", Align::Left), right("baseline"), right("other"), right("difference")]);
    for pair in &facts.pairs {
        let values = [pair.baseline, pair.other, pair.difference].map(|x| optional(Some(x)));
        grid.row([vec![format!("  {}", pair.seed)], values.to_vec()].concat());
    }
    out += &grid.text();
    if !facts.seeds_unpaired.is_empty() {
        let seeds: Vec<String> = facts.seeds_unpaired.iter().map(u64::to_string).collect();
        line(&mut out, "left out", &format!("seeds on one side only: {}", seeds.join(", ")));
    }
    out + "\n" + &configuration(&facts.baseline) + "\n" + &configuration(&facts.other)
}
