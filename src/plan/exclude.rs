//! Leaves runs out.

use super::request::{Exclude, Request};
use crate::settings::{Setting, Settings, Value};

/// A run's settings.
pub(super) struct Asked<'a> {
    /// What the file gives.
    pub given: &'a [(&'static Setting, Value)],
    /// All as they are resolved.
    pub all: &'a Settings,
    /// All in canonical form.
    pub read: &'a Settings,
}

impl Asked<'_> {
    fn reads(&self, row: &Setting, value: &Value) -> bool {
        let given = || self.given.iter().find(|(other, _)| other.key == row.key).map(|(_, v)| v.clone());
        (row.is_read)(self.read) && row.get(self.all).or_else(given).is_some_and(|asked| asked == *value)
    }
}

/// The excludes that can meet an arm, and how often each did.
pub(super) struct Hits<'a> {
    /// Number of the arm, or `None` for those at the top.
    excludes: Vec<(Option<usize>, &'a Exclude, u64)>,
}

impl<'a> Hits<'a> {
    /// The excludes of a request, none met yet.
    pub fn new(request: &'a Request) -> Self {
        let top = request.exclude.iter().map(|e| (None, e, 0));
        let own = request.arms.iter().enumerate().flat_map(|(i, arm)| arm.exclude.iter().map(move |e| (Some(i), e, 0)));
        Self { excludes: top.chain(own).collect() }
    }

    /// Whether an exclude meets the run. A setting that the run does not read is met by no exclude.
    pub fn excluded(&mut self, arm: usize, name: &str, asked: &Asked<'_>) -> bool {
        let mut met = false;
        for (place, exclude, hits) in &mut self.excludes {
            let here = place.is_none_or(|a| a == arm) && exclude.arm.as_ref().is_none_or(|a| a == name);
            if here && exclude.values.iter().all(|(row, given)| asked.reads(row, &given.value)) {
                *hits += 1;
                met = true;
            }
        }
        met
    }

    /// A note for each exclude that met no run.
    pub fn notes(&self) -> Vec<String> {
        let unmet = self.excludes.iter().filter(|(_, _, hits)| *hits == 0);
        unmet.map(|(_, e, _)| format!("line {}: `{}` excludes no run", e.line, e.text)).collect()
    }
}
