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

/// Values of a setting in an arm: what tells them apart, and how they are shown, as JSON text. A corpus is its bytes, wherever they
/// are.
type Values = BTreeMap<String, BTreeMap<String, String>>;

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
    let (was, is) = (&old["stop"], &new["stop"]);
    if was != is {
        let shown = |rule: &Value| if rule.is_null() { "absent".to_owned() } else { rule.to_string() };
        change.lines.push(format!("stop was {}, is {}", shown(was), shown(is)));
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
    let digests = digests(plan);
    for run in runs(plan) {
        let values = arms.entry(run["arm"].as_str().unwrap_or_default()).or_default();
        for (key, value) in run["settings"].as_object().into_iter().flatten() {
            // A setting that follows the seed says no more than the seed does.
            let follows = key != "seed" && key.ends_with("seed") && *value == run["seed"];
            if !follows {
                let shown = value.to_string();
                let digest = if key == "data" { digests.get(&value["path"].to_string()) } else { None };
                let identity = digest.unwrap_or(&shown).clone();
                values.entry(key.clone()).or_default().insert(identity, shown);
            }
        }
    }
    arms
}

fn differences(arm: &str, old: &Values, new: &Values) -> Vec<String> {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let none = BTreeMap::new();
    let values = |key: &String| (old.get(key).unwrap_or(&none), new.get(key).unwrap_or(&none));
    let both = keys.into_iter().map(|key| (key, values(key)));
    let differing = both.filter(|(_, (was, is))| !was.keys().eq(is.keys()));
    let shown = differing.map(|(key, (was, is))| (key, list(was), list(is)));
    // Other bytes at the same place are told of with the corpora.
    let telling = shown.filter(|(_, was, is)| was != is);
    telling.map(|(key, was, is)| format!("arm `{arm}`: {key} was {was}, is {is}")).collect()
}

/// Values in ascending order, numbers by size; long lists by their ends.
fn list(values: &BTreeMap<String, String>) -> String {
    let mut values: Vec<&str> = values.values().map(String::as_str).collect();
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

/// The digests of a plan's corpora by their paths, both as JSON text; the built-in one's path is `null`.
fn digests(plan: &Value) -> BTreeMap<String, String> {
    let corpora = plan["corpora"].as_array().into_iter().flatten();
    corpora.map(|c| (c["path"].to_string(), c["digest"].to_string())).collect()
}

fn corpora(old: &Value, new: &Value) -> Vec<String> {
    let (old, new) = (digests(old), digests(new));
    let changed = new.iter().filter(|(path, digest)| old.get(*path).is_some_and(|was| was != *digest));
    changed.map(|(path, _)| format!("corpus {path}: its bytes are no longer the same")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Data;
    use crate::testing;

    fn at(path: &str, digest: &str) -> Plan {
        let mut plan = testing::plan(&[("adamw", &[])], &[1]);
        plan.corpora[0].path = Some(path.into());
        plan.corpora[0].digest = digest.to_owned();
        plan.runs[0].settings.data = Data::Path(path.into());
        plan
    }

    #[test]
    fn the_same_corpus_at_another_place_is_no_change() {
        let lines = |old: &Plan, new: &Plan| compare(&serde_json::to_value(old).unwrap(), new).lines;
        assert!(lines(&at("/a", "c0ffee"), &at("/b", "c0ffee")).is_empty());
        assert_eq!(
            lines(&at("/a", "c0ffee"), &at("/b", "decaf")),
            [r#"arm `adamw`: data was {"path":"/a"}, is {"path":"/b"}"#]
        );
        assert_eq!(
            lines(&at("/a", "c0ffee"), &at("/a", "decaf")),
            [r#"corpus "/a": its bytes are no longer the same"#]
        );
    }
}
