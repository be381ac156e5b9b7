//! Several results folders as one comparison.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::columns::VOLATILE;
use crate::near::hint;
use crate::plan::{AxisValue, Compare, Configuration, CorpusInfo, Metric, Plan, PlannedRun};
use crate::run::RunId;
use crate::settings::{Data, Settings, canonical, table::TABLE};
use crate::store::{Loaded, RunState, StoreError, StoredResult, View};

/// A results folder that was read.
pub struct Folder {
    /// As it was named on the command line.
    pub name: PathBuf,
    /// The folder.
    pub view: View,
    /// Its plan.
    pub plan: Plan,
    /// The states of the plan's runs.
    pub loaded: Loaded,
}

impl Folder {
    /// Reads a results folder.
    pub fn read(dir: &Path) -> Result<Self, StoreError> {
        let (view, plan) = View::open(dir)?;
        let loaded = view.load(&plan)?;
        Ok(Self { name: dir.to_owned(), view, plan, loaded })
    }
}

/// Folders that cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// One run, two results.
    #[error("run {run} has other values in {} than in {}: {what}", a.display(), b.display())]
    Contradiction {
        /// The run.
        run: RunId,
        /// A folder.
        a: PathBuf,
        /// Another.
        b: PathBuf,
        /// What differs.
        what: String,
    },
    /// No folder has the baseline.
    #[error("no folder has the arm `{name}`; {hint}")]
    NoBaseline {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// A log cannot be read.
    #[error("{}", .0.full_text())]
    Store(#[from] StoreError),
}

/// Several folders as one plan with one state for each run.
#[derive(Debug)]
pub struct Merged {
    /// The plan: configurations of all folders, runs of equal ids once.
    pub plan: Plan,
    /// What there is of it.
    pub loaded: Loaded,
    /// What a reader should know: runs that several folders have, arms told apart, settings that differ.
    pub notes: Vec<String>,
    /// The logs of the runs that have a result.
    logs: HashMap<RunId, PathBuf>,
}

impl Merged {
    /// Joins folders. Arms of one name are one arm where their runs differ in nothing but seeds and axes; where they do, each is named
    /// `<arm>@<folder>`. The baseline and the metric are those of the first folder unless they are given.
    pub fn of(folders: &[Folder], baseline: Option<&str>, metric: Option<Metric>) -> Result<Self, MergeError> {
        let names = arm_names(folders);
        let first = &folders[0].plan;
        let wanted = baseline.map_or_else(|| names.of(0, &first.compare.baseline), str::to_owned);
        let mut merged = Self {
            plan: empty_plan(folders, wanted, metric),
            loaded: Loaded::default(),
            notes: Vec::new(),
            logs: HashMap::new(),
        };
        let mut places: HashMap<RunId, (usize, usize)> = HashMap::new();
        let mut shared: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for folder in folders {
            if let Some(rule) = &folder.plan.stop {
                merged.notes.push(format!("early stopping was on in {}: {rule}", folder.plan.name));
            }
        }
        for (f, folder) in folders.iter().enumerate() {
            for configuration in &folder.plan.configurations {
                let place = merged.configuration(names.of(f, &configuration.arm), &configuration.axes);
                for run in &configuration.runs {
                    let (planned, state) = (&folder.plan.runs[*run], &folder.loaded.states[*run]);
                    let index = match places.get(&planned.id) {
                        Some((index, other)) if *other != f => {
                            *shared.entry((*other, f)).or_default() += 1;
                            merged.join(*index, folder, planned, state, &folders[*other])?;
                            *index
                        }
                        Some((index, _)) => *index,
                        None => {
                            places.insert(planned.id, (merged.plan.runs.len(), f));
                            merged.add(folder, planned, state, &merged.plan.configurations[place].arm.clone())
                        }
                    };
                    let runs = &mut merged.plan.configurations[place].runs;
                    if !runs.contains(&index) {
                        runs.push(index);
                    }
                }
            }
            merged.loaded.warnings.extend(folder.loaded.warnings.iter().cloned());
        }
        merged.finish(&folders.iter().map(|f| f.name.as_path()).collect::<Vec<_>>(), &shared, names.differences)
    }

    /// Where the log of a run that has a result is.
    pub fn log(&self, run: &PlannedRun) -> PathBuf {
        self.logs.get(&run.id).cloned().unwrap_or_default()
    }

    fn configuration(&mut self, arm: String, axes: &[AxisValue]) -> usize {
        let there = self.plan.configurations.iter().position(|c| c.arm == arm && c.axes == axes);
        there.unwrap_or_else(|| {
            self.plan.configurations.push(Configuration { arm, axes: axes.to_vec(), runs: Vec::new() });
            self.plan.configurations.len() - 1
        })
    }

    fn add(&mut self, folder: &Folder, run: &PlannedRun, state: &RunState, arm: &str) -> usize {
        if state.result().is_some() {
            self.logs.insert(run.id, folder.view.run_paths(run).log());
        }
        self.plan.runs.push(PlannedRun { arm: arm.to_owned(), ..run.clone() });
        self.loaded.states.push(state.clone());
        self.plan.runs.len() - 1
    }

    /// A run that an earlier folder has too.
    fn join(
        &mut self,
        index: usize,
        folder: &Folder,
        run: &PlannedRun,
        state: &RunState,
        other: &Folder,
    ) -> Result<(), MergeError> {
        match (self.loaded.states[index].result(), state.result()) {
            (Some(a), Some(b)) => {
                if let Some(what) = contradiction(a, b, &self.logs[&run.id], &folder.view.run_paths(run).log())? {
                    return Err(MergeError::Contradiction {
                        run: run.id,
                        a: other.name.clone(),
                        b: folder.name.clone(),
                        what,
                    });
                }
            }
            (None, Some(_)) => {
                self.logs.insert(run.id, folder.view.run_paths(run).log());
                self.loaded.states[index] = state.clone();
            }
            (_, None) => {}
        }
        Ok(())
    }

    fn finish(
        mut self,
        names: &[&Path],
        shared: &BTreeMap<(usize, usize), usize>,
        differences: Vec<String>,
    ) -> Result<Self, MergeError> {
        let arms: Vec<&str> = self.plan.configurations.iter().map(|c| c.arm.as_str()).collect();
        let baseline = &self.plan.compare.baseline;
        if !arms.contains(&baseline.as_str()) {
            let distinct: Vec<&str> =
                arms.iter().enumerate().filter(|(i, arm)| !arms[..*i].contains(arm)).map(|(_, arm)| *arm).collect();
            return Err(MergeError::NoBaseline { name: baseline.clone(), hint: hint(baseline, &distinct) });
        }
        for ((a, b), n) in shared {
            let runs = if *n == 1 { "run is" } else { "runs are" };
            self.notes.push(format!(
                "{n} {runs} in {} and in {}, with the same values, and counted once",
                names[*a].display(),
                names[*b].display()
            ));
        }
        self.notes.extend(differences);
        let seeds: Vec<u64> = self.plan.runs.iter().map(|run| run.seed).collect();
        for configuration in &mut self.plan.configurations {
            configuration.runs.sort_by_key(|run| seeds[*run]);
        }
        Ok(self)
    }
}

fn empty_plan(folders: &[Folder], baseline: String, metric: Option<Metric>) -> Plan {
    let first = &folders[0].plan;
    let mut axes: Vec<String> = Vec::new();
    let mut corpora: Vec<CorpusInfo> = Vec::new();
    for folder in folders {
        axes.extend(folder.plan.axes.iter().filter(|axis| !axes.contains(axis)).cloned().collect::<Vec<_>>());
        corpora.extend(folder.plan.corpora.iter().filter(|c| !corpora.contains(c)).cloned().collect::<Vec<_>>());
    }
    let name = folders.iter().map(|f| f.plan.name.clone()).collect::<Vec<_>>().join(" + ");
    Plan {
        name,
        axes,
        runs: Vec::new(),
        configurations: Vec::new(),
        compare: Compare { baseline, metric: metric.unwrap_or(first.compare.metric) },
        corpora,
        options: first.options.clone(),
        stop: None,
        notes: Vec::new(),
    }
}

/// What differs between two results of one run, timing apart.
fn contradiction(a: &StoredResult, b: &StoredResult, log_a: &Path, log_b: &Path) -> Result<Option<String>, StoreError> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|source| StoreError::Io {
            action: "read".to_owned(),
            path: path.to_owned(),
            source,
        })
    };
    if !crate::store::same_but_for_timing(&read(log_a)?, &read(log_b)?) {
        return Ok(Some("the logs are not the same".to_owned()));
    }
    let stable = |result: &StoredResult| {
        let mut outcome = serde_json::to_value(&result.outcome).unwrap_or_default();
        if let Some(fields) = outcome.as_object_mut() {
            fields.retain(|key, _| !VOLATILE.contains(&key.as_str()));
        }
        outcome
    };
    let (x, y) = (stable(a), stable(b));
    Ok((x != y).then(|| format!("{x} and {y}")))
}

