//! The command line.

mod parity;

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
    Parity(parity::ParityArgs),
}

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Parity(args) => parity::run(&args),
    }
}
