//! From rows to configurations with a value for each seed.

use std::collections::BTreeMap;

use super::error::SamplesError;
use super::number::{Cell, cell, is_comma_number, seed};
use super::table::{Table, line};
use crate::near::hint;
use crate::stats::Better;

/// Combinations that a message on duplicates names.
const NAMED: usize = 3;

/// What of several rows of one arm, configuration and seed counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// None: they are an error.
    #[default]
    Refuse,
    /// The first row.
    First,
    /// The last row.
    Last,
}

/// What is asked of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Column of the arms.
    pub arm: String,
    /// Column of the seeds.
    pub seed: String,
    /// Column of the metric.
    pub metric: String,
    /// Column of the values that the verdict is to be formed on, other than those of selection.
    pub test: Option<String>,
    /// Columns that tell an arm's configurations apart.
    pub by: Vec<String>,
    /// Arm that the others are compared with.
    pub baseline: String,
    /// Which values are better; by the metric's name if this is absent.
    pub better: Option<Better>,
    /// What of several rows of one run counts.
    pub duplicates: Duplicates,
}

impl Request {
    /// The columns, each with the flag that names it.
    fn columns(&self) -> Vec<(&'static str, &str)> {
        let mut columns = vec![("--arm", self.arm.as_str()), ("--seed", &self.seed), ("--metric", &self.metric)];
        columns.extend(self.test.iter().map(|name| ("--test", name.as_str())));
        columns.extend(self.by.iter().map(|name| ("--by", name.as_str())));
        columns
    }

    /// The columns' names.
    pub fn wanted(&self) -> Vec<&str> {
        self.columns().into_iter().map(|(_, name)| name).collect()
    }
}

/// A row's value, as far as it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Entry {
    Value { value: f64, test: Option<f64> },
    Diverged,
    Missing,
}

/// An arm with one value of each column of `--by`. Seeds are numbers of [`Samples::seeds`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    /// Arm.
    pub arm: String,
    /// Its values of the columns of `--by`.
    pub by: Vec<(String, String)>,
    /// Seeds with their values.
    pub values: Vec<(u64, f64)>,
    /// Seeds with their values in the column of `--test`.
    pub test_values: Vec<(u64, f64)>,
    /// Seeds whose value is NaN or infinite.
    pub diverged: Vec<u64>,
    /// Seeds whose cell holds no number.
    pub without_value: Vec<u64>,
    /// Seeds of the file that it has no row for.
    pub absent: Vec<u64>,
}

impl Configuration {
    /// The arm and its values: `sr4 lr=0.001`. A column that says nothing of it, as those of other arms' axes, is left out.
    pub fn label(&self) -> String {
        let says = |value: &str| !value.eq_ignore_ascii_case("nan") && !matches!(cell(value, false), Cell::Blank);
        let by = self.by.iter().filter(|(_, value)| says(value));
        let by: String = by.map(|(name, value)| format!(" {name}={value}")).collect();
        self.arm.clone() + &by
    }
}

/// A file's values, sorted by arm, configuration and seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// The seeds of the file, numbers first and by size.
    pub seeds: Vec<String>,
    /// Its configurations, in the order of their first rows.
    pub configurations: Vec<Configuration>,
    /// Which values are better.
    pub better: Better,
    /// Whether that was taken from the metric's name.
    pub guessed: bool,
    /// Rows of the file.
    pub rows: usize,
    /// What was left out or had to be understood, a line each.
    pub warnings: Vec<String>,
}

/// Where the asked columns stand.
struct Places {
    arm: usize,
    seed: usize,
    metric: usize,
    test: Option<usize>,
    by: Vec<usize>,
    decimal_comma: bool,
}

type Key = (String, Vec<String>);

