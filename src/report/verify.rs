//! Whether a results folder holds together: every published file by its digest, and every table rebuilt from the logs.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use rayon::prelude::*;

use super::analysis::analyse;
use super::curves::stream_curves;
use super::tables::small_tables;
use crate::plan::{Plan, PlannedRun};
use crate::run::{Outcome, RunId};
use crate::settings::run_id;
use crate::store::{
    Loaded, ReadLog, RunFile, RunPaths, RunState, StoreError, StoredResult, View, id_of_folder, read_log,
};

/// A file that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, relative to the results folder.
    pub file: String,
    /// What is wrong with it.
    pub text: String,
}

/// What was verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Every file that is not what it should be.
    pub damage: Vec<Damage>,
    /// Runs whose published files were held against each other, of other plans included.
    pub runs: usize,
    /// Runs of the plan without a result.
    pub without_result: usize,
    /// Tables that were rebuilt.
    pub tables: usize,
}

/// Verifies a folder. Of each run: result.json is readable and of that run, log.csv has the digest that it names, its rows can be read and hold the best
/// values that it names, run.json's settings have the run's id. Of the tables: rebuilt from the runs' files, they have the bytes that are there.
///
/// A damaged log is still taken for the tables, so that the place is named where a table differs.
///
/// # Errors
/// The system refuses to read.
pub fn verify(view: &View, plan: &Plan) -> Result<Verified, StoreError> {
    let mut loaded = view.load(plan)?;
    let checked: Vec<Checked> = plan.runs.par_iter().map(|run| check_run(&view.run_paths(run), run.id)).collect();
    let mut verified = Verified::default();
    for (state, checked) in loaded.states.iter_mut().zip(checked) {
        match checked.result {
            Some(result) => *state = RunState::Ended(Box::new(result)),
            None if matches!(state, RunState::Ended(_)) => *state = RunState::Unfinished,
            None => {}
        }
        verified.without_result += usize::from(state.result().is_none());
        verified.runs += usize::from(checked.published);
        verified.damage.extend(checked.damage);
    }
    for name in &loaded.strangers {
        let Some(id) = id_of_folder(name) else { continue };
        let checked = check_run(&view.layout().run(name), id);
        verified.runs += usize::from(checked.published);
        verified.damage.extend(checked.damage);
    }
    check_tables(view, plan, &loaded, &mut verified)?;
    Ok(verified)
}

/// A run's files.
struct Checked {
    /// Whether anything is published.
    published: bool,
    /// The result, if the tables can be formed with it.
    result: Option<StoredResult>,
    damage: Vec<Damage>,
}

fn check_run(paths: &RunPaths, id: RunId) -> Checked {
    let folder = paths.dir().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut checked = Checked { published: paths.result().exists(), result: None, damage: Vec::new() };
    let mut damaged = |file: &str, text: String| {
        checked.damage.push(Damage { file: format!("runs/{folder}/{file}"), text });
    };
    if let Err(why) = check_run_json(&paths.run_json(), id) {
        damaged("run.json", why);
    }
    if !checked.published {
        return checked;
    }
    let result = match read_result(&paths.result(), id) {
        Ok(result) => result,
        Err(why) => {
            damaged("result.json", why);
            return checked;
        }
    };
    let log = match fs::read(paths.log()) {
        Ok(log) => log,
        Err(error) => {
            damaged("log.csv", format!("cannot be read: {error}"));
            return checked;
        }
    };
    if *blake3::hash(&log).to_hex() != *result.log_digest {
        damaged("log.csv", "is not the one whose digest result.json holds".to_owned());
    }
    match read_log(&paths.log()) {
        Err(error) => damaged("log.csv", error.full_text()),
        Ok(ReadLog { warning: Some(_), .. }) => damaged("log.csv", "its last line is cut off".to_owned()),
        Ok(log) => {
            if let Err(why) = check_best(&log, &result.outcome) {
                damaged("result.json", why);
            }
            checked.result = Some(result);
        }
    }
    checked
}

fn check_run_json(path: &Path, id: RunId) -> Result<(), String> {
    let bytes = match fs::read(path) {
        // A run that was never attempted.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        read => read.map_err(|error| format!("cannot be read: {error}"))?,
    };
    let file: RunFile = serde_json::from_slice(&bytes).map_err(|error| format!("cannot be read: {error}"))?;
    match &file.corpus_digest {
        _ if file.run_id != id => Err(format!("is of run {}", file.run_id)),
        Some(digest) if run_id(&file.settings, digest) != id => {
            Err("its settings are not those that the run's id stands for".to_owned())
        }
        _ => Ok(()),
    }
}

