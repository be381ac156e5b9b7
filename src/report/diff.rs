//! What differs between two results, volatile parts apart.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::columns::VOLATILE;
use crate::run::RunId;
use crate::store::{Layout, RunPaths, TABLES, id_of_folder};

/// Two results cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// There is nothing.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    /// One is a folder, the other is not.
    #[error("{} and {} are not of one kind: compare two folders or two files", .0.display(), .1.display())]
    Unlike(PathBuf, PathBuf),
    /// A folder without results.
    #[error("{} is not a results folder: it has no plan.json, no table and no run", .0.display())]
    NoResults(PathBuf),
    /// Neither CSV nor JSON.
    #[error("{} is neither a .csv nor a .json file", .0.display())]
    UnknownFile(PathBuf),
    /// A file cannot be read.
    #[error("cannot read {}: {why}", path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// A place where two results differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// File, relative to the results folder.
    pub file: String,
    /// Where in it, and what stands there on both sides.
    pub text: String,
}

/// What was compared and what differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// The first differences, at most [`Differences::LISTED`] of each file.
    pub listed: Vec<Difference>,
    /// How many there are.
    pub total: usize,
    /// How many files were compared.
    pub files: usize,
}

impl Differences {
    /// Differences of a file that are listed.
    pub const LISTED: usize = 5;

    fn add(&mut self, file: &str, text: String) {
        self.total += 1;
        if self.listed.iter().filter(|d| d.file == file).count() < Self::LISTED {
            self.listed.push(Difference { file: file.to_owned(), text });
        }
    }
}

/// Compares two results folders, or two files: CSV by cells, JSON by values, [`VOLATILE`] columns and keys left out.
pub fn compare_paths(a: &Path, b: &Path) -> Result<Differences, DiffError> {
    for path in [a, b] {
        if !path.exists() {
            return Err(DiffError::Missing(path.to_owned()));
        }
    }
    let mut found = Differences::default();
    match (a.is_dir(), b.is_dir()) {
        (true, true) => compare_folders(&Layout::new(a), &Layout::new(b), &mut found)?,
        (false, false) => compare_files(a, b, &a.display().to_string(), &mut found)?,
        _ => return Err(DiffError::Unlike(a.to_owned(), b.to_owned())),
    }
    Ok(found)
}

fn compare_folders(a: &Layout, b: &Layout, found: &mut Differences) -> Result<(), DiffError> {
    let (runs_a, runs_b) = (runs_of(a)?, runs_of(b)?);
    for table in TABLES {
        compare_if_there(&a.table(table), &b.table(table), table, found)?;
    }
    let mut ids: Vec<&RunId> = runs_a.keys().chain(runs_b.keys()).collect();
    ids.sort();
    ids.dedup();
    for id in ids {
        match (runs_a.get(id), runs_b.get(id)) {
            (Some(x), Some(y)) => {
                let name = |file: &str| format!("runs/*-{id}/{file}");
                compare_if_there(&x.log(), &y.log(), &name("log.csv"), found)?;
                compare_if_there(&x.result(), &y.result(), &name("result.json"), found)?;
            }
            (x, _) => {
                let only = if x.is_some() { a } else { b };
                found.add(&format!("runs/*-{id}"), format!("only in {}", only.dir().display()));
            }
        }
    }
    Ok(())
}

