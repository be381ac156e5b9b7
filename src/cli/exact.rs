//! `diesweep parity --exact`: the same bytes on every backend and code path at hand, or the first that differ.

use std::process::ExitCode;

use crate::backend::cpu::simd::Level;
use crate::backend::cuda::code::CodeError;
use crate::backend::cuda::die::DieError;
use crate::data::Corpus;
use crate::exact::{Course, ExactError, Path};
use crate::settings::{Data, Settings};

/// Trains both arms of the default model on every path and prints a line for each. Exit code 0 where all bytes are equal, 1 where some
/// differ, 2 where there was nothing to compare. A path that is not to be had on this machine is named, and left out.
pub fn run(steps: u64, threads: usize) -> ExitCode {
    let corpus = match Corpus::open(&Data::Builtin) {
        Ok(corpus) => corpus,
        Err(error) => {
            say!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let course = Course::new(&Settings::default(), steps, corpus, threads);
    let levels = Level::available();
    let reference = match course.digests(&Path::Cpu(levels[0])) {
        Ok(reference) => reference,
        Err(error) => {
            say!("error: {error}");
            return ExitCode::from(2);
        }
    };
    println!("{}: {steps} steps of adamw and sr4, what the others are held against", Path::Cpu(levels[0]));
    let mut paths = vec![Path::Cuda { forced: None }, Path::Cuda { forced: Some("compute_37") }];
    // The slowest comes last.
    paths.extend(levels[1..].iter().map(|&level| Path::Cpu(level)));
    let (mut equal, mut different) = (0u32, 0u32);
    for path in paths {
        match course.digests(&path).map(|ours| course.difference(&ours, &reference)) {
            Ok(None) => {
                equal += 1;
                println!("{path}: all bytes equal");
            }
            Ok(Some(place)) => {
                different += 1;
                println!("{path}: DIFFERS first in {place}");
            }
            Err(error @ ExactError::Die(DieError::NoDriver(_) | DieError::Code(CodeError::Nvrtc(_)))) => {
                println!("{path}: not to be had here: {}", first_line(&error.to_string()));
            }
            Err(error) => {
                different += 1;
                println!("{path}: FAILED: {error}");
            }
        }
    }
    match (equal, different) {
        (_, 1..) => ExitCode::FAILURE,
        (0, 0) => ExitCode::from(2),
        (1.., 0) => ExitCode::SUCCESS,
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
