//! Orders of events that matter, with no process and no disk: a stage on which a test plays the world.

mod lanes;
mod others;
mod policy;
mod runs;
mod stops;
mod workers;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::controller::clerk::{Claim, Claimed, LedgerError, Publication, Published, Seen, Tended};
use crate::controller::dies::DieSpec;
use crate::controller::effects::{Effects, Input, WorkerId};
use crate::controller::halt::Conclusion;
use crate::controller::handle::handle;
use crate::controller::process::Exit;
use crate::controller::state::{Limits, State};
use crate::event::{Cause, Event, Failure, Halt, Past, Phase};
use crate::plan::Plan;
use crate::protocol::{Assignment, End, FromWorker, Hello, Lines, Place, Pulse, ToWorker, VERSION, encode};
use crate::run::{Outcome, Row, RunId};
use crate::testing;

/// A plan of runs of 10 steps with the ids 1, 2, ...
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
    rounds: Vec<Vec<usize>>,
    given_up: Vec<usize>,
    noted: Vec<(u32, bool)>,
    publications: Vec<Publication>,
    rests: Vec<(usize, crate::plan::Mark)>,
    events: Vec<Event>,
    probes: Vec<u64>,
    start_fails: bool,
    memory_ran_out: bool,
    words: Option<String>,
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
    fn tend(&mut self, others: Vec<usize>) {
        self.rounds.push(others);
    }
    fn give_up(&mut self, run: usize) {
        self.given_up.push(run);
    }
    fn release(&mut self, run: usize, _: Claim) {
        self.released.push(run);
    }
    fn failed(&mut self, claim: Claim, _: Failure, for_good: bool) {
        self.noted.push((claim.attempt, for_good));
    }
    fn probe(&mut self, bytes: u64) {
        self.probes.push(bytes);
    }
    fn memory_ran_out(&mut self, _: WorkerId) -> bool {
        self.memory_ran_out
    }
    fn rest(&mut self, run: usize, mark: crate::plan::Mark) {
        self.rests.push((run, mark));
    }
    fn publish(&mut self, publication: Publication) {
        self.publications.push(publication);
    }
    fn last_words(&mut self, _: WorkerId, _: Option<&Path>) -> Option<String> {
        self.words.clone()
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
        let past = vec![Past::Open; usize::try_from(runs).unwrap()];
        let cores = (0..dies).map(|die| DieSpec { cores: vec![die], gpu: None }).collect();
        let state = State::new(Arc::new(plan(runs)), &past, cores, Limits::default(), now);
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
            self.put(Input::Published(Box::new(publication), Ok(Published::Done { differs: None })));
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
        device: None,
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

impl Stage {
    /// A stage on which nothing has happened yet.
    fn bare(runs: u64) -> Self {
        let now = Instant::now();
        let past = vec![Past::Open; usize::try_from(runs).unwrap()];
        let dies = vec![DieSpec { cores: vec![0], gpu: None }];
        let state = State::new(Arc::new(plan(runs)), &past, dies, Limits::default(), now);
        Self { state, fx: Recorded::default(), now, attempts: 0, prompt: false }
    }
}
