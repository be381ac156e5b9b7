//! `diesweep verify`: whether a results folder holds together.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::print;
use crate::report::{Verified, verify};
use crate::store::{StoreError, View};

const DAMAGED: u8 = 1;
const CANNOT: u8 = 2;

/// Hold every published file of a results folder against its digest, and every table against one rebuilt from the logs
///
/// Exit code 0: all is as it should be; 1: a file is not, and is named; 2: it cannot be read.
#[derive(Args, Debug)]
pub(super) struct VerifyArgs {
    /// Results folder (results/<sweep>)
    dir: PathBuf,
}

/// Verifies, and names each file that is not what it should be.
pub(super) fn run(args: &VerifyArgs) -> ExitCode {
    match verified(args) {
        Ok(verified) => {
            if let Err(error) = print(&text(&verified)) {
                say!("error: what was found cannot be printed: {error}");
                return ExitCode::from(CANNOT);
            }
            if verified.damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) }
        }
        Err(error) => {
            say!("error: {}", error.full_text());
            ExitCode::from(CANNOT)
        }
    }
}

fn verified(args: &VerifyArgs) -> Result<Verified, StoreError> {
    let (view, plan) = View::open(&args.dir)?;
    verify(&view, &plan)
}

fn text(verified: &Verified) -> String {
    let count = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
    let mut text: String = verified.damage.iter().map(|d| format!("{}: {}\n", d.file, d.text)).collect();
    text += &format!(
        "{} by their digests, {} rebuilt from their logs: ",
        count(verified.runs, "published run"),
        count(verified.tables, "table")
    );
    text += &match verified.damage.len() {
        0 => "all as they should be".to_owned(),
        n => format!("{} found", count(n, "fault")),
    };
    if verified.without_result > 0 {
        text += &format!("; {} without a result", count(verified.without_result, "planned run"));
    }
    text.push('\n');
    text
}
