//! What is printed, written and returned.

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Sweep, watchdog};

#[test]
fn a_second_call_trains_nothing_and_prints_the_same_table() {
    watchdog();
    let sweep = Sweep::new(4);
    let first = sweep.run::<&str>(&[]);
    first.assert_code(0).assert_says("6 runs: 0 finished, 6 to do, on 2 dies");
    let attempts = sweep.attempts();
    assert_eq!(attempts.len(), 6);
    let second = sweep.run::<&str>(&[]);
    second.assert_code(0).assert_says("6 runs: 6 finished, 0 to do; results in");
    assert_eq!(first.stdout(), second.stdout());
    assert!(first.stdout().contains("sr4"));
    assert_eq!(sweep.attempts(), attempts);
}

#[test]
fn without_a_terminal_there_are_plain_dated_lines() {
    watchdog();
    let sweep = Sweep::new(4);
    let ended = sweep.run::<&str>(&[]);
    let stderr = ended.assert_code(0).stderr();
    assert!(!stderr.contains('\r') && !stderr.contains('\x1b'), "{stderr}");
    let finished: Vec<_> = stderr.lines().filter(|line| line.contains(" finished ")).collect();
    assert_eq!(finished.iter().filter(|line| line.contains("val_bpb")).count(), 6, "{stderr}");
    for line in finished {
        let stamp = line.split(' ').next().unwrap();
        assert!(stamp.len() == 20 && stamp.ends_with('Z') && stamp.contains('T'), "{line}");
    }
}

#[test]
fn quiet_leaves_the_closing_table_alone() {
    watchdog();
    let sweep = Sweep::new(4);
    let ended = sweep.run(&["--quiet"]);
    assert_eq!(ended.assert_code(0).stderr(), "");
    assert!(ended.stdout().contains("adamw"));
}

#[test]
fn json_is_all_that_is_on_standard_output() {
    watchdog();
    let sweep = Sweep::new(4);
    let ended = sweep.run(&["--json"]);
    let stdout = ended.assert_code(0).stdout();
    let events: Vec<serde_json::Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((count("sweep_started"), count("run_finished"), count("sweep_ended")), (1, 6, 1));
    assert_eq!(count("logged"), 6 * 3);
}

#[test]
fn dies_and_threads_change_no_number() {
    watchdog();
    let [one, two] = [Sweep::new(12), Sweep::new(12)];
    let mut command = one.command::<&str>(&[]);
    command.arg("--threads-per-die=2");
    assert!(command.status().unwrap().success());
    two.run(&["--simd", "portable"]).assert_code(0);
    one.assert_same_tables(&two);
}

#[test]
fn a_results_folder_that_cannot_be_made_is_named() {
    watchdog();
    let sweep = Sweep::new(4);
    std::fs::write(sweep.path().join("file"), "").unwrap();
    let ended = sweep.run(&["--results", "file"]);
    ended.assert_code(1).assert_says("file");
    assert!(ended.stderr().starts_with("error: "), "{}", ended.stderr());
}

#[test]
fn a_bad_sweep_file_writes_nothing() {
    watchdog();
    let sweep = Sweep::new(4);
    sweep.write(4, "taget_step = 0.1");
    let ended = sweep.run::<&str>(&[]);
    ended.assert_code(2).assert_says("target_step");
    assert!(!sweep.path().join("results").exists());
}

#[test]
fn usage_errors_have_their_exit_code() {
    watchdog();
    let sweep = Sweep::new(4);
    sweep.run(&["--backend", "cuda", "--lanes", "0"]).assert_code(2).assert_says("write `auto` or a whole number");
    sweep.run(&["--simd", "mmx"]).assert_code(2).assert_says("not a SIMD level");
    sweep.run(&["--stop-grace", "1d"]).assert_code(2).assert_says("`d` is not a unit of time");
    assert!(!sweep.path().join("results").exists());
}

#[test]
fn without_a_gpu_the_places_that_were_searched_are_listed() {
    watchdog();
    if std::path::Path::new("/dev/nvidiactl").exists() {
        eprintln!("SKIPPED, this machine has a GPU");
        return;
    }
    let sweep = Sweep::new(4);
    let ended = sweep.run(&["--backend", "cuda"]);
    ended.assert_code(2).assert_says("error: no CUDA GPU: ").assert_says("libcuda.so found; looked for it\n");
    assert!(!sweep.path().join("results").exists());
}

