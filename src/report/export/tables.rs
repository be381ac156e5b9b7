//! The four tables, as CSV or as Parquet, into any folder.

use std::fs;
use std::path::Path;

use super::super::analysis::Analysis;
use super::super::columns::header;
use super::super::curves::stream_curves;
use super::super::tables::{small_tables, write_tables_into};
use super::ExportError;
use super::parquet::{Kind, ParquetTable};
use crate::plan::Plan;
use crate::store::{LOG_HEADER, Loaded, StoreError, View};

/// Rows of CSV that become one row group.
const GROUP_BYTES: usize = 32 << 20;

/// Columns of text.
const TEXTS: [&str; 13] = [
    "arm",
    "status",
    "precision",
    "run_id",
    "die",
    "host",
    "started",
    "ended",
    "metric",
    "baseline",
    "seeds_unpaired",
    "split",
    "role",
];
/// Columns of whole numbers.
const WHOLE: [&str; 11] = [
    "seed",
    "steps",
    "step",
    "best_val_bpb_step",
    "best_val_acc_step",
    "diverged_step",
    "attempts",
    "n",
    "n_diverged",
    "n_failed",
    "n_pairs",
];

/// A format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// As in the results folder.
    Csv,
    /// Apache Parquet, compressed with Snappy.
    Parquet,
}

/// Writes the four tables into a folder, which is made if need be, and gives back the names of the files.
pub fn export_tables(
    view: &View,
    plan: &Plan,
    loaded: &Loaded,
    analysis: &Analysis,
    format: TableFormat,
    out: &Path,
) -> Result<Vec<String>, ExportError> {
    fs::create_dir_all(out).map_err(|source| StoreError::Io {
        action: "create the folder".to_owned(),
        path: out.to_owned(),
        source,
    })?;
    let log_of = |run: &crate::plan::PlannedRun| view.run_paths(run).log();
    if format == TableFormat::Csv {
        write_tables_into(out, plan, loaded, analysis, &log_of)?;
        return Ok(crate::store::TABLES.map(str::to_owned).to_vec());
    }
    let mut names = Vec::new();
    for (name, csv) in small_tables(plan, loaded, analysis) {
        let name = name.replace(".csv", ".parquet");
        let mut table = ParquetTable::create(&out.join(&name), kinds(plan, &columns(&csv)))?;
        let rows = csv.iter().position(|b| *b == b'\n').map_or(&[][..], |end| &csv[end + 1..]);
        table.write(rows)?;
        table.finish()?;
        names.push(name);
    }
    let log_columns: Vec<&str> = LOG_HEADER.split(',').collect();
    let rest: Vec<&str> = ["seed", "run_id"].into_iter().chain(log_columns).collect();
    let mut table = ParquetTable::create(&out.join("curves.parquet"), kinds(plan, &header(plan, &rest)))?;
    let (mut group, mut is_header) = (Vec::new(), true);
    let mut failed = None;
    let streamed = stream_curves(plan, loaded, &log_of, |bytes| {
        if !std::mem::take(&mut is_header) {
            group.extend_from_slice(bytes);
        }
        if group.len() >= GROUP_BYTES && failed.is_none() {
            failed = table.write(&group).err();
            group.clear();
        }
        Ok(())
    });
    streamed?;
    if let Some(error) = failed {
        return Err(error);
    }
    table.write(&group)?;
    table.finish()?;
    names.push("curves.parquet".to_owned());
    Ok(names)
}

fn columns(csv: &[u8]) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new().from_reader(csv);
    reader.headers().map(|header| header.iter().map(str::to_owned).collect()).unwrap_or_default()
}

/// What each column holds, whatever its values: axes by the values that the plan has of them, all others by their names.
fn kinds(plan: &Plan, columns: &[String]) -> Vec<(String, Kind)> {
    let kind = |place: usize, name: &str| {
        let axis = place.checked_sub(1).and_then(|i| plan.axes.get(i));
        if let Some(axis) = axis {
            let mut values = plan.configurations.iter().flat_map(|c| &c.axes).filter(|a| a.axis == *axis);
            return if values.all(|a| a.value.parse::<f64>().is_ok()) { Kind::Number } else { Kind::Text };
        }
        match name {
            // A seed may be any of 64 bits.
            "seed" if plan.runs.iter().any(|run| i64::try_from(run.seed).is_err()) => Kind::Text,
            _ if TEXTS.contains(&name) => Kind::Text,
            _ if WHOLE.contains(&name) => Kind::Whole,
            _ => Kind::Number,
        }
    };
    columns.iter().enumerate().map(|(i, name)| (name.clone(), kind(i, name))).collect()
}

#[cfg(test)]
mod tests {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;

    use super::*;
    use crate::report::analyse;
    use crate::testing::{diverged, finished, plan, publish};

    /// The rows of a Parquet file as the cells of a table.
    fn rows(path: &Path) -> Vec<Vec<String>> {
        let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
        let cell = |field: &Field| match field {
            Field::Null => String::new(),
            Field::Str(text) => text.clone(),
            Field::Long(x) => x.to_string(),
            Field::Double(x) if x.is_nan() => "nan".to_owned(),
            Field::Double(x) => format!("{x:?}"),
            other => panic!("{other:?}"),
        };
        let row = |row: ::parquet::record::Row| row.get_column_iter().map(|(_, field)| cell(field)).collect();
        reader.get_row_iter(None).unwrap().map(|r| row(r.unwrap())).collect()
    }

    #[test]
    fn parquet_holds_what_the_tables_hold() {
        let root = tempfile::tempdir().unwrap();
        let plan = plan(&[("adamw", &[]), ("sr4", &["0.01", "0.03"])], &[1, 2]);
        let results = crate::store::Results::open_or_create(root.path(), &plan, "").unwrap().results;
        for (i, run) in plan.runs.iter().enumerate().skip(1) {
            let outcome = if i == 2 { diverged(17) } else { finished(2.0 + i as f64 / 8.0, Some(2.5)) };
            publish(&results, run, &outcome, 10.0);
        }
        let loaded = results.load(&plan).unwrap();
        let analysis = analyse(&plan, &loaded);
        let out = root.path().join("out");
        export_tables(&results, &plan, &loaded, &analysis, TableFormat::Csv, &out).unwrap();
        let names = export_tables(&results, &plan, &loaded, &analysis, TableFormat::Parquet, &out).unwrap();
        assert_eq!(names, ["comparison.parquet", "summary.parquet", "comparisons.parquet", "curves.parquet"]);
        for name in names {
            let mut csv = csv::Reader::from_path(out.join(name.replace("parquet", "csv"))).unwrap();
            let want: Vec<Vec<String>> =
                csv.records().map(|r| r.unwrap().iter().map(str::to_owned).collect()).collect();
            let got = rows(&out.join(&name));
            assert_eq!(got.len(), want.len(), "{name}");
            for (got, want) in got.iter().zip(&want) {
                for (got, want) in got.iter().zip(want) {
                    let same = match (got.parse::<f64>(), want.parse::<f64>()) {
                        (Ok(a), Ok(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
                        // An absent whole number.
                        _ => got == want || got.is_empty() && want == "NaN",
                    };
                    assert!(same, "{name}: {got} for {want}");
                }
            }
        }
    }
}
