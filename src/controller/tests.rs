//! Orders of events that matter, with no process and no disk.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::clerk::{Claim, Claimed, LedgerError, Publication};
use super::effects::{Effects, Input, WorkerId};
use super::halt::Conclusion;
use super::handle::handle;
use super::process::Exit;
use super::state::{Limits, State};
use crate::event::{Cause, Event, Failure, Halt, Phase};
use crate::plan::Plan;
use crate::protocol::{Assignment, End, FromWorker, Hello, Lines, Place, Pulse, ToWorker, VERSION, encode};
use crate::run::{Outcome, Row, RunId};
use crate::testing;

fn plan(runs: u64) -> Plan {
    let seeds: Vec<u64> = (1..=runs).collect();
    let mut plan = testing::plan(&[("adamw", &[])], &seeds);
    for (run, bits) in plan.runs.iter_mut().zip(1..) {
        run.id = RunId::from_bits(bits);
        run.settings.steps = 10;
    }
    plan.options.attempts = 3;
    plan
}

/// What the state had done, in order; claims and publications are answered by the test.
#[derive(Default)]
struct Recorded {
    started: Vec<(usize, WorkerId)>,
    sent: VecDeque<(WorkerId, ToWorker)>,
    killed: Vec<WorkerId>,
    claims: VecDeque<usize>,
    released: Vec<usize>,
    noted: Vec<u32>,
    publications: Vec<Publication>,
    events: Vec<Event>,
    start_fails: bool,
}

impl Effects for Recorded {
    fn start(&mut self, die: usize, worker: WorkerId) -> Result<u32, Failure> {
        if self.start_fails {
            return Err(Failure::new(Cause::Start, "no processes left"));
        }
        self.started.push((die, worker));
        Ok(u32::try_from(worker.0).unwrap() + 1000)
    }
    fn send(&mut self, worker: WorkerId, message: ToWorker) {
        self.sent.push_back((worker, message));
    }
    fn forget(&mut self, _: WorkerId) {}
    fn kill(&mut self, worker: WorkerId) {
        self.killed.push(worker);
    }
    fn claim(&mut self, run: usize) {
        self.claims.push_back(run);
    }
    fn release(&mut self, run: usize, _: Claim) {
        self.released.push(run);
    }
    fn failed(&mut self, claim: Claim, _: Failure) {
        self.noted.push(claim.attempt);
    }
    fn publish(&mut self, publication: Publication) {
        self.publications.push(publication);
    }
    fn last_words(&mut self, _: WorkerId, _: Option<&Path>) -> Option<String> {
        None
    }
    fn announce(&mut self, event: Event) {
        self.events.push(event);
    }
}

/// A controller whose world is the test.
struct Stage {
    state: State,
    fx: Recorded,
    now: Instant,
    attempts: u32,
    /// Whether claims are answered as soon as they are made.
    prompt: bool,
}

impl Stage {
    fn new(runs: u64, dies: usize) -> Self {
        let now = Instant::now();
        let finished = vec![false; usize::try_from(runs).unwrap()];
        let cores = (0..dies).map(|die| vec![die]).collect();
        let state = State::new(Arc::new(plan(runs)), &finished, cores, Limits::default(), now);
        let mut stage = Self { state, fx: Recorded::default(), now, attempts: 0, prompt: true };
        stage.put(Input::Tick);
        stage
    }

    /// A stage on which every die has a ready worker.
    fn ready(runs: u64, dies: usize) -> Self {
        let mut stage = Self::new(runs, dies);
        for (die, worker) in stage.fx.started.clone() {
            stage.hello(die, worker);
        }
        stage
    }

    fn put(&mut self, input: Input) {
        handle(&mut self.state, self.now, input, &mut self.fx);
        while self.prompt
            && let Some(run) = self.fx.claims.pop_front()
        {
            self.attempts += 1;
            let claim = Claim { attempt: self.attempts, folder: PathBuf::from("/nowhere") };
            handle(&mut self.state, self.now, Input::Claimed(run, Ok(Claimed::Ours(claim))), &mut self.fx);
        }
    }

    fn say(&mut self, worker: WorkerId, message: FromWorker) {
        self.put(Input::Message(worker, Box::new(message)));
    }

    fn hello(&mut self, die: usize, worker: WorkerId) {
        self.say(worker, FromWorker::Hello { hello: greeting(die, worker) });
    }

    fn last_worker(&self) -> WorkerId {
        self.fx.started.last().unwrap().1
    }

    /// The latest assignment to a worker.
    fn assigned(&self, worker: WorkerId) -> Assignment {
        let to = |(id, message): &(WorkerId, ToWorker)| match message {
            ToWorker::Assign { assignment } if *id == worker => Some((**assignment).clone()),
            _ => None,
        };
        self.fx.sent.iter().rev().find_map(to).expect("nothing assigned")
    }

    fn end(&mut self, worker: WorkerId, end: End) {
        let place = self.assigned(worker).place;
        self.say(worker, FromWorker::Ended { place, end });
    }

    fn finish(&mut self, worker: WorkerId) {
        self.end(worker, End::Result { outcome: Box::new(outcome(10)) });
    }

