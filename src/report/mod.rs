//! What comes out of a sweep: its tables, the verdict, and the text on the terminal.
//!
//! [`analyse`] turns the states of the runs into an [`Analysis`]; everything else prints from that.

mod analysis;
mod closing;
mod columns;
mod comparisons;
mod confounding;
mod curves;
mod devices;
mod diff;
pub mod explain;
pub mod export;
mod grid;
mod html;
mod markup;
mod merge;
mod metric;
mod plots;
mod runs;
mod stops;
mod summary;
mod tables;
mod verdict;
mod verify;
mod wording;

pub use analysis::{Analysis, ConfigurationResults, SeedResult, SeedState, analyse, analyse_forced};
pub use closing::{closing_text, comparison_text};
pub use columns::VOLATILE;
pub use diff::{DiffError, Difference, Differences, compare_paths};
pub use html::{Running, write_report};
pub use markup::{Markup, summary_text};
pub use merge::{Folder, MergeError, Merged};
pub use metric::{better, metric_name, test_name, value_of};
pub use plots::write_plots;
pub use tables::{write_merged, write_tables};
pub use verdict::{ArmVerdict, Comparison, Finding, Split, Verdict, verdict};
pub use verify::{Damage, Verified, verify};

pub(crate) use closing::paragraph;
pub(crate) use grid::{Align, Grid};
pub(crate) use wording::p_text;

#[cfg(test)]
mod tests;
