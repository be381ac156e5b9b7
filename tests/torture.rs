//! The fault harness itself: a few schedules, and what it prints.

use std::process::Command;

fn torture(args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_diesweep")).arg("torture").args(args).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code(), text)
}

#[test]
fn three_schedules_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (code, text) = torture(&["--schedules", "3", "--seed", "7", "--folder", folder.path().to_str().unwrap()]);
    assert_eq!(code, Some(0), "{text}");
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("3 schedules of seed 7, "), "{text}");
    assert!(last.ends_with(": no difference, no run lost or done twice, nothing left over"), "{text}");
    assert!(!folder.path().join("schedule-0").exists(), "what went well is kept");
}

#[test]
fn a_schedule_can_be_looked_at_before() {
    let (code, text) = torture(&["--show", "--only", "41", "--seed", "3"]);
    assert_eq!(code, Some(0));
    assert!(text.starts_with("schedule 41\ncall 1\n  ") && text.ends_with(", undisturbed\n"), "{text}");
    assert_eq!(torture(&["--show", "--only", "41", "--seed", "3"]).1, text);
}
