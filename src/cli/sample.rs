//! `diesweep sample`: what a trained model says.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use super::error_chain;
use super::train::cpu_team;
use crate::checkpoint::open;
use crate::driver::{Draw, Sampler};
use crate::model::{ModelConfig, ModelParams};

/// Let a model go on with a text
#[derive(clap::Args, Debug)]
pub(super) struct SampleArgs {
    /// A checkpoint or final weights
    file: PathBuf,
    /// The text to go on with; it is printed too
    #[arg(long, value_name = "TEXT", default_value = "\n", value_parser = prompt)]
    prompt: String,
    /// Bytes to add
    #[arg(long, value_name = "N", default_value_t = 400)]
    bytes: u32,
    /// Divides the logits: below 1 likelier bytes become likelier still, 0 takes the likeliest
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = temperature)]
    temperature: f64,
    /// Draw from so many of the likeliest bytes; 0 for all
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=256))]
    top_k: u16,
    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Threads [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

fn prompt(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("the model needs one byte at least to go on with".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

fn temperature(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() && x >= 0.0 => Ok(x),
        _ => Err("a number at least 0 is wanted".to_owned()),
    }
}

/// Runs the command. Exit codes: 0 printed; 1 the file cannot be read, or nothing can be printed; 2 usage.
pub(super) fn run(args: &SampleArgs) -> ExitCode {
    match sample(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            say!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn sample(args: &SampleArgs) -> Result<(), String> {
    let file = open(&args.file).map_err(|error| error_chain(&error))?;
    let settings = &file.label.identity.configuration;
    let params = ModelParams::new(&ModelConfig::from(settings));
    let weights = file.weights(&args.file, &params).map_err(|error| error_chain(&error))?;
    let draw = Draw { temperature: args.temperature, top_k: usize::from(args.top_k), seed: args.seed };
    let mut text = args.prompt.clone().into_bytes();
    let longest = text.len() + args.bytes as usize;
    let mut sampler = Sampler::new(settings, weights, cpu_team(args.threads)?, draw, longest);
    let mut out = Printer { raw: !std::io::stdout().is_terminal() };
    let mut open = out.print(&text)?;
    for _ in 0..args.bytes {
        if !open {
            return Ok(());
        }
        let byte = sampler.next(&text);
        text.push(byte);
        open = out.print(&[byte])?;
    }
    if !out.raw {
        out.print(b"\n")?;
    }
    Ok(())
}

/// Prints bytes as they are, or, on a terminal, so that they cannot steer it.
struct Printer {
    raw: bool,
}

impl Printer {
    /// Whether anyone still reads.
    fn print(&mut self, bytes: &[u8]) -> Result<bool, String> {
        let text = if self.raw { bytes.to_vec() } else { shown(bytes) };
        let mut out = std::io::stdout().lock();
        match out.write_all(&text).and_then(|()| out.flush()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(format!("the text cannot be printed: {error}")),
            Ok(()) => Ok(true),
        }
    }
}

/// Printable ASCII, line ends and tabs as they are; every other byte as `\xNN`.
fn shown(bytes: &[u8]) -> Vec<u8> {
    bytes
        .iter()
        .flat_map(|&byte| match byte {
            b'\n' | b'\t' | b' '..=b'~' => vec![byte],
            _ => format!("\\x{byte:02x}").into_bytes(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_steered() {
        assert_eq!(shown(b"a\tb\n\x1b[2J\xff~"), b"a\tb\n\\x1b[2J\\xff~");
    }
}
