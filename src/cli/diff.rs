//! `diesweep diff`: whether two results are the same.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::report::{Differences, compare_paths};

const DIFFERENT: u8 = 1;
const CANNOT_COMPARE: u8 = 2;

/// Compare two results folders, or two files of them, without what depends on how the runs were executed.
///
/// Exit code 0: the same; 1: different; 2: they cannot be compared.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// Results folder (results/<sweep>), or a .csv or .json file.
    a: PathBuf,
    /// What to compare it with.
    b: PathBuf,
}

/// Compares, and prints the first differences of each file.
pub fn run(args: DiffArgs) -> ExitCode {
    match compare_paths(&args.a, &args.b) {
        Ok(found) => {
            if let Err(error) = super::print(&text(&found)) {
                say!("error: the differences cannot be printed: {error}");
                return ExitCode::from(CANNOT_COMPARE);
            }
            if found.total == 0 { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) }
        }
        Err(error) => {
            say!("error: {error}");
            ExitCode::from(CANNOT_COMPARE)
        }
    }
}

fn text(found: &Differences) -> String {
    let mut text = String::new();
    for difference in &found.listed {
        text += &format!("{}: {}\n", difference.file, difference.text);
    }
    let more = found.total - found.listed.len();
    if more > 0 {
        text += &format!("... and {more} more\n");
    }
    let files = format!("{} file{}", found.files, if found.files == 1 { "" } else { "s" });
    text += &match found.total {
        0 => format!("no difference in {files}\n"),
        1 => format!("1 difference in {files}\n"),
        n => format!("{n} differences in {files}\n"),
    };
    text
}
