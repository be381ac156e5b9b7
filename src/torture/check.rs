//! What must hold after every call, and after the last.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use rustix::process::Signal;
use serde_json::Value;

use super::call::Outcome;
use super::sweep::RUNS;
use crate::report::compare_paths;
use crate::store::{Layout, View, id_of_folder};

/// Digests of log.csv and result.json by run.
type Published = BTreeMap<String, [blake3::Hash; 2]>;

/// What is known of a results folder from its calls so far.
#[derive(Debug)]
pub(super) struct History {
    folder: PathBuf,
    published: Published,
    /// Runs and attempts that were started.
    attempts: BTreeSet<(String, u64)>,
    /// Runs that were told to be finished.
    finished: BTreeSet<String>,
}

impl History {
    pub(super) fn new(folder: &Path) -> Self {
        let (published, attempts, finished) = (Published::new(), BTreeSet::new(), BTreeSet::new());
        Self { folder: folder.to_owned(), published, attempts, finished }
    }

    /// Takes a call in; what is wrong with it.
    pub(super) fn take(&mut self, call: &Outcome) -> Vec<String> {
        let mut wrong = call.troubles.clone();
        self.take_events(&call.events, &mut wrong);
        let now = published(&self.folder);
        for (run, digests) in &self.published {
            match now.get(run) {
                None => wrong.push(format!("run {run} had a result, and has none any more")),
                Some(found) if found != digests => wrong.push(format!("the published files of run {run} have changed")),
                Some(_) => {}
            }
        }
        self.published = now;
        for exit in &call.exits {
            if !is_allowed(*exit) {
                wrong.push(format!("a controller ended with {exit}"));
            }
            if exit.success() && self.published.len() < RUNS {
                wrong.push(format!(
                    "a controller ended with status 0, and {} of {RUNS} runs have a result",
                    self.published.len()
                ));
            }
        }
        wrong
    }

    fn take_events(&mut self, events: &[Value], wrong: &mut Vec<String>) {
        for event in events {
            let run = event["at"]["run"].as_str().unwrap_or_default().to_owned();
            match event["event"].as_str() {
                Some("attempt_started") => {
                    if self.published.contains_key(&run) {
                        wrong.push(format!("run {run} had a result before this call, and was attempted again"));
                    }
                    let attempt = event["at"]["attempt"].as_u64().unwrap_or(0);
                    if !self.attempts.insert((run.clone(), attempt)) {
                        wrong.push(format!("attempt {attempt} at run {run} was started twice"));
                    }
                }
                Some("run_finished") if !self.finished.insert(run.clone()) => {
                    wrong.push(format!("run {run} was finished twice"));
                }
                _ => {}
            }
        }
    }

    /// After the last call: what differs from the undisturbed folder, and what is left over.
    pub(super) fn close(&self, undisturbed: &Path) -> Vec<String> {
        let mut wrong = differences(&self.folder, undisturbed);
        if self.published.len() != RUNS {
            wrong.push(format!("{} of {RUNS} runs have a result", self.published.len()));
        }
        for path in files(&self.folder) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if is_left_over(&name) {
                wrong.push(format!("{} is left", path.display()));
            }
        }
        wrong
    }
}

/// 0, 1, 75, stopped by SIGTERM, or killed by the harness.
fn is_allowed(exit: ExitStatus) -> bool {
    matches!(exit.code(), Some(0 | 1 | 75 | 143)) || exit.signal() == Some(Signal::KILL.as_raw())
}

/// Files that no ended sweep has.
fn is_left_over(name: &str) -> bool {
    let starts = ["checkpoint-", "lease."];
    name.ends_with(".tmp") || name.ends_with(".beat") || starts.iter().any(|start| name.starts_with(start))
}

/// All files below a folder.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// The files of a folder by name, with their bytes' digest, but for events, which every call adds to.
pub(super) fn digests(folder: &Path) -> BTreeMap<PathBuf, Option<blake3::Hash>> {
    let events = Layout::new(folder).events();
    let files = files(folder).into_iter().filter(|path| !path.starts_with(&events));
    files.map(|path| (path.clone(), fs::read(&path).ok().map(|bytes| blake3::hash(&bytes)))).collect()
}

fn published(folder: &Path) -> Published {
    let layout = Layout::new(folder);
    let mut published = Published::new();
    for entry in fs::read_dir(layout.runs()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let run = layout.run(&name);
        if let (Some(id), Ok(log), Ok(result)) = (id_of_folder(&name), fs::read(run.log()), fs::read(run.result())) {
            published.insert(id.to_string(), [blake3::hash(&log), blake3::hash(&result)]);
        }
    }
    published
}