/// The folders of runs that have something published.
fn runs_of(layout: &Layout) -> Result<BTreeMap<RunId, RunPaths>, DiffError> {
    let mut runs = BTreeMap::new();
    let entries = match fs::read_dir(layout.runs()) {
        Ok(entries) => entries,
        Err(_) if TABLES.iter().any(|t| layout.table(t).exists()) || layout.plan().exists() => {
            return Ok(runs);
        }
        Err(_) => return Err(DiffError::NoResults(layout.dir().to_owned())),
    };
    for entry in entries {
        let entry = entry.map_err(|e| unreadable(&layout.runs(), &e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let paths = layout.run(&name);
        if let (Some(id), true) = (id_of_folder(&name), paths.log().exists() || paths.result().exists()) {
            runs.insert(id, paths);
        }
    }
    Ok(runs)
}

fn compare_if_there(a: &Path, b: &Path, name: &str, found: &mut Differences) -> Result<(), DiffError> {
    match (a.exists(), b.exists()) {
        (true, true) => compare_files(a, b, name, found),
        (false, false) => Ok(()),
        (there, _) => {
            let path = if there { a } else { b };
            let folder = path.parent().unwrap_or(path);
            found.add(name, format!("only in {}", folder.display()));
            Ok(())
        }
    }
}

fn compare_files(a: &Path, b: &Path, name: &str, found: &mut Differences) -> Result<(), DiffError> {
    let (x, y) = (read(a)?, read(b)?);
    found.files += 1;
    if x == y {
        return Ok(());
    }
    match a.extension().and_then(|e| e.to_str()) {
        Some("csv") => compare_csv((a, &x), (b, &y), name, found),
        Some("json") => {
            let parse = |path: &Path, bytes: &[u8]| serde_json::from_slice(bytes).map_err(|e| unreadable(path, &e));
            let (x, y): (Value, Value) = (parse(a, &x)?, parse(b, &y)?);
            compare_json(&x, &y, "", name, found);
            Ok(())
        }
        _ => Err(DiffError::UnknownFile(a.to_owned())),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, DiffError> {
    fs::read(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> DiffError {
    DiffError::Unreadable { path: path.to_owned(), why: error.to_string() }
}

type Named<'a> = (&'a Path, &'a [u8]);

fn compare_csv(a: Named<'_>, b: Named<'_>, name: &str, found: &mut Differences) -> Result<(), DiffError> {
    let reader = |bytes| csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let (mut a_rows, mut b_rows) = (reader(a.1).into_byte_records(), reader(b.1).into_byte_records());
    let mut next = || -> Result<_, DiffError> {
        let x = a_rows.next().transpose().map_err(|e| unreadable(a.0, &e))?;
        let y = b_rows.next().transpose().map_err(|e| unreadable(b.0, &e))?;
        Ok((x.map(cells), y.map(cells)))
    };
    let (header_a, header_b) = next()?;
    let (header_a, header_b) = (header_a.unwrap_or_default(), header_b.unwrap_or_default());
    let (columns_a, columns_b) = (stable(&header_a), stable(&header_b));
    let names =
        |header: &[String], columns: &[usize]| -> Vec<String> { columns.iter().map(|i| header[*i].clone()).collect() };
    let (names_a, names_b) = (names(&header_a, &columns_a), names(&header_b, &columns_b));
    if names_a != names_b {
        found.add(name, format!("columns: {} | {}", names_a.join(","), names_b.join(",")));
        return Ok(());
    }
    // Line numbers of a file without line ends in its cells: the header is line 1.
    for line in 2.. {
        match next()? {
            (None, None) => break,
            (Some(x), Some(y)) => {
                let cell = |row: &[String], i: usize| row.get(i).cloned().unwrap_or_default();
                for ((i, j), column) in columns_a.iter().zip(&columns_b).zip(&names_a) {
                    let (p, q) = (cell(&x, *i), cell(&y, *j));
                    if p != q {
                        found.add(name, format!("row {line}, {column}: {} | {}", shown(&p), shown(&q)));
                    }
                }
            }
            (x, _) => {
                let longer = if x.is_some() { a.0 } else { b.0 };
                found.add(name, format!("row {line} and those after it: only in {}", longer.display()));
                break;
            }
        }
    }
    Ok(())
}

fn cells(record: csv::ByteRecord) -> Vec<String> {
    record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect()
}

fn stable(header: &[String]) -> Vec<usize> {
    (0..header.len()).filter(|i| !VOLATILE.contains(&header[*i].as_str())).collect()
}

fn shown(cell: &str) -> &str {
    if cell.is_empty() { "(empty)" } else { cell }
}

fn compare_json(a: &Value, b: &Value, place: &str, name: &str, found: &mut Differences) {
    let (Value::Object(x), Value::Object(y)) = (a, b) else {
        if a != b {
            found.add(name, format!("{place}: {a} | {b}"));
        }
        return;
    };
    let mut keys: Vec<&String> = x.keys().chain(y.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys.into_iter().filter(|key| !VOLATILE.contains(&key.as_str())) {
        let place = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
        let absent = Value::String("(absent)".to_owned());
        compare_json(x.get(key).unwrap_or(&absent), y.get(key).unwrap_or(&absent), &place, name, found);
    }
}
