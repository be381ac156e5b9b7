//! What a failure means: waits, limits, and dies that are left out.

use super::*;
use crate::controller::state::TimeLimit;

fn full() -> LedgerError {
    LedgerError { message: "cannot write 80 bytes to x: no space left on device".into(), full: true }
}

/// The names of the events about a full disk, in order.
fn of_the_disk(stage: &Stage) -> Vec<&'static str> {
    let name = |event: &Event| match event {
        Event::DiskFull { .. } => Some("full"),
        Event::DiskFree { .. } => Some("free"),
        Event::Stopping { halt: Halt::Disk { .. } } => Some("stopping"),
        _ => None,
    };
    stage.fx.events.iter().filter_map(name).collect()
}

/// Time passes while a worker beats.
fn live_through(stage: &mut Stage, seconds: u64) {
    for _ in 0..seconds {
        let worker = stage.last_worker();
        stage.say(worker, FromWorker::Beat { pulses: Vec::new() });
        stage.pass(1.0);
    }
}

#[test]
fn a_full_disk_is_waited_for_and_the_result_is_published() {
    let mut stage = Stage::ready(3, 1);
    let worker = stage.last_worker();
    stage.finish(worker);
    let publication = stage.fx.publications.pop().unwrap();
    let in_hand = stage.assigned(worker);
    stage.put(Input::Published(Box::new(publication.clone()), Err(full())));
    assert_eq!(of_the_disk(&stage), ["full"]);
    // What is in hand goes on; nothing new is begun.
    assert!(stage.fx.killed.is_empty());
    stage.end(worker, End::Failed { failure: Failure::new(Cause::DiskFull, "log.csv: no space left on device") });
    assert_eq!(stage.assigned(worker).place, in_hand.place);
    assert!(stage.fx.noted.is_empty(), "nothing is written about it");
    assert!(stage.fx.probes.is_empty());
    live_through(&mut stage, 5);
    assert_eq!(stage.fx.probes, [stage.state.limits.room]);
    stage.put(Input::Probed(Err(full())));
    live_through(&mut stage, 4);
    assert_eq!(stage.fx.probes.len(), 1);
    live_through(&mut stage, 1);
    stage.put(Input::Probed(Ok(())));
    assert_eq!(of_the_disk(&stage), ["full", "free"]);
    assert_eq!(stage.fx.publications.len(), 1);
    assert_eq!(stage.fx.publications[0].claim, publication.claim);
    stage.publish_all();
    // All the others are made, the one that failed for want of room too, and none of them counts as failed.
    for _ in 0..2 {
        stage.finish(worker);
        stage.publish_all();
    }
    stage.gone(worker, Exit::Status(0));
    assert_eq!(stage.state.conclusion(), Some(Conclusion::Complete));
}

#[test]
fn a_disk_that_stays_full_stops_the_sweep() {
    let mut stage = Stage::ready(3, 1);
    stage.state.limits.disk = Duration::from_secs(60);
    let worker = stage.last_worker();
    stage.finish(worker);
    let publication = stage.fx.publications.pop().unwrap();
    stage.put(Input::Published(Box::new(publication.clone()), Err(full())));
    for _ in 0..12 {
        live_through(&mut stage, 5);
        stage.put(Input::Probed(Err(full())));
    }
    assert_eq!(of_the_disk(&stage), ["full", "stopping"]);
    stage.end(worker, End::Cancelled { step: None });
    stage.gone(worker, Exit::Status(0));
    let conclusion = stage.state.conclusion().unwrap();
    assert_eq!(conclusion, Conclusion::Halted(Halt::Disk { message: full().message }));
    assert_eq!((conclusion.exit_code(), stage.state.summary(conclusion).left), (1, 3));
}

/// Room that never suffices is no reason to wait for ever.
#[test]
fn a_disk_that_is_full_again_at_once_was_full_all_the_time() {
    let mut stage = Stage::ready(3, 1);
    let worker = stage.last_worker();
    stage.finish(worker);
    let mut rounds = 0;
    while stage.state.stop.is_none() {
        let publication = stage.fx.publications.pop().unwrap();
        stage.put(Input::Published(Box::new(publication), Err(full())));
        live_through(&mut stage, 5);
        if stage.state.stop.is_none() {
            stage.put(Input::Probed(Ok(())));
        }
        rounds += 1;
    }
    assert_eq!(rounds, 120);
}

