//! A results folder's numbers in the formats of other tools.

mod parquet;
mod proto;
mod records;
mod tables;
mod tensorboard;

pub use tables::{TableFormat, export_tables};
pub use tensorboard::export_tensorboard;

use std::path::PathBuf;

use crate::store::StoreError;

/// Numbers could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The results folder, or a file to be written.
    #[error("{}", .0.full_text())]
    Store(#[from] StoreError),
    /// A Parquet file.
    #[error("cannot write {}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ::parquet::errors::ParquetError,
    },
}