fn differences(folder: &Path, undisturbed: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    match compare_paths(undisturbed, folder) {
        Ok(found) => {
            // Four tables, and log.csv and result.json of each run.
            let files = 4 + 2 * RUNS;
            if found.files != files {
                wrong.push(format!("{} files were compared, where there are {files}", found.files));
            }
            wrong.extend(found.listed.iter().map(|difference| format!("{}: {}", difference.file, difference.text)));
            wrong.extend((found.total > found.listed.len()).then(|| format!("{} differences in all", found.total)));
        }
        Err(error) => wrong.push(error.to_string()),
    }
    let (ours, theirs) = (Layout::new(folder), Layout::new(undisturbed));
    for (a, b) in [(ours.sweep_toml(), theirs.sweep_toml()), (ours.plan(), theirs.plan())] {
        if fs::read(&a).ok() != fs::read(b).ok() {
            wrong.push(format!("{} is not the undisturbed sweep's", a.display()));
        }
    }
    wrong.extend((!ours.report().exists()).then(|| "there is no report.html".to_owned()));
    let loaded = View::open(folder).and_then(|(view, plan)| view.load(&plan));
    match loaded {
        Ok(loaded) => {
            wrong.extend(loaded.warnings);
            wrong.extend(loaded.strangers.iter().map(|name| format!("{name} is no planned run's")));
        }
        Err(error) => wrong.push(error.full_text()),
    }
    wrong.extend(weights(folder, undisturbed));
    wrong
}

/// Runs whose final weights are not the undisturbed sweep's.
fn weights(folder: &Path, undisturbed: &Path) -> Vec<String> {
    let (ours, theirs) = (Layout::new(folder), Layout::new(undisturbed));
    let names = fs::read_dir(theirs.runs()).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let same = |name: &String| {
        let read = |layout: &Layout| fs::read(layout.run(name).final_weights()).ok();
        read(&theirs).is_some() && read(&theirs) == read(&ours)
    };
    names.filter(|name| !same(name)).map(|name| format!("the final weights of {name} differ")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::Results;
    use crate::testing::{finished, plan, publish};

    fn event(kind: &str, run: &str, attempt: u64) -> Value {
        json!({ "event": kind, "at": { "run": run, "attempt": attempt } })
    }

    fn call(events: Vec<Value>, exits: &[i32]) -> Outcome {
        let exits = exits.iter().map(|status| ExitStatus::from_raw(*status)).collect();
        Outcome { events, exits, ..Outcome::default() }
    }

    #[test]
    fn what_is_done_twice_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = History::new(folder.path());
        let started = event("attempt_started", "r", 1);
        assert_eq!(
            history.take(&call(vec![started.clone(), event("run_finished", "r", 1)], &[9])),
            Vec::<String>::new()
        );
        assert_eq!(history.take(&call(vec![started], &[9])), ["attempt 1 at run r was started twice"]);
        let again = vec![event("attempt_started", "r", 2), event("run_finished", "r", 2)];
        assert_eq!(history.take(&call(again, &[9])), ["run r was finished twice"]);
    }

    #[test]
    fn an_exit_must_be_one_of_the_contract_and_true() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = History::new(folder.path());
        // Wait statuses: exit codes stand in the second byte, signals in the first.
        for allowed in [1 << 8, 75 << 8, 143 << 8, 9] {
            assert_eq!(history.take(&call(vec![], &[allowed])), Vec::<String>::new());
        }
        for (status, text) in [(101 << 8, "exit status: 101"), (2 << 8, "exit status: 2"), (6, "signal: 6 (SIGABRT)")] {
            assert_eq!(history.take(&call(vec![], &[status])), [format!("a controller ended with {text}")]);
        }
        assert_eq!(
            history.take(&call(vec![], &[0])),
            ["a controller ended with status 0, and 0 of 8 runs have a result"]
        );
    }

    #[test]
    fn published_files_must_stay_as_they_are() {
        let root = tempfile::tempdir().unwrap();
        let plan = plan(&[("adamw", &[])], &[1, 2]);
        let results = Results::open_or_create(root.path(), &plan, "").unwrap().results;
        for run in &plan.runs {
            publish(&results, run, &finished(2.0, None), 1.0);
        }
        let (first, second) = (results.run_paths(&plan.runs[0]), results.run_paths(&plan.runs[1]));
        let mut history = History::new(results.layout().dir());
        history.take(&call(vec![], &[9]));
        fs::remove_file(first.result()).unwrap();
        fs::write(second.result(), "{}").unwrap();
        let id = |run: usize| plan.runs[run].id.to_string();
        let mut wrong = history.take(&call(vec![event("attempt_started", &id(1), 2)], &[9]));
        wrong.sort();
        let mut want = [
            format!("run {} had a result before this call, and was attempted again", id(1)),
            format!("run {} had a result, and has none any more", id(0)),
            format!("the published files of run {} have changed", id(1)),
        ];
        want.sort();
        assert_eq!(wrong, want);
        assert!(
            is_left_over("checkpoint-5.safetensors") && is_left_over(".log.csv.1-0.tmp") && !is_left_over("log.csv")
        );
    }
}
