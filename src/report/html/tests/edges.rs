//! Sweeps that are not as one would wish: the page says so plainly.

use super::structure::assert_well_formed;
use super::{Drawn, Running, all_finished, analyse, open, page, page_of, plan, publish, publish_on};
use crate::plan::Plan;
use crate::store::{AttemptFailure, Results, RunState};
use crate::testing::{diverged, finished};

/// The page without its script.
fn drawn(html: &str) -> &str {
    html.split("<script>").next().unwrap_or_default()
}

#[test]
fn nothing_finished() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[]), ("sr4", &["0.001", "0.01"])], &[1, 2]);
    let html = page(&open(root.path(), &plan, ""), &plan);
    assert_well_formed(&html);
    assert!(html.contains("<strong>No verdict:</strong> <span>none of the 6 runs has finished.</span>"), "{html}");
    assert!(html.contains("0 of 6 runs finished, 6 not run yet"));
    assert!(html.contains("No run has a log yet, so there is nothing to draw."));
    assert!(html.contains("Nothing has run yet."));
    assert!(!drawn(&html).contains("NaN"), "{html}");
}

#[test]
fn one_seed() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[]), ("sr4", &["0.001"])], &[7]);
    let results = open(root.path(), &plan, "");
    all_finished(&results, &plan, 4);
    let html = page(&results, &plan);
    assert_well_formed(&html);
    assert!(html.contains("<strong>Not enough seeds to tell sr4 (lr=0.001) from adamw on the test split:</strong>"));
    let told = "The sweep has one seed (7): nothing here can be told from chance, and no interval can be given.";
    assert!(html.contains(told), "{html}");
    assert!(html.contains("none: one pair of runs has no spread"));
    assert!(html.contains("Where only one seed finished there is no interval."));
    assert!(!drawn(&html).contains("NaN"), "{html}");
}

#[test]
fn all_diverged() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[]), ("sr4", &[])], &[1, 2]);
    let results = open(root.path(), &plan, "");
    (0..4).for_each(|run| publish(&results, &plan, run, &diverged(17), 3));
    let html = page(&results, &plan);
    assert_well_formed(&html);
    assert!(html.contains("none of the 4 runs has finished (4 diverged)."), "{html}");
    assert!(html.contains("Every run diverged: there is no value to compare."));
    assert!(html.contains("loss NaN nats at step 17"));
    assert!(html.contains("4 runs that diverged, in no mean"));
    assert_eq!(html.matches("<b class=\"bad\">diverged</b>").count(), 4);
}

#[test]
fn an_arm_without_a_run_and_a_failure_with_its_cause() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[]), ("sr4", &[])], &[1, 2]);
    let results = open(root.path(), &plan, "");
    for (i, run) in plan.runs.iter().enumerate() {
        if run.arm == "adamw" {
            publish(&results, &plan, i, &finished(2.0, Some(2.1)), 3);
        } else {
            let attempt = crate::testing::attempt(&results, run);
            let message = "signal 9 (killed)".to_owned();
            let failure = AttemptFailure { cause: "crashed".to_owned(), message, ended: String::new(), for_good: true };
            results.record_failure(&attempt, &failure).unwrap();
        }
    }
    let html = page(&results, &plan);
    assert_well_formed(&html);
    assert!(
        html.contains("No verdict on <code>sr4</code>:</strong> <span>no run of it has finished (2 failed).</span>"),
        "{html}"
    );
    assert!(html.contains("attempt 1: crashed: signal 9 (killed)"));
    assert!(!html.contains("id=\"health\""), "there are no ternary weights to show");
}

#[test]
fn what_files_hold_is_text_and_never_markup() {
    let root = tempfile::tempdir().unwrap();
    let evil = "</script><img src=x onerror=alert(1)>\"'&";
    let mut plan = plan(&[("adamw", &[]), ("sr4", &[])], &[1, 2]);
    for configuration in &mut plan.configurations {
        configuration.arm += evil;
    }
    let results = open(root.path(), &plan, &format!("# {evil}\n"));
    publish(&results, &plan, 0, &finished(2.0, Some(2.1)), 3);
    let attempt = crate::testing::attempt(&results, &plan.runs[1]);
    let failure =
        AttemptFailure { cause: evil.to_owned(), message: evil.to_owned(), ended: String::new(), for_good: true };
    results.record_failure(&attempt, &failure).unwrap();
    let html = page(&results, &plan);
    assert_well_formed(&html);
    assert!(!html.contains("<img"), "{html}");
    assert_eq!(html.matches("</script>").count(), 2);
    assert!(html.contains("# &lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"));
}

