//! `diesweep stats` from the outside: what it prints, its numbers, and its exit codes.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn stats(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_diesweep")).current_dir(folder).arg("stats").args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

const COLUMNS: [&str; 8] = ["--arm", "arm", "--seed", "seed", "--metric", "val_bpb", "--baseline", "adamw"];

fn with(more: &[&'static str]) -> Vec<&'static str> {
    ["r.csv"].into_iter().chain(COLUMNS).chain(more.iter().copied()).collect()
}

/// Seeds in another order in each arm, two missing, one diverged, one blank.
const BY_HAND: &str = "arm;seed;val_bpb\r\n\
    adamw;1;2,31\r\nadamw;2;2,32\r\nadamw;3;2,29\r\nadamw;4;2,25\r\nadamw;5;2,27\r\nadamw;6;2,28\r\nadamw;7;2,26\r\nadamw;8;2,30\r\n\
    sr4;8;2,24\r\nsr4;6;2,23\r\nsr4;2;2,25\r\nsr4;5;2,23\r\nsr4;3;2,24\r\nsr4;1;2,26\r\n\
    lion;8;nan\r\nlion;6;2,33\r\nlion;5;\r\n";

#[test]
fn a_file_made_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("r.csv"), BY_HAND).unwrap();
    let (code, text, errors) = stats(folder.path(), &with(&[]));
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    snapbox::assert_data_eq!(text, snapbox::file!["stats/by_hand.txt"].raw());
}

#[test]
fn selection_says_that_it_flatters() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "arm,lr,seed,val_bpb\n".to_owned();
    for (arm, lr, mean) in [("adamw", "0.001", 2.3), ("adamw", "0.003", 2.2), ("sr4", "0.01", 2.1)] {
        for seed in 0..6 {
            text += &format!("{arm},{lr},{seed},{:.4}\n", mean + 0.01 * f64::from(seed * seed % 5));
        }
    }
    fs::write(folder.path().join("r.csv"), text).unwrap();
    let (code, text, _) = stats(folder.path(), &with(&["--by", "lr"]));
    assert_eq!(code, Some(0));
    snapbox::assert_data_eq!(text, snapbox::file!["stats/selection.txt"].raw());
}

#[test]
fn exit_codes_and_errors() {
    let folder = tempfile::tempdir().unwrap();
    let write = |text: &str| fs::write(folder.path().join("r.csv"), text).unwrap();
    write("arm,seed,val_bpb\nadamw,1,2.5\nsr4,2,2.25\n");
    let (code, text, errors) = stats(folder.path(), &with(&[]));
    assert_eq!((code, errors.as_str()), (Some(1), "error: not every arm could be compared with `adamw`\n"));
    assert!(text.contains("No verdict on sr4 against adamw: no seed has a value on both sides."), "{text}");

    write("arm,sed,val_bpb\nadamw,1,2.5\n");
    let misspelt = "error: r.csv has no column `seed` (cells apart by commas); did you mean `sed`?\n";
    assert_eq!(stats(folder.path(), &with(&[])), (Some(2), String::new(), misspelt.to_owned()));

    write("arm,seed,val_bpb\nadamw,1,2.5\n");
    let (code, text, errors) = stats(folder.path(), &with(&[]));
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert!(text.contains("No verdict: `adamw` is the only arm.") && text.contains("there is no interval"), "{text}");

    fs::remove_file(folder.path().join("r.csv")).unwrap();
    let (code, _, errors) = stats(folder.path(), &with(&[]));
    assert_eq!(
        (code, errors.as_str()),
        (Some(1), "error: cannot read r.csv: No such file or directory (os error 2)\n")
    );
}

#[track_caller]
fn close(what: &str, got: &Value, want: &Value, relative: f64) -> usize {
    let Some(want) = want.as_f64() else { return 0 };
    let got = got.as_f64().unwrap_or_else(|| panic!("{what}: {got} for {want}"));
    assert!((got - want).abs() <= relative * want.abs(), "{what}: {got:e} for {want:e}");
    1
}

/// The golden numbers of scipy and statsmodels, through files and back.
#[test]
fn golden_cases_through_the_command() {
    let golden = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stats/golden.json")).unwrap();
    let golden: Value = serde_json::from_str(&golden).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut checked = 0;
    for case in golden["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let values =
            |side: &str| -> Vec<f64> { case[side].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect() };
        let mut text = "arm,seed,val_bpb\n".to_owned();
        values("a").iter().enumerate().for_each(|(seed, x)| text += &format!("adamw,{seed},{x:?}\n"));
        // The other arm's seeds come in the opposite order.
        values("b").iter().enumerate().rev().for_each(|(seed, x)| text += &format!("sr4,{seed},{x:?}\n"));
        fs::write(folder.path().join("r.csv"), text).unwrap();
        let (code, text, errors) = stats(folder.path(), &with(&["--json"]));
        assert_eq!((code, errors.as_str()), (Some(0), ""), "{name}");
        let got: Value = serde_json::from_str(&text).unwrap();
        for (side, number) in [("summary_a", 0), ("summary_b", 1)] {
            let (want, got) = (&case[side], &got["configurations"][number]["values"]);
            for (theirs, ours) in [("n", "n"), ("mean", "mean"), ("median", "median"), ("min", "min"), ("max", "max")] {
                checked += close(name, &got[ours], &want[theirs], 1e-9);
            }
            for (theirs, ours) in [("iqm", "iqm"), ("std", "sd"), ("sem", "sem")] {
                checked += close(name, &got[ours], &want[theirs], 1e-9);
            }
            checked += close(name, &got["ci95"][0], &want["ci95"][0], 1e-9)
                + close(name, &got["ci95"][1], &want["ci95"][1], 1e-9);
        }
        let (want, got) = (&case["paired"], &got["verdict"][0]["paired"]);
        checked += close(name, &got["mean_diff"], &want["mean"], 1e-9);
        checked +=
            close(name, &got["ci95"][0], &want["ci95"][0], 1e-9) + close(name, &got["ci95"][1], &want["ci95"][1], 1e-9);
        checked +=
            close(name, &got["t_p"], &want["t_p"], 1e-9) + close(name, &got["cohen_dz"], &want["cohen_dz"], 1e-9);
        checked += close(name, &got["wilcoxon_p"], &want["wilcoxon_exact_p"], 1e-12);
        checked += close(name, &got["sign_flip_p"], &want["sign_flip_p"], 1e-12);
        checked += close(name, &got["prob_improvement"], &case["probability_of_improvement"], 1e-9);
    }
    assert!(checked > 200, "golden values that were compared: {checked}");
}
