//! Workers: their start, what they say, and their end.

use std::time::{Duration, Instant};

use signal_hook::consts::{SIGABRT, SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};

use super::dies::DieSpec;
use super::effects::{Effects, WorkerId};
use super::process::Exit;
use super::state::{DieState, Mood, State, Worker};
use crate::event::{Cause, Event, Failure, Phase};
use crate::plan::MOST_LANES;
use crate::protocol::{DIE_LOST, End, FromWorker, Hello, ORPHANED, Place, Pulse, VERSION};
use crate::run::Row;

/// Failures in a row after which a die is set aside.
const FAULTS: usize = 3;

/// Wait before a worker is started again, from the second failure in a row on.
const BACKOFF: Duration = Duration::from_millis(500);

impl State {
    /// Starts workers for runs that no lane is free for.
    pub(super) fn start_workers(&mut self, now: Instant, fx: &mut dyn Effects) {
        let free: usize = self
            .workers()
            .filter(|(_, worker)| matches!(worker.mood, Mood::Starting | Mood::Live))
            .map(|(_, worker)| worker.free())
            .sum();
        let mut wanted = (self.waiting.len() + self.claims()).saturating_sub(free);
        for die in 0..self.dies.len() {
            let DieState::Down { until } = self.dies[die].state else {
                continue;
            };
            if wanted == 0 || until > now {
                continue;
            }
            wanted -= 1;
            let id = self.new_worker();
            match fx.start(die, id) {
                Ok(pid) => {
                    // It is taken to have one lane until it says how many it has.
                    let (lanes, open) = (vec![None], 1);
                    let (mood, closed, exit) = (Mood::Starting, None, None);
                    self.dies[die].state =
                        DieState::Up(Worker { id, pid, mood, lanes, open, heard: now, closed, exit });
                }
                Err(failure) => {
                    fx.announce(Event::WorkerLost { die, attempts: 0, failure: failure.clone() });
                    self.fault(die, None, &failure, now, fx);
                }
            }
        }
    }

    /// Takes a worker's message in. Whether anything else may go on now because of it.
    pub(super) fn hear(&mut self, id: WorkerId, now: Instant, message: FromWorker, fx: &mut dyn Effects) -> bool {
        let Some(die) = self.die_of(id) else {
            return false;
        };
        let Some(worker) = self.worker(die) else {
            return false;
        };
        worker.heard = now;
        let starting = worker.mood == Mood::Starting;
        let said = match (&worker.mood, message) {
            // What a killed worker had said does not count any more, but for results: those are complete.
            (
                Mood::Doomed { .. } | Mood::Dismissed,
                FromWorker::Ended { place, end: end @ (End::Result { .. } | End::Rested { .. }) },
            ) => self.ended(die, place, end, now, fx),
            (Mood::Doomed { .. } | Mood::Dismissed, _) => return false,
            // A worker that is told to leave before it is ready says hello all the same.
            (Mood::Starting | Mood::Leaving { .. }, FromWorker::Hello { hello }) => self.hello(die, hello, fx),
            (Mood::Live, FromWorker::Hello { .. }) => Err("a second hello".to_owned()),
            (_, _) if starting => Err("a message before its hello".to_owned()),
            (_, FromWorker::Lanes { count, why }) => self.lanes(die, count, why, fx),
            (_, FromWorker::Ended { place, end }) => self.ended(die, place, end, now, fx),
            (_, FromWorker::Row { place, row }) => match self.row(die, place, row, fx) {
                Ok(()) => return false,
                Err(reason) => Err(reason),
            },
            (_, FromWorker::Resumed { place, steps, refused }) => self.resumed(die, place, steps, refused, fx),
            (_, FromWorker::Checkpointed { place, step }) => self.checkpointed(die, place, step, fx),
            (_, FromWorker::NotSaved { place, message }) => self.not_saved(die, place, message, fx),
            (_, FromWorker::Beat { pulses }) => match self.beat(die, &pulses, fx) {
                Ok(()) => return false,
                Err(reason) => Err(reason),
            },
        };
        if let Err(reason) = said {
            self.doom(die, Failure::new(Cause::Protocol, reason), fx);
        }
        true
    }

