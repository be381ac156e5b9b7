//! The folder as its users see it.

use std::fs;
use std::path::Path;

use super::*;
use crate::plan::Plan;
use crate::testing::{attempt as begin, diverged, execution, finished, plan, publish, row, write_log};

const SWEEP: &str = "name = \"test\"\n";

fn open(root: &Path, plan: &Plan) -> Opened {
    Results::open_or_create(root, plan, SWEEP).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_run_from_plan_to_result() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[]), ("sr4", &[])], &[1, 2]);
    let opened = open(root.path(), &plan);
    assert!(opened.created && opened.change.is_empty());
    let results = opened.results;
    assert_eq!(results.load(&plan).unwrap().states, vec![RunState::Unfinished; 4]);

    let run = &plan.runs[2];
    let attempt = begin(&results, run);
    assert_eq!(attempt.number, 1);
    assert!(attempt.folder.is_absolute());
    write_log(&attempt, 10.0);
    let outcome = finished(2.25, Some(2.5));
    let published = results.publish(run, &attempt, &outcome, &execution(1, "0")).unwrap();
    let Published::Done { result: stored, differs: None } = published else { panic!("{published:?}") };
    assert_eq!(stored.outcome, outcome);

    let paths = results.run_paths(run);
    assert_eq!(names(paths.dir()), ["attempt-1", "log.csv", "result.json", "run.json"]);
    let run_json: serde_json::Value = serde_json::from_slice(&fs::read(paths.run_json()).unwrap()).unwrap();
    assert_eq!(run_json["run_id"], run.id.to_string());
    assert_eq!(run_json["corpus_digest"], "c0ffee");
    assert_eq!(run_json["settings"]["seed"], 2);
    assert_eq!(results.finished(run).unwrap(), Some((*stored).clone()));
    let loaded = results.load(&plan).unwrap();
    assert_eq!(loaded.states[2].result(), Some(&*stored));
    assert!(loaded.warnings.is_empty() && loaded.strangers.is_empty());
}

#[test]
fn a_diverged_run_reads_back() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1]);
    let results = open(root.path(), &plan).results;
    publish(&results, &plan.runs[0], &diverged(17), 1.0);
    let stored = results.finished(&plan.runs[0]).unwrap().unwrap();
    let crate::run::Ending::Diverged { step, loss } = stored.outcome.ending else {
        panic!("{stored:?}");
    };
    assert_eq!((step, loss.is_nan()), (17, true));
}

#[test]
fn attempts_are_numbered_and_unused_ones_taken_back() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1]);
    let results = open(root.path(), &plan).results;
    let run = &plan.runs[0];
    let first = begin(&results, run);
    results.release(&first);
    assert!(!first.folder.exists());
    let first = begin(&results, run);
    write_log(&first, 1.0);
    results.release(&first);
    assert!(first.log().exists(), "what has files stays");
    assert_eq!((first.number, begin(&results, run).number), (1, 2));
}

#[test]
fn checkpoints_that_a_killed_publication_left_go_at_the_next_start() {
    let root = tempfile::tempdir().unwrap();
    let mut plan = plan(&[("adamw", &[])], &[1, 2]);
    let results = open(root.path(), &plan).results;
    publish(&results, &plan.runs[0], &finished(2.0, None), 1.0);
    let unfinished = begin(&results, &plan.runs[1]).folder;
    let published = results.run_paths(&plan.runs[0]).attempt(1);
    let leave = || {
        for folder in [&published, &unfinished] {
            fs::write(checkpoint_file(folder, 5), "").unwrap();
        }
    };
    drop(results);
    leave();
    open(root.path(), &plan);
    let left = || [&published, &unfinished].map(|folder| checkpoint_file(folder, 5).exists());
    assert_eq!(left(), [false, true]);
    leave();
    plan.options.keep_checkpoints = true;
    open(root.path(), &plan);
    assert_eq!(left(), [true, true]);
}