#[test]
fn quiet_still_tells_of_damage_and_of_an_edited_sweep() {
    watchdog();
    let sweep = Sweep::new(4);
    sweep.run(&["--quiet"]).assert_code(0);
    let run = sweep.attempts()[0].parent().unwrap().to_owned();
    std::fs::write(run.join("result.json"), "{").unwrap();
    let again = sweep.run(&["--quiet"]);
    again.assert_code(0).assert_says("warning: ").assert_says("the run counts as unfinished");
    sweep.write(5, "");
    let edited = sweep.run(&["--quiet"]);
    edited.assert_code(0).assert_says("changed since the last time: arm `adamw`: steps was 4, is 5");
}

#[test]
fn a_comparison_that_cannot_be_printed_is_told_but_for_a_reader_that_left() {
    watchdog();
    let sweep = Sweep::new(4);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ended = sweep.command::<&str>(&[]).stdout(full).output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(stderr.contains("error: the comparison cannot be printed: No space left on device"), "{stderr}");
    assert!(sweep.results().join("comparison.csv").exists());

    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let left = sweep.command::<&str>(&[]).stdout(writer).output().unwrap();
    assert_eq!(left.status.code(), Some(0));
}

#[test]
fn a_sweep_goes_on_where_nothing_can_be_said() {
    watchdog();
    let sweep = Sweep::new(4);
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    // The sweep is done; that nobody could read of it is told by the exit code, the one way that is left.
    let ended = sweep.command::<&str>(&[]).stderr(full()).output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(sweep.results().join("comparison.csv").exists());
    std::fs::write(sweep.path().join("sweep.toml"), "name = 1").unwrap();
    let ended = sweep.command::<&str>(&[]).stderr(full()).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
}

#[test]
fn the_report_is_made_anew_while_the_sweep_is_at_work() {
    watchdog();
    let sweep = Sweep::new(6);
    // The last runs stand still until the sweep is stopped.
    let mut args = sweep.script(0, &json!([{ "folder": "_s3", "attempt": 1, "step": 2, "deed": "hang" }]));
    args.extend(["--report-every", "100ms", "--stop-grace", "1s"].map(str::to_owned));
    let mut running = sweep.start(&args);
    for _ in 0..4 {
        running.until(|event| event["event"] == "run_finished");
    }
    let report = sweep.results().join("report.html");
    let told = "<strong>Still running.</strong> <span>4 of 6 runs have ended (67%), as of ";
    while !std::fs::read_to_string(&report).is_ok_and(|html| html.contains(told)) {
        // Nothing tells of a new file; the watchdog ends a wait in vain.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    running.signal(Signal::INT);
    running.end().0.assert_code(130);
    let html = std::fs::read_to_string(&report).unwrap();
    assert!(!html.contains("Still running."), "the last report is of a sweep that stopped");
    assert!(html.contains("4 of 6 runs finished, 2 not run yet"), "{html}");
}

#[test]
fn a_time_between_reports_must_be_one() {
    watchdog();
    let sweep = Sweep::new(4);
    let ended = sweep.run(&["--report-every", "1ms"]);
    ended.assert_code(2).assert_says("must be at least 100 ms");
    sweep.write(4, "[run]\nreport_every = \"often\"\n");
    let ended = sweep.run::<&str>(&[]);
    ended.assert_code(2).assert_says("`report_every`: `often` is not a unit of time: use ms, s, m or h");
}

#[test]
fn a_report_is_made_again_from_the_folder() {
    watchdog();
    let sweep = Sweep::new(4);
    sweep.run(&["--quiet"]).assert_code(0);
    let report = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_diesweep"));
        command.arg("report").args(args).current_dir(sweep.path()).output().unwrap()
    };
    let file = sweep.results().join("report.html");
    let plot = sweep.results().join("plots/learning-val_bpb.png");
    let (before, picture) = (std::fs::read(&file).unwrap(), std::fs::read(&plot).unwrap());
    std::fs::remove_file(&file).unwrap();
    std::fs::remove_file(&plot).unwrap();
    let output = report(&["results/t"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("report.html\n"), "{output:?}");
    assert!(before == std::fs::read(&file).unwrap() && picture == std::fs::read(&plot).unwrap(), "the same bytes");
    let latex = String::from_utf8(report(&["results/t", "--latex"]).stdout).unwrap();
    assert!(latex.starts_with("\\begin{tabular}{lrrrrrrr}\n\\toprule\nconfiguration &"), "{latex}");
    let markdown = String::from_utf8(report(&["results/t", "--markdown"]).stdout).unwrap();
    assert!(markdown.starts_with("| configuration |"), "{markdown}");
    let refused = |args: &[&str], code, says: &str| {
        let output = report(args);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(code) && stderr.contains(says), "{stderr}");
        assert!(output.stdout.is_empty());
    };
    refused(&["results/t", "--latex", "--markdown"], 2, "cannot be used with");
    refused(&["nowhere"], 1, "error: ");
    refused(&["."], 1, "error: ");
}
