//! `diesweep train`: one run, in the place of the reference driver.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{error_chain, print};
use crate::backend::cpu::simd::Level;
use crate::backend::cpu::team::Team;
use crate::bench::processor;
use crate::checkpoint::{CheckpointError, Opened, open};
use crate::controller::stop_signals;
use crate::data::Corpus;
use crate::driver::{self, Device, DriverError, SettingFlags, Stopped, Training};
use crate::event::signal_name;
use crate::run::{Ending, Outcome};
use crate::settings::{Settings, conflicts};

/// Train one run with the reference driver's flags and log
#[derive(clap::Args, Debug)]
pub(super) struct TrainArgs {
    #[command(flatten)]
    settings: SettingFlags,
    /// Also write the log to this file
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    log: Option<PathBuf>,
    /// Accepted for the reference driver's sake; the run's numbers are the same on every device
    #[arg(long, value_name = "N", help_heading = "Run")]
    device: Option<String>,
    /// Threads [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Run")]
    threads: Option<u16>,
    /// Save the run in this file when it ends or is told to stop
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    save: Option<PathBuf>,
    /// Go on with the run saved in this file; settings that are not given are the file's
    #[arg(long, value_name = "FILE", conflicts_with = "eval_only", help_heading = "Run")]
    resume: Option<PathBuf>,
    /// Only evaluate the weights in this file; settings that are not given are the file's
    #[arg(long, value_name = "FILE", conflicts_with = "save", help_heading = "Run")]
    eval_only: Option<PathBuf>,
}

/// Exit code of a run that diverged.
const DIVERGED: u8 = 3;

/// Why the command ended otherwise than well, with its exit code.
struct Refused(u8, String);

impl Refused {
    fn usage(message: impl std::fmt::Display) -> Self {
        Self(2, message.to_string())
    }

    fn fault(error: &dyn std::error::Error) -> Self {
        Self(1, error_chain(error))
    }
}

impl From<DriverError> for Refused {
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::OtherSettings { .. } | DriverError::Train(_) => Self::usage(error),
            error => Self::fault(&error),
        }
    }
}

impl From<CheckpointError> for Refused {
    fn from(error: CheckpointError) -> Self {
        Self::fault(&error)
    }
}

/// Runs the command. Exit codes: 0 trained or evaluated; 1 a file cannot be read or written; 2 usage; 3 the run diverged; 128 + n stopped by
/// signal n.
pub(super) fn run(args: &TrainArgs) -> ExitCode {
    match train_or_evaluate(args) {
        Ok(code) => code,
        Err(Refused(code, message)) => {
            say!("error: {message}");
            ExitCode::from(code)
        }
    }
}

fn train_or_evaluate(args: &TrainArgs) -> Result<ExitCode, Refused> {
    let file = args.eval_only.as_deref().or(args.resume.as_deref());
    let opened = file.map(open).transpose()?;
    let settings = match &opened {
        Some(opened) => args.settings.over(&opened.label.identity.configuration),
        None => args.settings.resolve(),
    };
    if let Some(conflict) = conflicts(&settings).first() {
        return Err(Refused::usage(format!("{} ({})", conflict.message, conflict.allowed)));
    }
    let corpus = Corpus::open(&settings.data).map_err(|error| Refused::fault(&error))?;
    let team = team(args.threads)?;
    match (&args.eval_only, opened) {
        (Some(path), Some(opened)) => evaluate(path, &opened, &settings, &corpus, team),
        _ => train(args, settings, &corpus, team),
    }
}

/// A team of threads on this machine's processor.
pub(super) fn cpu_team(threads: Option<u16>) -> Result<Arc<Team>, String> {
    let level = Level::current().map_err(|error| error_chain(&error))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.map_or(cores, usize::from);
    Team::new(threads, level).map(Arc::new).map_err(|error| error_chain(&error))
}

fn team(threads: Option<u16>) -> Result<Arc<Team>, Refused> {
    cpu_team(threads).map_err(Refused::usage)
}

fn train(args: &TrainArgs, settings: Settings, corpus: &Corpus, team: Arc<Team>) -> Result<ExitCode, Refused> {
    let (log, save, resume) = (args.log.clone(), args.save.clone(), args.resume.clone());
    let training = Training { settings, log, save, resume };
    let device = Device { name: processor(), capability: (0, 0), gpu: false };
    let signal = Arc::new(AtomicUsize::new(0));
    for number in stop_signals() {
        signal_hook::flag::register_usize(number, Arc::clone(&signal), number.unsigned_abs() as usize)
            .map_err(|error| Refused::fault(&error))?;
    }
    let stop = || signal.load(Ordering::Relaxed) != 0;
    match driver::train(&training, corpus, team, &device, &stop)? {
        Stopped::Ended(outcome) => Ok(match outcome.ending {
            Ending::Finished(_) => ExitCode::SUCCESS,
            Ending::Diverged { .. } => ExitCode::from(DIVERGED),
        }),
        Stopped::Asked { steps } => {
            let number = signal.load(Ordering::Relaxed) as u8;
            let name = signal_name(i32::from(number));
            match &training.save {
                Some(path) => say!(
                    "stopped by {name} after {steps} steps; to go on: the same command with --resume {}",
                    path.display()
                ),
                None => say!("stopped by {name} after {steps} steps; nothing was saved (--save FILE)"),
            }
            Ok(ExitCode::from(128 + number))
        }
    }
}

fn evaluate(
    path: &Path,
    opened: &Opened,
    settings: &Settings,
    corpus: &Corpus,
    team: Arc<Team>,
) -> Result<ExitCode, Refused> {
    let outcome = driver::evaluate(path, opened, settings, corpus, team)?;
    let (text, code) = evaluation(&outcome);
    print(&text).map_err(|error| Refused::fault(&error))?;
    Ok(code)
}

/// What an evaluation says.
fn evaluation(outcome: &Outcome) -> (String, ExitCode) {
    let finals = match &outcome.ending {
        Ending::Finished(finals) => finals,
        Ending::Diverged { step, loss } => return (driver::diverged(*step, *loss), ExitCode::from(DIVERGED)),
    };
    let value = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.5}"));
    let text = format!(
        "# EVAL: train_bpb={:.5} val_bpb={:.5} val_acc={:.5} test_bpb={} test_acc={}\n",
        finals.train_bpb,
        finals.val_bpb,
        finals.val_acc,
        value(finals.test_bpb),
        value(finals.test_acc)
    );
    (text, ExitCode::SUCCESS)
}
