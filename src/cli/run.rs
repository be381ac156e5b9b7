//! `diesweep run`: trains what a sweep file asks for and has no result yet, and compares.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;

use super::dies::{Asked, Backend, ChooseError, Dies, Readings, choose};
use super::ledger::FolderLedger;
use super::past;
use super::refresh::{LEAST, Refresher};
use super::resources::{TooLittleMemory, dies_that_fit, disk_warning};
use super::{error_chain, print};
use crate::backend::cpu::simd::{FORCE_VARIABLE, Level, LevelError};
use crate::controller::{
    self, Conclusion, ControllerError, Launch, Ledger, Limits, Options, StopSignals, Summary, TimeLimit,
};
use crate::duration;
use crate::event::{Event, Halt, Past};
use crate::plan::work::checkpoint_bytes;
use crate::plan::{Course, LanesAsked, Plan, open_corpus};
use crate::progress::{Bars, EventsFile, JsonLines, Plain, Sink, Sinks};
use crate::report::{closing_text, write_plots, write_report, write_tables};
use crate::store::{ControllerView, LeaseTerms, Loaded, Opened, Results, StoreError, host_name};
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
    /// Do not wait for runs that other controllers on the same folder hold: end when nothing is left to claim [exit code 75]
    #[arg(long)]
    no_wait: bool,
    /// Show no progress: only trouble and the closing table
    #[arg(long, short)]
    quiet: bool,
    /// Print events as lines of JSON in place of progress and the closing table
    #[arg(long)]
    json: bool,
    /// Time that runs in hand get to end their step and be saved when the sweep is told to stop
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration::parse)]
    stop_grace: Duration,
    /// Stop in time to have saved all that is in hand after so much time, with exit code 75
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    time_limit: Option<Duration>,
    /// Try runs again that were given up
    #[arg(long)]
    retry_failed: bool,
    /// Stop at the first run that fails for good
    #[arg(long)]
    fail_fast: bool,
    /// Make the report anew every so often while the sweep is at work, such as 30s or 5m
    #[arg(long, value_name = "TIME", value_parser = report_every)]
    report_every: Option<Duration>,
    /// Vector instructions: auto, avx512, avx2 or portable
    #[arg(long, hide = true)]
    simd: Option<String>,
    /// Longest silence of a worker
    #[arg(long, hide = true, default_value = "30s", value_parser = duration::parse)]
    beat_limit: Duration,
    /// Time that every step is given
    #[arg(long, hide = true, default_value = "60s", value_parser = duration::parse)]
    step_limit: Duration,
    /// Time for which a controller's beat must stand still before its runs are taken over
    #[arg(long, hide = true, default_value = "60s", value_parser = duration::parse)]
    lease_time: Duration,
    /// Time after which a worker that does not hear of its controller leaves [default: a third of the lease time]
    #[arg(long, hide = true, value_parser = duration::parse)]
    controller_limit: Option<Duration>,
    /// Time that a full disk is waited for
    #[arg(long, hide = true, default_value = "10m", value_parser = duration::parse)]
    disk_wait: Duration,
    /// Script that scripted trainers follow in place of training
    #[cfg(debug_assertions)]
    #[arg(long, hide = true)]
    script: Option<PathBuf>,
}

impl RunArgs {
    const fn lease_terms(&self) -> LeaseTerms {
        LeaseTerms { standing: self.lease_time }
    }

    fn controller_limit(&self) -> Duration {
        self.controller_limit.unwrap_or_else(|| self.lease_terms().worker_patience())
    }
}

/// Reads the time between two reports.
fn report_every(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text)?;
    if time < LEAST { Err(format!("must be at least {} ms", LEAST.as_millis())) } else { Ok(time) }
}

