//! Other controllers on the same folder.

use super::*;

/// A stage on which run 0 is another controller's, and run 1 is trained here.
fn shared() -> (Stage, WorkerId) {
    let mut stage = Stage::bare(2);
    stage.put(Input::Tick);
    assert_eq!(stage.fx.claims.pop_front(), Some(0));
    stage.put(Input::Claimed(0, Ok(Claimed::Elsewhere { holder: "process 7 on k80".into() })));
    stage.prompt = true;
    stage.put(Input::Tick);
    let worker = stage.last_worker();
    stage.hello(0, worker);
    assert_eq!(stage.assigned(worker).place.run, RunId::from_bits(2));
    (stage, worker)
}

/// Answers the round that is under way.
fn tended(stage: &mut Stage, lost: Vec<RunId>, seen: Vec<(usize, Seen)>) {
    let lost = lost.into_iter().map(|run| (run, "process 9 on k80".to_owned())).collect();
    stage.put(Input::Tended(Ok(Tended { lost, seen })));
}

fn finished() -> Box<Outcome> {
    Box::new(outcome(10))
}

fn count(stage: &Stage, is: fn(&Event) -> bool) -> usize {
    stage.fx.events.iter().filter(|event| is(event)).count()
}

#[test]
fn runs_of_others_are_waited_for() {
    let (mut stage, worker) = shared();
    stage.finish(worker);
    stage.publish_all();
    assert_eq!(stage.state.conclusion(), None);
    let waiting = Event::Waiting { runs: 1, holders: vec!["process 7 on k80".to_owned()] };
    assert!(stage.fx.events.contains(&waiting));
    tended(&mut stage, vec![], vec![]);
    stage.pass(1.0);
    assert_eq!(stage.fx.rounds.last(), Some(&vec![0]), "it is looked at");
    tended(&mut stage, vec![], vec![(0, Seen::Held { holder: "process 7 on k80".into() })]);
    stage.pass(1.0);
    assert_eq!(count(&stage, |event| matches!(event, Event::Waiting { .. })), 1, "told once");
    tended(&mut stage, vec![], vec![(0, Seen::Finished(finished()))]);
    assert_eq!(count(&stage, |event| matches!(event, Event::FinishedElsewhere { .. })), 1);
    stage.gone(worker, Exit::Status(0));
    assert_eq!(stage.state.conclusion(), Some(Conclusion::Complete));
    let summary = stage.state.summary(Conclusion::Complete);
    assert_eq!((summary.finished, summary.here, summary.elsewhere), (2, 1, 1));
}

#[test]
fn a_run_that_becomes_free_is_claimed() {
    let (mut stage, worker) = shared();
    stage.finish(worker);
    stage.publish_all();
    tended(&mut stage, vec![], vec![]);
    stage.pass(1.0);
    tended(&mut stage, vec![], vec![(0, Seen::Free)]);
    assert_eq!(stage.assigned(worker).place.run, RunId::from_bits(1));
    stage.finish(worker);
    stage.publish_all();
    stage.gone(worker, Exit::Status(0));
    assert_eq!(stage.state.conclusion(), Some(Conclusion::Complete));
}

#[test]
fn who_is_told_not_to_wait_ends_with_what_is_left() {
    let (mut stage, worker) = shared();
    stage.state.wait = false;
    stage.finish(worker);
    stage.publish_all();
    assert!(stage.fx.sent.contains(&(worker, ToWorker::Shutdown)));
    stage.gone(worker, Exit::Status(0));
    let conclusion = stage.state.conclusion().unwrap();
    assert_eq!(conclusion.exit_code(), 75);
    let summary = stage.state.summary(conclusion);
    assert_eq!((summary.finished, summary.left), (1, 1));
}

#[test]
fn a_signal_ends_the_wait_for_others() {
    let (mut stage, worker) = shared();
    stage.finish(worker);
    stage.publish_all();
    stage.put(Input::Signal(15));
    stage.gone(worker, Exit::Status(0));
    assert_eq!(stage.state.conclusion().map(|conclusion| conclusion.exit_code()), Some(143));
}

