//! `verify`, `explain`, `compare` and `export` on real results.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Ended, Sweep, watchdog};

/// A sweep that was trained, three seeds of two arms.
fn trained() -> Sweep {
    watchdog();
    let sweep = Sweep::new(6);
    sweep.run(&["--quiet"]).assert_code(0);
    sweep
}

fn ask(sweep: &Sweep, args: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_diesweep"));
    Ended(command.args(args).current_dir(sweep.path()).output().unwrap())
}

/// The published log of the first run that a name begins with.
fn log_of(sweep: &Sweep, name: &str) -> PathBuf {
    let runs = fs::read_dir(sweep.results().join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let run = runs.into_iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(name)).unwrap();
    run.join("log.csv")
}

fn folder_name(log: &std::path::Path) -> String {
    log.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn verify_passes_and_names_a_log_with_one_digit_changed() {
    let sweep = trained();
    let whole = ask(&sweep, &["verify", "results/t"]);
    whole.assert_code(0);
    assert_eq!(
        whole.stdout(),
        "6 published runs by their digests, 4 tables rebuilt from their logs: all as they should be\n"
    );
    let log = log_of(&sweep, "sr4_s2");
    let text = fs::read_to_string(&log).unwrap();
    // The last digit of val_bpb in the row of step 2.
    let row = text.lines().position(|line| line.starts_with("2,")).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut cells: Vec<String> = lines[row].split(',').map(str::to_owned).collect();
    let old = cells[2].clone();
    let digit = old.chars().last().unwrap();
    cells[2].pop();
    // Up, so that the best value stays the best one.
    cells[2].push(if digit == '9' { '8' } else { char::from(digit as u8 + 1) });
    let new = cells[2].clone();
    lines[row] = cells.join(",");
    fs::write(&log, lines.join("\n") + "\n").unwrap();
    let broken = ask(&sweep, &["verify", "results/t"]);
    broken.assert_code(1);
    let first = format!("runs/{}/log.csv: is not the one whose digest result.json holds\n", folder_name(&log));
    assert!(broken.stdout().starts_with(&first), "{}", broken.stdout());
    let table = format!("val_bpb: {old} where the runs give {new}\n");
    let line = broken.stdout().lines().find(|line| line.starts_with("curves.csv: row ")).unwrap().to_owned() + "\n";
    assert!(line.ends_with(&table), "{line}");
}

#[test]
fn verify_names_every_kind_of_file() {
    let sweep = trained();
    let table = sweep.results().join("summary.csv");
    let text = fs::read_to_string(&table).unwrap();
    fs::write(&table, text.replacen(",val_bpb,", ",val_acc,", 1)).unwrap();
    fs::remove_file(sweep.results().join("comparisons.csv")).unwrap();
    let curves = sweep.results().join("curves.csv");
    fs::write(&curves, fs::read_to_string(&curves).unwrap() + "x\n").unwrap();
    let result = log_of(&sweep, "adamw_s1").with_file_name("result.json");
    let mut json: Value = serde_json::from_str(&fs::read_to_string(&result).unwrap()).unwrap();
    json["outcome"]["best_val_bpb"]["value"] = 1.25.into();
    fs::write(&result, sealed(json)).unwrap();
    let run = log_of(&sweep, "adamw_s2").with_file_name("run.json");
    fs::write(&run, fs::read_to_string(&run).unwrap().replace("\"seed\": 2", "\"seed\": 7")).unwrap();
    let found = ask(&sweep, &["verify", "results/t"]);
    found.assert_code(1);
    let text = found.stdout();
    for (file, what) in [
        ("summary.csv: ", "row 2, metric: val_acc where the runs give val_bpb"),
        ("comparisons.csv: ", "is missing"),
        ("curves.csv: ", "goes on after row 25, the last that the runs give"),
        ("comparison.csv: ", "where the runs give 1.25"),
        ("result.json: ", "its best_val_bpb, 1.25000 at step "),
        ("run.json: ", "its settings are not those that the run's id stands for"),
    ] {
        assert!(text.lines().any(|line| line.contains(file) && line.contains(what)), "{file}{what}: {text}");
    }
    assert!(text.ends_with("6 faults found\n"), "{text}");
    ask(&sweep, &["verify", "results/none"]).assert_code(2).assert_says("results/none is not a folder");
}

#[test]
fn explain_tells_what_stands_behind_a_number() {
    let sweep = trained();
    let explain = |what: &[&str]| ask(&sweep, &[&["explain", "results/t"], what].concat());
    let run = explain(&["sr4", "seed=2"]);
    run.assert_code(0);
    let id = log_of(&sweep, "sr4_s2").parent().unwrap().to_str().unwrap().rsplit('-').next().unwrap().to_owned();
    let text = run.stdout();
    assert!(text.starts_with(&format!("sr4 seed=2, run {id}: finished\n")), "{text}");
    let digest = blake3::hash(&fs::read(log_of(&sweep, "sr4_s2")).unwrap()).to_string();
    for part in [
        digest.as_str(),
        ", as result.json says",
        "made by     die ",
        "attempt 1   4 rows logged",
        "comparison.csv row 5",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(explain(&[&id[..6]]).stdout(), text);
    assert_eq!(explain(&["comparison.csv:5"]).stdout(), text);

    // The rows that it names are the run's.
    let json: Value = serde_json::from_str(&explain(&[&id, "--json"]).stdout()).unwrap();
    let places = &json["run"]["places"];
    let curves = fs::read_to_string(sweep.results().join("curves.csv")).unwrap();
    let rows: Vec<&str> = curves.lines().collect();
    let (first, last) =
        (places["curves"][0].as_u64().unwrap() as usize, places["curves"][1].as_u64().unwrap() as usize);
    let of_run = |row: usize| rows[row - 1].contains(&id);
    assert!(of_run(first) && of_run(last) && !of_run(first - 1) && rows.get(last).is_none_or(|row| !row.contains(&id)));
    let step = explain(&[&format!("curves:{last}")]);
    assert!(step.stdout().starts_with("row 5 of the log: 5,"), "{}", step.stdout());

    let configuration = explain(&["adamw"]);
    let text = configuration.stdout();
    assert!(text.starts_with("adamw, its arm's best: mean val_bpb ") && text.contains("over 3 of 3 runs"), "{text}");
    assert_eq!(explain(&["summary.csv:2"]).stdout(), text);

    let comparison: Value = serde_json::from_str(&explain(&["comparisons.csv:2", "--json"]).stdout()).unwrap();
    let comparison = &comparison["comparison"];
    assert_eq!((&comparison["verdict"], &comparison["values"]), (&Value::Bool(true), &Value::from("test_bpb")));
    let table = fs::read_to_string(sweep.results().join("comparisons.csv")).unwrap();
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let place = reader.headers().unwrap().iter().position(|name| name == "mean_diff").unwrap();
    let mean: f64 = reader.records().next().unwrap().unwrap()[place].parse().unwrap();
    assert_eq!(comparison["mean_difference"].as_f64(), Some(mean));
    assert_eq!(comparison["pairs"].as_array().unwrap().len(), 3);
}

#[test]
fn explain_says_what_may_have_been_meant() {
    let sweep = trained();
    let explain = |what: &str| ask(&sweep, &["explain", "results/t", what]);
    for (what, says) in [
        ("adamv", "error: `adamv` is no run, no configuration and no table's row; did you mean `adamw`?"),
        ("sr4 seed=9", "did you mean `sr4 seed=1`?"),
        ("summary.csv:9", "error: summary.csv has no row 9: its last is 3"),
        ("curves.csv:1", "error: `1` is not a row: rows have numbers from 2, the header being row 1"),
        ("curves.csv:99", "error: curves.csv has no row 99: its last is 25"),
    ] {
        explain(what).assert_code(2).assert_says(says);
    }
}

/// Two folders, of seeds 1 to 3 and 3 to 5.
fn two_folders(more: &str) -> Sweep {
    watchdog();
    let sweep = Sweep::new(4);
    sweep.run(&["--quiet", "--results", "a"]).assert_code(0);
    sweep.write(4, more);
    let path = sweep.path().join("sweep.toml");
    let text = fs::read_to_string(&path).unwrap().replace("first = 1", "first = 3");
    fs::write(path, text).unwrap();
    sweep.run(&["--quiet", "--results", "b"]).assert_code(0);
    sweep
}

/// A result with the digest that belongs to it.
fn sealed(mut json: Value) -> String {
    const NO_DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";
    json["file_digest"] = NO_DIGEST.into();
    let open = json.to_string();
    open.replace(NO_DIGEST, blake3::hash(open.as_bytes()).to_hex().as_str())
}

#[test]
fn folders_are_compared_as_one() {
    let sweep = two_folders("");
    let both = ask(&sweep, &["compare", "a/t", "b/t", "--output", "out"]);
    both.assert_code(0);
    let text = both.stdout();
    assert!(text.contains("n = 5 paired by seed"), "{text}");
    let joined = text.replace("\n  ", " ");
    assert!(joined.contains("Note: 2 runs are in a/t and in b/t, with the same values, and counted once."), "{text}");
    let summary = fs::read_to_string(sweep.path().join("out/summary.csv")).unwrap();
    assert!(summary.lines().nth(1).unwrap().starts_with("adamw,5,0,0,val_bpb,"), "{summary}");
    let curves = fs::read_to_string(sweep.path().join("out/curves.csv")).unwrap();
    assert_eq!(curves.lines().count(), 1 + 10 * 3);

    ask(&sweep, &["compare", "a/t", "--baseline", "sr5"])
        .assert_code(1)
        .assert_says("no folder has the arm `sr5`; did you mean `sr4`?");
    ask(&sweep, &["compare", "a/t", "--metric", "val_bpp"]).assert_code(2).assert_says("did you mean `val_bpb`?");

    // One of the runs that both have gets another value in one folder.
    let runs = fs::read_dir(sweep.path().join("b/t/runs")).unwrap().map(|entry| entry.unwrap().path());
    let run = runs.into_iter().find(|path| path.to_str().unwrap().contains("sr4_s3")).unwrap();
    let result = run.join("result.json");
    let mut json: Value = serde_json::from_str(&fs::read_to_string(&result).unwrap()).unwrap();
    json["outcome"]["ending"]["test_bpb"] = 1.25.into();
    fs::write(&result, sealed(json)).unwrap();
    ask(&sweep, &["compare", "a/t", "b/t"])
        .assert_code(1)
        .assert_says("has other values in a/t than in b/t")
        .assert_says("1.25");
}

#[test]
fn arms_of_other_settings_are_told_apart() {
    let sweep = two_folders("lr = 0.01");
    let both = ask(&sweep, &["compare", "a/t", "b/t"]);
    both.assert_code(0);
    let text = both.stdout();
    for part in ["adamw@1", "adamw@2", "sr4@1", "sr4@2", "lr 0.001 and 0.01"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    ask(&sweep, &["compare", "a/t", "b/t", "--baseline", "sr4@2"]).assert_code(0);
}

#[test]
fn arms_on_other_devices_are_refused_unless_their_bytes_are_the_same() {
    let sweep = trained();
    // As if the runs of an arm came from elsewhere.
    let edit = |change: &dyn Fn(&mut Value)| {
        for seed in 1..=3 {
            let result = log_of(&sweep, &format!("sr4_s{seed}")).with_file_name("result.json");
            let mut json: Value = serde_json::from_str(&fs::read_to_string(&result).unwrap()).unwrap();
            change(&mut json);
            fs::write(&result, sealed(json)).unwrap();
        }
    };
    edit(&|json| json["execution"]["device"] = "NVIDIA H200".into());
    let fp32 = ask(&sweep, &["compare", "results/t"]);
    fp32.assert_code(0);
    let text = fp32.stdout().replace("\n  ", " ");
    let note = "arm and kind of device coincide: sr4 ran on NVIDIA H200, adamw on cpu; in fp32 all kinds give the same numbers";
    assert!(text.contains(note), "{text}");

    let plan = sweep.results().join("plan.json");
    let text = fs::read_to_string(&plan).unwrap();
    fs::write(&plan, text.replace("\"precision\": \"fp32\"", "\"precision\": \"bf16\"")).unwrap();
    let refused = ask(&sweep, &["compare", "results/t"]);
    refused.assert_code(1).assert_says(
        "error: arm `sr4`: its runs were made on other kinds of device (NVIDIA H200 3) than those of `adamw` (cpu 3)",
    );
    let forced = ask(&sweep, &["compare", "results/t", "--force"]);
    forced.assert_code(0);
    assert!(forced.stdout().contains("Not enough seeds"), "{}", forced.stdout());
}

#[test]
fn exports_say_what_they_wrote() {
    let sweep = trained();
    let both =
        ask(&sweep, &["export", "results/t", "--tensorboard", "board", "--format", "parquet", "--output", "tables"]);
    both.assert_code(0);
    assert_eq!(
        both.stdout(),
        "tables: comparison.parquet, summary.parquet, comparisons.parquet, curves.parquet\n\
         board: event files of 6 runs; tensorboard --logdir board\n"
    );
    assert_eq!(fs::read_dir(sweep.path().join("board")).unwrap().count(), 6);
    ask(&sweep, &["export", "results/t"]).assert_code(2).assert_says("required");
}