fn read_result(path: &Path, id: RunId) -> Result<StoredResult, String> {
    let bytes = fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    let result: StoredResult = serde_json::from_slice(&bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if result.run_id == id { Ok(result) } else { Err(format!("is of run {}", result.run_id)) }
}

/// The best values of a result against the rows of its log, to the log's five decimals.
fn check_best(log: &ReadLog, outcome: &Outcome) -> Result<(), String> {
    let decimals = |x: f64| format!("{x:.5}");
    let column = |value: fn(&crate::run::Row) -> f64| log.rows.iter().map(move |row| (row.step, value(row)));
    let bpb = column(|row| row.val_bpb).collect::<Vec<_>>();
    let acc = column(|row| row.val_acc).collect::<Vec<_>>();
    let better: [fn(f64, f64) -> bool; 2] = [|a, b| a < b, |a, b| a > b];
    let checks = [
        ("best_val_bpb", outcome.best_val_bpb, bpb, better[0]),
        ("best_val_acc", outcome.best_val_acc, acc, better[1]),
    ];
    for (name, best, rows, better) in checks {
        let Some(best) = best else { continue };
        let there = rows.iter().any(|(step, value)| *step == best.step && decimals(*value) == decimals(best.value));
        if !there {
            return Err(format!("its {name}, {} at step {}, is not in log.csv", decimals(best.value), best.step));
        }
        let rounded: f64 = decimals(best.value).parse().unwrap_or(f64::NAN);
        if let Some((step, value)) = rows.iter().find(|(_, value)| better(*value, rounded)) {
            return Err(format!(
                "its {name}, {}, is not the best of log.csv: step {step} has {}",
                decimals(best.value),
                decimals(*value)
            ));
        }
    }
    Ok(())
}

fn check_tables(view: &View, plan: &Plan, loaded: &Loaded, verified: &mut Verified) -> Result<(), StoreError> {
    let analysis = analyse(plan, loaded);
    for (name, rebuilt) in small_tables(plan, loaded, &analysis) {
        let mut there = There::open(&view.layout().table(name))?;
        there.expect(&rebuilt)?;
        verified.end_table(name, there)?;
    }
    let name = "curves.csv";
    let mut there = There::open(&view.layout().table(name))?;
    let log_of = |run: &PlannedRun| view.run_paths(run).log();
    stream_curves(plan, loaded, &log_of, |bytes| there.expect(bytes))?;
    verified.end_table(name, there)
}

impl Verified {
    fn end_table(&mut self, name: &str, there: There) -> Result<(), StoreError> {
        self.tables += 1;
        self.damage.extend(there.end()?.map(|text| Damage { file: name.to_owned(), text }));
        Ok(())
    }
}

/// A table that is there, read along with the one that is rebuilt.
struct There {
    path: std::path::PathBuf,
    /// None where there is no file.
    file: Option<BufReader<File>>,
    header: Vec<String>,
    /// Lines that were equal so far.
    lines: usize,
    first_difference: Option<String>,
}

impl There {
    fn open(path: &Path) -> Result<Self, StoreError> {
        let file = match File::open(path) {
            Ok(file) => Some(BufReader::with_capacity(1 << 16, file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(unreadable(path, source)),
        };
        let first_difference = file.is_none().then(|| "is missing".to_owned());
        Ok(Self { path: path.to_owned(), file, header: Vec::new(), lines: 0, first_difference })
    }

    /// Holds the next bytes, whole lines, against the file.
    fn expect(&mut self, rebuilt: &[u8]) -> Result<(), StoreError> {
        let (Some(file), None) = (&mut self.file, &self.first_difference) else {
            return Ok(());
        };
        let mut there = vec![0; rebuilt.len()];
        let mut read = 0;
        while read < there.len() {
            match file.read(&mut there[read..]) {
                Ok(0) => break,
                Ok(n) => read += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(unreadable(&self.path, source)),
            }
        }
        there.truncate(read);
        if self.header.is_empty() {
            let first = rebuilt.split(|b| *b == b'\n').next().unwrap_or_default();
            self.header = cells(first);
        }
        if there != rebuilt {
            self.first_difference = Some(self.difference(&there, rebuilt));
        }
        self.lines += rebuilt.iter().filter(|b| **b == b'\n').count();
        Ok(())
    }

    /// Where two pieces differ first: row, column and both values. The header is row 1.
    fn difference(&self, there: &[u8], rebuilt: &[u8]) -> String {
        let mut pairs = there.split(|b| *b == b'\n').zip(rebuilt.split(|b| *b == b'\n')).enumerate();
        let Some((i, (is, should))) = pairs.find(|(_, (is, should))| is != should) else {
            return format!("ends after row {}", self.lines + there.iter().filter(|b| **b == b'\n').count());
        };
        let row = self.lines + i + 1;
        let (is, should) = (cells(is), cells(should));
        let column = is.iter().zip(&should).position(|(a, b)| a != b);
        match column {
            Some(c) if is.len() == should.len() => {
                let name = self.header.get(c).map_or("?", String::as_str);
                format!("row {row}, {name}: {} where the runs give {}", shown(&is[c]), shown(&should[c]))
            }
            _ => format!("row {row}: {} where the runs give {}", shown(&is.join(",")), shown(&should.join(","))),
        }
    }

    /// What is wrong with it, if anything.
    fn end(mut self) -> Result<Option<String>, StoreError> {
        if let (Some(file), None) = (&mut self.file, &self.first_difference) {
            let more = file.read(&mut [0]).map_err(|source| unreadable(&self.path, source))? > 0;
            return Ok(more.then(|| format!("goes on after row {}, the last that the runs give", self.lines)));
        }
        Ok(self.first_difference)
    }
}

fn cells(line: &[u8]) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line);
    let record = reader.byte_records().next().and_then(Result::ok).unwrap_or_default();
    record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect()
}

fn shown(cell: &str) -> &str {
    if cell.is_empty() { "(empty)" } else { cell }
}

fn unreadable(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { action: "read".to_owned(), path: path.to_owned(), source }
}