#[test]
fn an_attempt_whose_lease_is_lost_is_cancelled_and_is_no_failure() {
    let (mut stage, worker) = shared();
    let place = stage.assigned(worker).place;
    tended(&mut stage, vec![place.run], vec![]);
    assert!(stage.fx.sent.contains(&(worker, ToWorker::Cancel { place })));
    assert_eq!(count(&stage, |event| matches!(event, Event::LeaseLost { .. })), 1);
    stage.end(worker, End::Cancelled { step: Some(2) });
    assert!(stage.failures().is_empty());
    stage.pass(1.0);
    assert_eq!(stage.fx.rounds.last(), Some(&vec![0, 1]), "both are others' now");
    // It crashes on its way: no failure either.
    let (mut stage, worker) = shared();
    let run = stage.assigned(worker).place.run;
    tended(&mut stage, vec![run], vec![]);
    stage.gone(worker, Exit::Signal(11));
    assert!(stage.failures().is_empty());
}

#[test]
fn a_result_that_comes_after_the_lease_was_lost_is_not_published() {
    let (mut stage, worker) = shared();
    stage.finish(worker);
    let publication = stage.fx.publications.pop().unwrap();
    let answer = Published::LeaseLost { holder: "process 9 on k80".into(), differs: Some("the log".into()) };
    stage.put(Input::Published(Box::new(publication), Ok(answer)));
    assert_eq!(count(&stage, |event| matches!(event, Event::RunFinished { .. })), 0);
    assert_eq!(count(&stage, |event| matches!(event, Event::LeaseLost { .. })), 1);
    assert_eq!(count(&stage, |event| matches!(event, Event::ResultDiffers { .. })), 1);
    assert_eq!(stage.state.conclusion(), None, "it is waited for");
}

#[test]
fn a_claim_ahead_that_is_lost_is_taken_back() {
    let mut stage = Stage::ready(4, 1);
    let before = stage.fx.released.len();
    tended(&mut stage, vec![RunId::from_bits(2)], vec![]);
    assert_eq!(stage.fx.released[before..], [1]);
    stage.finish(stage.last_worker());
    assert_ne!(stage.assigned(stage.last_worker()).place.run, RunId::from_bits(2));
}

#[test]
fn a_worker_that_did_not_hear_of_this_controller_is_no_failure() {
    let mut stage = Stage::ready(1, 1);
    let worker = stage.last_worker();
    stage.gone(worker, Exit::Status(crate::protocol::ORPHANED.into()));
    assert!(stage.failures().is_empty());
    assert_eq!(count(&stage, |event| matches!(event, Event::WorkerLeft { .. })), 1);
    assert_eq!(count(&stage, |event| matches!(event, Event::AttemptAbandoned { .. })), 1);
    stage.hello(0, stage.last_worker());
    assert_eq!(stage.assigned(stage.last_worker()).place.run, RunId::from_bits(1));
}

#[test]
fn workers_hear_of_their_controller_and_a_failing_beat_is_told_once() {
    let mut stage = Stage::ready(1, 1);
    let worker = stage.last_worker();
    (0..3).for_each(|_| stage.pass(1.0));
    let beats = stage.fx.sent.iter().filter(|sent| **sent == (worker, ToWorker::Beat)).count();
    assert_eq!(beats, 3);
    let rounds = stage.fx.rounds.len();
    assert_eq!(rounds, 1, "one at a time");
    for _ in 0..2 {
        stage.put(Input::Tended(Err(LedgerError { message: "no space left".into(), full: true })));
        stage.pass(1.0);
    }
    assert_eq!(count(&stage, |event| matches!(event, Event::BeatFailed { .. })), 1);
}

#[test]
fn a_run_that_cannot_be_attempted_fails_alone() {
    let mut stage = Stage::bare(2);
    stage.put(Input::Tick);
    stage.put(Input::Claimed(
        0,
        Ok(Claimed::Unusable { failure: Failure::new(Cause::Disk, "lease.4: Is a directory") }),
    ));
    assert_eq!(count(&stage, |event| matches!(event, Event::RunFailed { attempts: 0, .. })), 1);
    assert!(stage.state.stop.is_none());
    assert_eq!(stage.fx.claims.back(), Some(&1));
}

#[test]
fn a_run_that_failed_for_good_is_given_back() {
    let mut stage = Stage::ready(1, 1);
    let worker = stage.last_worker();
    stage.end(worker, End::Failed { failure: Failure::new(Cause::Bug, "no") });
    assert_eq!(stage.fx.given_up, [0]);
}
