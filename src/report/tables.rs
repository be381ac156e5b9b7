//! The four tables of a results folder.

use std::path::Path;

use super::analysis::{Analysis, analyse};
use super::comparisons::comparisons_csv;
use super::curves::{LogOf, stream_curves};
use super::merge::Merged;
use super::runs::comparison_csv;
use super::summary::summary_csv;
use crate::plan::Plan;
use crate::store::{Loaded, NewFile, Results, StoreError, replace};

/// Writes comparison.csv, summary.csv, comparisons.csv and curves.csv, each whole or not at all, and gives back what
/// they were written from.
pub fn write_tables(results: &Results, plan: &Plan, loaded: &Loaded) -> Result<Analysis, StoreError> {
    let analysis = analyse(plan, loaded);
    write_tables_into(results.layout().dir(), plan, loaded, &analysis, &|run| results.run_paths(run).log())?;
    Ok(analysis)
}

/// Writes the four tables of several results folders into a folder, which is made if need be.
pub fn write_merged(folder: &Path, merged: &Merged, analysis: &Analysis) -> Result<(), StoreError> {
    let made = std::fs::create_dir_all(folder);
    made.map_err(|source| StoreError::Io { action: "create the folder".to_owned(), path: folder.to_owned(), source })?;
    write_tables_into(folder, &merged.plan, &merged.loaded, analysis, &|run| merged.log(run))
}

/// Writes the four tables into a folder, from logs that may be anywhere.
pub(super) fn write_tables_into(
    folder: &Path,
    plan: &Plan,
    loaded: &Loaded,
    analysis: &Analysis,
    log_of: &LogOf<'_>,
) -> Result<(), StoreError> {
    for (name, csv) in small_tables(plan, loaded, analysis) {
        replace(&folder.join(name), &csv)?;
    }
    let mut curves = NewFile::create(&folder.join("curves.csv"))?;
    stream_curves(plan, loaded, log_of, |rows| curves.write(rows))?;
    curves.finish()
}

/// The tables without curves.csv, by their names.
pub(super) fn small_tables(plan: &Plan, loaded: &Loaded, analysis: &Analysis) -> [(&'static str, Vec<u8>); 3] {
    [
        ("comparison.csv", comparison_csv(plan, loaded)),
        ("summary.csv", summary_csv(plan, analysis)),
        ("comparisons.csv", comparisons_csv(plan, analysis)),
    ]
}
