//! Sweep files as users see them: every bad file's exact message, every good file's exact plan.
//!
//! After a wanted change of texts run with `SNAPSHOTS=overwrite` and read the difference.

use std::path::{Path, PathBuf};

use snapbox::assert_data_eq;
use snapbox::cmd::{Command, cargo_bin};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn sweep_files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    names
}

/// Exit code, standard output and standard error of `diesweep plan`, run in the folder.
fn plan(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let command = Command::new(cargo_bin!("diesweep")).current_dir(folder).arg("plan").args(arguments);
    let output = command.env("NO_COLOR", "1").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn listing(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn snapshot(path: PathBuf) -> snapbox::Data {
    snapbox::Data::read_from(&path, None).raw()
}

#[test]
fn bad_files_are_refused_with_their_exact_message() {
    let folder = folder("bad_sweeps");
    let files = sweep_files(&folder);
    assert!(files.len() >= 40, "only {} bad sweep files", files.len());
    let before = listing(&folder);
    for file in &files {
        let (code, out, err) = plan(&folder, &[file]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{file}\n{err}");
        assert_data_eq!(err, snapshot(folder.join(file).with_extension("stderr")));
    }
    let added: Vec<_> = listing(&folder).into_iter().filter(|name| !before.contains(name)).collect();
    assert!(added.iter().all(|name| name.ends_with(".stderr")), "written: {added:?}");
}

/// Every message names file, line and column and shows the line, but where the fault is the whole file's.
#[test]
fn messages_name_the_place() {
    let folder = folder("bad_sweeps");
    let of_file =
        ["arms_for_arm", "arms_missing", "arms_empty", "name_missing", "empty_file", "only_a_comment", "too_many_runs"];
    for file in sweep_files(&folder) {
        let (_, _, err) = plan(&folder, &[&file]);
        let faults = err.matches("error: ").count();
        let placed = err.matches(&format!("--> {file}:")).count();
        let shown = err.lines().filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit())).count();
        assert!(faults > 0, "{file}");
        if !of_file.contains(&file.trim_end_matches(".toml")) {
            assert_eq!(faults, placed, "{file}\n{err}");
            assert!(shown >= placed, "{file}\n{err}");
        }
    }
}

#[test]
fn five_faults_are_shown_at_once() {
    let (code, _, err) = plan(&folder("bad_sweeps"), &["five_faults.toml"]);
    assert_eq!(code, Some(2));
    for place in ["2:8", "6:8", "7:9", "17:1", "20:12"] {
        assert!(err.contains(&format!("five_faults.toml:{place}\n")), "{place}\n{err}");
    }
    assert!(err.ends_with("5 errors in five_faults.toml; nothing was started\n"), "{err}");
}

#[test]
fn good_files_have_their_exact_plan() {
    let folder = folder("good_sweeps");
    let files = sweep_files(&folder);
    assert!(!files.is_empty());
    for file in &files {
        let (code, out, err) = plan(&folder, &[file, "--dies", "2"]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{file}");
        let here = format!("{}/", folder.display());
        assert_data_eq!(out.replace(&here, "[FOLDER]/"), snapshot(folder.join(file).with_extension("stdout")));
    }
}

#[test]
fn the_plan_as_json_is_the_plan() {
    let folder = folder("good_sweeps");
    let (code, out, err) = plan(&folder, &["quick.toml", "--json"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let here = format!("{}/", folder.display());
    assert_data_eq!(out.replace(&here, "[FOLDER]/"), snapshot(folder.join("quick.json")));
    let plan: diesweep::plan::Plan = serde_json::from_str(&out).unwrap();
    assert_eq!(serde_json::to_string_pretty(&plan).unwrap() + "\n", out);
}

#[test]
fn files_that_cannot_be_read_are_refused() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("latin1.toml"), b"name = \"x\"\n# caf\xe9\n").unwrap();
    for (file, message) in [
        ("gone.toml", "error: the sweep file cannot be read: No such file or directory"),
        (".", "error: the sweep file cannot be read: Is a directory"),
        ("latin1.toml", "error: the sweep file is not UTF-8 text: see line 2, byte 16 of the file"),
    ] {
        let (code, out, err) = plan(place.path(), &[file]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{file}");
        assert!(err.starts_with(message), "{err}");
    }
    assert_eq!(listing(place.path()), ["latin1.toml"]);
}
