//! `diesweep parity` as a user calls it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn parity(dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_diesweep")).arg("parity").arg(dir).output().expect("diesweep runs")
}

fn golden() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"))
}

#[test]
fn all_golden_cases_hold() {
    let output = parity(golden());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(text.lines().count(), 23);
    assert!(text.contains("\n22 cases: 22 hold, 0 fall short, 0 unusable (cpu, "), "{text}");
}

#[test]
fn exit_codes_tell_short_falls_from_unusable_input() {
    let dir = tempfile::tempdir().expect("a folder");
    let missing = parity(&dir.path().join("none"));
    assert_eq!(missing.status.code(), Some(2));
    let text = String::from_utf8(missing.stderr).expect("UTF-8");
    assert!(text.ends_with("none` cannot be read: No such file or directory (os error 2)\n"), "{text}");

    let lr = fs::read_to_string(golden().join("lr.json")).expect("the case");
    fs::write(dir.path().join("lr.json"), lr.replace("0.00055,", "0.00056,")).expect("a file");
    assert_eq!(parity(dir.path()).status.code(), Some(1));
    fs::write(dir.path().join("x.json"), "{}").expect("a file");
    assert_eq!(parity(dir.path()).status.code(), Some(2));
}
