//! Workers that break the rules, and workers that only seem to.

use super::*;

#[test]
fn a_grandchild_that_holds_the_pipe_holds_nothing_up() {
    let mut stage = Stage::ready(1, 1);
    let worker = stage.last_worker();
    stage.put(Input::Exited(worker, Exit::Signal(9)));
    stage.pass(0.1);
    assert!(stage.failures().is_empty());
    stage.pass(1.0);
    assert_eq!(stage.failures(), [(Cause::Crashed, true)]);
    stage.pass(0.5);
    assert_ne!(stage.last_worker(), worker, "a new worker is started");
}

#[test]
fn rubbish_kills_the_worker_that_sent_it_and_nobody_else() {
    let place = Place { lane: 0, run: RunId::from_bits(1), attempt: 1 };
    let stranger = Place { attempt: 7, ..place };
    let beyond = Place { lane: 1, ..place };
    let bad = [
        FromWorker::Row { place: stranger, row: row(1) },
        FromWorker::Row { place: beyond, row: row(1) },
        FromWorker::Row { place, row: row(10) },
        FromWorker::Checkpointed { place, step: 10 },
        FromWorker::Checkpointed { place: stranger, step: 1 },
        FromWorker::Ended { place: stranger, end: End::Result { outcome: Box::new(outcome(1)) } },
        FromWorker::Ended { place, end: End::Result { outcome: Box::new(outcome(11)) } },
        FromWorker::Ended { place, end: End::Cancelled { step: None } },
        FromWorker::Hello { hello: greeting(0, WorkerId(1)) },
        pulse(stranger, 0, None),
    ];
    for message in bad {
        let mut stage = Stage::ready(4, 2);
        let [bad, good] = [stage.fx.started[0].1, stage.fx.started[1].1];
        stage.say(bad, message.clone());
        assert_eq!(stage.fx.killed, [bad], "{message:?}");
        // What it says after that does not count.
        stage.say(bad, FromWorker::Row { place: stranger, row: row(1) });
        stage.gone(bad, Exit::Signal(9));
        assert_eq!(stage.failures(), [(Cause::Protocol, true)], "{message:?}");
        stage.finish(good);
        assert_eq!(stage.fx.publications.len(), 1);
    }
}

#[test]
fn a_row_may_not_come_twice() {
    let mut stage = Stage::ready(1, 1);
    let worker = stage.last_worker();
    let place = stage.assigned(worker).place;
    stage.say(worker, FromWorker::Row { place, row: row(3) });
    assert!(stage.fx.killed.is_empty());
    stage.say(worker, FromWorker::Row { place, row: row(3) });
    assert_eq!(stage.fx.killed, [worker]);
}

#[test]
fn a_worker_must_be_who_it_should_be() {
    let greeting = |change: fn(&mut Hello)| {
        let mut stage = Stage::new(1, 1);
        let worker = stage.last_worker();
        let mut hello = greeting(0, worker);
        change(&mut hello);
        stage.say(worker, FromWorker::Hello { hello });
        stage.fx.killed.len()
    };
    assert_eq!(greeting(|_| ()), 0);
    assert_eq!(greeting(|hello| hello.version += 1), 1);
    assert_eq!(greeting(|hello| hello.pid += 1), 1);
    assert_eq!(greeting(|hello| hello.die += 1), 1);
    assert_eq!(greeting(|hello| hello.cores.push(1)), 1);
    assert_eq!(greeting(|hello| hello.lanes = 0), 1);
    let mut stage = Stage::new(1, 1);
    let worker = stage.last_worker();
    stage.say(worker, FromWorker::Beat { pulses: vec![] });
    assert_eq!(stage.fx.killed, [worker], "a beat before the hello");
}

#[test]
fn silence_and_standing_still_are_told_from_slowness() {
    let mut stage = Stage::ready(2, 1);
    let worker = stage.last_worker();
    let place = stage.assigned(worker).place;
    // A slow step is no hang: 20 times the usual 10 s are not over.
    stage.say(worker, pulse(place, 199_000, Some(10_000)));
    // Nor is a first one that takes minutes.
    stage.say(worker, pulse(place, 300_000, None));
    assert!(stage.fx.killed.is_empty());
    stage.say(worker, pulse(place, 61_000, Some(10)));
    assert_eq!(stage.fx.killed, [worker]);
    stage.gone(worker, Exit::Signal(9));
    assert_eq!(stage.failures(), [(Cause::Hung, true)]);

    stage.hello(0, stage.last_worker());
    for _ in 0..29 {
        stage.pass(1.0);
    }
    assert_eq!(stage.fx.killed.len(), 1);
    (0..2).for_each(|_| stage.pass(1.0));
    assert_eq!(stage.fx.killed, [worker, stage.last_worker()]);
}

#[test]
fn a_controller_that_slept_blames_nobody() {
    let mut stage = Stage::ready(1, 1);
    stage.pass(1.0);
    stage.pass(3600.0);
    assert!(stage.fx.killed.is_empty());
    (0..31).for_each(|_| stage.pass(1.0));
    assert_eq!(stage.fx.killed.len(), 1);
}

/// The requirement is 10,000 rows a second; a debug build on a busy machine must still reach it.
#[test]
fn rows_are_taken_in_faster_than_anyone_logs() {
    const ROWS: u64 = 20_000;
    let mut stage = Stage::ready(1, 1);
    let worker = stage.last_worker();
    let place = stage.assigned(worker).place;
    Arc::get_mut(&mut stage.state.plan).unwrap().runs[0].settings.steps = ROWS;
    let started = Instant::now();
    let text: Vec<u8> =
        (0..ROWS).flat_map(|step| encode(&FromWorker::Row { place, row: row(step) }).unwrap()).collect();
    let encoded = started.elapsed();
    let mut lines = Lines::new(&text[..]);
    while let Some(message) = lines.read::<FromWorker>().unwrap() {
        stage.say(worker, message);
    }
    let taken = started.elapsed() - encoded;
    let logged = stage.fx.events.iter().filter(|event| matches!(event, Event::Logged { .. })).count();
    assert_eq!(logged as u64, ROWS);
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / ROWS as f64;
    println!(
        "a row: {} bytes, {:.1} us to write, {:.1} us to take in",
        text.len() as u64 / ROWS,
        micros(encoded),
        micros(taken)
    );
    assert!(taken < Duration::from_secs(ROWS / 10_000), "{taken:?}");
}
