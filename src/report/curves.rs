//! curves.csv: every row of every log, with its run in front.

use std::fs;
use std::path::PathBuf;

use rayon::prelude::*;

use super::columns::{AxisForms, header, push_cell, push_record};
use crate::plan::{Plan, PlannedRun};
use crate::store::{LOG_HEADER, Loaded, StoreError, rows_of};

/// Runs whose rows are put together at once, while those before them are written: bounds the memory.
const BATCH: usize = 64;

/// Tells where the log of a run is.
pub(super) type LogOf<'a> = dyn Fn(&PlannedRun) -> PathBuf + Sync + 'a;

/// Passes the table to `sink` in pieces of whole lines, in the plan's order.
///
/// The digits are those of the logs. What a reader that looks at the first rows only would take for another type is written in full: an absent
/// number and C's `nan` as `NaN`, and the whole numbers that `%g` prints with `.0` (see [`columns`](super::columns)).
pub(super) fn stream_curves(
    plan: &Plan,
    loaded: &Loaded,
    log_of: &LogOf<'_>,
    mut sink: impl FnMut(&[u8]) -> Result<(), StoreError> + Send,
) -> Result<(), StoreError> {
    let log_columns: Vec<&str> = LOG_HEADER.split(',').collect();
    let rest: Vec<&str> = ["seed", "run_id"].into_iter().chain(log_columns).collect();
    let mut first = Vec::new();
    push_record(&mut first, header(plan, &rest).iter().map(String::as_str));

    let forms = AxisForms::of(plan);
    let ended: Vec<&PlannedRun> =
        plan.runs.iter().zip(&loaded.states).filter_map(|(run, state)| state.result().map(|_| run)).collect();
    let merge = |batch: &[&PlannedRun]| -> Result<Vec<Vec<u8>>, StoreError> {
        batch.par_iter().map(|run| rows_with_run(&forms, plan, run, log_of(run))).collect()
    };
    let mut pass_on = |pieces: &[Vec<u8>]| pieces.iter().try_for_each(|piece| sink(piece));
    let mut ready = vec![first];
    for batch in ended.chunks(BATCH) {
        let (passed, next) = rayon::join(|| pass_on(&ready), || merge(batch));
        passed?;
        ready = next?;
    }
    pass_on(&ready)
}

/// The rows of a run's log, each with the run's cells in front.
fn rows_with_run(forms: &AxisForms, plan: &Plan, run: &PlannedRun, path: PathBuf) -> Result<Vec<u8>, StoreError> {
    let log =
        fs::read(&path).map_err(|source| StoreError::Io { action: "read".to_owned(), path: path.clone(), source })?;
    let rows = rows_of(&path, &log)?;
    let mut prefix = Vec::new();
    let mut cells = forms.first_cells(plan, &run.arm, &run.axes);
    cells.extend([run.seed.to_string(), run.id.to_string()]);
    for cell in &cells {
        push_cell(&mut prefix, cell);
        prefix.push(b',');
    }
    let lines = rows.iter().filter(|b| **b == b'\n').count();
    // An absent panel of nine cells grows the most.
    let mut merged = Vec::with_capacity(rows.len() + lines * (prefix.len() + 32));
    for line in rows.split_inclusive(|b| *b == b'\n') {
        merged.extend_from_slice(&prefix);
        push_log_cells(&mut merged, line.strip_suffix(b"\n").unwrap_or(line));
        merged.push(b'\n');
    }
    Ok(merged)
}

/// Appends the cells of a log's line, the first of which is the step.
fn push_log_cells(out: &mut Vec<u8>, line: &[u8]) {
    let (step, mut rest) = line.split_at(line.iter().position(|b| *b == b',').unwrap_or(line.len()));
    out.extend_from_slice(step);
    while let [b',', cells @ ..] = rest {
        out.push(b',');
        // Digits, a point, more digits: nearly every cell. One pass finds its end and whether it is of that kind.
        let mut has_point = false;
        let end = cells.iter().position(|b| {
            has_point |= *b == b'.';
            *b == b','
        });
        let (cell, next) = cells.split_at(end.unwrap_or(cells.len()));
        rest = next;
        match cell {
            b"" | b"nan" | b"-nan" => out.extend_from_slice(b"NaN"),
            whole if !has_point && whole.iter().all(|b| b.is_ascii_digit() || *b == b'-') => {
                out.extend_from_slice(whole);
                out.extend_from_slice(b".0");
            }
            number => out.extend_from_slice(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_keep_their_digits_and_show_their_type() {
        let of = |line: &str| {
            let mut out = Vec::new();
            push_log_cells(&mut out, line.as_bytes());
            String::from_utf8(out).unwrap()
        };
        assert_eq!(of("0,8.00000,12,1e-05,1.234e+04"), "0,8.00000,12.0,1e-05,1.234e+04");
        assert_eq!(of("5,nan,-nan,inf,-inf,,"), "5,NaN,NaN,inf,-inf,NaN,NaN");
        assert_eq!(of("5,-3,"), "5,-3.0,NaN");
        assert_eq!(of("7"), "7");
    }
}
