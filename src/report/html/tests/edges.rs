//! Sweeps that are not as one would wish: the page says so plainly.

use super::structure::assert_well_formed;
use super::{all_finished, open, page, plan, publish};
use crate::store::AttemptFailure;
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
            let failure = AttemptFailure { cause: "crashed".to_owned(), message, ended: String::new() };
            results.record_failure(&attempt, &failure).unwrap();
        }
    }
    let html = page(&results, &plan);
    assert_well_formed(&html);
    assert!(
        html.contains("No verdict on `sr4`:</strong> <span>no run of it has finished (2 failed).</span>"),
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
    let failure = AttemptFailure { cause: evil.to_owned(), message: evil.to_owned(), ended: String::new() };
    results.record_failure(&attempt, &failure).unwrap();
    let html = page(&results, &plan);
    assert_well_formed(&html);
    assert!(!html.contains("<img"), "{html}");
    assert_eq!(html.matches("</script>").count(), 2);
    assert!(html.contains("# &lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"));
}