/// `diesweep run` could not do its work.
#[derive(Debug, thiserror::Error)]
enum RunError {
    /// The sweep file is at fault.
    #[error("the sweep file is at fault")]
    Sweep(Diagnostics),
    /// There would be no time to train in.
    #[error("--time-limit must be longer than --stop-grace, the time for which runs in hand are waited for at the end")]
    NoTime,
    /// The forced vector instructions are not there.
    #[error("--simd or {FORCE_VARIABLE}")]
    Simd(#[source] LevelError),
    /// The dies cannot be had as asked.
    #[error(transparent)]
    Dies(#[from] ChooseError),
    /// Memory holds no worker.
    #[error(transparent)]
    Memory(#[from] TooLittleMemory),
    /// The results folder.
    #[error("{}", .0.full_text())]
    Store(StoreError),
    /// The closing table has nowhere to go. The tables of the results folder are written.
    #[error("the comparison cannot be printed")]
    Print(#[source] std::io::Error),
    /// The thread that makes the report anew.
    #[error("the thread that makes the report cannot be started")]
    Refresh(#[source] std::io::Error),
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
            Self::Sweep(_) | Self::NoTime | Self::Simd(_) => 2,
            Self::Dies(error) => error.exit_code(),
            Self::Memory(_) | Self::Store(_) | Self::Print(_) | Self::Refresh(_) | Self::Controller(_) => 1,
        }
    }
}

/// Runs the sweep and says how it went.
pub(super) fn main(args: &RunArgs) -> ExitCode {
    match run(args) {
        // One task of many that has nothing to do is no failed task.
        Ok((Conclusion::Elsewhere, false)) if std::env::var_os("SLURM_JOB_ID").is_some() => ExitCode::SUCCESS,
        // What was to be read and could not be written is a fault, though not of the sweep.
        Ok((conclusion, lost)) => ExitCode::from(conclusion.exit_code().max(u8::from(lost))),
        Err(error) => {
            if let RunError::Sweep(diagnostics) = &error {
                say!("{}", diagnostics.render(sweep::stderr_takes_colour()).trim_end());
            } else {
                say!("error: {}", error_chain(&error));
            }
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(args: &RunArgs) -> Result<(Conclusion, bool), RunError> {
    let began = Instant::now();
    let time_limit = args.time_limit.map(|given| time_limit(given, args.stop_grace, began)).transpose()?;
    match &args.simd {
        Some(name) => Level::named(name).map_err(RunError::Simd)?,
        None => Level::current().map_err(RunError::Simd)?,
    };
    let mut dies = choose(&asked(args))?;
    let Sweep { text, plan } = sweep::load(&args.file, &mut open_corpus).map_err(RunError::Sweep)?;
    // From here on there is something to give back.
    let stop = StopSignals::take().map_err(ControllerError::Signals)?;
    let mut opened = Results::open_or_create(&args.results, &plan, &text)?;
    opened.results.set_lease_terms(args.lease_terms());
    let loaded = opened.results.load(&plan)?;
    say_what_changed(&opened, &loaded);
    if !args.quiet {
        say_what_is_there(&plan, &loaded, &dies);
        say_who_is_there(&opened.others);
    }
    let past = past::of(&loaded, args.retry_failed);
    past::say(&past, &loaded, args.retry_failed);
    fit_resources(&plan, &past, &mut dies, opened.results.layout().dir())?;
    let failed_before = past::attempts(&plan, &loaded);
    let (dies_used, readings) = (dies.specs.clone(), Readings::new());
    let ledger = FolderLedger { results: opened.results, dies: dies_used, readings, failed_before };
    let (plan, ledger) = (Arc::new(plan), Arc::new(ledger));
    let every = args.report_every.or(plan.options.report_every.map(Duration::from_millis));
    let to_do = past.contains(&Past::Open);
    let refresher = match every.filter(|_| to_do) {
        Some(every) => {
            Some(Refresher::start(Arc::clone(&plan), Arc::clone(&ledger), every).map_err(RunError::Refresh)?)
        }
        None => None,
    };
    let courses = loaded.stops.map_or_else(Vec::new, |stops| stops.courses);
    let (summary, lost) = train(args, &plan, (&past, courses), (&dies, time_limit, stop), &ledger)?;
    if let Some(refresher) = refresher.filter(|_| !summary.at_once) {
        refresher.finish();
    }
    // What is left is free before the tables are made.
    if let Err(error) = ledger.results.give_all_back() {
        say!("warning: {}; runs in hand are free when others know that this process has ended", error.full_text());
    }
    let compared = if summary.at_once { Ok(()) } else { compare(args, &plan, &ledger.results) };
    // Where the tables cannot be written, the runs that are left are left all the same.
    say_how_to_go_on(&summary);
    compared.map(|()| (summary.conclusion, lost))
}

/// Leaves out dies whose workers memory would not hold, and says so; and says where the disk may be too small.
fn fit_resources(plan: &Plan, past: &[Past], dies: &mut Dies, folder: &Path) -> Result<(), RunError> {
    let open = past.iter().filter(|past| **past == Past::Open).count();
    // A worker on a GPU holds its buffers there.
    let (fit, note) = match dies.cuda {
        true => (dies.specs.len(), None),
        false => dies_that_fit(plan, past, dies.specs.len().min(open))?,
    };
    if let Some(note) = note {
        dies.specs.truncate(fit);
        say!("warning: {note}");
    }
    if let Some(warning) = disk_warning(plan, past, dies.specs.len(), folder) {
        say!("warning: {warning}");
    }
    Ok(())
}

/// What may surprise, and is therefore said under `--quiet` too: an edit of the sweep file, and damage in the folder.
fn say_what_changed(opened: &Opened, loaded: &Loaded) {
    for line in &opened.change.lines {
        say!("changed since the last time: {line}");
    }
    if !opened.change.is_empty() {
        let (added, dropped) = (opened.change.added, opened.change.dropped);
        say!("changed since the last time: {added} runs are new, {dropped} are not planned any more");
    }
    loaded.warnings.iter().for_each(|warning| say!("warning: {warning}"));
}

/// Notes of the plan, and what of the folder does not belong to it.
fn say_what_is_there(plan: &Plan, loaded: &Loaded, dies: &Dies) {
    if !loaded.strangers.is_empty() {
        let names = loaded.strangers.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        let more = if loaded.strangers.len() > 3 { ", ..." } else { "" };
        say!("note: {} runs are kept that are not in the plan: {names}{more}", loaded.strangers.len());
    }
    plan.notes.iter().for_each(|note| say!("note: {note}"));
    for entropy in plan.corpora.iter().filter_map(|corpus| corpus.entropy) {
        say!("note: the corpus's true entropy is {entropy:.3} bits a byte");
    }
    dies.notes.iter().for_each(|note| say!("note: {note}"));
}

/// What the command line asks of the dies.
fn asked(args: &RunArgs) -> Asked<'_> {
    // Scripted trainers need no GPU.
    #[cfg(debug_assertions)]
    let backend = if args.script.is_some() { Backend::Cpu } else { args.backend };
    #[cfg(not(debug_assertions))]
    let backend = args.backend;
    Asked {
        backend,
        dies: args.dies.as_deref(),
        threads: args.threads_per_die.into(),
        share: args.share,
        sweep: &args.file,
    }
}

/// Other controllers on the folder.
fn say_who_is_there(others: &[ControllerView]) {
    for other in others {
        let who = other.holder.as_ref().map_or_else(|| other.name.clone(), ToString::to_string);
        say!("note: {who} works on this folder too, or did not end in order: runs are shared");
    }
    if others.iter().any(|other| other.holder.as_ref().is_some_and(|holder| holder.host == host_name())) {
        say!("note: controllers on one host share its cores; --dies and taskset divide them");
    }
}

/// Trains the runs that have no result. Whether some of what happened could not be shown, too.
fn train(
    args: &RunArgs,
    plan: &Arc<Plan>,
    (past, courses): (&[Past], Vec<Course>),
    (dies, time_limit, stop): (&Dies, Option<TimeLimit>, StopSignals),
    ledger: &Arc<FolderLedger>,
) -> Result<(Summary, bool), RunError> {
    let count = |wanted: fn(&Past) -> bool| past.iter().filter(|past| wanted(past)).count();
    let stopped = count(|past| *past == Past::Stopped);
    let (done, to_do) = (count(|past| *past == Past::Finished), count(|past| *past == Past::Open));
    let folder = ledger.results.layout();
    let mut sinks = sinks(args, plan, past);
    if to_do > 0 {
        sinks.0.push(Box::new(EventsFile::new(folder)));
    }
    sinks.take(&Event::SweepStarted {
        sweep: plan.name.clone(),
        results: folder.dir().to_owned(),
        runs: plan.runs.len(),
        finished: done,
        failed: count(|past| matches!(past, Past::Failed(_))),
        stopped,
        dies: dies.specs.len().min(to_do),
    });
    if to_do == 0 {
        let failed = past::failed(past);
        let conclusion = if failed.is_empty() { Conclusion::Complete } else { Conclusion::SomeFailed };
        let summary =
            Summary { conclusion, finished: done, failed, left: 0, stopped, here: 0, elsewhere: 0, at_once: false };
        return Ok((summary, sinks.lost_something()));
    }
    let options = Options {
        dies: dies.specs.clone(),
        launch: launch(args, plan, dies, to_do),
        limits: Limits {
            stop_grace: args.stop_grace,
            beat: args.beat_limit,
            step: args.step_limit,
            controller: args.controller_limit(),
            disk: args.disk_wait,
            room: room(plan),
            time_limit,
            fail_fast: args.fail_fast,
            ..Limits::default()
        },
        wait: !args.no_wait,
        courses,
    };
    let ledger: Arc<dyn Ledger> = Arc::<FolderLedger>::clone(ledger);
    let summary = controller::run(Arc::clone(plan), past, &options, stop, &ledger, &mut sinks)?;
    Ok((summary, sinks.lost_something()))
}

/// When the sweep stops by itself: so early that what is in hand can be saved in time.
fn time_limit(given: Duration, grace: Duration, began: Instant) -> Result<TimeLimit, RunError> {
    match given.checked_sub(grace) {
        Some(time) if !time.is_zero() => Ok(TimeLimit { given, stop_at: began + time }),
        _ => Err(RunError::NoTime),
    }
}

/// Bytes for which there must be room before a sweep that a full disk had stopped goes on: a checkpoint and the files
/// of a result.
fn room(plan: &Plan) -> u64 {
    const RESULT: u64 = 256 << 10;
    let checkpoint = plan.runs.iter().map(|run| checkpoint_bytes(&run.settings)).max();
    checkpoint.unwrap_or(0).saturating_add(RESULT)
}

fn launch(args: &RunArgs, plan: &Plan, dies: &Dies, to_do: usize) -> Launch {
    let mut launch = Launch::this_program(vec!["--threads".into(), args.threads_per_die.to_string().into()]);
    if dies.cuda {
        let lanes = args.lanes.unwrap_or(plan.options.lanes);
        let runs = u32::try_from(to_do.div_ceil(dies.specs.len().max(1))).unwrap_or(u32::MAX);
        let lanes = ["--cuda", "--lanes", &lanes.to_string(), "--runs", &runs.to_string()].map(OsString::from);
        launch.args.extend(lanes);
    }
    launch
        .args
        .extend([OsString::from("--controller-limit"), format!("{}ms", args.controller_limit().as_millis()).into()]);
    if let Some(simd) = &args.simd {
        launch.env.push((FORCE_VARIABLE.into(), simd.into()));
    }
    #[cfg(debug_assertions)]
    if let Some(script) = &args.script {
        launch.args.extend([OsString::from("--script"), script.into()]);
    }
    launch
}

fn sinks(args: &RunArgs, plan: &Plan, past: &[Past]) -> Sinks {
    let stderr = std::io::stderr();
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    let mut sinks = Sinks::default();
    if args.json {
        sinks.0.push(Box::new(JsonLines::new(std::io::stdout())));
    }
    if stderr.is_terminal() && !dumb && !args.quiet && !args.json {
        sinks.0.push(Box::new(Bars::new(plan, past, colour())));
    } else {
        sinks.0.push(Box::new(Plain::new(stderr, plan, past, args.quiet || args.json)));
    }
    sinks
}

/// Whether the user wants no colours: <https://no-color.org>.
fn colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes the tables, the report and its plots, and prints the closing table. Of a sweep that was stopped too: what there is, is a comparison.
fn compare(args: &RunArgs, plan: &Plan, results: &Results) -> Result<(), RunError> {
    // Another controller may have come with an edited sweep file: the tables are of the plan that the folder has.
    let current = results.plan()?;
    let plan = if current == *plan {
        plan
    } else {
        say!("note: another controller has changed the plan of this folder meanwhile; the tables are of the new one");
        &current
    };
    let finished = |loaded: &Loaded| loaded.states.iter().filter(|state| state.result().is_some()).count();
    let (loaded, analysis) = loop {
        let loaded = results.load(plan)?;
        let analysis = write_tables(results, plan, &loaded)?;
        // A result that another controller published meanwhile would be in its tables, which these may have replaced.
        if finished(&loaded) == plan.runs.len() || finished(&loaded) == finished(&results.load(plan)?) {
            break (loaded, analysis);
        }
    };
    let report = write_report(results, plan, &loaded, &analysis, None);
    let plots = write_plots(results, plan, &loaded, &analysis);
    if !args.json {
        let bold = std::io::stdout().is_terminal() && colour();
        let text = closing_text(plan, &analysis, results.layout().dir(), bold);
        print(&text).map_err(RunError::Print)?;
    }
    // Told after the table, which does not depend on it.
    report?;
    plots?;
    Ok(())
}

/// Says what is not done, and with which command it goes on.
fn say_how_to_go_on(summary: &Summary) {
    match &summary.conclusion {
        Conclusion::Complete => {}
        Conclusion::Elsewhere => {
            say!("{} left, which other controllers hold", runs(summary.left));
        }
        Conclusion::SomeFailed => {
            let again = std::env::args_os().filter(|arg| arg != RETRY).chain([RETRY.into()]);
            say!("{} failed; to try again: {}", runs(summary.failed.len()), command(again));
        }
        Conclusion::Halted(halt) => {
            if !matches!(halt, Halt::Signal { .. } | Halt::TimeLimit { .. }) {
                say!("error: {halt}");
            }
            say!("{} left; to go on: {}", runs(summary.left), command(std::env::args_os()));
        }
    }
}

/// The flag that has failed runs tried again.
const RETRY: &str = "--retry-failed";

pub(super) fn runs(count: usize) -> String {
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
