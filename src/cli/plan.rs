//! `diesweep plan`: shows what a sweep would do, and touches nothing.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::plan::work::{ASSUMED_SPEED, Speed, work};
use crate::plan::{Configuration, CorpusInfo, Plan, PlannedRun, open_corpus};
use crate::settings::Settings;
use crate::{store, sweep};

/// Configurations listed before the rest is only counted.
const MOST_LISTED: usize = 60;

/// Show the runs of a sweep, its work, disk and time; touch nothing
#[derive(clap::Args, Debug)]
pub struct PlanArgs {
    /// The sweep file
    file: PathBuf,
    /// Print the whole plan as JSON
    #[arg(long)]
    json: bool,
    /// Folder of earlier results, whose speed the forecast goes by
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Forecast the time on so many dies [default: the machine's cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    dies: Option<u32>,
}

/// Prints the plan. Exit code 2 where the sweep file is at fault, with every fault on standard error.
pub fn run(args: &PlanArgs) -> ExitCode {
    let plan = match sweep::load(&args.file, &mut open_corpus) {
        Ok(sweep) => sweep.plan,
        Err(diagnostics) => {
            say!("{}", diagnostics.render(sweep::stderr_takes_colour()).trim_end());
            return ExitCode::from(2);
        }
    };
    let text = if args.json {
        match serde_json::to_string_pretty(&plan) {
            Ok(json) => json + "\n",
            Err(error) => {
                say!("error: the plan cannot be written as JSON: {error}");
                return ExitCode::FAILURE;
            }
        }
    } else {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let speed = store::measured_speed(&args.results).map_or(ASSUMED_SPEED, Speed::Measured);
        render(&plan, args.dies.map_or(cores, |n| n as usize), speed)
    };
    match super::print(&text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say!("error: the plan cannot be printed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The plan as text for a terminal.
pub fn render(plan: &Plan, dies: usize, speed: Speed) -> String {
    let mut out = String::new();
    let seeds = seeds_of(plan);
    let runs = count(plan.runs.len(), "run");
    let configurations = count(plan.configurations.len(), "configuration");
    let _ = writeln!(out, "sweep {}: {runs} of {configurations}, {}", plan.name, describe_seeds(&seeds));
    let _ = writeln!(out, "baseline {}, metric {}\n", plan.compare.baseline, plan.compare.metric.key());
    out.push_str(&table(plan));
    out.push('\n');
    let total = work(plan);
    let [steps, tokens, flops] = [total.steps, total.tokens, total.flops].map(|v| si(v as f64));
    let _ = writeln!(out, "work    {steps}steps, {tokens}tokens, {flops}operations");
    for (number, shape) in shapes(plan).into_iter().enumerate() {
        let head = if number == 0 { "shapes" } else { "" };
        let _ = writeln!(out, "{head:<7} {shape}");
    }
    for (number, corpus) in plan.corpora.iter().enumerate() {
        let head = if number == 0 { "corpus" } else { "" };
        let _ = writeln!(out, "{head:<7} {}", describe_corpus(corpus));
    }
    let _ = writeln!(out, "disk    about {}bytes", si(total.disk as f64));
    let on = count(dies, "die");
    let source = match speed {
        Speed::Assumed(rate) => format!("a guess, at an assumed {}operations a second a die", si(rate)),
        Speed::Measured(rate) => format!("from earlier results, {}operations a second a die", si(rate)),
    };
    let _ = writeln!(out, "time    about {} on {on}: {source}", duration(speed.seconds(total, dies)));
    let _ = writeln!(out, "order   {}", order(&plan.runs));
    if !plan.notes.is_empty() {
        out.push_str("\nnotes\n");
        for note in &plan.notes {
            let _ = writeln!(out, "- {note}");
        }
    }
    out
}

fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn seeds_of(plan: &Plan) -> Vec<u64> {
    let seeds: std::collections::BTreeSet<u64> = plan.runs.iter().map(|run| run.seed).collect();
    seeds.into_iter().collect()
}

/// `8 seeds (1234 to 1241)`, `3 seeds (1, 5, 9)`.
fn describe_seeds(seeds: &[u64]) -> String {
    const MOST: usize = 8;
    let consecutive = seeds.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let list = match seeds {
        [first, .., last] if consecutive && seeds.len() > 2 => format!("{first} to {last}"),
        _ if seeds.len() > MOST => format!("{}, ...", join(&seeds[..MOST])),
        _ => join(seeds),
    };
    format!("{} ({list})", count(seeds.len(), "seed"))
}

fn join(values: &[u64]) -> String {
    values.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// Configurations, one a line: arm, axes, number of runs.
fn table(plan: &Plan) -> String {
    let header = std::iter::once("arm".to_owned()).chain(plan.axes.iter().cloned()).chain(["runs".to_owned()]);
    let mut rows: Vec<Vec<String>> = vec![header.collect()];
    let listed = if plan.configurations.len() > MOST_LISTED { MOST_LISTED - 10 } else { plan.configurations.len() };
    rows.extend(plan.configurations[..listed].iter().map(|c| cells(c, &plan.axes)));
    let columns = rows[0].len();
    let widths: Vec<usize> =
        (0..columns).map(|i| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for row in &rows {
        out.push(' ');
        for (i, cell) in row.iter().enumerate() {
            let width = widths[i];
            // The last column is a number: to the right.
            let _ = if i + 1 == columns { write!(out, " {cell:>width$}") } else { write!(out, " {cell:<width$} ") };
        }
        out.push('\n');
    }
    if listed < plan.configurations.len() {
        let _ = writeln!(out, "  and {} more", count(plan.configurations.len() - listed, "configuration"));
    }
    out
}

fn cells(c: &Configuration, axes: &[String]) -> Vec<String> {
    let value = |axis: &String| c.axes.iter().find(|v| v.axis == *axis).map_or(String::new(), |v| v.value.clone());
    let mut cells = vec![c.arm.clone()];
    cells.extend(axes.iter().map(value));
    cells.push(c.runs.len().to_string());
    cells
}

fn shapes(plan: &Plan) -> Vec<String> {
    let mut found: Vec<(&Settings, usize)> = Vec::new();
    for run in &plan.runs {
        match found.get_mut(run.shape) {
            Some((_, runs)) => *runs += 1,
            None => found.push((&run.settings, 1)),
        }
    }
    let describe = |(s, runs): (&Settings, usize)| {
        let (c, r, a, t) = (s.c, s.n_rwkv, s.n_attn, s.seq_len);
        let windows = s.batch * s.accum_steps;
        let parameters = si(crate::plan::work::parameters(s) as f64);
        let runs = count(runs, "run");
        format!("C={c}, {r} RWKV + {a} attention, {parameters}parameters, {windows} x {t} tokens a step: {runs}")
    };
    found.into_iter().map(describe).collect()
}

fn describe_corpus(corpus: &CorpusInfo) -> String {
    let place = corpus.path.as_ref().map_or("builtin".to_owned(), |path| path.display().to_string());
    let digest = corpus.digest.get(..16).unwrap_or(&corpus.digest);
    let entropy = corpus.entropy.map(|bits| format!(", true entropy {bits:.3} bits a byte")).unwrap_or_default();
    format!("{place}: {} bytes, blake3 {digest}...{entropy}", corpus.bytes)
}

/// The first runs.
fn order(runs: &[PlannedRun]) -> String {
    const MOST: usize = 4;
    let first: Vec<String> = runs.iter().take(MOST).map(PlannedRun::label).collect();
    let rest = if runs.len() > MOST { ", ..." } else { "" };
    first.join(", ") + rest
}

/// Three digits, a space and a decimal prefix, to be followed by a unit: `24.6 M`, `512 `.
fn si(v: f64) -> String {
    let (mut v, mut prefixes) = (v, ["", "k", "M", "G", "T", "P", "E"].iter());
    let mut prefix = prefixes.next().copied().unwrap_or("");
    while v >= 1e3 {
        match prefixes.next() {
            Some(next) => (v, prefix) = (v / 1e3, next),
            None => break,
        }
    }
    let decimals = if prefix.is_empty() || v >= 100.0 { 0 } else { 1 };
    let gap = if prefix.is_empty() { "" } else { " " };
    format!("{v:.decimals$} {prefix}{gap}")
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{:.0} s", s.max(1.0)),
        s if s < 5_400.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3_600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}
