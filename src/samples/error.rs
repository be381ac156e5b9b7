//! Why a file's results cannot be compared.

use std::io;
use std::path::PathBuf;

/// A file's results cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum SamplesError {
    /// The system refused.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no header.
    #[error("{} is empty", .0.display())]
    Empty(PathBuf),
    /// There is a header and nothing else.
    #[error("{} has a header and no row", .0.display())]
    NoRows(PathBuf),
    /// The file is no CSV.
    #[error("{} is not a CSV file: {why}", path.display())]
    NotCsv {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Rows are longer or shorter than the header.
    #[error("{}: {rows}, where the header has {columns} (cells apart by {delimiter})", path.display())]
    Ragged {
        /// The file.
        path: PathBuf,
        /// `line 7 has 3 cells, line 9 has 5`.
        rows: String,
        /// Columns of the header.
        columns: usize,
        /// The delimiter in words.
        delimiter: &'static str,
    },
    /// A column that was asked for is not there.
    #[error("{} has no column `{name}` (cells apart by {delimiter}); {hint}", path.display())]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
        /// The delimiter in words.
        delimiter: &'static str,
        /// What may have been meant.
        hint: String,
    },
    /// A column that was asked for is there more than once.
    #[error("{} has {times} columns named `{name}`", path.display())]
    SameColumns {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
        /// How many.
        times: usize,
    },
    /// One column is asked for in two roles.
    #[error("`{name}` is given for {first} and for {second}")]
    TwoRoles {
        /// The name.
        name: String,
        /// A flag.
        first: &'static str,
        /// Another.
        second: &'static str,
    },
    /// Nothing tells which values are the better ones.
    #[error("the name `{0}` does not tell which values are better: give --lower-is-better or --higher-is-better")]
    Direction(String),
    /// The baseline is not there.
    #[error("no row has the arm `{name}` in column `{column}`; {hint}")]
    NoBaseline {
        /// What was asked for.
        name: String,
        /// The arms' column.
        column: String,
        /// What may have been meant.
        hint: String,
    },
    /// Rows that name the same arm, configuration and seed.
    #[error(
        "several rows have the same arm, configuration and seed: {examples}. Name the columns that tell them apart with --by, or say which \
         counts with --duplicates"
    )]
    Duplicates {
        /// The first of them, with their lines.
        examples: String,
    },
}

impl SamplesError {
    /// Whether what was asked for is at fault, not the file.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NoColumn { .. }
                | Self::SameColumns { .. }
                | Self::TwoRoles { .. }
                | Self::Direction(_)
                | Self::NoBaseline { .. }
        )
    }
}