#[test]
fn a_change_of_any_byte_of_a_result_is_seen() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1]);
    let results = open(root.path(), &plan).results;
    let run = &plan.runs[0];
    publish(&results, run, &finished(2.0, None), 1.0);
    let path = results.run_paths(run).result();
    let bytes = fs::read(&path).unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&path, &changed).unwrap();
        assert_eq!(results.finished(run).unwrap(), None, "byte {at}");
    }
    fs::write(&path, String::from_utf8(bytes.clone()).unwrap().replacen("2.0", "1.9", 1)).unwrap();
    let why = results.load(&plan).unwrap().warnings.remove(0);
    assert!(why.contains("result.json does not have the digest that it names: it was changed"), "{why}");
    fs::write(&path, bytes).unwrap();
    assert!(results.finished(run).unwrap().is_some());
}

#[test]
fn a_folder_in_a_files_place_costs_its_run_alone() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1, 2, 3]);
    let results = open(root.path(), &plan).results;
    let paths = |i: usize| results.run_paths(&plan.runs[i]);
    fs::create_dir_all(paths(0).result()).unwrap();
    fs::create_dir_all(paths(1).lease(4)).unwrap();
    fs::write(paths(2).dir(), "").unwrap();
    let loaded = results.load(&plan).unwrap();
    assert!(loaded.warnings[0].contains("result.json is a folder; the run counts as unfinished"), "{loaded:?}");
    publish(&results, &plan.runs[0], &finished(2.0, None), 1.0);
    assert!(paths(0).dir().join("damaged-1/result.json").is_dir());
    let error = results.claim(&plan.runs[1]).unwrap_err();
    assert!(error.concerns_one_run() && error.full_text().contains("lease.4: Is a directory"), "{error}");
    let error = results.claim(&plan.runs[2]).unwrap_err();
    assert!(error.concerns_one_run() && error.full_text().ends_with(" is not a folder"), "{error}");
}

#[test]
fn a_log_left_by_a_killed_publication_is_adopted_if_it_is_the_same() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1, 2]);
    let results = open(root.path(), &plan).results;
    let outcome = finished(2.0, None);
    for (run, same) in plan.runs.iter().zip([true, false]) {
        let (first, second) = (begin(&results, run), begin(&results, run));
        write_log(&first, 1.0);
        if same {
            write_log(&second, 2.0);
        } else {
            let mut log = LogWriter::create(&second.log()).unwrap();
            log.row(&row(0, 1.25, 1.0)).unwrap();
        }
        let paths = results.run_paths(run);
        fs::hard_link(first.log(), paths.log()).unwrap(); // and no result
        results.publish(run, &second, &outcome, &execution(2, "0")).unwrap();
        let kept = if same { &first } else { &second };
        assert_eq!(fs::read(paths.log()).unwrap(), fs::read(kept.log()).unwrap());
        assert!(results.finished(run).unwrap().is_some());
        assert_eq!(paths.dir().join("damaged-1/log.csv").exists(), !same);
    }
}

#[test]
fn a_log_that_is_not_whole_is_not_published() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1]);
    let results = open(root.path(), &plan).results;
    let attempt = begin(&results, &plan.runs[0]);
    for (text, why) in [("step\n", "it does not begin with a log's header"), ("0,1", "its last line is cut off")] {
        let text = if text.starts_with('0') { format!("{LOG_HEADER}\n{text}") } else { text.to_owned() };
        fs::write(attempt.log(), text).unwrap();
        let error = results.publish(&plan.runs[0], &attempt, &finished(2.0, None), &execution(1, "0"));
        let want = format!("{} is not a whole log: {why}", attempt.log().display());
        assert_eq!(error.unwrap_err().full_text(), want);
    }
    assert_eq!(results.load(&plan).unwrap().states, [RunState::Unfinished]);
}

