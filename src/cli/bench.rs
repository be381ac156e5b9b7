//! `diesweep bench`: times the trainer's phases.

use std::process::ExitCode;

use crate::backend::cpu::simd::Level;
use crate::bench::{self, Report, Request, Spread};
use crate::settings::{self, Data, Settings};

/// Time the phases of a training step and evaluation on this machine
#[derive(clap::Args, Debug)]
pub struct BenchArgs {
    /// A setting of the trainer; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Threads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// Steps that count
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Steps before them
    #[arg(long, default_value_t = 10)]
    warm_up: u32,
    /// Validation windows to time
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    windows: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the times. Exit code 2 for unusable arguments.
pub fn run(args: &BenchArgs) -> ExitCode {
    let settings = match settings_of(&args.set) {
        Ok(settings) => settings,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    let level = match Level::current() {
        Ok(level) => level,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let request = Request {
        settings,
        threads: usize::from(args.threads),
        warm_up: u64::from(args.warm_up),
        steps: u64::from(args.steps),
        windows: u64::from(args.windows),
    };
    match bench::run(&request, level) {
        Ok(report) if args.json => match serde_json::to_string_pretty(&report) {
            Ok(json) => println!("{json}"),
            Err(error) => {
                eprintln!("error: the report cannot be written as JSON: {error}");
                return ExitCode::FAILURE;
            }
        },
        Ok(report) => print!("{}", text(&report)),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Settings from `KEY=VALUE` texts over the defaults, but for the corpus, which is the built-in one.
fn settings_of(texts: &[String]) -> Result<Settings, String> {
    let mut given = Vec::new();
    for text in texts {
        let (key, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not KEY=VALUE"))?;
        let row = settings::setting(key).ok_or_else(|| format!("there is no setting `{key}`"))?;
        let value =
            row.kind.parse(value).ok_or_else(|| format!("`{key}` must be {}, not `{value}`", row.kind.describe()))?;
        given.push((row, value));
    }
    let mut settings = settings::resolve(&given);
    if !given.iter().any(|(row, _)| row.key == "data") {
        settings.data = Data::Builtin;
    }
    match settings::conflicts(&settings).first() {
        Some(conflict) => Err(conflict.message.clone()),
        None => Ok(settings),
    }
}

fn text(report: &Report) -> String {
    let mut out = format!(
        "{}, {}, {} {}; {:?} arm, {} bytes a step, {} steps\n{:<14}{:>10}{:>10}{:>10}\n",
        report.processor,
        report.simd,
        report.threads,
        if report.threads == 1 { "thread" } else { "threads" },
        report.opt,
        report.bytes_per_step,
        report.steps,
        "milliseconds",
        "median",
        "p10",
        "p90",
    );
    for (name, Spread { median, p10, p90 }) in [
        ("step", report.step_ms),
        ("forward", report.forward_ms),
        ("backward", report.backward_ms),
        ("optimizer", report.optimizer_ms),
        ("evaluation", report.evaluation_ms),
    ] {
        out += &format!("{name:<14}{median:>10.3}{p10:>10.3}{p90:>10.3}\n");
    }
    out
}