impl Samples {
    /// Sorts a file's rows.
    pub fn gather(table: &Table, request: &Request) -> Result<Self, SamplesError> {
        let places = places(table, request)?;
        let (better, guessed) = match request.better {
            Some(better) => (better, false),
            None => (by_name(&request.metric).ok_or_else(|| SamplesError::Direction(request.metric.clone()))?, true),
        };
        let mut warnings = table.warnings.clone();
        let mut order: Vec<Key> = Vec::new();
        let mut found: BTreeMap<Key, BTreeMap<String, Vec<(u64, Entry)>>> = BTreeMap::new();
        for row in &table.rows {
            let named = |place: usize| row.get(place).unwrap_or_default().trim();
            let (arm, seed) = (named(places.arm), seed(named(places.seed)));
            let blank = if arm.is_empty() { &request.arm } else { &request.seed };
            if arm.is_empty() || seed.is_empty() {
                warnings.push(format!(
                    "{}:{}: `{blank}` is blank; the row is left out",
                    table.path.display(),
                    line(row)
                ));
                continue;
            }
            let entry = entry(table, row, &places, &mut warnings);
            let key = (arm.to_owned(), places.by.iter().map(|place| named(*place).to_owned()).collect());
            if !found.contains_key(&key) {
                order.push(key.clone());
            }
            found.entry(key).or_default().entry(seed).or_default().push((line(row), entry));
        }
        if !order.iter().any(|(arm, _)| *arm == request.baseline) {
            return Err(no_baseline(request, &order));
        }
        let runs = one_each(&order, found, request, &mut warnings)?;
        let (seeds, configurations) = number_seeds(order, runs, &request.by);
        Ok(Self { seeds, configurations, better, guessed, rows: table.rows.len(), warnings })
    }
}

fn places(table: &Table, request: &Request) -> Result<Places, SamplesError> {
    let columns = request.columns();
    for (i, (flag, name)) in columns.iter().enumerate() {
        if let Some((first, _)) = columns[..i].iter().find(|(_, other)| other == name) {
            return Err(SamplesError::TwoRoles { name: (*name).to_owned(), first, second: flag });
        }
    }
    let metric = table.column(&request.metric)?;
    let test = request.test.as_ref().map(|name| table.column(name)).transpose()?;
    let by = request.by.iter().map(|name| table.column(name)).collect::<Result<_, _>>()?;
    let cells = || {
        table.rows.iter().flat_map(|row| [Some(metric), test].into_iter().flatten().filter_map(|place| row.get(place)))
    };
    // `2,5` is a number where a comma cannot be anything else, and no cell of the column says otherwise.
    let decimal_comma = table.delimiter != b','
        && cells().any(|text| is_comma_number(text.trim()))
        && !cells().any(|text| text.contains('.'));
    Ok(Places { arm: table.column(&request.arm)?, seed: table.column(&request.seed)?, metric, test, by, decimal_comma })
}

/// What a row says, with a warning where that is nothing.
fn entry(table: &Table, row: &csv::StringRecord, places: &Places, warnings: &mut Vec<String>) -> Entry {
    let mut read = |place: usize, consequence: &str| {
        let text = row.get(place).unwrap_or_default();
        let read = cell(text, places.decimal_comma);
        let why = match read {
            Cell::Blank if text.trim().is_empty() => "is blank".to_owned(),
            Cell::Blank => format!("is `{}`", text.trim()),
            Cell::NotANumber => format!("is `{}`, not a number", text.trim()),
            Cell::Value(_) | Cell::Diverged => return read,
        };
        warnings.push(format!(
            "{}:{}: `{}` {why}; {consequence}",
            table.path.display(),
            line(row),
            table.header[place]
        ));
        read
    };
    match read(places.metric, "the row has no value") {
        Cell::Value(value) => match places.test.map(|place| read(place, "the row has no test value")) {
            // A run that ended well and whose test value is not finite went astray all the same.
            Some(Cell::Diverged) => Entry::Diverged,
            Some(Cell::Value(test)) => Entry::Value { value, test: Some(test) },
            _ => Entry::Value { value, test: None },
        },
        Cell::Diverged => Entry::Diverged,
        Cell::Blank | Cell::NotANumber => Entry::Missing,
    }
}

fn no_baseline(request: &Request, order: &[Key]) -> SamplesError {
    let mut arms: Vec<&str> = Vec::new();
    for (arm, _) in order {
        if !arms.contains(&arm.as_str()) {
            arms.push(arm);
        }
    }
    let (name, column) = (request.baseline.clone(), request.arm.clone());
    SamplesError::NoBaseline { hint: hint(&name, &arms), name, column }
}

