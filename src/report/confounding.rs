//! Whether an arm can be told from the devices that made its runs.
//!
//! In fp32 every kind of device gives the same bytes (docs/arithmetic.md): different kinds harm nothing. In any other precision a kind
//! has an arithmetic of its own, and where arm and kind coincide nobody can tell which of them a difference comes from.

use std::collections::BTreeMap;

use crate::plan::Plan;
use crate::settings::Precision;
use crate::store::Loaded;

/// Which arm's runs were made on what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    /// For each arm, in the plan's order, the kinds of device with their numbers of runs.
    arms: Vec<(String, BTreeMap<String, usize>)>,
    /// Whether every run that has a result is in fp32.
    one_arithmetic: bool,
}

impl Devices {
    /// Counts the runs that have a result.
    pub fn of(plan: &Plan, loaded: &Loaded) -> Self {
        let mut devices = Self { arms: Vec::new(), one_arithmetic: true };
        for configuration in &plan.configurations {
            let place = devices.arms.iter().position(|(arm, _)| *arm == configuration.arm).unwrap_or_else(|| {
                devices.arms.push((configuration.arm.clone(), BTreeMap::new()));
                devices.arms.len() - 1
            });
            for run in &configuration.runs {
                let Some(result) = loaded.states.get(*run).and_then(|state| state.result()) else {
                    continue;
                };
                *devices.arms[place].1.entry(result.execution.device.clone()).or_default() += 1;
                devices.one_arithmetic &= plan.runs[*run].settings.precision == Precision::Fp32;
            }
        }
        devices
    }

    /// Why an arm cannot be compared with the baseline: no kind of device made runs of both, and its arithmetic matters.
    pub fn confounded(&self, arm: &str, baseline: &str) -> Option<String> {
        let of = |name: &str| {
            self.arms.iter().find(|(arm, _)| arm == name).map(|(_, kinds)| kinds).filter(|k| !k.is_empty())
        };
        let (ours, theirs) = (of(arm)?, of(baseline)?);
        if self.one_arithmetic || ours.keys().any(|kind| theirs.contains_key(kind)) {
            return None;
        }
        Some(format!(
            "its runs were made on other kinds of device ({}) than those of `{baseline}` ({}), and not all in fp32, so that arm and device cannot be told apart",
            counts(ours),
            counts(theirs)
        ))
    }
}

/// `cpu 8, NVIDIA H200 2`.
fn counts(kinds: &BTreeMap<String, usize>) -> String {
    kinds.iter().map(|(kind, n)| format!("{kind} {n}")).collect::<Vec<_>>().join(", ")
}
