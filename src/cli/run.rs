//! `diesweep run`: trains what a sweep file asks for and has no result yet, and compares.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::dies::{Asked, Backend, ChooseError, Dies, Readings, choose};
use super::ledger::FolderLedger;
use super::{error_chain, print};
use crate::backend::cpu::simd::{FORCE_VARIABLE, Level, LevelError};
use crate::controller::{self, Conclusion, ControllerError, Launch, Ledger, Limits, Options, Summary};
use crate::duration;
use crate::event::{Event, Halt};
use crate::plan::{LanesAsked, Plan, open_corpus};
use crate::progress::{Bars, EventsFile, JsonLines, Plain, Sink, Sinks};
use crate::report::{closing_text, write_report, write_tables};
use crate::store::{Loaded, Opened, Results, StoreError};
use crate::sweep::{self, Diagnostics, Sweep};

/// Train the runs of a sweep that have no result yet, and compare them
#[derive(Args, Debug)]
pub(super) struct RunArgs {
    /// The sweep file
    file: PathBuf,
    /// Folder in which each sweep has its results folder
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// What to train on
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,
    /// Dies: indexes or UUIDs of GPUs, with commas [default: all]; on the CPU a number of groups of cores that train a run each
    /// [default: as many as there are cores for]
    #[arg(long, value_name = "LIST|N")]
    dies: Option<String>,
    /// Runs that a GPU trains at once: a number, or `auto`, which measures a few at the start [default: auto, or what the sweep file says]
    #[arg(long, value_name = "N")]
    lanes: Option<LanesAsked>,
    /// Use GPUs that other processes use too
    #[arg(long)]
    share: bool,
    /// Threads, and cores, of each die
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads_per_die: u16,
    /// Show no progress: only trouble and the closing table
    #[arg(long, short)]
    quiet: bool,
    /// Print events as lines of JSON in place of progress and the closing table
    #[arg(long)]
    json: bool,
    /// Time that runs in hand get to end their step and be saved when the sweep is told to stop
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration::parse)]
    stop_grace: Duration,
    /// Vector instructions: auto, avx512, avx2 or portable
    #[arg(long, hide = true)]
    simd: Option<String>,
    /// Longest silence of a worker
    #[arg(long, hide = true, default_value = "30s", value_parser = duration::parse)]
    beat_limit: Duration,
    /// Time that every step is given
    #[arg(long, hide = true, default_value = "60s", value_parser = duration::parse)]
    step_limit: Duration,
    /// Script that scripted trainers follow in place of training
    #[cfg(debug_assertions)]
    #[arg(long, hide = true)]
    script: Option<PathBuf>,
}

