//! `diesweep compare`: several results folders as one comparison.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::{error_chain, print};
use crate::plan::Metric;
use crate::report::{Folder, MergeError, Merged, analyse, analyse_forced, comparison_text, write_merged};
use crate::store::{StoreError, TABLES};

const CANNOT: u8 = 1;

/// Compare the arms of several results folders as if they were one sweep
///
/// Arms of one name are joined where their runs differ in nothing but axes and seeds, else told apart. A run that several folders have counts once.
///
/// Exit code 0: compared; 1: a folder cannot be read, or two folders contradict each other, or arm and kind of device coincide; 2: the command line.
#[derive(Args, Debug)]
pub(super) struct CompareArgs {
    /// Results folders (results/<sweep>)
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// Arm that the others are compared with [default: the first folder's]
    #[arg(long, value_name = "ARM")]
    baseline: Option<String>,
    /// Metric [default: the first folder's]
    #[arg(long, value_name = "METRIC", value_parser = metric)]
    metric: Option<Metric>,
    /// Compare even where arm and kind of device coincide
    #[arg(long)]
    force: bool,
    /// Write the four tables into this folder, which is made if need be
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

fn metric(text: &str) -> Result<Metric, String> {
    let found = Metric::NAMES.iter().find(|(name, _)| *name == text).map(|(_, metric)| *metric);
    found.ok_or_else(|| crate::near::hint(text, &Metric::NAMES.map(|(name, _)| name)))
}

/// The folders could not be compared.
#[derive(Debug, thiserror::Error)]
enum CompareError {
    /// A folder.
    #[error("{}", .0.full_text())]
    Store(#[from] StoreError),
    /// What they hold.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// An arm's runs were made on other devices than the baseline's.
    #[error("arm `{arm}`: {why}; --force compares all the same")]
    Confounded {
        /// The arm.
        arm: String,
        /// Why it cannot be compared.
        why: String,
    },
}

/// Compares and prints.
pub(super) fn run(args: &CompareArgs) -> ExitCode {
    match compare(args) {
        Ok(text) => match print(&text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say!("error: the comparison cannot be printed: {error}");
                ExitCode::from(CANNOT)
            }
        },
        Err(error) => {
            say!("error: {}", error_chain(&error));
            ExitCode::from(CANNOT)
        }
    }
}

fn compare(args: &CompareArgs) -> Result<String, CompareError> {
    let folders: Vec<Folder> = args.dirs.iter().map(|dir| Folder::read(dir)).collect::<Result<_, _>>()?;
    let merged = Merged::of(&folders, args.baseline.as_deref(), args.metric)?;
    let mut analysis =
        if args.force { analyse_forced(&merged.plan, &merged.loaded) } else { analyse(&merged.plan, &merged.loaded) };
    if let Some((arm, why)) = analysis.verdict.confounded.first() {
        return Err(CompareError::Confounded { arm: arm.clone(), why: why.clone() });
    }
    analysis.verdict.notes.extend(merged.notes.iter().cloned());
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut text = comparison_text(&merged.plan, &analysis, colour);
    if let Some(dir) = &args.output {
        write_merged(dir, &merged, &analysis)?;
        text += &format!("Tables in {}: {}\n", dir.display(), TABLES.join(", "));
    }
    Ok(text)
}