/// The names of the folders' arms in the comparison.
struct ArmNames {
    by_folder: Vec<BTreeMap<String, String>>,
    /// What differs between arms of one name, a line each, and between the corpora.
    differences: Vec<String>,
}

impl ArmNames {
    fn of(&self, folder: usize, arm: &str) -> String {
        self.by_folder[folder].get(arm).cloned().unwrap_or_else(|| arm.to_owned())
    }
}

/// What the runs of an arm have in common: each setting that is neither an axis of a folder nor the seed, and the corpus.
type Base = BTreeMap<String, BTreeSet<String>>;

fn arm_names(folders: &[Folder]) -> ArmNames {
    let axes: BTreeSet<&str> = folders.iter().flat_map(|f| f.plan.axes.iter().map(String::as_str)).collect();
    let mut by_folder: Vec<BTreeMap<String, String>> = vec![BTreeMap::new(); folders.len()];
    let mut known: BTreeMap<&str, Vec<(usize, Base)>> = BTreeMap::new();
    for (f, folder) in folders.iter().enumerate() {
        for configuration in &folder.plan.configurations {
            let of_arm = known.entry(&configuration.arm).or_default();
            if of_arm.last().is_none_or(|(last, _)| *last != f) {
                of_arm.push((f, base(&folder.plan, &configuration.arm, &axes)));
            }
        }
    }
    let mut differences = Vec::new();
    for (arm, bases) in &known {
        let (first, base) = &bases[0];
        let other: Vec<&(usize, Base)> = bases.iter().filter(|(_, b)| b != base).collect();
        for (f, theirs) in &other {
            let keys: Vec<&String> = base.keys().chain(theirs.keys()).collect::<BTreeSet<_>>().into_iter().collect();
            let list = |base: &Base, key: &String| {
                base.get(key).map_or("absent".to_owned(), |v| v.iter().cloned().collect::<Vec<_>>().join(", "))
            };
            let different = keys.iter().filter(|key| base.get(**key) != theirs.get(**key));
            let different: Vec<String> =
                different.map(|key| format!("{key} {} and {}", list(base, key), list(theirs, key))).collect();
            let (a, b) = (folders[*first].name.display(), folders[*f].name.display());
            differences.push(format!("arm `{arm}` is not the same in {a} and in {b} ({}): its runs are told apart as `{arm}@...`, and a comparison across folders compares more than the arms", different.join("; ")));
        }
        if !other.is_empty() {
            for (f, _) in bases {
                by_folder[*f].insert((*arm).to_owned(), format!("{arm}@{}", short_name(folders, *f)));
            }
        }
    }
    differences.extend(between_arms(folders, &known));
    ArmNames { by_folder, differences }
}