    fn publish_all(&mut self) {
        for publication in std::mem::take(&mut self.fx.publications) {
            self.put(Input::Published(publication.run, Ok(())));
        }
    }

    fn gone(&mut self, worker: WorkerId, exit: Exit) {
        self.put(Input::Closed(worker));
        self.put(Input::Exited(worker, exit));
    }

    fn pass(&mut self, seconds: f64) {
        self.now += Duration::from_secs_f64(seconds);
        self.put(Input::Tick);
    }

    fn failures(&self) -> Vec<(Cause, bool)> {
        let of = |event: &Event| match event {
            Event::AttemptFailed { failure, again, .. } => Some((failure.cause, *again)),
            _ => None,
        };
        self.fx.events.iter().filter_map(of).collect()
    }

    fn aside(&self) -> usize {
        self.fx.events.iter().filter(|event| matches!(event, Event::DieSetAside { .. })).count()
    }
}

fn greeting(die: usize, worker: WorkerId) -> Hello {
    Hello {
        version: VERSION,
        pid: u32::try_from(worker.0).unwrap() + 1000,
        die,
        cores: vec![die],
        backend: "cpu".into(),
        simd: "avx2".into(),
        lanes: 1,
    }
}

fn outcome(steps: u64) -> Outcome {
    Outcome { steps, ..testing::diverged(1) }
}

fn row(step: u64) -> Row {
    testing::row(step, 1.0, 1.0)
}

fn pulse(place: Place, still_ms: u64, usual_ms: Option<u64>) -> FromWorker {
    FromWorker::Beat { pulses: vec![Pulse { place, phase: Phase::Training, step: Some(3), still_ms, usual_ms }] }
}

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
fn a_grandchild_that_holds_the_pipe_holds_nothing_up() {
    let mut stage = Stage::ready(1, 1);
    let worker = stage.last_worker();
    stage.put(Input::Exited(worker, Exit::Signal(9)));
    stage.pass(0.1);
    assert!(stage.failures().is_empty());
    stage.pass(1.0);
    assert_eq!(stage.failures(), [(Cause::Crashed, true)]);
    assert_ne!(stage.last_worker(), worker, "a new worker is started");
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
    while stage.state.runs.iter().any(|entry| entry.state == super::state::RunState::Running) {
        stage.finish(good);
        stage.publish_all();
    }
    stage.gone(good, Exit::Status(0));
    assert_eq!(stage.fx.started.len(), started, "no worker for a die that is set aside");
    assert_eq!(stage.state.conclusion(), Some(Conclusion::Complete));
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
fn a_full_disk_stops_the_sweep_and_loses_nothing() {
    let full = || LedgerError { message: "results/x cannot be written: no space left on device".into() };
    let mut stage = Stage::ready(3, 1);
    let worker = stage.last_worker();
    stage.finish(worker);
    stage.put(Input::Published(0, Err(full())));
    stage.end(worker, End::Cancelled { step: None });
    stage.gone(worker, Exit::Status(0));
    let conclusion = stage.state.conclusion().unwrap();
    assert_eq!(conclusion, Conclusion::Halted(Halt::Disk { message: full().message }));
    assert_eq!(stage.state.summary(conclusion).left, 3);

    let mut stage = Stage::ready(3, 1);
    let worker = stage.last_worker();
    stage.end(worker, End::Failed { failure: Failure::new(Cause::Disk, "log.csv: no space left") });
    assert_eq!(stage.failures(), [(Cause::Disk, true)]);
    assert!(stage.state.stop.is_some());
}

#[test]
fn runs_of_others_are_left_to_them() {
    let mut stage = Stage::bare(2);
    stage.put(Input::Tick);
    let claims: Vec<usize> = stage.fx.claims.drain(..).collect();
    assert_eq!(claims, [0, 1]);
    stage.put(Input::Claimed(0, Ok(Claimed::Finished)));
    stage.put(Input::Claimed(1, Ok(Claimed::Elsewhere { holder: "a host".into() })));
    let worker = stage.last_worker();
    stage.gone(worker, Exit::Status(0));
    let conclusion = stage.state.conclusion().unwrap();
    assert_eq!(conclusion.exit_code(), 75);
}

#[test]
fn lanes_are_filled_and_lost_together() {
    let mut stage = Stage::new(5, 1);
    let worker = stage.last_worker();
    let mut hello = greeting(0, worker);
    hello.lanes = 3;
    stage.say(worker, FromWorker::Hello { hello });
    let lanes: Vec<_> = stage
        .fx
        .sent
        .iter()
        .filter_map(|(_, message)| match message {
            ToWorker::Assign { assignment } => Some(assignment.place.lane),
            _ => None,
        })
        .collect();
    assert_eq!(lanes, [0, 1, 2]);
    stage.gone(worker, Exit::Signal(9));
    assert_eq!(stage.failures().len(), 3);
}

impl Stage {
    /// A stage on which nothing has happened yet.
    fn bare(runs: u64) -> Self {
        let now = Instant::now();
        let finished = vec![false; usize::try_from(runs).unwrap()];
        let state = State::new(Arc::new(plan(runs)), &finished, vec![vec![0]], Limits::default(), now);
        Self { state, fx: Recorded::default(), now, attempts: 0, prompt: false }
    }
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
