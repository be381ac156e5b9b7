//! A CSV file of any dialect, read.

use std::fs;
use std::path::{Path, PathBuf};

use csv::StringRecord;

use super::dialect::{self, decode, sniff};
use super::error::SamplesError;
use crate::near::hint;

/// Rows of another width than the header's that a message names.
const NAMED: usize = 5;

/// A file's rows. Cells are as they stand there; names of columns are without blanks at their ends.
#[derive(Clone, Debug)]
pub struct Table {
    pub(super) path: PathBuf,
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<StringRecord>,
    pub(super) delimiter: u8,
    /// What to warn of: a last line that was cut off, which is left out.
    pub(super) warnings: Vec<String>,
}

impl Table {
    /// Reads a file: UTF-8, UTF-16 with its mark or Latin-1; any of the usual line ends; cells apart by commas, semicolons, tabs or bars, in
    /// quotes or not. `wanted` are the columns by which the delimiter is told.
    ///
    /// A last line without its end that is shorter than the header, as a killed program leaves it, is left out with a warning.
    pub fn read(path: &Path, wanted: &[&str]) -> Result<Self, SamplesError> {
        let bytes = fs::read(path).map_err(|source| SamplesError::Io { path: path.to_owned(), source })?;
        Self::parse(path, &decode(bytes), wanted)
    }

    fn parse(path: &Path, text: &str, wanted: &[&str]) -> Result<Self, SamplesError> {
        let (delimiter, body) = sniff(text, wanted);
        let skipped = u64::from(body.len() < text.len());
        let reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(body.as_bytes());
        let mut records = Vec::new();
        for record in reader.into_records() {
            let mut record =
                record.map_err(|error| SamplesError::NotCsv { path: path.to_owned(), why: error.to_string() })?;
            if let Some(position) = record.position().cloned() {
                let mut moved = position.clone();
                moved.set_line(position.line() + skipped);
                record.set_position(Some(moved));
            }
            // A line of blanks alone is no row.
            if record.len() > 1 || record.iter().any(|cell| !cell.trim().is_empty()) {
                records.push(record);
            }
        }
        let mut rows = records.into_iter();
        let Some(header) = rows.next() else {
            return Err(SamplesError::Empty(path.to_owned()));
        };
        let header: Vec<String> = header.iter().map(|name| name.trim().to_owned()).collect();
        let mut table = Self { path: path.to_owned(), header, rows: rows.collect(), delimiter, warnings: Vec::new() };
        table.leave_out_cut_line(text);
        if table.rows.is_empty() {
            return Err(SamplesError::NoRows(path.to_owned()));
        }
        table.check_widths()?;
        Ok(table)
    }

    fn leave_out_cut_line(&mut self, text: &str) {
        let cut = self.rows.last().is_some_and(|row| row.len() < self.header.len()) && !text.ends_with(['\n', '\r']);
        if let Some(row) = self.rows.pop_if(|_| cut) {
            let warning = format!("{}:{}: the last line is cut off and left out", self.path.display(), line(&row));
            self.warnings.push(warning);
        }
    }

    fn check_widths(&self) -> Result<(), SamplesError> {
        let columns = self.header.len();
        let other: Vec<&StringRecord> = self.rows.iter().filter(|row| row.len() != columns).collect();
        if other.is_empty() {
            return Ok(());
        }
        let named = other.iter().take(NAMED).map(|row| format!("line {} has {} cells", line(row), row.len()));
        let mut rows = named.collect::<Vec<_>>().join(", ");
        if other.len() > NAMED {
            rows += &format!(" and {} more lines have another number than the header", other.len() - NAMED);
        }
        let delimiter = dialect::name(self.delimiter);
        Err(SamplesError::Ragged { path: self.path.clone(), rows, columns, delimiter })
    }

    /// The place of a column.
    pub(super) fn column(&self, name: &str) -> Result<usize, SamplesError> {
        let places: Vec<usize> = (0..self.header.len()).filter(|i| self.header[*i] == name.trim()).collect();
        match places.as_slice() {
            [place] => Ok(*place),
            [] => {
                let known: Vec<&str> = self.header.iter().map(String::as_str).collect();
                let (path, hint, delimiter) = (self.path.clone(), hint(name, &known), dialect::name(self.delimiter));
                Err(SamplesError::NoColumn { path, name: name.to_owned(), delimiter, hint })
            }
            more => {
                Err(SamplesError::SameColumns { path: self.path.clone(), name: name.to_owned(), times: more.len() })
            }
        }
    }
}

/// The line on which a row begins; the header is line 1.
pub(super) fn line(row: &StringRecord) -> u64 {
    row.position().map_or(0, csv::Position::line)
}
