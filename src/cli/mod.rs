//! The command line.

pub mod plan;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Sweeps of small training runs over the dies of a machine, gathered into one comparison.
#[derive(Parser)]
#[command(name = "diesweep", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Plan(plan::PlanArgs),
}

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Plan(args) => plan::run(&args),
    }
}
