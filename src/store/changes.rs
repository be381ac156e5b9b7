//! What an edited sweep file changes in a folder that exists.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::plan::Plan;

/// The difference between a folder's plan and the one at hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanChange {
    /// Runs that the old plan does not have.
    pub added: usize,
    /// Runs that the new plan does not have.
    pub dropped: usize,
    /// What is different, a line each.
    pub lines: Vec<String>,
}

impl PlanChange {
    /// Whether the plans are the same in all that matters.
    pub fn is_empty(&self) -> bool {
        self.added == 0 && self.dropped == 0 && self.lines.is_empty()
    }
}

/// Values of a setting in an arm, as JSON text.
type Values = BTreeMap<String, BTreeSet<String>>;

/// Compares a plan.json with a plan. The old one is read leniently: another version may have written it.
pub(super) fn compare(old: &Value, new: &Plan) -> PlanChange {
    let new = serde_json::to_value(new).unwrap_or_default();
    let (old_ids, new_ids) = (ids(old), ids(&new));
    let mut change = PlanChange {
        added: new_ids.difference(&old_ids).count(),
        dropped: old_ids.difference(&new_ids).count(),
        lines: Vec::new(),
    };
    let (old_arms, new_arms) = (arms(old), arms(&new));
    for arm in new_arms.keys().filter(|arm| !old_arms.contains_key(*arm)) {
        change.lines.push(format!("arm `{arm}` is new"));
    }
    for (arm, old_values) in &old_arms {
        match new_arms.get(arm) {
            None => change.lines.push(format!("arm `{arm}` is gone")),
            Some(new_values) => change.lines.extend(differences(arm, old_values, new_values)),
        }
    }
    for key in ["baseline", "metric"] {
        let (was, is) = (&old["compare"][key], &new["compare"][key]);
        if was != is {
            change.lines.push(format!("compare.{key} was {was}, is {is}"));
        }
    }
    change.lines.extend(corpora(old, &new));
    change
}

fn runs(plan: &Value) -> impl Iterator<Item = &Value> {
    plan["runs"].as_array().into_iter().flatten()
}

fn ids(plan: &Value) -> BTreeSet<&str> {
    runs(plan).filter_map(|run| run["id"].as_str()).collect()
}

fn arms(plan: &Value) -> BTreeMap<&str, Values> {
    let mut arms: BTreeMap<&str, Values> = BTreeMap::new();
    for run in runs(plan) {
        let values = arms.entry(run["arm"].as_str().unwrap_or_default()).or_default();
        for (key, value) in run["settings"].as_object().into_iter().flatten() {
            // A setting that follows the seed says no more than the seed does.
            let follows = key != "seed" && key.ends_with("seed") && *value == run["seed"];
            if !follows {
                values.entry(key.clone()).or_default().insert(value.to_string());
            }
        }
    }
    arms
}

fn differences(arm: &str, old: &Values, new: &Values) -> Vec<String> {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let none = BTreeSet::new();
    let differing = keys.into_iter().filter(|key| old.get(*key) != new.get(*key));
    differing
        .map(|key| {
            let (was, is) = (old.get(key).unwrap_or(&none), new.get(key).unwrap_or(&none));
            format!("arm `{arm}`: {key} was {}, is {}", list(was), list(is))
        })
        .collect()
}

/// Values in ascending order, numbers by size; long lists by their ends.
fn list(values: &BTreeSet<String>) -> String {
    let mut values: Vec<&str> = values.iter().map(String::as_str).collect();
    let number = |v: &str| v.parse::<f64>().unwrap_or(f64::NAN);
    values.sort_by(|a, b| number(a).total_cmp(&number(b)));
    match values.as_slice() {
        [] => "absent".to_owned(),
        [first, .., last] if values.len() > 8 => {
            format!("{first}, ... {last} ({} values)", values.len())
        }
        _ => values.join(", "),
    }
}

fn corpora(old: &Value, new: &Value) -> Vec<String> {
    let digests = |plan: &Value| -> BTreeMap<String, String> {
        let corpora = plan["corpora"].as_array().into_iter().flatten();
        corpora.map(|c| (c["path"].to_string(), c["digest"].to_string())).collect()
    };
    let (old, new) = (digests(old), digests(new));
    let changed = new.iter().filter(|(path, digest)| old.get(*path).is_some_and(|was| was != *digest));
    changed.map(|(path, _)| format!("corpus {path}: its bytes are no longer the same")).collect()
}
