//! Which rows of the tables are of which runs, as the tables are written. The header is row 1.

use std::fs;

use rayon::prelude::*;

use super::super::analysis::Analysis;
use crate::plan::Plan;
use crate::store::{Loaded, StoreError, View, rows_of};

/// The rows of each run in curves.csv, as (first, number); absent for a run without a result.
pub(super) fn of_curves(view: &View, plan: &Plan, loaded: &Loaded) -> Result<Vec<Option<(usize, usize)>>, StoreError> {
    let count = |i: usize| -> Result<Option<usize>, StoreError> {
        if loaded.states[i].result().is_none() {
            return Ok(None);
        }
        let path = view.run_paths(&plan.runs[i]).log();
        let log = fs::read(&path).map_err(|source| StoreError::Io {
            action: "read".to_owned(),
            path: path.clone(),
            source,
        })?;
        Ok(Some(rows_of(&path, &log)?.iter().filter(|b| **b == b'\n').count()))
    };
    let counts: Vec<Option<usize>> = (0..plan.runs.len()).into_par_iter().map(count).collect::<Result<_, _>>()?;
    let mut next = 2;
    let place = |count: Option<usize>| {
        let first = next;
        next += count.unwrap_or(0);
        count.map(|n| (first, n))
    };
    Ok(counts.into_iter().map(place).collect())
}

/// A row of comparisons.csv.
pub(super) struct ComparisonRow {
    /// Whether it is the verdict's.
    pub verdict: bool,
    /// Index of the configuration compared.
    pub configuration: usize,
}

/// The rows of comparisons.csv from row 2.
pub(super) fn of_comparisons(analysis: &Analysis) -> Vec<ComparisonRow> {
    if analysis.verdict.baseline.is_none() {
        return Vec::new();
    }
    let verdict = analysis.verdict.arms.iter().filter_map(|arm| arm.comparison.as_ref());
    let verdict = verdict.map(|c| ComparisonRow { verdict: true, configuration: c.configuration });
    let exploratory =
        analysis.verdict.exploratory.iter().map(|c| ComparisonRow { verdict: false, configuration: c.configuration });
    verdict.chain(exploratory).collect()
}