    fn hello(&mut self, die: usize, hello: Hello, fx: &mut dyn Effects) -> Result<(), String> {
        let DieSpec { cores: asked, gpu } = self.dies[die].spec.clone();
        let Some(worker) = self.worker(die) else {
            return Ok(());
        };
        if hello.version != VERSION {
            return Err(format!("it speaks version {} of the protocol, not {VERSION}", hello.version));
        }
        if hello.pid != worker.pid {
            return Err(format!("process {} answers for process {}", hello.pid, worker.pid));
        }
        if hello.die != die {
            return Err(format!("it was started for die {die} and opened die {}", hello.die));
        }
        if !asked.is_empty() && hello.cores != asked {
            return Err(format!("it was to be pinned to cores {asked:?} and is pinned to {:?}", hello.cores));
        }
        if let Some(mismatch) = gpu.and_then(|gpu| gpu.mismatch(hello.device.as_ref())) {
            return Err(mismatch);
        }
        worker.open = lanes_offered(hello.lanes)?;
        worker.lanes.resize(worker.open, None);
        if worker.mood == Mood::Starting {
            worker.mood = Mood::Live;
        }
        let Hello { pid, cores, backend, simd, lanes, device, .. } = hello;
        fx.announce(Event::WorkerReady { die, pid, cores, backend, simd, lanes, device });
        Ok(())
    }

    /// A worker trains another number of attempts at once from now on.
    fn lanes(&mut self, die: usize, count: u32, why: String, fx: &mut dyn Effects) -> Result<(), String> {
        let open = lanes_offered(count)?;
        if let Some(worker) = self.worker(die) {
            worker.open = open;
            // What is in lanes beyond is returned by the worker.
            if worker.lanes.len() < open {
                worker.lanes.resize(open, None);
            }
        }
        fx.announce(Event::WorkerLanes { die, lanes: count, why });
        Ok(())
    }

    fn row(&mut self, die: usize, place: Place, row: Row, fx: &mut dyn Effects) -> Result<(), String> {
        let Some(busy) = self.busy(die, place) else {
            return Err(stray("a row", place));
        };
        let (run, before) = (busy.run, busy.logged.replace(row.step));
        // There was room for it.
        self.starved = None;
        if row.step >= self.run(run).settings.steps {
            return Err(format!("a row of step {}, which the run does not have", row.step));
        }
        if before.is_some_and(|before| before >= row.step) {
            return Err(format!("a row of step {} after that of step {}", row.step, before.unwrap_or(0)));
        }
        fx.announce(Event::Logged { at: self.at(run, place.attempt, die), row });
        Ok(())
    }

    fn resumed(
        &mut self,
        die: usize,
        place: Place,
        steps: Option<u64>,
        refused: Vec<String>,
        fx: &mut dyn Effects,
    ) -> Result<(), String> {
        let Some(busy) = self.busy(die, place) else {
            return Err(stray("a beginning", place));
        };
        let run = busy.run;
        if steps.is_some_and(|steps| steps > self.run(run).settings.steps) {
            return Err(format!("a beginning after {} steps, which the run does not have", steps.unwrap_or(0)));
        }
        fx.announce(Event::AttemptResumed { at: self.at(run, place.attempt, die), steps, refused });
        Ok(())
    }

    fn checkpointed(&mut self, die: usize, place: Place, step: u64, fx: &mut dyn Effects) -> Result<(), String> {
        let Some(busy) = self.busy(die, place) else {
            return Err(stray("a checkpoint", place));
        };
        let run = busy.run;
        if step >= self.run(run).settings.steps {
            return Err(format!("a checkpoint of step {step}, which the run does not have"));
        }
        fx.announce(Event::Checkpointed { at: self.at(run, place.attempt, die), step });
        Ok(())
    }

    fn not_saved(&mut self, die: usize, place: Place, message: String, fx: &mut dyn Effects) -> Result<(), String> {
        let Some(busy) = self.busy(die, place) else {
            return Err(stray("a checkpoint that failed", place));
        };
        let run = busy.run;
        fx.announce(Event::NotSaved { at: self.at(run, place.attempt, die), message });
        Ok(())
    }

