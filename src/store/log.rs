//! A run's log as a CSV file: one row for each logged step.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{Context, StoreError};
use crate::cfmt;
use crate::fault::{self, FileKind, Moment};
use crate::run::{Panel, Row, Timing};

/// The header of a log, without its line end.
pub const LOG_HEADER: &str = "step,train_bpb,val_bpb,val_acc,grad_norm,lr,step_sec,tok_per_sec,elapsed_sec,ETA_sec,\
    churn,pct_neg,pct_zero,pct_pos,rail_pct,dead_pct,scale_mean,scale_min,scale_max";

/// Columns of a log.
const COLUMNS: usize = 19;
/// Where the timing stands, the volatile part.
const TIMING: std::ops::Range<usize> = 6..10;

/// Appends a row as C's `%d,%.5f,%.5f,%.5f,%.4g,%.4g,%.4f,%.1f,%.2f,%.2f`, then the panel's `%.5f` six times and `%.4f`
/// three times, or `absent` in each of its places. No line end.
pub fn format_row(out: &mut String, row: &Row, absent: &str) {
    out.push_str(&row.step.to_string());
    for x in [row.train_bpb, row.val_bpb, row.val_acc] {
        out.push(',');
        cfmt::fixed(out, x, 5);
    }
    for x in [row.grad_norm, row.lr] {
        out.push(',');
        cfmt::general(out, x, 4);
    }
    let t = row.timing;
    for (x, places) in [(t.step_sec, 4), (t.tok_per_sec, 1), (t.elapsed_sec, 2), (t.eta_sec, 2)] {
        out.push(',');
        cfmt::fixed(out, x, places);
    }
    for i in 0..9 {
        out.push(',');
        match &row.panel {
            Some(panel) => cfmt::fixed(out, panel_values(panel)[i], if i < 6 { 5 } else { 4 }),
            None => out.push_str(absent),
        }
    }
}

fn panel_values(p: &Panel) -> [f64; 9] {
    [p.churn, p.pct_neg, p.pct_zero, p.pct_pos, p.rail_pct, p.dead_pct, p.scale_mean, p.scale_min, p.scale_max]
}

/// A log as it is at some moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogMark {
    /// Its length in bytes.
    pub bytes: u64,
    /// Its rows.
    pub rows: u64,
    /// blake3 of the bytes, hexadecimal.
    pub digest: String,
}

impl LogMark {
    /// The bytes that the log at `path` had when it was marked.
    ///
    /// # Errors
    /// The log cannot be read, is shorter by now, or has other bytes.
    pub fn kept(&self, path: &Path) -> Result<Vec<u8>, StoreError> {
        let broken = |why: String| StoreError::BrokenLog { path: path.to_owned(), why };
        let mut log = fs::read(path).context("read", path)?;
        let bytes = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        if log.len() < bytes {
            return Err(broken(format!("it has {} bytes where there were {}", log.len(), self.bytes)));
        }
        log.truncate(bytes);
        if *blake3::hash(&log).to_hex() != *self.digest {
            return Err(broken(format!("its first {} bytes are not those that were written", self.bytes)));
        }
        rows_of(path, &log)?;
        Ok(log)
    }
}

/// Writes a log line by line: each row reaches the file at once and in one piece.
#[derive(Debug)]
pub struct LogWriter {
    file: File,
    path: PathBuf,
    line: String,
    bytes: u64,
    rows: u64,
    hasher: blake3::Hasher,
}