/// `diesweep run` could not do its work.
#[derive(Debug, thiserror::Error)]
enum RunError {
    /// The sweep file is at fault.
    #[error("the sweep file is at fault")]
    Sweep(Diagnostics),
    /// The forced vector instructions are not there.
    #[error("--simd or {FORCE_VARIABLE}")]
    Simd(#[source] LevelError),
    /// The dies cannot be had as asked.
    #[error(transparent)]
    Dies(#[from] ChooseError),
    /// The results folder.
    #[error("{}", .0.full_text())]
    Store(StoreError),
    /// The closing table has nowhere to go. The tables of the results folder are written.
    #[error("the comparison cannot be printed")]
    Print(#[source] std::io::Error),
    /// The controller.
    #[error(transparent)]
    Controller(#[from] ControllerError),
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl RunError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Sweep(_) | Self::Simd(_) => 2,
            Self::Dies(error) => error.exit_code(),
            // Work is left that another controller holds.
            Self::Store(StoreError::Held { .. }) => 75,
            Self::Store(_) | Self::Print(_) | Self::Controller(_) => 1,
        }
    }
}

/// Runs the sweep and says how it went.
pub(super) fn main(args: &RunArgs) -> ExitCode {
    match run(args) {
        Ok(conclusion) => ExitCode::from(conclusion.exit_code()),
        Err(error) => {
            if let RunError::Sweep(diagnostics) = &error {
                eprint!("{}", diagnostics.render(sweep::stderr_takes_colour()));
            } else {
                eprintln!("error: {}", error_chain(&error));
            }
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(args: &RunArgs) -> Result<Conclusion, RunError> {
    match &args.simd {
        Some(name) => Level::named(name).map_err(RunError::Simd)?,
        None => Level::current().map_err(RunError::Simd)?,
    };
    let dies = choose(&asked(args))?;
    let Sweep { text, plan } = sweep::load(&args.file, &mut open_corpus).map_err(RunError::Sweep)?;
    let opened = Results::open_or_create(&args.results, &plan, &text)?;
    let loaded = opened.results.load(&plan)?;
    say_what_changed(&opened, &loaded);
    if !args.quiet {
        say_what_is_there(&plan, &loaded, &dies);
    }
    let finished: Vec<bool> = loaded.states.iter().map(|state| state.result().is_some()).collect();
    let (plan, ledger) = (
        Arc::new(plan),
        Arc::new(FolderLedger { results: opened.results, dies: dies.specs.clone(), readings: Readings::new() }),
    );
    let summary = train(args, &plan, &finished, &dies, &ledger)?;
    let compared = if summary.at_once { Ok(()) } else { compare(args, &plan, &ledger.results) };
    // Where the tables cannot be written, the runs that are left are left all the same.
    say_how_to_go_on(&summary);
    compared.map(|()| summary.conclusion)
}

/// What may surprise, and is therefore said under `--quiet` too: an edit of the sweep file, and damage in the folder.
fn say_what_changed(opened: &Opened, loaded: &Loaded) {
    for line in &opened.change.lines {
        eprintln!("changed since the last time: {line}");
    }
    if !opened.change.is_empty() {
        let (added, dropped) = (opened.change.added, opened.change.dropped);
        eprintln!("changed since the last time: {added} runs are new, {dropped} are not planned any more");
    }
    loaded.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
}

/// Notes of the plan, and what of the folder does not belong to it.
fn say_what_is_there(plan: &Plan, loaded: &Loaded, dies: &Dies) {
    if !loaded.strangers.is_empty() {
        let names = loaded.strangers.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        let more = if loaded.strangers.len() > 3 { ", ..." } else { "" };
        eprintln!("note: {} runs are kept that are not in the plan: {names}{more}", loaded.strangers.len());
    }
    plan.notes.iter().for_each(|note| eprintln!("note: {note}"));
    for entropy in plan.corpora.iter().filter_map(|corpus| corpus.entropy) {
        eprintln!("note: the corpus's true entropy is {entropy:.3} bits a byte");
    }
    dies.notes.iter().for_each(|note| eprintln!("note: {note}"));
}

/// What the command line asks of the dies.
fn asked(args: &RunArgs) -> Asked<'_> {
    // Scripted trainers need no GPU.
    #[cfg(debug_assertions)]
    let backend = if args.script.is_some() { Backend::Cpu } else { args.backend };
    #[cfg(not(debug_assertions))]
    let backend = args.backend;
    Asked { backend, dies: args.dies.as_deref(), threads: args.threads_per_die.into(), share: args.share }
}

/// Trains the runs that have no result.
fn train(
    args: &RunArgs,
    plan: &Arc<Plan>,
    finished: &[bool],
    dies: &Dies,
    ledger: &Arc<FolderLedger>,
) -> Result<Summary, RunError> {
    let done = finished.iter().filter(|&&done| done).count();
    let to_do = plan.runs.len() - done;
    let folder = ledger.results.layout();
    let mut sinks = sinks(args, plan, finished);
    if to_do > 0 {
        sinks.0.push(Box::new(EventsFile::new(&folder.events())));
    }
    sinks.take(&Event::SweepStarted {
        sweep: plan.name.clone(),
        results: folder.dir().to_owned(),
        runs: plan.runs.len(),
        finished: done,
        dies: dies.specs.len().min(to_do),
    });
    if to_do == 0 {
        return Ok(Summary {
            conclusion: Conclusion::Complete,
            finished: done,
            failed: Vec::new(),
            left: 0,
            at_once: false,
        });
    }
    let options = Options {
        dies: dies.specs.clone(),
        launch: launch(args, plan, dies, to_do),
        limits: Limits {
            stop_grace: args.stop_grace,
            beat: args.beat_limit,
            step: args.step_limit,
            ..Limits::default()
        },
    };
    let ledger: Arc<dyn Ledger> = Arc::<FolderLedger>::clone(ledger);
    Ok(controller::run(Arc::clone(plan), finished, &options, &ledger, &mut sinks)?)
}

fn launch(args: &RunArgs, plan: &Plan, dies: &Dies, to_do: usize) -> Launch {
    let mut launch = Launch::this_program(vec!["--threads".into(), args.threads_per_die.to_string().into()]);
    if dies.cuda {
        let lanes = args.lanes.unwrap_or(plan.options.lanes);
        let runs = u32::try_from(to_do.div_ceil(dies.specs.len().max(1))).unwrap_or(u32::MAX);
        let lanes = ["--cuda", "--lanes", &lanes.to_string(), "--runs", &runs.to_string()].map(OsString::from);
        launch.args.extend(lanes);
    }
    if let Some(simd) = &args.simd {
        launch.env.push((FORCE_VARIABLE.into(), simd.into()));
    }
    #[cfg(debug_assertions)]
    if let Some(script) = &args.script {
        launch.args.extend([OsString::from("--script"), script.into()]);
    }
    launch
}

fn sinks(args: &RunArgs, plan: &Plan, finished: &[bool]) -> Sinks {
    let stderr = std::io::stderr();
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    let mut sinks = Sinks::default();
    if args.json {
        sinks.0.push(Box::new(JsonLines::new(std::io::stdout())));
    }
    if stderr.is_terminal() && !dumb && !args.quiet && !args.json {
        sinks.0.push(Box::new(Bars::new(plan, finished, colour())));
    } else {
        sinks.0.push(Box::new(Plain::new(stderr, plan, finished, args.quiet || args.json)));
    }
    sinks
}

/// Whether the user wants no colours: <https://no-color.org>.
fn colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes the tables and the report, and prints the closing table. Of a sweep that was stopped too: what there is, is a comparison.
fn compare(args: &RunArgs, plan: &Plan, results: &Results) -> Result<(), RunError> {
    let loaded = results.load(plan)?;
    let analysis = write_tables(results, plan, &loaded)?;
    let report = write_report(results, plan, &loaded, &analysis);
    if !args.json {
        let bold = std::io::stdout().is_terminal() && colour();
        let text = closing_text(plan, &analysis, results.layout().dir(), bold);
        print(&text).map_err(RunError::Print)?;
    }
    // Told after the table, which does not depend on it.
    Ok(report?)
}

/// Says what is not done, and with which command it goes on.
fn say_how_to_go_on(summary: &Summary) {
    match &summary.conclusion {
        Conclusion::Complete | Conclusion::Elsewhere => {}
        Conclusion::SomeFailed => {
            eprintln!("{} failed; to try again: {}", runs(summary.failed.len()), command(std::env::args_os()));
        }
        Conclusion::Halted(halt) => {
            if !matches!(halt, Halt::Signal { .. }) {
                eprintln!("error: {halt}");
            }
            eprintln!("{} left; to go on: {}", runs(summary.left), command(std::env::args_os()));
        }
    }
}

fn runs(count: usize) -> String {
    format!("{count} {}", if count == 1 { "run" } else { "runs" })
}

/// A command line as it can be typed.
fn command(args: impl Iterator<Item = OsString>) -> String {
    let quote = |arg: OsString| {
        let arg = arg.to_string_lossy().into_owned();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
        if !arg.is_empty() && arg.chars().all(plain) { arg } else { format!("'{}'", arg.replace('\'', "'\\''")) }
    };
    args.map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::DiesError;
    use crate::devices::PickError;

    #[test]
    fn a_command_can_be_typed_again() {
        let args = ["diesweep", "run", "my sweep.toml", "--results", "it's"].map(OsString::from);
        assert_eq!(command(args.into_iter()), "diesweep run 'my sweep.toml' --results 'it'\\''s'");
    }

    #[test]
    fn errors_have_the_exit_codes_of_the_contract() {
        let no_gpu = ChooseError::Gpu { pick: PickError::NoGpu("no driver is loaded".into()), driver: None };
        assert_eq!(RunError::Dies(no_gpu).exit_code(), 2);
        let busy = ChooseError::Gpu { pick: PickError::Unusable(vec![]), driver: None };
        assert_eq!(RunError::Dies(busy).exit_code(), 1);
        assert_eq!(RunError::Store(StoreError::NotAFolder("x".into())).exit_code(), 1);
        assert_eq!(RunError::Dies(ChooseError::Cpu(DiesError::Zero("x"))).exit_code(), 2);
    }
}