#[test]
fn files_that_do_not_hold_together_are_warned_of_and_put_aside() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1, 2, 3, 4, 5]);
    let results = open(root.path(), &plan).results;
    for run in &plan.runs {
        publish(&results, run, &finished(2.0, None), 1.0);
    }
    let paths = |i: usize| results.run_paths(&plan.runs[i]);
    let digit = fs::read_to_string(paths(0).log()).unwrap().replacen("8.00000", "7.00000", 1);
    fs::remove_file(paths(0).log()).unwrap();
    fs::write(paths(0).log(), &digit).unwrap();
    fs::write(paths(1).result(), "{").unwrap();
    fs::remove_file(paths(2).log()).unwrap();
    fs::copy(paths(4).result(), paths(3).result()).unwrap();

    let loaded = results.load(&plan).unwrap();
    let fourth = &plan.runs[4].id;
    let whys = [
        "log.csv is not the one whose digest result.json holds".to_owned(),
        "result.json cannot be read: EOF while parsing an object at line 1 column 1".to_owned(),
        "log.csv is missing".to_owned(),
        format!("result.json is of run {fourth}"),
    ];
    let want: Vec<String> =
        (0..4).map(|i| format!("{}: {}; the run counts as unfinished", paths(i).dir().display(), whys[i])).collect();
    assert_eq!(loaded.warnings, want);
    assert_eq!(loaded.states.iter().filter(|s| s.result().is_some()).count(), 1);

    let attempt = begin(&results, &plan.runs[0]);
    assert_eq!(attempt.number, 2);
    assert_eq!(fs::read_to_string(paths(0).dir().join("damaged-1/log.csv")).unwrap(), digit);
    assert!(paths(0).dir().join("damaged-1/result.json").exists());
    write_log(&attempt, 1.0);
    results.publish(&plan.runs[0], &attempt, &finished(2.0, None), &execution(2, "0")).unwrap();
    assert!(results.finished(&plan.runs[0]).unwrap().is_some());
}

#[test]
fn the_last_attempts_failure_is_the_runs_state() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1]);
    let results = open(root.path(), &plan).results;
    let run = &plan.runs[0];
    let failure = AttemptFailure {
        cause: "crashed".to_owned(),
        message: "the worker ended by signal 9".to_owned(),
        ended: "2026-11-30T19:00:02Z".to_owned(),
        for_good: true,
    };
    let attempt = begin(&results, run);
    results.record_failure(&attempt, &failure).unwrap();
    let failed = RunState::Failed { attempt: 1, failure };
    assert_eq!(results.load(&plan).unwrap().states, [failed]);
    begin(&results, run);
    assert_eq!(results.load(&plan).unwrap().states, [RunState::Unfinished]);
}

#[test]
fn opening_again_goes_on_and_tells_what_an_edit_changed() {
    let root = tempfile::tempdir().unwrap();
    let old = plan(&[("adamw", &["0.001", "0.003"]), ("lion", &[])], &[1, 2]);
    publish(&open(root.path(), &old).results, &old.runs[0], &finished(2.0, None), 1.0);
    assert!(open(root.path(), &old).change.is_empty());

    let mut new = plan(&[("adamw", &["0.001", "0.01"]), ("sr4", &[])], &[1, 2, 3]);
    new.compare.metric = crate::plan::Metric::ValAcc;
    new.corpora[0].digest = "decaf".to_owned();
    for run in &mut new.runs {
        // As the real ids, these follow the settings.
        let lr = if run.settings.lr == 0.001 { 0 } else { 7 };
        let arm = if run.arm == "sr4" { 1 << 62 } else { 0 };
        run.id = crate::run::RunId::from_bits((0xa0 + lr) << 32 | run.seed | arm);
    }
    let opened = open(root.path(), &new);
    assert!(!opened.created);
    assert_eq!((opened.change.added, opened.change.dropped), (7, 4));
    assert_eq!(
        opened.change.lines,
        [
            "arm `sr4` is new",
            "arm `adamw`: lr was 0.001, 0.003, is 0.001, 0.01",
            "arm `adamw`: seed was 1, 2, is 1, 2, 3",
            "arm `lion` is gone",
            "compare.metric was \"val_bpb\", is \"val_acc\"",
            "corpus null: its bytes are no longer the same",
        ]
    );
    assert_eq!(names(&opened.results.layout().runs()).len(), 1);
    let loaded = opened.results.load(&new).unwrap();
    assert!(loaded.states[0].result().is_some(), "the run that both have");
    drop(opened);
    let other = plan(&[("sgd", &[])], &[9]);
    let loaded = open(root.path(), &other).results.load(&other).unwrap();
    assert_eq!(loaded.strangers, [old.runs[0].folder.clone()]);
}