impl LogWriter {
    /// Creates the file, which must not be there, and writes the header.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let mut writer = Self::empty(path)?;
        writer.line.push_str(LOG_HEADER);
        writer.write_line()?;
        Ok(writer)
    }

    /// Creates the file, which must not be there, with what another log had when it was marked ([`LogMark::kept`]).
    pub fn go_on(path: &Path, kept: &[u8], rows: u64) -> Result<Self, StoreError> {
        let mut writer = Self::empty(path)?;
        writer.write(kept)?;
        writer.rows = rows;
        Ok(writer)
    }

    fn empty(path: &Path) -> Result<Self, StoreError> {
        let file = fault::before(Moment::Create, path).and_then(|()| File::create_new(path)).context("create", path)?;
        let (path, hasher) = (path.to_owned(), blake3::Hasher::new());
        Ok(Self { file, path, line: String::new(), bytes: 0, rows: 0, hasher })
    }

    /// The log as it is now.
    pub fn mark(&self) -> LogMark {
        LogMark { bytes: self.bytes, rows: self.rows, digest: self.hasher.finalize().to_string() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a row; values that the run does not have are left empty.
    pub fn row(&mut self, row: &Row) -> Result<(), StoreError> {
        self.line.clear();
        format_row(&mut self.line, row, "");
        self.write_line()?;
        self.rows += 1;
        Ok(())
    }

    /// Flushes the file to disk.
    pub fn finish(self) -> Result<(), StoreError> {
        fault::before(Moment::Flush, &self.path).and_then(|()| self.file.sync_all()).context("flush", &self.path)
    }

    fn write_line(&mut self) -> Result<(), StoreError> {
        let mut line = std::mem::take(&mut self.line);
        line.push('\n');
        let written = self.write(line.as_bytes());
        self.line = line;
        written
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let action = format!("write {} bytes to", bytes.len());
        fault::write_all(&mut self.file, FileKind::Log, bytes).context(&action, &self.path)?;
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// A log that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadLog {
    /// Its rows.
    pub rows: Vec<Row>,
    /// What to warn of: a last line that was cut off, which is left out.
    pub warning: Option<String>,
}

/// Reads a log. A last line without its line end, as a killed process leaves it, is left out with a warning that names
/// file and line; any other line that is not a row is an error.
pub fn read_log(path: &Path) -> Result<ReadLog, StoreError> {
    let text = fs::read_to_string(path).context("read", path)?;
    let broken =
        |line: usize, why: &str| StoreError::BrokenLog { path: path.to_owned(), why: format!("line {line}: {why}") };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut lines = text[..whole].lines();
    if lines.next() != Some(LOG_HEADER) {
        return Err(broken(1, "the header of a log is expected"));
    }
    let mut rows = Vec::new();
    for (i, line) in lines.enumerate() {
        rows.push(parse_row(line).map_err(|why| broken(i + 2, &why))?);
    }
    let cut_off = (path.display(), rows.len() + 2);
    let warning =
        (whole < text.len()).then(|| format!("{}:{}: the last line is cut off and left out", cut_off.0, cut_off.1));
    Ok(ReadLog { rows, warning })
}

/// The last whole row of a log that may still be written to; `None` where there is no log or no row.
pub(super) fn last_row(path: &Path) -> Result<Option<Row>, StoreError> {
    /// More than two rows take.
    const TAIL: u64 = 4096;
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context("open", path),
    };
    let length = file.metadata().context("read", path)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).context("read", path)?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).context("read", path)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    Ok(whole.lines().next_back().and_then(|line| parse_row(line).ok()))
}

fn parse_row(line: &str) -> Result<Row, String> {
    let cells: Vec<&str> = line.split(',').collect();
    if cells.len() != COLUMNS {
        return Err(format!("{} values where {COLUMNS} are expected", cells.len()));
    }
    let number = |i: usize| -> Result<f64, String> {
        let name = LOG_HEADER.split(',').nth(i).unwrap_or_default();
        cells[i].parse().map_err(|_| format!("`{}` is not a number ({name})", cells[i]))
    };
    let absent = cells[10..].iter().all(|c| matches!(*c, "" | "-"));
    let panel = || -> Result<Panel, String> {
        Ok(Panel {
            churn: number(10)?,
            pct_neg: number(11)?,
            pct_zero: number(12)?,
            pct_pos: number(13)?,
            rail_pct: number(14)?,
            dead_pct: number(15)?,
            scale_mean: number(16)?,
            scale_min: number(17)?,
            scale_max: number(18)?,
        })
    };
    Ok(Row {
        step: cells[0].parse().map_err(|_| format!("`{}` is not a step", cells[0]))?,
        train_bpb: number(1)?,
        val_bpb: number(2)?,
        val_acc: number(3)?,
        grad_norm: number(4)?,
        grad_norms: None,
        lr: number(5)?,
        panel: if absent { None } else { Some(panel()?) },
        timing: Timing { step_sec: number(6)?, tok_per_sec: number(7)?, elapsed_sec: number(8)?, eta_sec: number(9)? },
    })
}

/// The bytes of a log's rows, without the header; an error if it does not begin with the header or its last line is cut
/// off.
pub(crate) fn rows_of<'a>(path: &Path, log: &'a [u8]) -> Result<&'a [u8], StoreError> {
    let broken = |why: &str| StoreError::BrokenLog { path: path.to_owned(), why: why.to_owned() };
    let rows = log.strip_prefix(LOG_HEADER.as_bytes()).and_then(|rest| rest.strip_prefix(b"\n"));
    let rows = rows.ok_or_else(|| broken("it does not begin with a log's header"))?;
    match rows.last() {
        None | Some(b'\n') => Ok(rows),
        Some(_) => Err(broken("its last line is cut off")),
    }
}