    fn beat(&mut self, die: usize, pulses: &[Pulse], fx: &mut dyn Effects) -> Result<(), String> {
        for pulse in pulses {
            let Some(busy) = self.busy(die, pulse.place) else {
                return Err(stray("a beat", pulse.place));
            };
            let run = busy.run;
            let at = self.at(run, pulse.place.attempt, die);
            fx.announce(Event::Beat { at, phase: pulse.phase, step: pulse.step });
            if let Some(failure) = self.hung(pulse) {
                self.doom(die, failure, fx);
            }
        }
        Ok(())
    }

    /// Whether training stands still.
    fn hung(&self, pulse: &Pulse) -> Option<Failure> {
        let limits = &self.limits;
        let usual = pulse.usual_ms.map(Duration::from_millis);
        let limit = usual.map_or(limits.first_step, |usual| {
            let medians = u32::try_from(limits.step_medians).unwrap_or(u32::MAX);
            limits.step.max(usual.saturating_mul(medians))
        });
        let still = Duration::from_millis(pulse.still_ms);
        (pulse.phase == Phase::Training && still >= limit).then(|| {
            let usual =
                usual.map_or_else(String::new, |usual| format!(", where {:.3} s is usual", usual.as_secs_f64()));
            let after = pulse.step.map_or_else(|| "the start".to_owned(), |step| format!("step {step}"));
            // Seconds that have passed would tell two equal failures apart.
            Failure::new(Cause::Hung, format!("no step for {} s after {after}{usual}", limit.as_secs()))
        })
    }

    /// Kills a worker that failed. What it had in hand is dealt with when it is gone.
    pub(super) fn doom(&mut self, die: usize, failure: Failure, fx: &mut dyn Effects) {
        if let Some(worker) = self.worker(die)
            && !matches!(worker.mood, Mood::Doomed { .. } | Mood::Dismissed)
        {
            worker.mood = Mood::Doomed { failure };
            fx.kill(worker.id);
        }
    }

    /// A worker's output ended.
    pub(super) fn closed(&mut self, die: usize, now: Instant, fx: &mut dyn Effects) {
        let Some(worker) = self.worker(die) else {
            return;
        };
        worker.closed = Some(now);
        if worker.exit.is_some() {
            self.lose(die, now, fx);
        }
    }

    /// A worker's process ended. Its last lines may still be on their way.
    pub(super) fn exited(&mut self, die: usize, exit: Exit, now: Instant, fx: &mut dyn Effects) {
        let Some(worker) = self.worker(die) else {
            return;
        };
        worker.exit = Some((exit, now));
        if worker.closed.is_some() {
            self.lose(die, now, fx);
        }
    }

    /// A worker is gone, with its last lines read.
    pub(super) fn lose(&mut self, die: usize, now: Instant, fx: &mut dyn Effects) {
        let Some(exit) = self.worker(die).and_then(|worker| worker.exit).map(|(exit, _)| exit) else {
            return;
        };
        let down = DieState::Down { until: now };
        let DieState::Up(worker) = std::mem::replace(&mut self.dies[die].state, down) else {
            return;
        };
        let busy: Vec<_> = worker.lanes.into_iter().flatten().collect();
        let folder = busy.first().map(|busy| busy.folder.as_path());
        let words = fx.last_words(worker.id, folder).unwrap_or_default();
        let cause = cause_of(exit, &words, exit == Exit::Signal(SIGKILL) && fx.memory_ran_out(worker.id));
        let said = if words.is_empty() { String::new() } else { format!(": {words}") };
        fx.forget(worker.id);
        let failure = match worker.mood {
            Mood::Dismissed => None,
            _ if exit == Exit::Status(ORPHANED.into()) => {
                fx.announce(Event::WorkerLeft { die });
                None
            }
            Mood::Leaving { .. } if exit.clean() && busy.is_empty() => None,
            Mood::Doomed { failure } => Some(failure),
            Mood::Starting if cause == Cause::Crashed => {
                Some(Failure::new(Cause::Start, format!("before it was ready, {exit}{said}")))
            }
            Mood::Live | Mood::Leaving { .. } if exit == Exit::Status(DIE_LOST.into()) => {
                Some(Failure::new(Cause::DeviceLost, words))
            }
            Mood::Starting | Mood::Live | Mood::Leaving { .. } => Some(Failure::new(cause, format!("{exit}{said}"))),
        };
        let Some(failure) = failure else {
            busy.into_iter().for_each(|busy| self.abandon(die, &busy, fx));
            return;
        };
        fx.announce(Event::WorkerLost { die, attempts: busy.len(), failure: failure.clone() });
        for busy in &busy {
            self.failed(die, busy, &failure, now, fx);
        }
        let run = if let [busy] = &busy[..] { Some(busy.run) } else { None };
        self.weigh(die, run, &failure, now, fx);
        if failure.cause == Cause::OutOfMemory {
            self.make_room_in_memory(die, failure, fx);
        }
    }

