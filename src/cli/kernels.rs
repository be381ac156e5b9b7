//! `diesweep kernels`: compiles the CUDA kernels without a GPU, and shows what each needs.

use std::process::ExitCode;

use crate::backend::cuda::code::parse_target;
use crate::backend::cuda::library::Host;
use crate::backend::cuda::nvrtc::NvrtcError;
use crate::backend::cuda::report::{self, ReportError};

/// Exit code where no compiler for a target is at hand: a script tells this from a fault.
const NO_COMPILER: u8 = 3;

/// Compile the CUDA kernels (no GPU is needed) and show each one's registers, spills and shared memory
#[derive(clap::Args, Debug)]
pub struct KernelsArgs {
    /// A target, such as sm_37; may be given more than once
    #[arg(long, value_name = "TARGET", default_values = ["sm_37", "sm_90"])]
    target: Vec<String>,
}

/// Prints the table. Exit code 1 where a kernel spills, has too much shared memory or does not compile; 2 for a target that is not
/// one; 3 where no compiler is at hand.
pub fn run(args: &KernelsArgs) -> ExitCode {
    let mut reports = Vec::new();
    for text in &args.target {
        let target = match parse_target(text) {
            Ok(target) => target,
            Err(error) => {
                say!("error: {error}");
                return ExitCode::from(2);
            }
        };
        match report::compile(&Host::this(), target) {
            Ok((compiler, needs)) => {
                say!("{target}: compiled by {compiler}");
                reports.push((target, needs));
            }
            Err(error) => {
                say!("error: {error}");
                return match error {
                    ReportError::Nvrtc(NvrtcError::NotFound(_) | NvrtcError::NoneCompiles { .. }) => {
                        ExitCode::from(NO_COMPILER)
                    }
                    _ => ExitCode::FAILURE,
                };
            }
        }
    }
    print!("{}", report::table(&reports));
    let mut sound = true;
    for (target, needs) in &reports {
        for fault in report::faults(*target, needs) {
            say!("error: {target}: {fault}");
            sound = false;
        }
    }
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