/// Whether two logs are equal but for the timing.
pub(crate) fn same_but_for_timing(a: &[u8], b: &[u8]) -> bool {
    fn stable(line: &[u8]) -> impl Iterator<Item = &[u8]> {
        let cells = line.split(|c| *c == b',').enumerate();
        cells.filter(|(i, _)| !TIMING.contains(i)).map(|(_, cell)| cell)
    }
    let (mut a, mut b) = (a.split(|c| *c == b'\n'), b.split(|c| *c == b'\n'));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(x), Some(y)) if stable(x).eq(stable(y)) => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(step: u64, panel: bool) -> Row {
        Row {
            step,
            train_bpb: 7.999_999,
            val_bpb: 8.000_001,
            val_acc: 0.003_906_25,
            grad_norm: 12.345_678,
            grad_norms: None,
            lr: 1e-3,
            panel: panel.then_some(Panel {
                churn: 0.0,
                pct_neg: 0.285_714,
                pct_zero: 0.428_571,
                pct_pos: 0.285_716,
                rail_pct: 0.133_333,
                dead_pct: 0.2,
                scale_mean: 0.116_93,
                scale_min: 0.058_46,
                scale_max: 0.233_84,
            }),
            timing: Timing { step_sec: 0.024_96, tok_per_sec: 20_512.82, elapsed_sec: 1.004, eta_sec: 0.0 },
        }
    }

    #[test]
    fn the_last_whole_row_of_a_log_in_the_making_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        assert_eq!(last_row(&path).unwrap(), None);
        let mut writer = LogWriter::create(&path).unwrap();
        assert_eq!(last_row(&path).unwrap(), None);
        for step in 0..100 {
            writer.row(&crate::testing::row(step, 2.5, 1.0)).unwrap();
        }
        assert_eq!(last_row(&path).unwrap().unwrap().step, 99);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
        assert_eq!(last_row(&path).unwrap().unwrap().step, 98);
    }

    #[test]
    fn a_log_to_the_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        let mut log = LogWriter::create(&path).unwrap();
        log.row(&row(0, true)).unwrap();
        let mut odd = row(5, false);
        (odd.train_bpb, odd.val_bpb, odd.grad_norm) = (f64::NAN, f64::INFINITY, -f64::NAN);
        log.row(&odd).unwrap();
        log.finish().unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "step,train_bpb,val_bpb,val_acc,grad_norm,lr,step_sec,tok_per_sec,elapsed_sec,ETA_sec,\
             churn,pct_neg,pct_zero,pct_pos,rail_pct,dead_pct,scale_mean,scale_min,scale_max\n\
             0,8.00000,8.00000,0.00391,12.35,0.001,0.0250,20512.8,1.00,0.00,\
             0.00000,0.28571,0.42857,0.28572,0.13333,0.20000,0.1169,0.0585,0.2338\n\
             5,nan,inf,0.00391,nan,0.001,0.0250,20512.8,1.00,0.00,,,,,,,,,\n"
        );
        let read = read_log(&path).unwrap();
        assert_eq!((read.rows.len(), read.warning), (2, None));
        assert_eq!(read.rows[0].panel.unwrap().scale_min, 0.0585);
        assert_eq!(read.rows[1].val_bpb, f64::INFINITY);
        assert_eq!((read.rows[1].step, read.rows[1].panel), (5, None));
        assert_eq!(LOG_HEADER.split(',').count(), COLUMNS);
    }

    #[test]
    fn rows_are_in_the_file_as_soon_as_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        let mut log = LogWriter::create(&path).unwrap();
        for step in 0..3 {
            log.row(&row(step, false)).unwrap();
            assert_eq!(read_log(&path).unwrap().rows.len() as u64, step + 1);
        }
        let error = LogWriter::create(&path).unwrap_err().full_text();
        assert!(error.contains("cannot create") && error.contains("File exists"), "{error}");
    }

    #[test]
    fn a_cut_line_warns_and_a_bad_line_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        let (mut whole, mut line) = (LOG_HEADER.to_owned() + "\n", String::new());
        format_row(&mut line, &row(0, false), "-");
        whole += &line;
        whole += "\n";
        fs::write(&path, whole.clone() + "1,7.9").unwrap();
        let read = read_log(&path).unwrap();
        assert_eq!(read.rows.len(), 1);
        let warning = format!("{}:3: the last line is cut off and left out", path.display());
        assert_eq!(read.warning, Some(warning));

        let error_for = |text: &str| {
            fs::write(&path, text).unwrap();
            let error = read_log(&path).unwrap_err().to_string();
            error.replace(&path.display().to_string(), "LOG")
        };
        assert_eq!(
            error_for(&(whole.clone() + "1,7.9\n")),
            "LOG is not a whole log: line 3: 2 values where 19 are expected"
        );
        assert_eq!(
            error_for(&whole.replacen("8.00000", "x", 1)),
            "LOG is not a whole log: line 2: `x` is not a number (train_bpb)"
        );
        assert_eq!(error_for(""), "LOG is not a whole log: line 1: the header of a log is expected");
    }

    #[test]
    fn timing_does_not_count() {
        let text = |elapsed: f64, bpb: f64| {
            let mut r = row(3, false);
            (r.timing.elapsed_sec, r.val_bpb) = (elapsed, bpb);
            let mut line = String::new();
            format_row(&mut line, &r, "");
            line.into_bytes()
        };
        assert!(same_but_for_timing(&text(1.0, 2.0), &text(9.0, 2.0)));
        assert!(!same_but_for_timing(&text(1.0, 2.0), &text(1.0, 2.5)));
        assert!(!same_but_for_timing(b"a\nb\n", b"a\n"));
    }
}
