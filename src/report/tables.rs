//! The four tables of a results folder.

use super::analysis::{Analysis, analyse};
use super::comparisons::comparisons_csv;
use super::curves::write_curves;
use super::runs::comparison_csv;
use super::summary::summary_csv;
use crate::plan::Plan;
use crate::store::{Loaded, Results, StoreError};

/// Writes comparison.csv, summary.csv, comparisons.csv and curves.csv, each whole or not at all, and gives back what
/// they were written from.
pub fn write_tables(results: &Results, plan: &Plan, loaded: &Loaded) -> Result<Analysis, StoreError> {
    let analysis = analyse(plan, loaded);
    results.write_table("comparison.csv", &comparison_csv(plan, loaded))?;
    results.write_table("summary.csv", &summary_csv(plan, &analysis))?;
    results.write_table("comparisons.csv", &comparisons_csv(plan, &analysis))?;
    write_curves(results, plan, loaded)?;
    Ok(analysis)
}
