//! What is seen of a folder, and how it reads.

use std::path::Path;

use super::{Beats, Counts, Held, Life, Standing, Status, Trouble, gather};
use crate::event::{At, Cause, Event, Failure, Stamped};
use crate::plan::Plan;
use crate::store::{AttemptFailure, Journal, LogWriter, Results, View};
use crate::testing::{diverged, execution, finished, plan, row};

fn publish(results: &Results, plan: &Plan, run: usize, outcome: &crate::run::Outcome) {
    let attempt = crate::testing::attempt(results, &plan.runs[run]);
    let mut log = LogWriter::create(&attempt.log()).unwrap();
    log.row(&row(0, 2.0, 1.0)).unwrap();
    log.finish().unwrap();
    results.publish(&plan.runs[run], &attempt, outcome, &execution(1, "0")).unwrap();
}

fn look(root: &Path) -> Status {
    let (view, plan) = View::open(&root.join("test")).unwrap();
    gather(&view, &plan, &mut Beats::default()).unwrap()
}

#[test]
fn every_run_is_in_one_state() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &["0.001", "0.003"]), ("sr4", &[])], &[1, 2]);
    let results = Results::open_or_create(root.path(), &plan, "").unwrap().results;
    assert_eq!(look(root.path()).runs, Counts { planned: 6, todo: 6, ..Counts::default() });
    let of = |arm: &str, axis: &str, seed: u64| {
        let is = |run: &crate::plan::PlannedRun| run.label() == format!("{arm} {axis}seed={seed}");
        plan.runs.iter().position(is).unwrap()
    };
    let axis = plan.axes.first().unwrap();
    publish(&results, &plan, of("adamw", &format!("{axis}=0.001 "), 1), &finished(2.5, None));
    publish(&results, &plan, of("adamw", &format!("{axis}=0.003 "), 1), &finished(2.25, None));
    publish(&results, &plan, of("sr4", "", 1), &diverged(3));
    let given_up = |run: usize, for_good: bool| {
        let attempt = crate::testing::attempt(&results, &plan.runs[run]);
        let failure = AttemptFailure { cause: "bug".into(), message: "no".into(), ended: String::new(), for_good };
        results.record_failure(&attempt, &failure).unwrap();
        results.give_back(plan.runs[run].id).unwrap();
    };
    given_up(of("sr4", "", 2), true);
    given_up(of("adamw", &format!("{axis}=0.001 "), 2), false);
    let run = of("sr4", "", 2);
    let at = At { run: plan.runs[run].id, attempt: 1, die: 0, label: plan.runs[run].label() };
    let mut journal = Journal::of_this_process(results.layout());
    let event = Event::AttemptFailed { at, failure: Failure::new(Cause::Bug, "no"), again: false };
    journal.append(&Stamped::now(&event)).unwrap();

    let status = look(root.path());
    assert_eq!(
        status.runs,
        Counts { planned: 6, todo: 2, held: 0, finished: 2, diverged: 1, failed: 1, stopped: 0 },
        "{}",
        status.text()
    );
    assert_eq!(status.standing.len(), 1);
    let best = &status.standing[0];
    assert_eq!((best.arm.as_str(), best.mean, best.seeds, best.planned), ("adamw", 2.25, 1, 2));
    assert_eq!(best.configuration, format!("{axis}=0.003"));
    assert_eq!(status.failures.len(), 1);
    assert_eq!((status.failures[0].cause.as_str(), status.failures[0].for_good), ("bug", true));
    assert_eq!(status.eta_sec, None, "nobody works on it");
    assert!(status.warnings.is_empty());
}

#[test]
fn it_reads_as_lines() {
    let status = Status {
        time: "2026-11-30T20:00:00.000Z".into(),
        sweep: "s".into(),
        results: "results/s".into(),
        runs: Counts { planned: 24, todo: 10, held: 2, finished: 10, diverged: 1, failed: 1, stopped: 0 },
        done: 0.524,
        eta_sec: Some(725.2),
        held: vec![Held {
            run: "1".into(),
            label: "adamw lr=0.001 seed=1".into(),
            controller: "c".into(),
            host: "box".into(),
            pid: 12,
            life: Life::Alive,
            since: "2026-11-30T19:59:00.000Z".into(),
            attempt: 2,
            step: 50,
            steps: 1000,
            val_bpb: Some(2.5),
        }],
        failures: vec![Trouble {
            time: "2026-11-30T19:58:00.000Z".into(),
            run: "2".into(),
            label: "sr4 seed=3".into(),
            attempt: 1,
            cause: "crashed".into(),
            message: "its process was killed by SIGABRT\u{1b}".into(),
            for_good: false,
        }],
        standing: vec![Standing {
            arm: "adamw".into(),
            configuration: "lr=0.001".into(),
            mean: 2.5,
            seeds: 3,
            planned: 8,
        }],
        metric: "val_bpb".into(),
        warnings: vec!["x.jsonl:3: the last line is cut off and left out".into()],
    };
    assert_eq!(
        status.text(),
        "s: 24 runs: 10 finished, 1 diverged, 1 failed, 2 held, 10 to do; 52%, about 12m 5s to go\n\
         \n\
         held\n  step   50/1000  val_bpb 2.5000  adamw lr=0.001 seed=1, attempt 2  box:12 alive since 2026-11-30T19:59:00.000Z\n\
         \n\
         last failures\n  2026-11-30T19:58:00.000Z  sr4 seed=3, attempt 1, tried again: crashed: its process was killed by SIGABRT\n\
         \n\
         best so far, mean val_bpb\n  adamw  2.5000  3 of 8 seeds  lr=0.001\n\
         warning: x.jsonl:3: the last line is cut off and left out\n"
    );
}
