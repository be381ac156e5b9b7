//! Workers that train many runs at once.

use super::*;

/// A stage with one die, whose worker offers so many lanes; the runs whose number `other` tells are of another shape.
fn stage(runs: u64, lanes: u32, other: fn(usize) -> bool) -> (Stage, WorkerId) {
    let mut stage = Stage::bare(runs);
    let mut plan = plan(runs);
    for (number, run) in plan.runs.iter_mut().enumerate() {
        run.shape = usize::from(other(number));
    }
    stage.state.plan = Arc::new(plan);
    stage.prompt = true;
    stage.put(Input::Tick);
    let worker = stage.last_worker();
    let hello = Hello { lanes, ..greeting(0, worker) };
    stage.say(worker, FromWorker::Hello { hello });
    (stage, worker)
}

/// Places of all assignments so far.
fn places(stage: &Stage) -> Vec<Place> {
    let of = |(_, message): &(WorkerId, ToWorker)| match message {
        ToWorker::Assign { assignment } => Some(assignment.place),
        _ => None,
    };
    stage.fx.sent.iter().filter_map(of).collect()
}

fn lanes(stage: &Stage) -> Vec<u32> {
    places(stage).iter().map(|place| place.lane).collect()
}

fn end(stage: &mut Stage, worker: WorkerId, place: Place, end: End) {
    stage.say(worker, FromWorker::Ended { place, end });
}

fn result() -> End {
    End::Result { outcome: Box::new(outcome(10)) }
}

#[test]
fn lanes_are_filled_and_a_free_one_is_filled_again() {
    let (mut stage, worker) = stage(5, 3, |_| false);
    assert_eq!(lanes(&stage), [0, 1, 2]);
    let second = places(&stage)[1];
    end(&mut stage, worker, second, result());
    assert_eq!(lanes(&stage), [0, 1, 2, 1]);
    assert_eq!(stage.assigned(worker).place.run, RunId::from_bits(4));
}

#[test]
fn a_lost_worker_costs_each_run_an_attempt_and_the_die_one_fault() {
    let (mut stage, worker) = stage(5, 3, |_| false);
    stage.gone(worker, Exit::Signal(9));
    assert_eq!(stage.failures(), [(Cause::Crashed, true); 3]);
    assert_eq!(stage.aside(), 0, "three runs are lost by one fault");
    assert!(stage.state.stop.is_none(), "nor did three runs fail one after the other");
    assert_ne!(stage.last_worker(), worker);
}

#[test]
fn a_lost_die_is_set_aside_at_once() {
    let (mut stage, worker) = stage(5, 3, |_| false);
    stage.gone(worker, Exit::Status(4));
    assert_eq!(stage.failures(), [(Cause::DeviceLost, true); 3]);
    assert_eq!(stage.aside(), 1);
}

#[test]
fn runs_of_another_shape_wait_until_all_lanes_are_free() {
    let (mut stage, worker) = stage(4, 2, |run| run >= 3);
    let first = places(&stage);
    assert_eq!(lanes(&stage), [0, 1]);
    end(&mut stage, worker, first[0], result());
    assert_eq!(lanes(&stage), [0, 1, 0]);
    end(&mut stage, worker, first[1], result());
    assert_eq!(lanes(&stage), [0, 1, 0], "the last run is of another shape");
    let third = places(&stage)[2];
    end(&mut stage, worker, third, result());
    assert_eq!(stage.assigned(worker).place.run, RunId::from_bits(4));
}

#[test]
fn more_lanes_take_more_runs() {
    let (mut stage, worker) = stage(5, 1, |_| false);
    assert_eq!(lanes(&stage), [0]);
    stage.say(worker, FromWorker::Lanes { count: 4, why: "measured".into() });
    assert_eq!(lanes(&stage), [0, 1, 2, 3]);
}

#[test]
fn attempts_in_lanes_that_are_gone_are_returned_and_not_counted() {
    let (mut stage, worker) = stage(5, 4, |_| false);
    stage.say(worker, FromWorker::Lanes { count: 2, why: "out of device memory at 4 lanes".into() });
    let assigned = places(&stage);
    for &place in &assigned[2..] {
        end(&mut stage, worker, place, End::Returned);
    }
    assert!(stage.failures().is_empty() && stage.fx.killed.is_empty());
    assert_eq!(lanes(&stage), [0, 1, 2, 3], "nothing goes into lanes that are gone");
    end(&mut stage, worker, assigned[0], result());
    assert_eq!(lanes(&stage)[4..], [0]);
    for count in [0, 5000] {
        stage.say(worker, FromWorker::Lanes { count, why: String::new() });
    }
    assert_eq!(stage.fx.killed, [worker], "as many lanes as that are nonsense");
}

#[test]
fn the_least_busy_worker_gets_the_next_run() {
    let mut stage = Stage::new(6, 2);
    for (die, worker) in stage.fx.started.clone() {
        let hello = Hello { lanes: 3, ..greeting(die, worker) };
        stage.say(worker, FromWorker::Hello { hello });
    }
    assert_eq!(lanes(&stage), [0, 1, 2, 0, 1, 2]);
    let [a, b] = [stage.fx.started[0].1, stage.fx.started[1].1];
    assert_eq!(stage.fx.sent.iter().filter(|(to, _)| *to == a).count(), 3);
    assert_eq!(stage.fx.sent.iter().filter(|(to, _)| *to == b).count(), 3);
}
