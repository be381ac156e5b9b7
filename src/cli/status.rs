//! `diesweep status`: how a sweep stands, from its files alone.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use console::{Term, truncate_str};

use super::{error_chain, print};
use crate::duration;
use crate::status::{Beats, Status, gather};
use crate::store::{StoreError, View};

/// Show how a sweep stands: runs by state, who holds them, time to go, last failures, best so far
///
/// Reads the results folder alone: from any host, whether the sweep runs or not. Exit code 0: shown; 1: the folder cannot be read;
/// 2: the command line or the sweep file.
#[derive(Args, Debug)]
pub(super) struct StatusArgs {
    /// Results folder (results/<sweep>), or the sweep file
    #[arg(value_name = "DIR|FILE.toml")]
    sweep: PathBuf,
    /// Folder in which a sweep file's sweep has its results folder
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Print one JSON object (docs/status.md), with --watch one a line
    #[arg(long)]
    json: bool,
    /// Look again and again until no run is left to do
    #[arg(long)]
    watch: bool,
    /// Time between two looks of --watch [default: 2s on a terminal, else 60s]
    #[arg(long, value_name = "TIME", requires = "watch", value_parser = duration::parse)]
    every: Option<Duration>,
}

/// The status cannot be shown.
#[derive(Debug, thiserror::Error)]
enum StatusError {
    /// The sweep file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The sweep file has no name.
    #[error("{} is no sweep file: {why}", path.display())]
    NoName {
        /// Its path.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// The results folder.
    #[error("{}", .0.full_text())]
    Store(StoreError),
    /// Standard output.
    #[error("the status cannot be printed")]
    Print(#[from] std::io::Error),
}

impl From<StoreError> for StatusError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Shows the status.
pub(super) fn run(args: &StatusArgs) -> ExitCode {
    match show(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say!("error: {}", error_chain(&error));
            let usage = matches!(error, StatusError::File { .. } | StatusError::NoName { .. });
            ExitCode::from(if usage { 2 } else { 1 })
        }
    }
}

fn show(args: &StatusArgs) -> Result<(), StatusError> {
    let dir = folder(&args.sweep, &args.results)?;
    let mut beats = Beats::default();
    let mut screen = Screen::new(args);
    loop {
        // Opened anew each time: runs' folders come, and the plan may be another.
        let (view, plan) = View::open(&dir)?;
        let status = gather(&view, &plan, &mut beats)?;
        if !screen.show(&status)? || !args.watch || status.runs.todo + status.runs.held == 0 {
            return Ok(());
        }
        std::thread::sleep(screen.every);
    }
}

/// The results folder of a folder or a sweep file. Of a sweep file nothing but the name is read: its corpus need not be here.
fn folder(sweep: &Path, results: &Path) -> Result<PathBuf, StatusError> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    if sweep.is_dir() || sweep.extension().is_none_or(|extension| extension != "toml") {
        return Ok(sweep.to_owned());
    }
    let path = || sweep.to_owned();
    let text = std::fs::read_to_string(sweep).map_err(|source| StatusError::File { path: path(), source })?;
    let named: Named =
        toml::from_str(&text).map_err(|error| StatusError::NoName { path: path(), why: error.message().to_owned() })?;
    Ok(results.join(named.name))
}

/// Where the status is shown.
struct Screen {
    json: bool,
    /// A terminal that is drawn over with each look.
    terminal: Option<Term>,
    watch: bool,
    every: Duration,
}

impl Screen {
    fn new(args: &StatusArgs) -> Self {
        let watched = args.watch && !args.json && std::io::stdout().is_terminal();
        let default = if watched { Duration::from_secs(2) } else { Duration::from_secs(60) };
        let terminal = watched.then(Term::stdout);
        Self { json: args.json, terminal, watch: args.watch, every: args.every.unwrap_or(default) }
    }

    /// Shows a status. Whether anybody still reads.
    fn show(&mut self, status: &Status) -> Result<bool, std::io::Error> {
        let text = if self.json {
            let mut json =
                if self.watch { serde_json::to_string(status) } else { serde_json::to_string_pretty(status) }?;
            json.push('\n');
            json
        } else if let Some(terminal) = &self.terminal {
            let (rows, columns) = terminal.size();
            return draw(terminal, &fitted(&status.text(), usize::from(rows), usize::from(columns))).map(|()| true);
        } else if self.watch {
            format!("{} {}\n", status.time, status.line())
        } else {
            status.text()
        };
        if !self.watch {
            return print(&text).map(|()| true);
        }
        let mut out = std::io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
            written => written.map(|()| true),
        }
    }
}

/// Draws over what the look before has drawn.
fn draw(terminal: &Term, text: &str) -> std::io::Result<()> {
    terminal.clear_screen()?;
    terminal.write_str(text)?;
    terminal.flush()
}

/// The lines that fit on a terminal, each cut to its width.
fn fitted(text: &str, rows: usize, columns: usize) -> String {
    // The last row stays free for the cursor.
    let lines = text.lines().take(rows.saturating_sub(1));
    lines.map(|line| format!("{}\n", truncate_str(line, columns, ""))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_the_terminal() {
        assert_eq!(fitted("a long line\nb\nc\n", 3, 6), "a long\nb\n");
        assert_eq!(fitted("wide äöü\n", 3, 6), "wide ä\n");
    }

    #[test]
    fn a_sweep_file_names_its_folder() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("s.toml");
        std::fs::write(&file, "name = \"x\"\n[base]\ndata = \"missing\"\n").unwrap();
        assert_eq!(folder(&file, Path::new("results")).unwrap(), Path::new("results/x"));
        assert_eq!(folder(root.path(), Path::new("results")).unwrap(), root.path());
        std::fs::write(&file, "[base]\n").unwrap();
        let error = folder(&file, Path::new("results")).unwrap_err().to_string();
        assert_eq!(error, format!("{} is no sweep file: missing field `name`", file.display()));
    }
}
