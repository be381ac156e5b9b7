//! Ends of a sweep before its end.

use super::*;

#[test]
fn three_runs_that_fail_alike_stop_the_sweep() {
    let mut stage = Stage::ready(9, 1);
    let worker = stage.last_worker();
    let failure = Failure::new(Cause::BadSettings, "no such thing");
    for _ in 0..3 {
        stage.end(worker, End::Failed { failure: failure.clone() });
    }
    assert!(stage.fx.sent.contains(&(worker, ToWorker::Shutdown)));
    stage.gone(worker, Exit::Status(0));
    // A lane was filled again before the third failure was known? Then its attempt is given up.
    let conclusion = stage.state.conclusion().unwrap();
    assert_eq!(conclusion, Conclusion::Halted(Halt::FailedAlike { failure }));
    assert_eq!(conclusion.exit_code(), 1);
}

#[test]
fn different_failures_or_a_result_before_do_not_stop_the_sweep() {
    let fail = |stage: &mut Stage, text: &str| {
        let worker = stage.last_worker();
        stage.end(worker, End::Failed { failure: Failure::new(Cause::BadSettings, text) });
    };
    let mut stage = Stage::ready(9, 1);
    ["a", "a", "b", "a", "a", "a"].iter().for_each(|text| fail(&mut stage, text));
    assert!(stage.state.stop.is_none());
    let mut stage = Stage::ready(9, 1);
    stage.finish(stage.last_worker());
    ["a", "a", "a"].iter().for_each(|text| fail(&mut stage, text));
    assert!(stage.state.stop.is_none());
}

#[test]
fn a_sweep_without_dies_stops() {
    let mut stage = Stage::new(2, 2);
    stage.fx.start_fails = true;
    for (_, worker) in stage.fx.started.clone() {
        stage.gone(worker, Exit::Status(1));
    }
    (0..10).for_each(|_| stage.pass(1.0));
    assert_eq!(stage.aside(), 2);
    assert_eq!(stage.state.conclusion(), Some(Conclusion::Halted(Halt::NoDies)));
}

#[test]
fn the_first_signal_lets_the_step_in_hand_end() {
    let mut stage = Stage::ready(5, 2);
    let [a, b] = [stage.fx.started[0].1, stage.fx.started[1].1];
    stage.put(Input::Signal(15));
    for worker in [a, b] {
        let place = stage.assigned(worker).place;
        assert!(stage.fx.sent.contains(&(worker, ToWorker::Cancel { place })));
    }
    assert!(stage.fx.killed.is_empty());
    assert!(!stage.fx.released.is_empty(), "claims ahead are given back");
    // One was just done, the other one stops.
    stage.finish(a);
    stage.end(b, End::Cancelled { step: Some(2) });
    [a, b].into_iter().for_each(|worker| stage.gone(worker, Exit::Status(0)));
    assert_eq!(stage.state.conclusion(), None, "a result is still to be published");
    stage.publish_all();
    let conclusion = stage.state.conclusion().unwrap();
    assert_eq!(conclusion.exit_code(), 143);
    let summary = stage.state.summary(conclusion);
    assert_eq!((summary.finished, summary.left), (1, 4));
    assert!(stage.failures().is_empty());
}

#[test]
fn a_worker_that_does_not_stop_in_time_is_killed_and_its_run_is_no_failure() {
    let mut stage = Stage::ready(1, 1);
    let worker = stage.last_worker();
    stage.put(Input::Signal(2));
    let place = stage.assigned(worker).place;
    for _ in 0..19 {
        stage.pass(1.0);
        stage.say(worker, pulse(place, 1, None));
    }
    assert!(stage.fx.killed.is_empty());
    stage.pass(1.5);
    assert_eq!(stage.fx.killed, [worker]);
    stage.gone(worker, Exit::Signal(9));
    assert!(stage.failures().is_empty());
    assert_eq!(stage.state.conclusion().map(|conclusion| conclusion.exit_code()), Some(130));
}

#[test]
fn the_second_signal_stops_at_once() {
    let mut stage = Stage::ready(3, 2);
    stage.put(Input::Signal(2));
    assert_eq!(stage.state.conclusion(), None);
    stage.put(Input::Signal(15));
    assert_eq!(stage.fx.killed.len(), 2);
    assert_eq!(stage.state.conclusion().map(|conclusion| conclusion.exit_code()), Some(143));
}

#[test]
fn a_claim_that_is_answered_after_the_signal_is_given_back() {
    let mut stage = Stage::bare(2);
    stage.put(Input::Tick);
    stage.put(Input::Signal(2));
    stage.gone(stage.last_worker(), Exit::Status(0));
    assert_eq!(stage.state.conclusion(), None);
    for run in stage.fx.claims.drain(..).collect::<Vec<_>>() {
        let claim = Claim { attempt: 1, folder: PathBuf::from("/nowhere") };
        stage.put(Input::Claimed(run, Ok(Claimed::Ours(claim))));
    }
    assert_eq!(stage.fx.released, [0, 1]);
    assert_eq!(stage.state.conclusion().map(|conclusion| conclusion.exit_code()), Some(130));
}

#[test]
fn a_disk_that_fails_stops_the_sweep_and_loses_nothing() {
    let broken = || LedgerError { message: "results/x cannot be written: input/output error".into(), full: false };
    let mut stage = Stage::ready(3, 1);
    let worker = stage.last_worker();
    stage.finish(worker);
    let publication = stage.fx.publications.pop().unwrap();
    stage.put(Input::Published(Box::new(publication), Err(broken())));
    stage.end(worker, End::Cancelled { step: None });
    stage.gone(worker, Exit::Status(0));
    let conclusion = stage.state.conclusion().unwrap();
    assert_eq!(conclusion, Conclusion::Halted(Halt::Disk { message: broken().message }));
    assert_eq!(stage.state.summary(conclusion).left, 3);

    let mut stage = Stage::ready(3, 1);
    let worker = stage.last_worker();
    stage.end(worker, End::Failed { failure: Failure::new(Cause::Disk, "log.csv: input/output error") });
    assert_eq!(stage.failures(), [(Cause::Disk, true)]);
    assert!(stage.state.stop.is_some());
}