#[test]
fn a_signal_ends_the_wait_for_a_full_disk() {
    let mut stage = Stage::ready(2, 1);
    let worker = stage.last_worker();
    stage.finish(worker);
    let publication = stage.fx.publications.pop().unwrap();
    stage.put(Input::Published(Box::new(publication), Err(full())));
    stage.put(Input::Signal(2));
    stage.end(worker, End::Cancelled { step: None });
    stage.gone(worker, Exit::Status(0));
    let conclusion = stage.state.conclusion().unwrap();
    assert_eq!((conclusion.exit_code(), stage.state.summary(conclusion).left), (130, 2));
}

#[test]
fn a_run_that_failed_rests_while_the_others_go_on() {
    let mut stage = Stage::ready(4, 1);
    let worker = stage.last_worker();
    let first = stage.assigned(worker).place.run;
    stage.end(worker, End::Failed { failure: Failure::new(Cause::OutOfDeviceMemory, "too little") });
    assert_ne!(stage.assigned(worker).place.run, first, "another run has the lane");
    stage.finish(worker);
    stage.finish(worker);
    stage.finish(worker);
    stage.publish_all();
    assert_eq!(stage.state.resting.len(), 1);
    stage.pass(0.4);
    assert_eq!(stage.state.resting.len(), 1);
    stage.pass(0.1);
    assert_eq!(stage.assigned(worker).place.run, first);
    // The second wait is twice as long.
    stage.end(worker, End::Failed { failure: Failure::new(Cause::OutOfDeviceMemory, "too little") });
    let (until, _) = stage.state.resting[0];
    assert_eq!(until - stage.now, Duration::from_secs(1));
}

#[test]
fn the_time_limit_saves_what_is_in_hand_and_ends_with_75() {
    let mut stage = Stage::ready(2, 1);
    let stop_at = stage.now + Duration::from_secs(10);
    stage.state.limits.time_limit = Some(TimeLimit { given: Duration::from_secs(30), stop_at });
    let worker = stage.last_worker();
    live_through(&mut stage, 9);
    assert!(stage.state.stop.is_none());
    live_through(&mut stage, 1);
    let place = stage.assigned(worker).place;
    assert!(stage.fx.sent.contains(&(worker, ToWorker::Cancel { place })));
    stage.end(worker, End::Cancelled { step: Some(1) });
    stage.gone(worker, Exit::Status(0));
    let conclusion = stage.state.conclusion().unwrap();
    assert_eq!(conclusion, Conclusion::Halted(Halt::TimeLimit { seconds: 30 }));
    assert_eq!(conclusion.exit_code(), 75);
}

#[test]
fn the_first_run_that_fails_for_good_can_stop_the_sweep() {
    let mut stage = Stage::ready(4, 2);
    stage.state.limits.fail_fast = true;
    let [a, b] = [stage.fx.started[0].1, stage.fx.started[1].1];
    stage.end(a, End::Failed { failure: Failure::new(Cause::OutOfDeviceMemory, "too little") });
    assert!(stage.state.stop.is_none(), "it will be tried again");
    stage.end(a, End::Failed { failure: Failure::new(Cause::BadSettings, "no such thing") });
    let place = stage.assigned(b).place;
    assert!(stage.fx.sent.contains(&(b, ToWorker::Cancel { place })));
    stage.end(b, End::Cancelled { step: Some(1) });
    [a, b].into_iter().for_each(|worker| stage.gone(worker, Exit::Status(0)));
    let conclusion = stage.state.conclusion().unwrap();
    assert!(matches!(conclusion, Conclusion::Halted(Halt::FailFast { .. })), "{conclusion:?}");
    assert_eq!(conclusion.exit_code(), 1);
    assert_eq!(stage.fx.noted, [(1, false), (3, true)]);
}

