//! What all tables share: their columns and how values are written.
//!
//! Some readers of CSV tell a column's type from its first hundred rows. So that these tell it right, a number is never written in the form of another type: a
//! column that holds numbers with a fraction, or that a row may lack, has only numbers with a point or an exponent, and `NaN` for an absent one. Whole
//! numbers that no row lacks are written as such; an absent text is an empty cell.

use crate::plan::{AxisValue, Plan};
use crate::stats::Interval;

/// The columns, and keys of result.json, that depend on how a run was executed; no other may. A comparison of two
/// results leaves them out.
pub const VOLATILE: [&str; 15] = [
    "step_sec",
    "tok_per_sec",
    "elapsed_sec",
    "ETA_sec",
    "wall_sec",
    "attempts",
    "die",
    "host",
    "lane",
    "device",
    "gpu",
    "started",
    "ended",
    "log_digest",
    "file_digest",
];

/// A table in the making, as CSV.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this header.
    pub(super) fn new(header: Vec<String>) -> Self {
        Self { rows: vec![header] }
    }

    /// Appends a row. Its length is the header's.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.rows[0].len());
        self.rows.push(cells);
    }

    /// The bytes, with `\n` ends and quotes where they are needed.
    pub(super) fn into_csv(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for row in &self.rows {
            push_record(&mut bytes, row.iter().map(String::as_str));
        }
        bytes
    }
}

/// Appends a line of CSV.
pub(super) fn push_record<'a>(out: &mut Vec<u8>, cells: impl Iterator<Item = &'a str>) {
    for (i, cell) in cells.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_cell(out, cell);
    }
    out.push(b'\n');
}

/// Appends a cell, in quotes if it needs them (RFC 4180).
pub(super) fn push_cell(out: &mut Vec<u8>, cell: &str) {
    if cell.contains(['"', ',', '\n', '\r']) {
        out.push(b'"');
        out.extend_from_slice(cell.replace('"', "\"\"").as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(cell.as_bytes());
    }
}

/// A header: the arm, the plan's axes, and then `rest`. An axis that is named as a column that the table has anyway
/// is called `axis_<name>`.
pub(super) fn header(plan: &Plan, rest: &[&str]) -> Vec<String> {
    let axes = plan.axes.iter().map(|axis| match rest.contains(&axis.as_str()) || axis == "arm" {
        true => format!("axis_{axis}"),
        false => axis.clone(),
    });
    let arm = std::iter::once("arm".to_owned());
    arm.chain(axes).chain(rest.iter().map(|c| (*c).to_owned())).collect()
}

/// How the values of the plan's axes are written.
pub(super) struct AxisForms(Vec<AxisForm>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AxisForm {
    /// As they are named: text, or whole numbers that every configuration has.
    Named,
    /// As numbers.
    Number,
}

impl AxisForms {
    /// The forms that the values of all configurations ask for.
    pub(super) fn of(plan: &Plan) -> Self {
        let form = |axis: &String| {
            let value_of = |values: &[AxisValue]| values.iter().find(|v| v.axis == *axis).map(|v| v.value.clone());
            let values: Vec<Option<String>> = plan.configurations.iter().map(|c| value_of(&c.axes)).collect();
            let all_whole = values.iter().all(|v| v.as_ref().is_some_and(|text| text.parse::<i64>().is_ok()));
            let all_numbers = values.iter().flatten().all(|text| text.parse::<f64>().is_ok());
            if all_numbers && !all_whole { AxisForm::Number } else { AxisForm::Named }
        };
        Self(plan.axes.iter().map(form).collect())
    }

    /// The first cells of a row: the arm, and a value or its absence for each of the plan's axes.
    pub(super) fn first_cells(&self, plan: &Plan, arm: &str, values: &[AxisValue]) -> Vec<String> {
        let cell = |(axis, form): (&String, &AxisForm)| {
            let text = values.iter().find(|v| v.axis == *axis).map(|v| v.value.as_str());
            match form {
                AxisForm::Named => text.unwrap_or_default().to_owned(),
                AxisForm::Number => optional(text.and_then(|text| text.parse().ok())),
            }
        };
        let arm = std::iter::once(arm.to_owned());
        arm.chain(plan.axes.iter().zip(&self.0).map(cell)).collect()
    }
}

/// A number in the shortest form that reads back as the same one. `NaN`, `inf` and `-inf` are what pandas and polars
/// read.
pub(super) fn number(x: f64) -> String {
    format!("{x:?}")
}

/// A number, or `NaN` for an absent one.
pub(super) fn optional(x: Option<f64>) -> String {
    number(x.unwrap_or(f64::NAN))
}

/// A whole number that a row may lack.
pub(super) fn optional_whole(x: Option<u64>) -> String {
    optional(x.map(|x| x as f64))
}

/// An interval's two cells.
pub(super) fn ends(interval: Option<Interval>) -> [String; 2] {
    [optional(interval.map(|i| i.lo)), optional(interval.map(|i| i.hi))]
}
