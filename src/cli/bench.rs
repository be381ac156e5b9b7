//! `diesweep bench`: times the trainer's phases.

use std::process::ExitCode;

use crate::backend::cpu::simd::Level;
use crate::bench::cuda::{self, CudaReport, CudaRequest};
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
    /// Where to compute
    #[arg(long, value_enum, default_value_t = Backend::Cpu)]
    backend: Backend,
    /// On a GPU: numbers of lanes, with commas; both arms are timed in each
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = [1, 4, 16, 64], value_parser = clap::value_parser!(u16).range(1..=4096))]
    lanes: Vec<u16>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Backend {
    /// CPU cores
    Cpu,
    /// The first GPU of this process
    Cuda,
}

/// Prints the times. Exit code 2 for unusable arguments.
pub fn run(args: &BenchArgs) -> ExitCode {
    let settings = match settings_of(&args.set) {
        Ok(settings) => settings,
        Err(message) => {
            say!("error: {message}");
            return ExitCode::from(2);
        }
    };
    if args.backend == Backend::Cuda {
        return on_cuda(args, settings);
    }
    let level = match Level::current() {
        Ok(level) => level,
        Err(error) => {
            say!("error: {error}");
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
                say!("error: the report cannot be written as JSON: {error}");
                return ExitCode::FAILURE;
            }
        },
        Ok(report) => print!("{}", text(&report)),
        Err(error) => {
            say!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Prints the times of a GPU. Exit code 1 where there is none.
fn on_cuda(args: &BenchArgs, settings: Settings) -> ExitCode {
    let lanes = args.lanes.iter().map(|&n| usize::from(n)).collect();
    let report = match cuda::run(&CudaRequest { settings, lanes, steps: args.steps.min(50) }) {
        Ok(report) => report,
        Err(error) => {
            say!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    if args.json {
        match serde_json::to_string_pretty(&report) {
            Ok(json) => println!("{json}"),
            Err(error) => {
                say!("error: the report cannot be written as JSON: {error}");
                return ExitCode::FAILURE;
            }
        }
    } else {
        print!("{}", cuda_text(&report));
    }
    ExitCode::SUCCESS
}

fn cuda_text(report: &CudaReport) -> String {
    let mut out = format!(
        "{}, code {}; {} bytes a step of a lane\n{:<8}{:>6}{:>10}{:>14}{:>10}{:>9}{:>11}\n",
        report.device,
        report.code,
        report.bytes_per_step,
        "arm",
        "lanes",
        "step ms",
        "lane-steps/s",
        "TFLOP/s",
        "kernels",
        "MiB a lane"
    );
    for t in &report.times {
        out += &format!(
            "{:<8}{:>6}{:>10.3}{:>14.0}{:>10.2}{:>9}{:>11.1}\n",
            t.opt,
            t.lanes,
            t.step_ms,
            t.lane_steps_per_sec,
            t.tflops,
            t.nodes,
            t.bytes_per_lane as f64 / f64::from(1 << 20)
        );
    }
    out
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cuda::CudaTimes;

    #[test]
    fn a_gpus_times_are_a_table() {
        let times = CudaTimes {
            opt: "sr4",
            lanes: 64,
            step_ms: 6.4,
            lane_steps_per_sec: 10_000.0,
            tflops: 35.1,
            nodes: 160,
            bytes_per_lane: 70 << 20,
        };
        let (device, code) = ("NVIDIA H200".to_owned(), "sm_90".to_owned());
        let report = CudaReport { device, code, bytes_per_step: 512, times: vec![times] };
        let expected = "\
NVIDIA H200, code sm_90; 512 bytes a step of a lane
arm      lanes   step ms  lane-steps/s   TFLOP/s  kernels MiB a lane
sr4         64     6.400         10000     35.10      160       70.0
";
        assert_eq!(cuda_text(&report), expected);
    }
}
