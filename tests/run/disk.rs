//! A disk that is really full: a small one in memory, in a mount namespace of its own.

use std::process::Command;

use serde_json::json;

use crate::harness::{Ended, Sweep, undisturbed, watchdog};

/// Whether this user may mount. Where not, the test says so and shows nothing.
fn may_mount() -> bool {
    let tried = Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output();
    let may = tried.is_ok_and(|tried| tried.status.success());
    if !may {
        eprintln!("SKIPPED: this user may not mount a file system, so that no disk can be filled");
    }
    may
}

/// A sweep that meets a full disk under a shell's lines, must end complete and like an undisturbed one, and says all of this.
fn ends_undisturbed(lines: &str, says: &[&str]) {
    watchdog();
    if !may_mount() {
        return;
    }
    let sweep = Sweep::new(10);
    let ended = on_a_full_disk(&sweep, lines);
    ended.assert_code(0);
    for text in says {
        ended.assert_says(text);
    }
    sweep.assert_same_tables(&undisturbed(10));
}

/// Runs a shell's lines with `results` on a disk of 4 MiB that has room for the first runs alone until `results/filler` is
/// removed. `$RUN` is the sweep's command; what is in `results` at the end is kept.
fn on_a_full_disk(sweep: &Sweep, lines: &str) -> Ended {
    let args = sweep.script(0, &json!([]));
    let run = format!("'{}' run sweep.toml --dies 2 {}", env!("CARGO_BIN_EXE_diesweep"), args.join(" "));
    let script = format!(
        "set -u; mkdir results kept; mount -t tmpfs -o size=4096k tmpfs results || exit 99
         head -c 4112384 /dev/zero > results/filler
         {lines}
         code=$?; cp -r results/t kept/; umount results; rmdir results; mv kept results; exit $code"
    );
    let mut shell = Command::new("unshare");
    shell.args(["-m", "sh", "-c", &script]).env("RUN", run).current_dir(sweep.path());
    Ended(shell.output().unwrap())
}

#[test]
fn a_sweep_waits_for_room_and_goes_on_by_itself() {
    ends_undisturbed(
        "sh -c \"$RUN --disk-wait 90s\" 2> err & run=$!
         until grep -q 'the disk is full' err || ! kill -0 $run 2> /dev/null; do sleep 0.1; done
         rm results/filler; wait $run; code=$?; cat err >&2; (exit $code)",
        &["the disk is full: cannot ", "No space left on device", "there is room again after "],
    );
}

#[test]
fn a_disk_that_stays_full_stops_the_sweep_and_the_next_call_goes_on() {
    ends_undisturbed(
        "sh -c \"$RUN --disk-wait 2s\"; code=$?; echo \"first: $code\" >&2
         rm results/filler; sh -c \"$RUN\"",
        &["waiting up to 2s for ", "first: 1\n", "stopping: cannot "],
    );
}
