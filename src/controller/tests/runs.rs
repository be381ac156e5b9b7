//! Runs, from the queue to a result or a failure.

use super::*;

#[test]
fn a_sweep_goes_from_start_to_end() {
    let mut stage = Stage::ready(3, 2);
    let [a, b] = [stage.fx.started[0].1, stage.fx.started[1].1];
    stage.finish(a);
    // The third run is assigned although the first one's result is not on disk yet.
    assert_eq!(stage.assigned(a).place.run, RunId::from_bits(3));
    stage.finish(b);
    stage.finish(a);
    assert_eq!(stage.state.conclusion(), None);
    stage.publish_all();
    for worker in [a, b] {
        assert!(stage.fx.sent.contains(&(worker, ToWorker::Shutdown)));
        assert_eq!(stage.state.conclusion(), None);
        stage.gone(worker, Exit::Status(0));
    }
    assert_eq!(stage.state.conclusion(), Some(Conclusion::Complete));
    assert_eq!(stage.state.summary(Conclusion::Complete).finished, 3);
    assert!(stage.fx.killed.is_empty() && stage.failures().is_empty());
}

#[test]
fn no_more_workers_than_runs() {
    assert_eq!(Stage::new(1, 4).fx.started.len(), 1);
    assert_eq!(Stage::new(9, 4).fx.started.len(), 4);
}

#[test]
fn a_result_on_its_way_counts_although_its_worker_is_gone() {
    let mut stage = Stage::ready(1, 1);
    let worker = stage.last_worker();
    stage.put(Input::Exited(worker, Exit::Signal(9)));
    assert!(stage.failures().is_empty(), "the last lines may still come");
    stage.finish(worker);
    stage.put(Input::Closed(worker));
    stage.publish_all();
    assert!(stage.failures().is_empty());
    assert_eq!(stage.state.conclusion(), Some(Conclusion::Complete));
}

#[test]
fn a_crashed_run_is_tried_again_until_its_attempts_are_used_up() {
    let mut stage = Stage::ready(1, 1);
    for attempt in 1..=3 {
        let worker = stage.last_worker();
        assert_eq!(stage.assigned(worker).place.attempt, attempt);
        stage.gone(worker, Exit::Signal(6));
        if attempt < 3 {
            stage.pass(1.0);
            stage.hello(0, stage.last_worker());
        }
    }
    assert_eq!(stage.failures(), [(Cause::Crashed, true), (Cause::Crashed, true), (Cause::Crashed, false)]);
    assert_eq!(stage.aside(), 0, "one run that fails three times speaks against the run, not the die");
    assert_eq!(stage.state.conclusion(), Some(Conclusion::SomeFailed));
}

#[test]
fn what_another_attempt_would_only_repeat_is_not_tried_again() {
    for cause in [Cause::BadSettings, Cause::Bug, Cause::Corpus] {
        let mut stage = Stage::ready(2, 1);
        let worker = stage.last_worker();
        stage.end(worker, End::Failed { failure: Failure::new(cause, "no") });
        assert_eq!(stage.failures(), [(cause, false)]);
        stage.finish(worker);
        stage.publish_all();
        stage.gone(worker, Exit::Status(0));
        assert_eq!(stage.state.conclusion(), Some(Conclusion::SomeFailed));
    }
}

#[test]
fn a_die_that_fails_three_times_in_a_row_is_set_aside_and_the_others_go_on() {
    let mut stage = Stage::ready(9, 2);
    let good = stage.fx.started[0].1;
    stage.finish(good);
    for _ in 0..3 {
        let bad = stage.fx.started.iter().rev().find(|(die, _)| *die == 1).unwrap().1;
        stage.gone(bad, Exit::Signal(11));
        stage.pass(1.0);
        if let Some((die @ 1, next)) = stage.fx.started.last().copied()
            && next != bad
        {
            stage.hello(die, next);
        }
    }
    assert_eq!(stage.aside(), 1);
    let started = stage.fx.started.len();
    while stage.state.runs.iter().any(|entry| entry.state == crate::controller::state::RunState::Running) {
        stage.finish(good);
        stage.publish_all();
    }
    stage.gone(good, Exit::Status(0));
    assert_eq!(stage.fx.started.len(), started, "no worker for a die that is set aside");
    assert_eq!(stage.state.conclusion(), Some(Conclusion::Complete));
}
