//! curves.csv: every row of every log, with its run in front.

use std::fs;

use rayon::prelude::*;

use super::columns::{first_cells, header, push_cell, push_record};
use crate::plan::{Plan, PlannedRun};
use crate::store::{LOG_HEADER, Loaded, NewFile, Results, StoreError, rows_of};

/// Runs whose rows are put together at once, while those before them are written: bounds the memory.
const BATCH: usize = 256;

/// Writes the table, in the plan's order. Rows are copied as they stand in the logs, so that no digit can change.
pub(super) fn write_curves(results: &Results, plan: &Plan, loaded: &Loaded) -> Result<(), StoreError> {
    let mut file = NewFile::create(&results.layout().table("curves.csv"))?;
    let log_columns: Vec<&str> = LOG_HEADER.split(',').collect();
    let rest: Vec<&str> = ["seed", "run_id"].into_iter().chain(log_columns).collect();
    let mut first = Vec::new();
    push_record(&mut first, header(plan, &rest).iter().map(String::as_str));

    let ended: Vec<&PlannedRun> =
        plan.runs.iter().zip(&loaded.states).filter_map(|(run, state)| state.result().map(|_| run)).collect();
    let merge = |batch: &[&PlannedRun]| -> Result<Vec<Vec<u8>>, StoreError> {
        batch.par_iter().map(|run| rows_with_run(results, plan, run)).collect()
    };
    let mut ready = vec![first];
    for batch in ended.chunks(BATCH) {
        let (written, next) = rayon::join(|| write_all(&mut file, &ready), || merge(batch));
        written?;
        ready = next?;
    }
    write_all(&mut file, &ready)?;
    file.finish()
}

fn write_all(file: &mut NewFile, pieces: &[Vec<u8>]) -> Result<(), StoreError> {
    pieces.iter().try_for_each(|piece| file.write(piece))
}

/// The rows of a run's log, each with the run's cells in front.
fn rows_with_run(results: &Results, plan: &Plan, run: &PlannedRun) -> Result<Vec<u8>, StoreError> {
    let path = results.run_paths(run).log();
    let log =
        fs::read(&path).map_err(|source| StoreError::Io { action: "read".to_owned(), path: path.clone(), source })?;
    let rows = rows_of(&path, &log)?;
    let mut prefix = Vec::new();
    let mut cells = first_cells(plan, &run.arm, &run.axes);
    cells.extend([run.seed.to_string(), run.id.to_string()]);
    for cell in &cells {
        push_cell(&mut prefix, cell);
        prefix.push(b',');
    }
    let lines = rows.iter().filter(|b| **b == b'\n').count();
    let mut merged = Vec::with_capacity(rows.len() + lines * prefix.len());
    for line in rows.split_inclusive(|b| *b == b'\n') {
        merged.extend_from_slice(&prefix);
        merged.extend_from_slice(line);
    }
    Ok(merged)
}