/// Fails an attempt at a run, with what its worker printed.
fn fail(results: &Results, plan: &Plan, run: usize, message: &str, printed: &str) {
    let attempt = crate::testing::attempt(results, &plan.runs[run]);
    std::fs::write(attempt.worker_log(), printed).unwrap();
    let failure = AttemptFailure {
        cause: "crashed".to_owned(),
        message: message.to_owned(),
        ended: String::new(),
        for_good: true,
    };
    results.record_failure(&attempt, &failure).unwrap();
}

#[test]
fn failed_runs_only() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[]), ("sr4", &[])], &[1, 2]);
    let results = open(root.path(), &plan, "");
    let printed: String = (1..=500).map(|line| format!("line {line}\n")).collect();
    fail(&results, &plan, 0, "exit code 3", "");
    fail(&results, &plan, 0, "signal 11", &format!("{printed}<b>the end</b>"));
    (1..4).for_each(|run| fail(&results, &plan, run, "exit code 3", "panicked\n"));
    let html = page(&results, &plan);
    assert_well_formed(&html);
    assert!(
        html.contains("<strong>No verdict:</strong> <span>none of the 4 runs has finished (4 failed).</span>"),
        "{html}"
    );
    assert!(html.contains("0 of 4 runs finished, 4 failed"));
    assert!(html.contains("Every run failed: their causes are below."));
    assert!(html.contains("attempt 2: crashed: signal 11"));
    // The last lines of the last attempt, as text.
    assert!(html.contains("<summary>last lines of worker.log</summary><pre>line 490\n"), "{html}");
    assert!(html.contains("line 500\n&lt;b&gt;the end&lt;/b&gt;</pre>"), "{html}");
    assert!(!html.contains("line 489\n"));
    assert!(!drawn(&html).contains("NaN"), "{html}");
}

#[test]
fn a_run_that_diverged_shows_the_end_of_its_log() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1]);
    let results = open(root.path(), &plan, "");
    publish(&results, &plan, 0, &diverged(17), 40);
    let html = page(&results, &plan);
    assert_well_formed(&html);
    let lines =
        html.split("<summary>last lines of log.csv</summary><pre>").nth(1).unwrap().split("</pre>").next().unwrap();
    assert_eq!(lines.lines().count(), 12, "{lines}");
    assert!(lines.lines().last().unwrap().starts_with("195,"), "{lines}");
}

#[test]
fn a_sweep_at_work_says_how_far_it_is() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[]), ("sr4", &[])], &[1, 2]);
    let results = open(root.path(), &plan, "");
    publish(&results, &plan, 0, &finished(2.0, Some(2.1)), 3);
    let running = Running { as_of: "2026-11-30T19:00:00.000Z".to_owned(), every: "30 s".to_owned() };
    let html = page_of(&results, &plan, Some(running));
    assert_well_formed(&html);
    let told = "<strong>Still running.</strong> <span>1 of 4 runs have ended (25%), as of 2026-11-30T19:00:00.000Z; what \
        follows is preliminary. This page is made anew every 30 s";
    assert!(html.contains(told), "{html}");
    assert!(html.contains("<progress max=\"4\" value=\"1\""));
    assert!(!page(&results, &plan).contains("Still running"));
}

