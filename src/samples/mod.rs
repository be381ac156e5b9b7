//! Results in any CSV file, made by this program or not, compared by seeds.
//!
//! [`Table`] reads the file whatever its dialect, [`Samples::gather`] sorts its rows into arms, configurations and seeds, and
//! [`Comparisons::of`] forms the same statistics as a sweep's tables have. [`text`] and [`json`] print them.

mod compare;
mod dialect;
mod error;
mod gather;
mod json;
mod number;
mod table;
mod text;

pub use compare::{Comparisons, Finding, PairedComparison};
pub use error::SamplesError;
pub use gather::{Configuration, Duplicates, Request, Samples};
pub use json::json;
pub use table::Table;
pub use text::text;

#[cfg(test)]
mod tests;
