//! `diesweep explain`: what stands behind a number.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::print;
use crate::report::explain::{Explainer, NotFound, Target, text};
use crate::store::{StoreError, View};

const CANNOT: u8 = 1;
const NOT_FOUND: u8 = 2;

/// Show which runs, rows, digests, attempts, hosts and dies stand behind a number
///
/// WHAT is a run (the beginning of its id, its folder, or `sr4 lr=0.001 seed=7`), a configuration (`sr4 lr=0.001`; `sr4` for all of an arm), or a row of a table
/// (`comparisons.csv:2`; the header is row 1).
///
/// Exit code 0: shown; 1: the folder cannot be read; 2: there is nothing of that name.
#[derive(Args, Debug)]
pub(super) struct ExplainArgs {
    /// Results folder (results/<sweep>)
    dir: PathBuf,
    /// Run, configuration, or table and row
    #[arg(required = true)]
    what: Vec<String>,
    /// Print the facts as JSON
    #[arg(long)]
    json: bool,
}

/// The number could not be explained.
#[derive(Debug, thiserror::Error)]
enum ExplainError {
    #[error("{}", .0.full_text())]
    Store(#[from] StoreError),
    #[error(transparent)]
    NotFound(#[from] NotFound),
}

/// Explains and prints.
pub(super) fn run(args: &ExplainArgs) -> ExitCode {
    match explain(args) {
        Ok(text) => match print(&text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say!("error: the facts cannot be printed: {error}");
                ExitCode::from(CANNOT)
            }
        },
        Err(error) => {
            say!("error: {error}");
            ExitCode::from(if matches!(error, ExplainError::NotFound(_)) { NOT_FOUND } else { CANNOT })
        }
    }
}

fn explain(args: &ExplainArgs) -> Result<String, ExplainError> {
    let (view, plan) = View::open(&args.dir)?;
    let target = Target::find(&plan, &args.what)?;
    let explanation = Explainer::new(&view, &plan)?.explain(&target)?;
    Ok(match args.json {
        true => format!("{:#}\n", serde_json::json!(explanation)),
        false => text(&explanation),
    })
}
