//! `diesweep worker`: what a controller starts. Not for users.

use std::process::ExitCode;

use clap::Args;

use super::error_chain;
use crate::plan::LanesAsked;
use crate::worker;

/// What a controller tells a worker on its command line.
#[derive(Args)]
pub(super) struct WorkerArgs {
    /// Die that this worker trains on.
    #[arg(long)]
    die: usize,
    /// Cores to pin itself to.
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,
    /// Process that must be its parent.
    #[arg(long)]
    parent: u32,
    /// Longest silence of the controller.
    #[arg(long, default_value = "20s", value_parser = crate::duration::parse)]
    controller_limit: std::time::Duration,
    /// Threads of the trainer.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Train on the GPU that this process sees.
    #[arg(long)]
    cuda: bool,
    /// Lanes, on a GPU.
    #[arg(long, default_value_t = LanesAsked::Auto)]
    lanes: LanesAsked,
    /// Runs that there are to train.
    #[arg(long, default_value_t = u32::MAX)]
    runs: u32,
    /// Script that a scripted trainer follows in place of training.
    #[cfg(debug_assertions)]
    #[arg(long)]
    script: Option<std::path::PathBuf>,
}

/// Serves the controller to the end.
pub(super) fn main(args: &WorkerArgs) -> ExitCode {
    let options = worker::Options {
        die: args.die,
        cores: args.cores.clone(),
        parent: args.parent,
        patience: args.controller_limit,
    };
    #[cfg(debug_assertions)]
    if let Some(script) = &args.script {
        return report(worker::serve(&options, |link| worker::Scripted::load(script, link)));
    }
    if args.cuda {
        return report(worker::serve(&options, |_| worker::CudaTrainer::new(args.threads, args.lanes, args.runs)));
    }
    report(worker::serve(&options, |_| worker::CpuTrainer::new(args.threads)))
}

fn report(served: Result<(), worker::WorkerError>) -> ExitCode {
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say!("{}", error_chain(&error));
            ExitCode::from(error.exit_status())
        }
    }
}
