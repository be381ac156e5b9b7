//! Merges points that come to the same runs.

use std::collections::HashMap;

use super::AxisValue;
use super::expand::{ArmAxes, Point};
use super::request::{Assignment, Given};
use crate::run::RunId;
use crate::settings::{Setting, Settings};

/// A point with its runs.
pub(super) struct Resolved<'a> {
    /// The point.
    pub point: &'a Point<'a>,
    /// For each seed its id, its settings in canonical form, and whether it is excluded.
    runs: Vec<(RunId, Settings, bool)>,
}

impl<'a> Resolved<'a> {
    /// A point with its runs, one for each seed.
    pub fn new(point: &'a Point<'a>, runs: Vec<(RunId, Settings, bool)>) -> Self {
        Self { point, runs }
    }

    /// Whether any of its runs is left.
    pub fn has_runs(&self) -> bool {
        self.runs.iter().any(|(_, _, excluded)| !excluded)
    }
}

/// A configuration before its runs are numbered.
pub(super) struct Merged {
    /// Number of its arm.
    pub arm: usize,
    /// Name of its arm.
    pub name: String,
    /// Its axes.
    pub axes: Vec<AxisValue>,
    /// For each seed its id, its settings, and whether it is excluded.
    pub runs: Vec<(RunId, Settings, bool)>,
}

/// The axes that some configuration has, in the order of first mention, and the configurations that differ.
pub(super) fn merge(
    arms: &[ArmAxes<'_>],
    resolved: Vec<Resolved<'_>>,
    notes: &mut Vec<String>,
) -> (Vec<String>, Vec<Merged>) {
    let mut told = Told { notes, arms };
    told.unread(&resolved);
    let mut first: HashMap<(usize, Vec<RunId>), usize> = HashMap::new();
    let mut merged: Vec<Merged> = Vec::new();
    let mut kept: Vec<&Point<'_>> = Vec::new();
    for Resolved { point, runs } in resolved {
        let ids: Vec<RunId> = runs.iter().map(|(id, _, _)| *id).collect();
        if let Some(&i) = first.get(&(point.arm, ids.clone())) {
            told.equal(kept[i], point, &runs[0].1);
            join(&mut merged[i], runs);
            continue;
        }
        let axes = axis_values(&arms[point.arm], point, &runs[0].1);
        first.insert((point.arm, ids), merged.len());
        kept.push(point);
        merged.push(Merged { arm: point.arm, name: arms[point.arm].arm.name.clone(), axes, runs });
    }
    merged.retain(|m| m.runs.iter().any(|(_, _, excluded)| !excluded));
    let mut axes: Vec<String> = Vec::new();
    for key in arms.iter().flat_map(|a| &a.settings).filter(|a| a.is_axis).map(|a| a.setting.key) {
        let shown = merged.iter().flat_map(|m| &m.axes).any(|v| v.axis == key);
        if shown && !axes.iter().any(|known| known == key) {
            axes.push(key.to_owned());
        }
    }
    for configuration in &mut merged {
        configuration.axes.sort_by_key(|v| axes.iter().position(|axis| *axis == v.axis));
    }
    (axes, merged)
}

/// Joins an equal point to a configuration, which keeps its name: a run is left out only where every one of the points
/// leaves it out.
fn join(into: &mut Merged, runs: Vec<(RunId, Settings, bool)>) {
    for ((_, kept, excluded), (_, settings, also)) in into.runs.iter_mut().zip(runs) {
        *excluded &= also;
        kept.save_final |= settings.save_final;
    }
}

/// The values of the point's axes, as the runs read them; those that they do not read are absent.
fn axis_values(axes: &ArmAxes<'_>, point: &Point<'_>, read: &Settings) -> Vec<AxisValue> {
    let values = axes.settings.iter().zip(&point.values).filter(|(a, _)| a.is_axis && (a.setting.is_read)(read));
    let text = |row: &Setting, given: &Given| match row.get(read) {
        Some(value) if row.changes_numbers => value.to_string(),
        _ => given.value.to_string(),
    };
    values.map(|(a, given)| AxisValue { axis: a.setting.key.to_owned(), value: text(a.setting, given) }).collect()
}

/// Notes on merged points, each said once.
struct Told<'n, 'a> {
    notes: &'n mut Vec<String>,
    arms: &'a [ArmAxes<'a>],
}

impl Told<'_, '_> {
    fn say(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Settings that an arm gives and that none of its runs reads, and axes of the base of which the same is true.
    fn unread(&mut self, resolved: &[Resolved<'_>]) {
        for (i, axes) in self.arms.iter().enumerate() {
            let mut points = resolved.iter().filter(|r| r.point.arm == i).peekable();
            if points.peek().is_none() {
                continue;
            }
            let mut silent: Vec<&Assignment> = axes.settings.clone();
            for point in points {
                silent.retain(|a| !(a.setting.is_read)(&point.runs[0].1));
            }
            let own = |a: &Assignment| axes.arm.settings.iter().any(|own| own.setting.key == a.setting.key);
            for a in silent.into_iter().filter(|a| a.is_axis || own(a)) {
                let (arm, key, line) = (&axes.arm.name, a.setting.key, a.line);
                let runs = match a.values.len() {
                    1 => "it makes no difference".to_owned(),
                    n => format!("its {n} values make no runs of their own"),
                };
                self.say(format!("arm `{arm}` does not read `{key}` (line {line}): {runs}"));
            }
        }
    }

    /// Two points of an arm that come to the same runs.
    fn equal(&mut self, kept: &Point<'_>, point: &Point<'_>, read: &Settings) {
        let axes = &self.arms[point.arm];
        let arm = &axes.arm.name;
        let mut said = Vec::new();
        for (i, a) in axes.settings.iter().enumerate() {
            let (one, other) = (kept.values[i], point.values[i]);
            // Every value of an axis that is read as it is given differs in its value; equal ones differ in their place.
            if one.span == other.span || !(a.setting.is_read)(read) {
                continue;
            }
            let key = a.setting.key;
            let (one, other) = (place(key, one), place(key, other));
            let why = match key {
                "data" => "hold the same bytes",
                "preset" => "come to the same settings",
                _ if !a.setting.changes_numbers => "give the same numbers",
                _ => "are the same",
            };
            said.push(format!("arm `{arm}`: {one} and {other} {why}; points that differ in nothing else are merged"));
        }
        said.into_iter().for_each(|note| self.say(note));
    }
}

fn place(key: &str, given: &Given) -> String {
    format!("`{key} = {}` (line {})", given.text, given.line)
}
