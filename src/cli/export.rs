//! `diesweep export`: a results folder's numbers in the formats of other tools.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args, ValueEnum};

use super::{error_chain, print};
use crate::report::analyse;
use crate::report::export::{ExportError, TableFormat, export_tables, export_tensorboard};
use crate::store::View;

/// Write a results folder's numbers for other tools: TensorBoard event files, or the tables as Parquet or CSV
///
/// Exit code 0: written; 1: it cannot be read or written; 2: the command line.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(["tensorboard", "format"]))]
pub(super) struct ExportArgs {
    /// Results folder (results/<sweep>)
    dir: PathBuf,
    /// Write event files for TensorBoard into this folder, a folder for each run
    #[arg(long, value_name = "OUT")]
    tensorboard: Option<PathBuf>,
    /// Write the four tables in this format
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Folder for the tables [default: the results folder]
    #[arg(long, short, value_name = "OUT", requires = "format")]
    output: Option<PathBuf>,
}

/// Formats of tables.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// As in the results folder
    Csv,
    /// Apache Parquet
    Parquet,
}

/// Exports, and says what was written.
pub(super) fn run(args: &ExportArgs) -> ExitCode {
    match export(args) {
        Ok(text) => {
            // What was asked for is on disk; a reader that has seen enough is no error.
            let _ = print(&text);
            ExitCode::SUCCESS
        }
        Err(error) => {
            say!("error: {}", error_chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn export(args: &ExportArgs) -> Result<String, ExportError> {
    let (view, plan) = View::open(&args.dir)?;
    let loaded = view.load(&plan)?;
    loaded.warnings.iter().for_each(|warning| say!("warning: {warning}"));
    let mut text = String::new();
    if let Some(format) = args.format {
        let format = match format {
            Format::Csv => TableFormat::Csv,
            Format::Parquet => TableFormat::Parquet,
        };
        let out = args.output.as_deref().unwrap_or(view.layout().dir());
        let names = export_tables(&view, &plan, &loaded, &analyse(&plan, &loaded), format, out)?;
        text += &format!("{}: {}\n", out.display(), names.join(", "));
    }
    if let Some(out) = &args.tensorboard {
        let runs = export_tensorboard(&view, &plan, &loaded, out)?;
        let left = plan.runs.len() - runs;
        let left = if left > 0 { format!(" ({left} without a result left out)") } else { String::new() };
        let noun = if runs == 1 { "run" } else { "runs" };
        text +=
            &format!("{}: event files of {runs} {noun}{left}; tensorboard --logdir {}\n", out.display(), out.display());
    }
    Ok(text)
}
