//! The command line.

pub mod devices;
pub mod kernels;
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
    Devices(devices::DevicesArgs),
    #[command(hide = true)]
    Kernels(kernels::KernelsArgs),
    Plan(plan::PlanArgs),
}

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Devices(args) => devices::run(&args),
        Command::Kernels(args) => kernels::run(&args),
        Command::Plan(args) => plan::run(&args),
    }
}
