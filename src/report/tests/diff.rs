//! What diff finds.

use std::fs;
use std::path::{Path, PathBuf};

use crate::report::{compare_paths, write_tables};
use crate::store::Results;
use crate::testing::{finished, plan, publish};

/// A results folder of two runs, with its tables; the last run's value is given.
fn sweep(root: &Path, last: f64, seeds: &[u64]) -> PathBuf {
    let plan = plan(&[("adamw", &[])], seeds);
    let results = Results::open_or_create(root, &plan, "").unwrap().results;
    for (i, run) in plan.runs.iter().enumerate() {
        let value = if i + 1 == plan.runs.len() { last } else { 2.0 };
        publish(&results, run, &finished(value, None), 1.0 + last);
    }
    write_tables(&results, &plan, &results.load(&plan).unwrap()).unwrap();
    results.layout().dir().to_owned()
}

fn lines(a: &Path, b: &Path) -> Vec<String> {
    let found = compare_paths(a, b).unwrap();
    found.listed.iter().map(|d| format!("{}: {}", d.file, d.text)).collect()
}

#[test]
fn a_changed_value_is_found_wherever_it_shows() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (a, b) = (sweep(one.path(), 2.5, &[1, 2]), sweep(two.path(), 2.25, &[1, 2]));
    let found = lines(&a, &b);
    for want in [
        "comparison.csv: row 3, final_train_bpb: 2.4 | 2.15",
        "comparison.csv: row 3, final_val_bpb: 2.5 | 2.25",
        "comparison.csv: row 3, best_val_bpb: 2.49 | 2.24",
        "summary.csv: row 2, mean: 2.25 | 2.125",
        "runs/*-000000a000000002/result.json: outcome.ending.val_bpb: 2.5 | 2.25",
    ] {
        assert!(found.iter().any(|line| line == want), "{want} is not in {found:#?}");
    }
    assert!(found.iter().all(|line| !line.contains("wall_sec") && !line.contains("digest")));
    assert!(lines(&a, &a).is_empty());
}

#[test]
fn runs_and_files_of_one_side_are_named() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (a, b) = (sweep(one.path(), 2.0, &[1, 2]), sweep(two.path(), 2.0, &[1]));
    fs::remove_file(b.join("summary.csv")).unwrap();
    let found = lines(&a, &b);
    let only = |what: &str, dir: &Path| format!("{what}: only in {}", dir.display());
    assert!(found.contains(&only("summary.csv", &a)), "{found:#?}");
    assert!(found.contains(&only("runs/*-000000a000000002", &a)));
    let rest = format!("comparison.csv: row 3 and those after it: only in {}/comparison.csv", a.display());
    assert!(found.contains(&rest));
}

#[test]
fn files_are_compared_by_column_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let a = file("a.csv", "step,val_bpb,step_sec\n0,8.0,1.5\n5,7.5,1.5\n");
    assert!(lines(&a, &file("b.csv", "step,val_bpb,step_sec\n0,8.0,9.9\n5,7.5,9.9\n")).is_empty());
    assert!(lines(&a, &file("c.csv", "step,val_bpb\n0,8.0\n5,7.5\n")).is_empty(), "a volatile column that one lacks");
    let found = lines(&a, &file("d.csv", "step,val_bpb,step_sec\n0,8.0,1.5\n5,,1.5\n"));
    assert_eq!(found, [format!("{}: row 3, val_bpb: 7.5 | (empty)", a.display())]);
    let found = lines(&a, &file("e.csv", "step,val_acc,step_sec\n0,8.0,1.5\n"));
    assert_eq!(found, [format!("{}: columns: step,val_bpb | step,val_acc", a.display())]);
}

#[test]
fn what_cannot_be_compared() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    fs::write(dir.join("a.txt"), "a").unwrap();
    fs::write(dir.join("b.txt"), "b").unwrap();
    let error = |a: &Path, b: &Path| {
        let error = compare_paths(a, b).unwrap_err().to_string();
        error.replace(&dir.display().to_string(), "DIR")
    };
    assert_eq!(error(&dir.join("no"), dir), "DIR/no does not exist");
    assert_eq!(
        error(dir, &dir.join("a.txt")),
        "DIR and DIR/a.txt are not of one kind: compare two folders or two files"
    );
    assert_eq!(error(dir, dir), "DIR is not a results folder: it has no plan.json, no table and no run");
    assert_eq!(error(&dir.join("a.txt"), &dir.join("b.txt")), "DIR/a.txt is neither a .csv nor a .json file");
}
