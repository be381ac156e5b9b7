//! Trains one run with the driver's log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use super::log::{self, Device, Heading};
use super::machine::{Going, Machine};
use super::output::Output;
use crate::backend::cpu::team::Team;
use crate::backend::cuda::die::DieError;
use crate::backend::cuda::lanes::LanesError;
use crate::checkpoint::{self, CheckpointError, Identity, Opened};
use crate::data::{Corpus, DataError};
use crate::model::{ModelConfig, ModelParams};
use crate::run::{Best, Ending, Outcome};
use crate::settings::table::TABLE;
use crate::settings::{Opt, Settings, without_neutral};
use crate::store::{StoreError, replace};
use crate::trainer::ledger::better;
use crate::trainer::{Profile, Progress, Progressed, Run, Snapshot, TrainError};

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
    /// Steps whose phases are timed.
    pub profile: Option<u64>,
    /// A file that the times go to as JSON.
    pub profile_json: Option<PathBuf>,
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
    /// The GPU cannot train it.
    #[error(transparent)]
    Lanes(#[from] LanesError),
    /// The GPU.
    #[error(transparent)]
    Die(#[from] DieError),
    /// Phases are not timed on a GPU.
    #[error("--profile is for the cpu backend: `diesweep bench --backend cuda` times a GPU's steps")]
    NoProfile,
    /// The times cannot be put into JSON.
    #[error("the profile cannot be written as JSON")]
    Profile(#[source] serde_json::Error),
    /// The times cannot be written.
    #[error("{}", .0.full_text())]
    ProfileFile(StoreError),
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
    machine: Machine,
    device: &Device,
    stop: &dyn Fn() -> bool,
) -> Result<Stopped, DriverError> {
    let settings = &training.settings;
    let params = ModelParams::new(&ModelConfig::from(settings));
    let identity = Identity::of(settings, &corpus.digest().to_string());
    let resumed = match &training.resume {
        Some(path) => Some(open_run(path, &identity, &params, settings)?),
        None => None,
    };
    let from = resumed.as_ref().map(|snapshot| snapshot.progress.clone());
    let mut run = Going::begin(machine, settings, corpus, resumed)?;
    if let Some(steps) = training.profile {
        run.profile(steps)?;
    }
    let heading = log::heading(Heading { settings, params: &params, device, started: SystemTime::now() });
    let steps = from.as_ref().map(|progress| progress.steps);
    let mut out = Output::open(training.log.as_deref(), &(heading + log::graph_note(settings)), steps)?;
    let mut course = Course::from(from);
    let stopped = course.advance(&mut run, training, &mut out, stop)?;
    let began = Instant::now();
    if let Some(path) = &training.save {
        match run.snapshot()? {
            Some(snapshot) => checkpoint::save(path, identity, &params, &snapshot)?,
            None => say!("warning: the run diverged, and {} is not written", path.display()),
        }
    }
    if let Some(mut profile) = course.profile.take() {
        if training.save.is_some() {
            profile.add("checkpoint, at the end", began.elapsed());
        }
        tell_profile(&profile, training.profile_json.as_deref())?;
    }
    Ok(stopped)
}

/// Prints a profile on standard error, where it is in no log's way, and writes it as JSON where that is asked for.
fn tell_profile(profile: &Profile, json: Option<&Path>) -> Result<(), DriverError> {
    say!("{}", profile.text().trim_end());
    let Some(path) = json else { return Ok(()) };
    let text = serde_json::to_string_pretty(profile).map_err(DriverError::Profile)? + "\n";
    replace(path, text.as_bytes()).map_err(DriverError::ProfileFile)
}

/// What the log tells of the way so far.
#[derive(Default)]
struct Course {
    best_val_bpb: Option<Best>,
    best_val_acc: Option<Best>,
    /// Steps done.
    steps: u64,
    profile: Option<Profile>,
}

impl Course {
    fn from(progress: Option<Progressed>) -> Self {
        let Some(Progressed { best_val_bpb, best_val_acc, steps, .. }) = progress else { return Self::default() };
        Self { best_val_bpb, best_val_acc, steps, profile: None }
    }

    fn advance(
        &mut self,
        run: &mut Going,
        training: &Training,
        out: &mut Output,
        stop: &dyn Fn() -> bool,
    ) -> Result<Stopped, DriverError> {
        let settings = &training.settings;
        loop {
            for progress in run.advance(settings.steps, training.save.is_some())? {
                match progress {
                    Progress::Stepped { step } => self.steps = step + 1,
                    Progress::Logged(row) => {
                        self.steps = row.step + 1;
                        self.best_val_bpb =
                            better(self.best_val_bpb, |a, b| a < b, Best { value: row.val_bpb, step: row.step });
                        self.best_val_acc =
                            better(self.best_val_acc, |a, b| a > b, Best { value: row.val_acc, step: row.step });
                        out.write(&(log::row(&row) + &log::best(self.best_val_bpb, self.best_val_acc)))?;
                    }
                    Progress::Ended(outcome) => {
                        self.profile = self.profile.take().or_else(|| run.profiled());
                        out.write(&closing(settings, &outcome))?;
                        return Ok(Stopped::Ended(outcome));
                    }
                }
            }
            if self.profile.is_none() {
                self.profile = run.profiled();
            }
            if stop() {
                return Ok(Stopped::Asked { steps: self.steps });
            }
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