    /// Memory is too little for so many workers: leaves this die out, unless it is the last.
    fn make_room_in_memory(&mut self, die: usize, failure: Failure, fx: &mut dyn Effects) {
        let used = self.dies.iter().filter(|die| !matches!(die.state, DieState::Aside)).count();
        if used > 1 {
            self.dies[die].state = DieState::Aside;
            let uuid = self.uuid(die);
            fx.announce(Event::DieSetAside { die, uuid, failure });
        }
    }

    /// Counts a failure against a die, and sets it aside after three in a row. Three failures of one and the same
    /// run speak against the run.
    pub(super) fn fault(
        &mut self,
        die: usize,
        run: Option<usize>,
        failure: &Failure,
        now: Instant,
        fx: &mut dyn Effects,
    ) {
        if !failure.cause.blames_die() {
            return;
        }
        let entry = &mut self.dies[die];
        entry.faults.push(run);
        let last = entry.faults.len().saturating_sub(FAULTS);
        let faults = entry.faults[last..].to_vec();
        if let DieState::Down { until } = &mut entry.state {
            *until = if faults.len() > 1 { now + BACKOFF } else { now };
        }
        let one_run = run.is_some() && faults.iter().all(|&hit| hit == run);
        // A die that its driver has lost is not tried again.
        if failure.cause.ends_die() || (faults.len() == FAULTS && !one_run) {
            if matches!(entry.state, DieState::Aside) {
                return;
            }
            entry.state = DieState::Aside;
            let uuid = self.uuid(die);
            fx.announce(Event::DieSetAside { die, uuid, failure: failure.clone() });
        }
    }

    /// What a GPU is known by, wherever it stands in a list.
    fn uuid(&self, die: usize) -> Option<String> {
        self.dies[die].spec.gpu.as_ref().map(|gpu| gpu.visible.clone())
    }
}

/// Why a worker that nobody killed is gone, by the end of its process, what it said last, and whether the kernel
/// killed processes for want of memory meanwhile.
fn cause_of(exit: Exit, words: &str, memory_ran_out: bool) -> Cause {
    match exit {
        Exit::Signal(SIGKILL) if memory_ran_out => Cause::OutOfMemory,
        // How the standard library says that it gets no memory, before it aborts.
        Exit::Signal(SIGABRT) if words.contains("memory allocation of ") => Cause::OutOfMemory,
        Exit::Signal(SIGTERM | SIGINT | SIGHUP | SIGUSR1 | SIGUSR2 | SIGXCPU) => Cause::Preempted,
        Exit::Signal(_) | Exit::Status(_) | Exit::Unknown => Cause::Crashed,
    }
}

/// How many lanes a worker says that it has.
fn lanes_offered(count: u32) -> Result<usize, String> {
    usize::try_from(count)
        .ok()
        .filter(|_| (1..=MOST_LANES).contains(&count))
        .ok_or_else(|| format!("it offers {count} lanes"))
}

/// A message about an attempt that the worker does not have.
pub(super) fn stray(what: &str, place: Place) -> String {
    format!("{what} for attempt {} of run {} in lane {}, which it does not have", place.attempt, place.run, place.lane)
}