#[test]
fn what_was_given_up_earlier_is_left_alone_and_counted() {
    let failure = Failure::new(Cause::BadSettings, "no such thing");
    let past = [Past::Failed(failure), Past::Open, Past::Finished];
    let now = Instant::now();
    let state =
        State::new(Arc::new(plan(3)), &past, vec![DieSpec { cores: vec![0], gpu: None }], Limits::default(), now);
    let mut stage = Stage { state, fx: Recorded::default(), now, attempts: 0, prompt: true };
    stage.put(Input::Tick);
    let worker = stage.last_worker();
    stage.hello(0, worker);
    assert_eq!(stage.assigned(worker).place.run, RunId::from_bits(2));
    stage.finish(worker);
    stage.publish_all();
    stage.gone(worker, Exit::Status(0));
    let conclusion = stage.state.conclusion().unwrap();
    assert_eq!(conclusion, Conclusion::SomeFailed);
    assert_eq!(stage.state.summary(conclusion).failed.len(), 1);
}

#[test]
fn a_worker_that_the_kernel_killed_for_memory_leaves_its_memory_to_the_others() {
    let mut stage = Stage::ready(6, 2);
    stage.fx.memory_ran_out = true;
    let [a, b] = [stage.fx.started[0].1, stage.fx.started[1].1];
    stage.gone(a, Exit::Signal(9));
    assert_eq!(stage.failures(), [(Cause::OutOfMemory, true)]);
    assert_eq!(stage.aside(), 1);
    stage.pass(1.0);
    assert_eq!(stage.fx.started.len(), 2, "no worker takes its place");
    // The last die is kept: its run is tried again until its attempts are used up.
    stage.gone(b, Exit::Signal(9));
    stage.pass(2.0);
    assert_eq!((stage.aside(), stage.fx.started.len()), (1, 3));
}

#[test]
fn causes_are_told_apart_by_the_end_of_the_process() {
    let cause = |exit, words: Option<&str>, memory_ran_out| {
        let mut stage = Stage::ready(6, 1);
        stage.fx.memory_ran_out = memory_ran_out;
        stage.fx.words = words.map(str::to_owned);
        stage.gone(stage.last_worker(), exit);
        stage.failures()[0].0
    };
    assert_eq!(cause(Exit::Signal(9), None, false), Cause::Crashed);
    assert_eq!(cause(Exit::Signal(9), None, true), Cause::OutOfMemory);
    assert_eq!(cause(Exit::Signal(11), None, true), Cause::Crashed);
    assert_eq!(cause(Exit::Signal(6), Some("memory allocation of 64 bytes failed"), false), Cause::OutOfMemory);
    assert_eq!(cause(Exit::Signal(6), Some("assertion failed"), false), Cause::Crashed);
    assert_eq!(cause(Exit::Signal(15), None, false), Cause::Preempted);
    assert_eq!(cause(Exit::Status(1), None, true), Cause::Crashed);
}

#[test]
fn preemption_uses_up_no_attempt() {
    let mut stage = Stage::ready(1, 1);
    for round in 0..5 {
        stage.gone(stage.last_worker(), Exit::Signal(15));
        stage.pass(f64::from(1 << round));
        stage.hello(0, stage.last_worker());
    }
    assert_eq!(stage.failures(), [(Cause::Preempted, true); 5]);
    assert_eq!(stage.aside(), 0);
    stage.finish(stage.last_worker());
}

#[test]
fn a_lost_die_is_left_and_its_run_goes_on_elsewhere() {
    let mut stage = Stage::ready(4, 2);
    let [a, b] = [stage.fx.started[0].1, stage.fx.started[1].1];
    let run = stage.assigned(a).place.run;
    stage.end(a, End::Failed { failure: Failure::new(Cause::DeviceLost, "the driver lost it") });
    assert_eq!(stage.fx.killed, [a], "its process goes with it");
    stage.gone(a, Exit::Signal(9));
    assert_eq!((stage.aside(), stage.failures()), (1, vec![(Cause::DeviceLost, true)]));
    stage.pass(0.5);
    assert_eq!(stage.fx.started.len(), 2);
    while stage.assigned(b).place.run != run {
        stage.finish(b);
    }
}
