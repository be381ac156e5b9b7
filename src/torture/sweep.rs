//! The sweep that is tortured: both arms, four configurations, eight runs of a tiny model.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::TortureError;
use super::schedule::HANG_MS;

/// Runs of the sweep.
pub(super) const RUNS: usize = 8;

/// Its name, and so that of its results folder.
const NAME: &str = "tortured";

const TEXT: &str = r#"name = "tortured"
seeds = { first = 1, count = 2 }
[base]
data = "corpus.txt"
steps = 40
C = 16
n_head = 2
head_size = 8
n_rwkv = 1
n_attn = 1
ffn = 32
lora = 4
seq_len = 16
eval_every = 4
eval_batches = 1
test_batches = 2
save_final = true
[run]
checkpoint_every = 3
[[arm]]
name = "adamw"
opt = "adamw"
lr = [1e-3, 3e-3]
[[arm]]
name = "sr4"
opt = "sr4"
target_step = [0.003, 0.01]
[compare]
baseline = "adamw"
metric = "val_bpb"
"#;

/// How long the controllers of a call wait for what does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// As a user's.
    Usual,
    /// A second for leases and for a full disk.
    Short,
    /// The same, and [`HANG_MS`] for silent workers.
    Little,
}

/// The sweep file and its corpus, in a folder.
#[derive(Debug)]
pub(super) struct Sweep {
    folder: PathBuf,
}

impl Sweep {
    /// Writes them into `folder`.
    pub(super) fn write(folder: &Path) -> Result<Self, TortureError> {
        let corpus: String = (0..4000).map(|i| format!("{} ", i * i % 97)).collect();
        for (name, text) in [("corpus.txt", corpus.as_str()), ("sweep.toml", TEXT)] {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| TortureError::io("write", &path, error))?;
        }
        Ok(Self { folder: folder.to_owned() })
    }

    /// The command that trains it, with its events on standard output.
    pub(super) fn command(&self, results: &Path, patience: Patience) -> Command {
        let mut command = Command::new("/proc/self/exe");
        command.args(["run", "sweep.toml", "--backend", "cpu", "--dies", "2", "--json"]);
        if patience != Patience::Usual {
            command.args([
                "--stop-grace",
                "5s",
                "--disk-wait",
                "1s",
                "--lease-time",
                "1s",
                "--controller-limit",
                "700ms",
            ]);
        }
        if patience == Patience::Little {
            command.args(["--beat-limit", &format!("{HANG_MS}ms")]);
        }
        command.arg("--results").arg(results).current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    /// Its results folder in `--results`.
    pub(super) fn folder_in(results: &Path) -> PathBuf {
        results.join(NAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sweep_is_a_good_one_with_both_arms() {
        let folder = tempfile::tempdir().unwrap();
        Sweep::write(folder.path()).unwrap();
        // `data` is relative to the working directory, which is not this test's to change.
        let corpus = folder.path().join("corpus.txt").display().to_string();
        let file = folder.path().join("sweep.toml");
        std::fs::write(&file, TEXT.replace("corpus.txt", &corpus)).unwrap();
        let plan = crate::sweep::load(&file, &mut crate::plan::open_corpus).unwrap().plan;
        assert_eq!((plan.name.as_str(), plan.runs.len()), (NAME, RUNS));
    }
}
