//! `diesweep report`: makes the report of a results folder again, or prints its table.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::report::{Markup, analyse, summary_text, write_plots, write_report};
use crate::store::{StoreError, View};

/// Make report.html and plots/ of a results folder again from its files, or print its summary table
///
/// Exit code 0: done; 1: it cannot be read or written; 2: the command line.
#[derive(Args, Debug)]
pub(super) struct ReportArgs {
    /// Results folder (results/<sweep>)
    dir: PathBuf,
    /// Print the summary table as Markdown, and write nothing
    #[arg(long, conflicts_with = "latex")]
    markdown: bool,
    /// Print the summary table as LaTeX (booktabs), and write nothing
    #[arg(long)]
    latex: bool,
}

/// Makes the report.
pub(super) fn run(args: &ReportArgs) -> ExitCode {
    match report(args) {
        Ok(text) => {
            // A reader that has seen enough (`| head`) is no error.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            say!("error: {}", error.full_text());
            ExitCode::FAILURE
        }
    }
}

fn report(args: &ReportArgs) -> Result<String, StoreError> {
    let (view, plan) = View::open(&args.dir)?;
    let loaded = view.load(&plan)?;
    let analysis = analyse(&plan, &loaded);
    if args.markdown || args.latex {
        let markup = if args.latex { Markup::Latex } else { Markup::Markdown };
        return Ok(summary_text(&plan, &analysis, markup));
    }
    write_report(&view, &plan, &loaded, &analysis, None)?;
    let plots = write_plots(&view, &plan, &loaded, &analysis)?;
    let (report, folder) = (view.layout().report(), view.layout().plots());
    let s = if plots == 1 { "" } else { "s" };
    Ok(format!("{}\n{}: {plots} plot{s}, as SVG and PNG\n", report.display(), folder.display()))
}
