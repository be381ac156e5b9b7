//! `diesweep checkpoint`: what a checkpoint or a file of final weights holds.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::checkpoint::{CheckpointError, Holds, Label, open};
use crate::settings::Settings;
use crate::settings::table::TABLE;

/// Look into checkpoints and final weights
#[derive(Args, Debug)]
pub(super) struct CheckpointArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Verify a file, and print whose it is, how far the run was, and its arrays
    Show {
        /// A checkpoint-<steps>.safetensors or final.safetensors
        file: PathBuf,
    },
}

/// Runs the command. Exit codes: 0 shown; 1 the file cannot be read or is damaged.
pub(super) fn run(args: &CheckpointArgs) -> ExitCode {
    let Command::Show { file } = &args.command;
    match show(file) {
        Ok(text) => {
            // Whoever reads may have seen enough.
            let _ = std::io::stdout().lock().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            say!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn show(path: &Path) -> Result<String, CheckpointError> {
    let file = open(path)?;
    let mut text = format!("{}: {} bytes, whole\n", path.display(), file.len());
    text.push_str(&about(&file.label));
    let tensors = file.tensors()?;
    let mut arrays: Vec<_> = tensors.iter().collect();
    arrays.sort_by(|a, b| a.0.cmp(b.0));
    let _ = writeln!(text, "{} arrays:", arrays.len());
    for (name, array) in arrays {
        let shape = array.shape().iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
        let _ = writeln!(text, "  {name}  {}  {shape}", format!("{:?}", array.dtype()).to_lowercase());
    }
    Ok(text)
}

/// What a label says, a line each.
fn about(label: &Label) -> String {
    let holds = match label.holds {
        Holds::Checkpoint => "checkpoint",
        Holds::Final => "final weights",
    };
    let identity = &label.identity;
    let mut text = format!(
        "{holds} of run {}, numerics {}, format {}\nsettings {}\ndigest {}\n",
        identity.run, identity.numerics, label.format, identity.settings, label.digest
    );
    let configuration = &identity.configuration;
    let changed = TABLE.iter().filter_map(|row| {
        let value = row.get(configuration)?;
        (row.changes_numbers && row.get(&Settings::default()).as_ref() != Some(&value))
            .then(|| format!("{} = {value}", row.key))
    });
    let changed: Vec<_> = changed.collect();
    let changed = if changed.is_empty() { "none".to_owned() } else { changed.join(", ") };
    let _ = writeln!(text, "settings that are not the defaults: {changed}");
    if let Some(progress) = &label.progress {
        let _ = writeln!(text, "{} steps done, {} of them skipped", progress.steps, progress.skipped);
        for (name, best) in [("val_bpb", progress.best_val_bpb), ("val_acc", progress.best_val_acc)] {
            if let Some(best) = best {
                let _ = writeln!(text, "best {name} {} at step {}", best.value, best.step);
            }
        }
        if let Some(bad) = progress.bad {
            let _ = writeln!(text, "diverged at step {} (loss {})", bad.step, bad.loss);
        }
        let _ = writeln!(text, "{:.3} s of training and evaluation", progress.elapsed.total.as_secs_f64());
    }
    if let Some(log) = &label.log {
        let _ = writeln!(text, "log of {} rows, {} bytes", log.rows, log.bytes);
    }
    text
}
