//! What is asked for: a run, a configuration, or a row of a table.

use super::super::wording::label;
use crate::near::hint;
use crate::plan::Plan;
use crate::store::TABLES;

/// Digits of an id that tell it from a word.
const LEAST_DIGITS: usize = 4;

/// Something with numbers that can be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A run, by its index in the plan.
    Run(usize),
    /// Configurations, by their indexes.
    Configurations(Vec<usize>),
    /// A row of a table; the header is row 1.
    Row {
        /// Table.
        table: &'static str,
        /// Row.
        row: usize,
    },
}

/// There is nothing of that name.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    /// Several runs have ids with this beginning.
    #[error("{n} runs have ids that begin with `{prefix}`: give more digits")]
    Ambiguous {
        /// The digits.
        prefix: String,
        /// How many.
        n: usize,
    },
    /// Not a number, or the header.
    #[error("`{0}` is not a row: rows have numbers from 2, the header being row 1")]
    NoRow(String),
    /// Past the end.
    #[error("{table} has no row {row}: its last is {last}")]
    PastEnd {
        /// Table.
        table: &'static str,
        /// Row.
        row: usize,
        /// Its last row.
        last: usize,
    },
    /// None of them.
    #[error("`{name}` is no run, no configuration and no table's row; {hint}")]
    Nothing {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        hint: String,
    },
}

impl Target {
    /// Understands words: the beginning of a run's id, a run's folder or name (`sr4 lr=0.001 seed=7`), a configuration or the part of one (`sr4 lr=0.001`,
    /// `sr4`), or a table's row (`summary.csv:2`).
    pub fn find(plan: &Plan, words: &[String]) -> Result<Self, NotFound> {
        let name = words.join(" ");
        if let Some((table, row)) = name.rsplit_once(':')
            && let Some(table) = TABLES.into_iter().find(|t| *t == table || t.strip_suffix(".csv") == Some(table))
        {
            return match row.parse() {
                Ok(row) if row >= 2 => Ok(Self::Row { table, row }),
                _ => Err(NotFound::NoRow(row.to_owned())),
            };
        }
        if let Some(run) = by_id(plan, &name)? {
            return Ok(Self::Run(run));
        }
        let named = |run: &crate::plan::PlannedRun| {
            run.label() == name || run.folder == name || format!("runs/{}", run.folder) == name
        };
        if let Some(run) = plan.runs.iter().position(named) {
            return Ok(Self::Run(run));
        }
        by_words(plan, &name).ok_or_else(|| not_found(plan, name))
    }
}

fn by_id(plan: &Plan, name: &str) -> Result<Option<usize>, NotFound> {
    if name.len() < LEAST_DIGITS || !name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Ok(None);
    }
    let matching: Vec<usize> =
        (0..plan.runs.len()).filter(|i| plan.runs[*i].id.to_string().starts_with(name)).collect();
    match matching.as_slice() {
        [] => Ok(None),
        [run] => Ok(Some(*run)),
        more => Err(NotFound::Ambiguous { prefix: name.to_owned(), n: more.len() }),
    }
}

/// An arm, with some of its axes in any order, and with a seed or none.
fn by_words(plan: &Plan, name: &str) -> Option<Target> {
    let mut words = name.split_whitespace();
    let arm = words.next()?;
    let mut seed = None;
    let mut axes: Vec<(&str, &str)> = Vec::new();
    for word in words {
        match word.split_once('=')? {
            ("seed", value) if !plan.axes.iter().any(|axis| axis == "seed") => seed = Some(value.parse::<u64>().ok()?),
            axis => axes.push(axis),
        }
    }
    let same = |a: &str, b: &str| a == b || matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(x), Ok(y)) if x == y);
    let fits = |i: &usize| {
        let configuration = &plan.configurations[*i];
        let has =
            |(axis, value): &(&str, &str)| configuration.axes.iter().any(|a| a.axis == *axis && same(&a.value, value));
        configuration.arm == arm && axes.iter().all(has)
    };
    let fitting: Vec<usize> = (0..plan.configurations.len()).filter(fits).collect();
    let Some(seed) = seed else {
        return (!fitting.is_empty()).then_some(Target::Configurations(fitting));
    };
    let runs: Vec<usize> = fitting
        .iter()
        .flat_map(|i| &plan.configurations[*i].runs)
        .copied()
        .filter(|r| plan.runs[*r].seed == seed)
        .collect();
    match runs.as_slice() {
        [run] => Some(Target::Run(*run)),
        _ => None,
    }
}

fn not_found(plan: &Plan, name: String) -> NotFound {
    let labels: Vec<String> = plan.configurations.iter().map(label).collect();
    let runs: Vec<String> = plan.runs.iter().map(crate::plan::PlannedRun::label).collect();
    let mut known: Vec<&str> = labels.iter().map(String::as_str).collect();
    if name.contains("seed=") {
        known.extend(runs.iter().map(String::as_str));
    }
    NotFound::Nothing { hint: hint(&name, &known), name }
}
