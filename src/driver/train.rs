//! Trains one run with the driver's log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::log::{self, Device, Heading};
use super::output::Output;
use crate::backend::cpu::team::Team;
use crate::checkpoint::{self, CheckpointError, Identity, Opened};
use crate::data::{Corpus, DataError};
use crate::model::{ModelConfig, ModelParams};
use crate::run::{Ending, Outcome};
use crate::settings::table::TABLE;
use crate::settings::{Opt, Settings, without_neutral};
use crate::trainer::{Progress, Run, Snapshot, TrainError};

/// What to train, and where its files are.
#[derive(Debug)]
pub struct Training {
    /// The run's settings.
    pub settings: Settings,
    /// A file that the log goes to besides standard output.
    pub log: Option<PathBuf>,
    /// A file that the run is saved in when it stops.
    pub save: Option<PathBuf>,
    /// A file that an earlier call saved the run in.
    pub resume: Option<PathBuf>,
}

/// How a run came to stop.
#[derive(Debug)]
pub enum Stopped {
    /// All steps are trained, or the run diverged.
    Ended(Box<Outcome>),
    /// It was told to stop after so many steps.
    Asked {
        /// Steps done.
        steps: u64,
    },
}

/// A run cannot be trained.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The corpus cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// This program lacks what a setting asks.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// A checkpoint cannot be read or written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A checkpoint is of a run of other settings.
    #[error("{} is of another run: {differences}", path.display())]
    OtherSettings {
        /// The checkpoint.
        path: PathBuf,
        /// `lr = 0.001, not 0.003; ...`.
        differences: String,
    },
    /// The log cannot be written.
    #[error("the log cannot be written to {place}: {source}")]
    Log {
        /// A path, or standard output.
        place: String,
        /// Why.
        source: io::Error,
    },
}

/// Trains the run to its end, or until `stop` says so between two steps. The corpus is opened by the caller.
///
/// # Errors
/// The run cannot be trained as configured, or a file cannot be read or written.
pub fn train(
    training: &Training,
    corpus: &Corpus,
    team: Arc<Team>,
    device: &Device,
    stop: &dyn Fn() -> bool,
) -> Result<Stopped, DriverError> {
    let settings = &training.settings;
    let params = ModelParams::new(&ModelConfig::from(settings));
    let identity = Identity::of(settings, &corpus.digest().to_string());
    let mut run = Run::new(settings, corpus.clone(), team, None)?;
    let resumed = match &training.resume {
        Some(path) => Some(open_run(path, &identity, &params, settings)?),
        None => None,
    };
    let from = resumed.as_ref().map(|snapshot| snapshot.progress.steps);
    if let Some(snapshot) = resumed {
        run.restore(snapshot);
    }
    let heading = log::heading(Heading { settings, params: &params, device, started: SystemTime::now() });
    let mut out = Output::open(training.log.as_deref(), &(heading + log::graph_note(settings)), from)?;
    let stopped = advance(&mut run, &mut out, stop)?;
    if let Some(path) = &training.save {
        checkpoint::save(path, identity, &params, &run.snapshot())?;
    }
    Ok(stopped)
}

fn advance(run: &mut Run, out: &mut Output, stop: &dyn Fn() -> bool) -> Result<Stopped, DriverError> {
    loop {
        match run.advance() {
            Progress::Stepped { .. } => {}
            Progress::Logged(row) => {
                let progress = run.progress();
                out.write(&(log::row(&row) + &log::best(progress.best_val_bpb, progress.best_val_acc)))?;
            }
            Progress::Ended(outcome) => {
                out.write(&closing(run.settings(), &outcome))?;
                return Ok(Stopped::Ended(outcome));
            }
        }
        if stop() {
            return Ok(Stopped::Asked { steps: run.steps() });
        }
    }
}

/// The lines after the last row.
fn closing(settings: &Settings, outcome: &Outcome) -> String {
    let last = match &outcome.ending {
        Ending::Finished(finals) => log::finals(finals, outcome),
        Ending::Diverged { step, loss } => log::diverged(*step, *loss),
    };
    let best = log::best(outcome.best_val_bpb, outcome.best_val_acc);
    last + &best + &log::summary(settings, outcome, SystemTime::now())
}

/// The run that a checkpoint holds, which must be this one.
fn open_run(
    path: &Path,
    identity: &Identity,
    params: &ModelParams,
    settings: &Settings,
) -> Result<Snapshot, DriverError> {
    let file = checkpoint::open(path)?;
    let differences = differences(&file, settings);
    if !differences.is_empty() {
        return Err(DriverError::OtherSettings { path: path.to_owned(), differences });
    }
    Ok(file.snapshot(path, identity, params, settings.opt == Opt::Sr4)?)
}

/// The settings that a file's run has otherwise.
fn differences(file: &Opened, settings: &Settings) -> String {
    let (theirs, ours) = (&file.label.identity.configuration, without_neutral(settings));
    let differing = TABLE.iter().filter(|row| row.get(theirs) != row.get(&ours));
    let told = differing.filter_map(|row| Some(format!("{} = {}, not {}", row.key, row.get(theirs)?, row.get(&ours)?)));
    told.collect::<Vec<_>>().join("; ")
}

/// Evaluates the weights of a checkpoint, or final weights, as a finished run's are: the first window that its run never trained
/// on, twice `eval_batches` validation windows, and the test split.
///
/// # Errors
/// The file is of another model, or the corpus cannot be used.
pub fn evaluate(
    path: &Path,
    file: &Opened,
    settings: &Settings,
    corpus: &Corpus,
    team: Arc<Team>,
) -> Result<Outcome, DriverError> {
    let mut run = Run::new(settings, corpus.clone(), team, None)?;
    let mut snapshot = run.snapshot();
    snapshot.state.weights = file.weights(path, &ModelParams::new(&ModelConfig::from(settings)))?;
    snapshot.progress.steps = settings.steps;
    run.restore(snapshot);
    loop {
        if let Progress::Ended(outcome) = run.advance() {
            return Ok(*outcome);
        }
    }
}
