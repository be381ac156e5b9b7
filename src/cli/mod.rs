//! The command line.

pub mod bench;
mod checkpoint;
mod compare;
pub mod devices;
mod dies;
mod diff;
mod exact;
mod explain;
mod export;
pub mod kernels;
mod ledger;
mod parity;
mod past;
pub mod plan;
mod refresh;
mod report;
mod resources;
mod run;
mod sample;
mod stats;
mod status;
mod torture;
mod train;
mod verify;
mod worker;

use std::io::Write;
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
    Run(run::RunArgs),
    Plan(plan::PlanArgs),
    Devices(devices::DevicesArgs),
    Status(status::StatusArgs),
    Report(report::ReportArgs),
    Diff(diff::DiffArgs),
    Stats(stats::StatsArgs),
    Compare(compare::CompareArgs),
    Explain(explain::ExplainArgs),
    Verify(verify::VerifyArgs),
    Export(export::ExportArgs),
    Train(train::TrainArgs),
    Sample(sample::SampleArgs),
    Checkpoint(checkpoint::CheckpointArgs),
    Parity(parity::ParityArgs),
    #[command(hide = true)]
    Kernels(kernels::KernelsArgs),
    #[command(hide = true)]
    Bench(bench::BenchArgs),
    #[command(hide = true)]
    Torture(torture::TortureArgs),
    /// Trains what its controller assigns.
    #[command(hide = true)]
    Worker(worker::WorkerArgs),
}

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Devices(args) => devices::run(&args),
        Command::Kernels(args) => kernels::run(&args),
        Command::Run(args) => run::main(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Diff(args) => diff::run(args),
        Command::Stats(args) => stats::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Train(args) => train::run(&args),
        Command::Sample(args) => sample::run(&args),
        Command::Checkpoint(args) => checkpoint::run(&args),
        Command::Worker(args) => worker::main(&args),
        Command::Torture(args) => torture::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Parity(args) => parity::run(&args),
    }
}

/// Writes to standard output. A reader that has seen enough, such as `head`, is no error.
fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        ended => ended,
    }
}

/// An error and what caused it, in one line.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
