//! Where the log goes: standard output, and a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::train::DriverError;

/// Both places; each piece of the log reaches them at once.
#[derive(Debug)]
pub(super) struct Output {
    file: Option<(File, PathBuf)>,
    /// Nobody reads standard output any more.
    closed: bool,
}

impl Output {
    /// Begins the log with its heading. In the file a run that goes on after `from` steps keeps what it has of earlier calls, less the
    /// rows that come again.
    pub(super) fn open(path: Option<&Path>, heading: &str, from: Option<u64>) -> Result<Self, DriverError> {
        let mut out = Self { file: None, closed: false };
        let Some(path) = path else {
            out.write(heading)?;
            return Ok(out);
        };
        let failed = |source| DriverError::Log { place: path.display().to_string(), source };
        let kept = match from {
            Some(steps) => match std::fs::read_to_string(path) {
                Ok(text) => kept(&text, steps).to_owned(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                Err(error) => return Err(failed(error)),
            },
            None => String::new(),
        };
        let begin = if kept.is_empty() { heading } else { &kept };
        let mut file = OpenOptions::new().create(true).write(true).truncate(true).open(path).map_err(failed)?;
        file.write_all(begin.as_bytes()).map_err(failed)?;
        out.write(heading)?;
        out.file = Some((file, path.to_owned()));
        Ok(out)
    }

    /// Appends lines. A reader of standard output that has seen enough does not stop the run.
    pub(super) fn write(&mut self, lines: &str) -> Result<(), DriverError> {
        if !self.closed {
            let mut out = io::stdout().lock();
            match out.write_all(lines.as_bytes()).and_then(|()| out.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
                written => {
                    written.map_err(|source| DriverError::Log { place: "standard output".to_owned(), source })?;
                }
            }
        }
        if let Some((file, path)) = &mut self.file {
            let failed = |source| DriverError::Log { place: path.display().to_string(), source };
            file.write_all(lines.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }
}

/// The part of a log that stands after `steps` steps: all before the first row of a later step, the closing lines or a torn line.
/// Nothing where there is no header of columns.
fn kept(log: &str, steps: u64) -> &str {
    let mut end = 0;
    let mut headed = false;
    for line in log.split_inclusive('\n') {
        let row = line.split(',').next().and_then(|cell| cell.parse::<u64>().ok());
        let closing = ["# FINAL:", "# DIVERGED:", "# ====="].iter().any(|start| line.starts_with(start));
        if !line.ends_with('\n') || closing || row.is_some_and(|step| step >= steps) {
            break;
        }
        headed |= line.starts_with("step,");
        end += line.len();
    }
    if headed { &log[..end] } else { "" }
}

#[cfg(test)]
mod tests {
    use super::kept;

    #[test]
    fn a_log_is_cut_to_the_steps_that_are_done() {
        let head = "# start\nstep,train_bpb\n# opt#3\n";
        let rows = "0,1\n# BEST: a\n5,1\n# BEST: b\n";
        let log = format!("{head}{rows}9,1\n# BEST: c\n# FINAL: x\n# BEST: c\n");
        assert_eq!(kept(&log, 6), format!("{head}{rows}"));
        assert_eq!(kept(&log, 9), format!("{head}{rows}"));
        assert_eq!(kept(&log, 10), format!("{head}{rows}9,1\n# BEST: c\n"));
        assert_eq!(kept(&log, 0), head);
        assert_eq!(kept(&format!("{head}{rows}7,0.12"), 9), format!("{head}{rows}"), "a torn line is left out");
        assert_eq!(kept("no log at all\n", 9), "");
    }
}
