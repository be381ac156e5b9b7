//! The attempt's log, as the worker writes it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::event::{Cause, Failure};
use crate::run::Row;

/// Writes an attempt's log.
pub(super) struct Log {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Log {
    /// Starts the log of the attempt in `folder`.
    pub(super) fn create(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join("log.csv");
        match File::create_new(&path) {
            Ok(file) => Ok(Self { path, file: BufWriter::new(file) }),
            Err(error) => Err(disk(&path, &error)),
        }
    }

    pub(super) fn row(&mut self, row: &Row) -> Result<(), Failure> {
        writeln!(self.file, "{},{},{}", row.step, row.train_bpb, row.val_bpb)
            .and_then(|()| self.file.flush())
            .map_err(|error| disk(&self.path, &error))
    }

    pub(super) fn close(mut self) -> Result<(), Failure> {
        self.file.flush().map_err(|error| disk(&self.path, &error))
    }
}

fn disk(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Cause::Disk, format!("{} cannot be written: {error}", path.display()))
}