/// Arms that only some folders have, trained on other data or for other steps than the first folder's arms.
fn between_arms(folders: &[Folder], known: &BTreeMap<&str, Vec<(usize, Base)>>) -> Vec<String> {
    const SCHEDULE: [&str; 6] = ["data", "steps", "seq_len", "batch", "accum_steps", "precision"];
    let of_folder = |f: usize, key: &str| -> BTreeSet<String> {
        let bases = known.values().flatten().filter(|(folder, _)| *folder == f);
        bases.flat_map(|(_, base)| base.get(key).cloned().unwrap_or_default()).collect()
    };
    let mut lines = Vec::new();
    for key in SCHEDULE {
        let first = of_folder(0, key);
        for (f, folder) in folders.iter().enumerate().skip(1) {
            let theirs = of_folder(f, key);
            if theirs != first {
                let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(", ");
                let (a, b) = (folders[0].name.display(), folder.name.display());
                lines.push(format!(
                    "{key} is {} in {a} and {} in {b}: the comparison compares more than the arms",
                    list(&first),
                    list(&theirs)
                ));
            }
        }
    }
    lines
}

/// The last part of a folder's path that tells it apart, else its number.
fn short_name(folders: &[Folder], f: usize) -> String {
    let name = |folder: &Folder| {
        folder.view.layout().dir().file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let ours = name(&folders[f]);
    let alone = folders.iter().filter(|folder| name(folder) == ours).count() == 1;
    if alone { ours } else { format!("{}", f + 1) }
}

fn base(plan: &Plan, arm: &str, axes: &BTreeSet<&str>) -> Base {
    let mut base = Base::new();
    let runs = plan.configurations.iter().filter(|c| c.arm == arm).flat_map(|c| &c.runs).map(|run| &plan.runs[*run]);
    for run in runs {
        let settings: Settings = canonical(&run.settings);
        for setting in TABLE.iter().filter(|s| s.changes_numbers && !axes.contains(s.key) && s.key != "data") {
            let follows_seed =
                setting.key == "seed" || setting.key == "dither_seed" && settings.dither_seed == run.seed;
            if let (false, Some(value)) = (follows_seed, setting.get(&settings)) {
                base.entry(setting.key.to_owned()).or_default().insert(value.to_string());
            }
        }
        if !axes.contains("data") {
            base.entry("data".to_owned()).or_default().insert(corpus(plan, &run.settings.data));
        }
    }
    base
}

/// The corpus by its digest: where it lies does not matter.
fn corpus(plan: &Plan, data: &Data) -> String {
    let info = plan.corpora.iter().find(|c| match data {
        Data::Path(path) => c.path.as_ref() == Some(path),
        Data::Builtin => c.path.is_none(),
    });
    info.map_or("unknown".to_owned(), |c| format!("blake3 {}", c.digest.get(..16).unwrap_or(&c.digest)))
}