/// The one row of each seed of each configuration, in their order.
fn one_each(
    order: &[Key],
    mut found: BTreeMap<Key, BTreeMap<String, Vec<(u64, Entry)>>>,
    request: &Request,
    warnings: &mut Vec<String>,
) -> Result<Vec<BTreeMap<String, Entry>>, SamplesError> {
    let mut repeated = Vec::new();
    let mut runs = Vec::new();
    for key in order {
        let mut of_key = BTreeMap::new();
        for (seed, rows) in found.remove(key).unwrap_or_default() {
            if rows.len() > 1 {
                let by: String =
                    request.by.iter().zip(&key.1).map(|(name, value)| format!(" {name}={value}")).collect();
                let lines: Vec<String> = rows.iter().take(8).map(|(line, _)| line.to_string()).collect();
                let more = if rows.len() > 8 { ", ..." } else { "" };
                repeated.push(format!("{}{by} seed {seed} on lines {}{more}", key.0, lines.join(", ")));
            }
            let counts = if request.duplicates == Duplicates::First { rows.first() } else { rows.last() };
            of_key.extend(counts.map(|(_, entry)| (seed, *entry)));
        }
        runs.push(of_key);
    }
    let counts = match request.duplicates {
        Duplicates::First => "first",
        Duplicates::Last => "last",
        Duplicates::Refuse if repeated.is_empty() => return Ok(runs),
        Duplicates::Refuse => {
            let mut examples = repeated.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
            if repeated.len() > NAMED {
                examples += &format!("; and {} more", repeated.len() - NAMED);
            }
            return Err(SamplesError::Duplicates { examples });
        }
    };
    warnings.extend(repeated.iter().map(|rows| format!("{rows}: the {counts} of them counts")));
    Ok(runs)
}

/// Gives the seeds numbers, so that seeds of any kind can be paired.
fn number_seeds(
    order: Vec<Key>,
    runs: Vec<BTreeMap<String, Entry>>,
    by: &[String],
) -> (Vec<String>, Vec<Configuration>) {
    let mut seeds: Vec<String> = runs.iter().flat_map(|of_key| of_key.keys().cloned()).collect();
    let rank = |text: &String| (text.parse::<i128>().is_err(), text.parse::<i128>().unwrap_or(0), text.clone());
    seeds.sort_by_cached_key(rank);
    seeds.dedup();
    let configurations = order.into_iter().zip(runs).map(|((arm, values), of_key)| {
        let by = by.iter().cloned().zip(values).collect();
        let mut configuration = Configuration { arm, by, ..Configuration::default() };
        for (number, seed) in (0..).zip(&seeds) {
            match of_key.get(seed) {
                Some(Entry::Value { value, test }) => {
                    configuration.values.push((number, *value));
                    configuration.test_values.extend(test.map(|test| (number, test)));
                }
                Some(Entry::Diverged) => configuration.diverged.push(number),
                Some(Entry::Missing) => configuration.without_value.push(number),
                None => configuration.absent.push(number),
            }
        }
        configuration
    });
    let configurations = configurations.collect();
    (seeds, configurations)
}

/// Which values of a metric are better, where its name tells.
fn by_name(metric: &str) -> Option<Better> {
    const LOWER: [&str; 16] = [
        "loss",
        "bpb",
        "bpc",
        "nll",
        "ppl",
        "perplexity",
        "err",
        "error",
        "mse",
        "rmse",
        "mae",
        "wer",
        "cer",
        "regret",
        "latency",
        "fid",
    ];
    const HIGHER: [&str; 12] =
        ["acc", "accuracy", "f1", "auc", "auroc", "bleu", "rouge", "reward", "return", "score", "precision", "recall"];
    let metric = metric.to_lowercase();
    let has = |words: &[&str]| metric.split(|c: char| !c.is_alphanumeric()).any(|part| words.contains(&part));
    match (has(&LOWER), has(&HIGHER)) {
        (true, false) => Some(Better::Lower),
        (false, true) => Some(Better::Higher),
        _ => None,
    }
}