#[test]
fn kinds_of_device_are_marked() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[]), ("sr4", &[])], &[1, 2]);
    let results = open(root.path(), &plan, "");
    for (arm, kind) in [("adamw", "cpu"), ("sr4", "Tesla K80")] {
        assert!(!page(&results, &plan).contains("kinds of device"), "one kind needs no word");
        for (i, _) in plan.runs.iter().enumerate().filter(|(_, run)| run.arm == arm) {
            publish_on(&results, &plan, i, &finished(2.0 + i as f64 / 10.0, Some(2.1)), (3, kind));
        }
    }
    let html = page(&results, &plan);
    assert_well_formed(&html);
    assert!(html.contains("Runs were made on different kinds of device: Tesla K80 2, cpu 2."), "{html}");
    let told =
        "Arm and kind of device coincide: sr4 ran on Tesla K80, adamw on cpu; in fp32 all kinds give the same numbers.";
    assert!(html.contains(told), "{html}");
    assert!(html.contains("<td>Tesla K80</td></tr>"), "{html}");
}

#[test]
fn the_choice_of_the_best_is_told() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &["0.001", "0.01"]), ("sr4", &["0.001", "0.01"])], &[1, 2]);
    let results = open(root.path(), &plan, "");
    all_finished(&results, &plan, 3);
    let html = page(&results, &plan);
    assert!(html.contains("Each arm’s best configuration was chosen by val_bpb, on validation, and is compared by test_bpb on the test split"), "{html}");
    assert!(html.contains("All arms had the same number of configurations to choose from: 2."), "{html}");
    assert!(
        html.contains("The best lr of sr4, 0.01, is the largest that was tried: a better one may lie beyond."),
        "{html}"
    );
}

#[test]
fn ten_thousand_runs_are_drawn_in_part_and_the_page_says_so() {
    let root = tempfile::tempdir().unwrap();
    let rates: Vec<String> = (1..=625).map(|i| format!("{}", f64::from(i) / 10_000.0)).collect();
    let rates: Vec<&str> = rates.iter().map(String::as_str).collect();
    let plan = plan(&[("adamw", &rates), ("sr4", &rates)], &[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(plan.runs.len(), 10_000);
    let results = open(root.path(), &plan, "");
    // Results as they are loaded; only the logs of the configurations that are drawn are read.
    let mut loaded = results.load(&plan).unwrap();
    publish(&results, &plan, 0, &finished(2.0, Some(2.1)), 3);
    let template = results.load(&plan).unwrap().states[0].result().unwrap().clone();
    let log = std::fs::read(results.run_paths(&plan.runs[0]).log()).unwrap();
    for (run, state) in plan.runs.iter().zip(&mut loaded.states) {
        let rate: f64 = run.axes[0].value.parse().unwrap();
        let value = if run.arm == "sr4" { 2.0 - rate } else { 2.3 - rate } + run.seed as f64 / 100.0;
        let mut result = template.clone();
        result.outcome = if run.seed == 8 { diverged(17) } else { finished(value, Some(value + 0.05)) };
        *state = RunState::Ended(Box::new(result));
    }
    let analysis = analyse(&plan, &loaded);
    for c in super::super::page::shown(&plan, &analysis) {
        for run in &plan.configurations[c].runs {
            let paths = results.run_paths(&plan.runs[*run]);
            std::fs::create_dir_all(paths.dir()).unwrap();
            std::fs::write(paths.log(), &log).unwrap();
        }
    }
    let start = std::time::Instant::now();
    let drawn = Drawn::gather(&results, &plan, &loaded, &analysis, None).unwrap();
    let html = super::super::page::page(&drawn.source, &drawn.curves);
    println!("{} bytes in {:?}", html.len(), start.elapsed());
    assert_well_formed(&html);
    assert!(html.len() < 3 << 20, "{} bytes", html.len());
    for told in [
        "The best 16 of 1250 configurations are drawn, in turn from each arm; curves.csv has all.",
        "The best 300 of 1250; summary.csv has all.",
        "And 1050 more runs; comparison.csv has all.",
        "Of the first 40 the last lines are shown; the folders have all.",
        "The first 2000 attempts are drawn; events/ has all.",
    ] {
        assert!(html.contains(told), "{told}");
    }
    if let Some(chromium) = super::browser::chromium() {
        let seen = super::browser::visit(chromium, root.path(), &html);
        assert_eq!(seen.console, Vec::<String>::new());
        println!("10,000 runs: {:?}", seen.timing);
    }
}
