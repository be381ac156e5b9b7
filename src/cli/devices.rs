//! `diesweep devices`: lists the dies of this machine.

use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::devices::{Devices, render};

/// List the dies of this machine, and say of each whether it is usable and why not
#[derive(clap::Args, Debug)]
pub struct DevicesArgs {
    /// Print all readings as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the dies. Works without a driver, and says so.
pub fn run(args: &DevicesArgs) -> ExitCode {
    let devices = Devices::read();
    let text = if args.json {
        match serde_json::to_string_pretty(&devices) {
            Ok(json) => json + "\n",
            Err(error) => {
                say!("error: the dies cannot be written as JSON: {error}");
                return ExitCode::FAILURE;
            }
        }
    } else {
        render(&devices)
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader, such as `head`, has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            say!("error: the dies cannot be printed: {error}");
            ExitCode::FAILURE
        }
    }
}