#[test]
fn a_run_is_found_by_its_id_whatever_its_folder_is_called() {
    let root = tempfile::tempdir().unwrap();
    let mut plan = plan(&[("adamw", &[])], &[1]);
    publish(&open(root.path(), &plan).results, &plan.runs[0], &finished(2.0, None), 1.0);
    plan.runs[0].folder = format!("renamed-{}", plan.runs[0].id);
    let results = open(root.path(), &plan).results;
    assert!(results.finished(&plan.runs[0]).unwrap().is_some());
    assert_eq!(names(&results.layout().runs()).len(), 1);
}

#[test]
fn places_that_are_no_results_folder() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1]);
    let dir = root.path().join("test");
    let refusal = || {
        let error = Results::open_or_create(root.path(), &plan, SWEEP).unwrap_err();
        error.full_text().replace(&root.path().display().to_string(), "ROOT")
    };
    fs::write(&dir, "").unwrap();
    assert_eq!(refusal(), "ROOT/test is not a folder");
    fs::remove_file(&dir).unwrap();

    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("thesis.tex"), "").unwrap();
    let foreign = "ROOT/test is not a results folder: it holds `thesis.tex` and no plan.json of diesweep";
    assert_eq!(refusal(), foreign);
    assert_eq!(names(&dir), ["thesis.tex"]);

    fs::write(dir.join("plan.json"), "[1, 2]").unwrap();
    assert_eq!(refusal(), "ROOT/test/plan.json is not a plan of diesweep: it has no name and runs");
    fs::write(dir.join("plan.json"), r#"{"name": "mine", "runs": []}"#).unwrap();
    assert_eq!(refusal(), "ROOT/test holds the results of the sweep `mine`, not of `test`");
    assert_eq!(names(&dir), ["plan.json", "thesis.tex"]);

    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Results::open_or_create(&file, &plan, SWEEP).unwrap_err().full_text();
    assert!(error.contains("cannot create the folder") && error.contains("Not a directory"), "{error}");
}

#[test]
fn a_folder_that_was_being_made_is_taken_over_and_leftovers_go() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1]);
    let dir = root.path().join("test");
    let run = dir.join("runs").join(&plan.runs[0].folder);
    fs::create_dir_all(&run).unwrap();
    fs::write(dir.join("sweep.toml"), "nam").unwrap();
    fs::write(dir.join(".plan.json.7-0.tmp"), "{").unwrap();
    fs::write(run.join(".result.json.7-1.tmp"), "{").unwrap();
    let opened = open(root.path(), &plan);
    assert!(opened.created);
    assert_eq!(names(&dir), ["controllers", "plan.json", "runs", "sweep.toml"]);
    assert!(names(&run).is_empty());
    assert_eq!(fs::read_to_string(dir.join("sweep.toml")).unwrap(), SWEEP);
}

#[test]
fn a_folder_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED a_folder_that_cannot_be_written: root may write everywhere");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let error = Results::open_or_create(root.path(), &plan(&[("a", &[])], &[1]), SWEEP).unwrap_err();
    assert!(error.full_text().contains("Permission denied"), "{error}");
}
