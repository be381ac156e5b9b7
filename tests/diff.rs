//! `diesweep diff` from the outside: what it prints and its exit codes.

use std::fs;
use std::path::Path;
use std::process::Command;

fn diff(folder: &Path, a: &str, b: &str) -> (Option<i32>, String, String) {
    let program = env!("CARGO_BIN_EXE_diesweep");
    let output = Command::new(program).current_dir(folder).args(["diff", a, b]).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn same_different_and_missing() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("a.csv", "step,val_bpb,elapsed_sec\n0,8.00000,0.10\n5,7.50000,0.20\n");
    write("b.csv", "step,val_bpb,elapsed_sec\n0,8.00000,0.30\n5,7.50000,0.40\n");
    write("c.csv", "step,val_bpb,elapsed_sec\n0,8.00001,0.10\n5,7.50001,0.20\n");
    let none = String::new();
    assert_eq!(diff(folder.path(), "a.csv", "b.csv"), (Some(0), "no difference in 1 file\n".to_owned(), none.clone()));
    let found = "a.csv: row 2, val_bpb: 8.00000 | 8.00001\n\
                 a.csv: row 3, val_bpb: 7.50000 | 7.50001\n\
                 2 differences in 1 file\n";
    assert_eq!(diff(folder.path(), "a.csv", "c.csv"), (Some(1), found.to_owned(), none.clone()));
    let missing = "error: d.csv does not exist\n".to_owned();
    assert_eq!(diff(folder.path(), "a.csv", "d.csv"), (Some(2), none, missing));
}

#[test]
fn many_differences_are_cut_short() {
    let folder = tempfile::tempdir().unwrap();
    for (name, value) in [("a.csv", 1), ("b.csv", 2)] {
        let rows: String = (0..50).map(|step| format!("{step},{value}\n")).collect();
        fs::write(folder.path().join(name), format!("step,val_bpb\n{rows}")).unwrap();
    }
    let (code, text, _) = diff(folder.path(), "a.csv", "b.csv");
    assert_eq!(code, Some(1));
    assert!(text.ends_with("... and 45 more\n50 differences in 1 file\n"), "{text}");
    assert_eq!(text.lines().count(), 7);
}

#[test]
fn one_argument_is_a_usage_error() {
    let program = env!("CARGO_BIN_EXE_diesweep");
    let output = Command::new(program).args(["diff", "a"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
