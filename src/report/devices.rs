//! On which kinds of device a sweep's runs were made.

use std::collections::BTreeMap;

use super::verdict::Verdict;
use super::wording::label;
use crate::plan::Plan;
use crate::settings::Precision;
use crate::store::Loaded;

/// How many runs of each kind of device (a GPU's name, or `cpu`) there are, for each configuration.
pub(super) struct Kinds(Vec<BTreeMap<String, usize>>);

impl Kinds {
    /// Counts the runs that have a result.
    pub(super) fn of(plan: &Plan, loaded: &Loaded) -> Self {
        let count = |runs: &Vec<usize>| {
            let mut kinds = BTreeMap::new();
            for result in runs.iter().filter_map(|run| loaded.states[*run].result()) {
                *kinds.entry(result.execution.device.clone()).or_default() += 1;
            }
            kinds
        };
        Self(plan.configurations.iter().map(|c| count(&c.runs)).collect())
    }

    /// Whether there is more than one kind.
    pub(super) fn differ(&self) -> bool {
        let mut names = self.0.iter().flat_map(BTreeMap::keys);
        let first = names.next();
        names.any(|name| Some(name) != first)
    }

    /// A configuration's kinds in words: `cpu`, or `cpu 2, Tesla K80 4`.
    pub(super) fn text(&self, configuration: usize) -> String {
        text(&self.0[configuration])
    }

    /// What a reader of the verdict should know of them: that runs are of different kinds, and which arms are compared
    /// across kinds.
    pub(super) fn notes(&self, plan: &Plan, verdict: &Verdict) -> Vec<String> {
        if !self.differ() {
            return Vec::new();
        }
        let mut all: BTreeMap<String, usize> = BTreeMap::new();
        for (kind, n) in self.0.iter().flatten() {
            *all.entry(kind.clone()).or_default() += n;
        }
        let mut notes = vec![format!("runs were made on different kinds of device: {}", text(&all))];
        let fp32 = plan.runs.iter().all(|run| run.settings.precision == Precision::Fp32);
        let why = if fp32 {
            "in fp32 all kinds give the same numbers"
        } else {
            "what differs may be the device, not the arm"
        };
        let compared = verdict.arms.iter().filter_map(|arm| Some((arm.comparison.as_ref()?, verdict.baseline?)));
        for (comparison, baseline) in compared {
            let (this, base) = (&self.0[comparison.configuration], &self.0[baseline]);
            if this.keys().all(|kind| !base.contains_key(kind)) {
                let name = |c: usize| label(&plan.configurations[c]);
                notes.push(format!(
                    "arm and kind of device coincide: {} ran on {}, {} on {}; {why}",
                    name(comparison.configuration),
                    text(this),
                    name(baseline),
                    text(base)
                ));
            }
        }
        notes
    }
}

fn text(kinds: &BTreeMap<String, usize>) -> String {
    match kinds.len() {
        1 => kinds.keys().next().cloned().unwrap_or_default(),
        _ => kinds.iter().map(|(kind, n)| format!("{kind} {n}")).collect::<Vec<_>>().join(", "),
    }
}
