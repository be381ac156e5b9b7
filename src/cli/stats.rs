//! `diesweep stats`: the statistics of any CSV file of results.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::{error_chain, print};
use crate::samples::{Comparisons, Duplicates, Request, Samples, SamplesError, Table, json, text};
use crate::stats::Better;

const CANNOT: u8 = 1;
const USAGE: u8 = 2;

/// Compare the arms of any CSV file of results, paired by seed
///
/// Each arm's best configuration is compared with the baseline's best: differences with intervals, exact sign-flip and Wilcoxon tests, paired t test,
/// effect size, Holm's correction over the arms. Cells may be apart by commas, semicolons (then with decimal commas too), tabs or bars.
/// Rows without a number are left out and named; NaN and infinities count as diverged.
///
/// Exit code 0: compared; 1: it cannot be read, or an arm has no seed in common with the baseline; 2: the command line.
#[derive(Args, Debug)]
pub(super) struct StatsArgs {
    /// CSV file with a header and a row for each run
    file: PathBuf,
    /// Column that names the arm
    #[arg(long, value_name = "COLUMN")]
    arm: String,
    /// Column of the seed, by which runs are paired
    #[arg(long, value_name = "COLUMN")]
    seed: String,
    /// Column of the value to compare
    #[arg(long, value_name = "COLUMN")]
    metric: String,
    /// Column of values that nothing was chosen by: the best configurations are compared on it
    #[arg(long, value_name = "COLUMN")]
    test: Option<String>,
    /// Columns that tell an arm's configurations apart
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    by: Vec<String>,
    /// Arm that the others are compared with
    #[arg(long, value_name = "NAME")]
    baseline: String,
    /// Smaller values are better [default: by the metric's name, if that tells]
    #[arg(long, conflicts_with = "higher_is_better")]
    lower_is_better: bool,
    /// Larger values are better
    #[arg(long)]
    higher_is_better: bool,
    /// Which of several rows of one arm, configuration and seed counts
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Which::Error)]
    duplicates: Which,
    /// Print all as JSON
    #[arg(long)]
    json: bool,
}

/// Which of several rows counts.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Which {
    /// None: they are an error
    Error,
    /// The first one
    First,
    /// The last one
    Last,
}

/// Compares and prints.
pub(super) fn run(args: &StatsArgs) -> ExitCode {
    let request = request(args);
    let compared = compare(args, &request);
    let (text, complete) = match compared {
        Ok(compared) => compared,
        Err(error) => {
            say!("error: {}", error_chain(&error));
            return ExitCode::from(if error.is_usage() { USAGE } else { CANNOT });
        }
    };
    if let Err(error) = print(&text) {
        say!("error: the comparison cannot be printed: {error}");
        return ExitCode::from(CANNOT);
    }
    if complete {
        ExitCode::SUCCESS
    } else {
        say!("error: not every arm could be compared with `{}`", request.baseline);
        ExitCode::from(CANNOT)
    }
}

fn request(args: &StatsArgs) -> Request {
    let better = match (args.lower_is_better, args.higher_is_better) {
        (true, _) => Some(Better::Lower),
        (_, true) => Some(Better::Higher),
        _ => None,
    };
    Request {
        arm: args.arm.clone(),
        seed: args.seed.clone(),
        metric: args.metric.clone(),
        test: args.test.clone(),
        by: args.by.clone(),
        baseline: args.baseline.clone(),
        better,
        duplicates: match args.duplicates {
            Which::Error => Duplicates::Refuse,
            Which::First => Duplicates::First,
            Which::Last => Duplicates::Last,
        },
    }
}

/// What to print, and whether every arm was compared.
fn compare(args: &StatsArgs, request: &Request) -> Result<(String, bool), SamplesError> {
    let table = Table::read(&args.file, &request.wanted())?;
    let samples = Samples::gather(&table, request)?;
    let comparisons = Comparisons::of(&samples, &request.baseline, request.test.is_some());
    let text = match args.json {
        true => format!("{:#}\n", json(&samples, &comparisons, request)),
        false => text(&args.file, &samples, &comparisons, request),
    };
    Ok((text, comparisons.all_compared()))
}
