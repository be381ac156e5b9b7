//! The controller at work: the loop, and the effects on real processes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, select};

use super::clerk::{Claim, Clerks, Ledger, Publication};
use super::dies::DieSpec;
use super::effects::{Effects, Input, WorkerId};
use super::halt::Summary;
use super::handle::handle;
use super::process::{Launch, Process};
use super::signals::{self, StopSignals};
use super::state::{Limits, State};
use crate::event::{Event, Failure, Past};
use crate::plan::{Course, Mark, Plan};
use crate::progress::Sink;
use crate::protocol::ToWorker;

/// Longest and shortest time between two looks at what time alone can change.
const TICKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));

/// Inputs that may wait for the loop; more hold their senders back.
const INPUTS: usize = 4096;

/// What a controller works with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The dies.
    pub dies: Vec<DieSpec>,
    /// How workers are started.
    pub launch: Launch,
    /// How patient it is.
    pub limits: Limits,
    /// Whether it waits for runs that other controllers hold.
    pub wait: bool,
    /// What is known of each run where the plan stops runs early; nothing else reads it.
    pub courses: Vec<Course>,
}

/// The controller cannot work.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// Signals cannot be taken.
    #[error("signals cannot be taken")]
    Signals(#[source] std::io::Error),
    /// A thread could not be started.
    #[error("a thread cannot be started")]
    Thread(#[source] std::io::Error),
}

/// Trains the runs of a plan that are open by `past`, and tells `sink` what
/// happens. The calling thread must live as long as the process, since the workers' lives are tied to it. `stop` are the
/// signals that end it early.
///
/// # Errors
/// The controller could not begin. What happens later is in the [`Summary`].
pub fn run(
    plan: Arc<Plan>,
    past: &[Past],
    options: &Options,
    stop: StopSignals,
    ledger: &Arc<dyn Ledger>,
    sink: &mut dyn Sink,
) -> Result<Summary, ControllerError> {
    let (sender, inputs) = crossbeam_channel::bounded(INPUTS);
    let _watch = signals::watch(stop, sender.clone()).map_err(ControllerError::Signals)?;
    let clerks = Clerks::start(&plan, ledger, &sender).map_err(ControllerError::Thread)?;
    let mut state = State::new(plan, past, options.dies.clone(), options.limits, Instant::now());
    state.wait = options.wait;
    state.begin_stopping(options.courses.clone());
    let mut live = Live { options, clerks, sender, sink, processes: HashMap::new() };
    let summary = turn(&mut state, &mut live, &inputs);
    let Live { clerks, .. } = live;
    // Nobody listens any more: a clerk whose report does not fit must not wait for room.
    drop(inputs);
    if !summary.at_once {
        clerks.finish();
    }
    Ok(summary)
}

/// The loop.
fn turn(state: &mut State, live: &mut Live<'_>, inputs: &Receiver<Input>) -> Summary {
    let ticks = crossbeam_channel::tick(state.limits.worker_beat().clamp(TICKS.0, TICKS.1));
    handle(state, Instant::now(), Input::Tick, live);
    loop {
        if let Some(conclusion) = state.conclusion() {
            let summary = state.summary(conclusion);
            live.announce(Event::SweepEnded {
                finished: summary.finished,
                failed: summary.failed.len(),
                left: summary.left,
                stopped: summary.stopped,
                here: summary.here,
                elsewhere: summary.elsewhere,
                wall_sec: state.started.elapsed().as_secs_f64(),
            });
            return summary;
        }
        let input = select! {
            recv(inputs) -> input => input.unwrap_or(Input::Tick),
            recv(ticks) -> _ => Input::Tick,
        };
        if let Input::Exited(id, _) = &input {
            live.reap(*id);
        }
        handle(state, Instant::now(), input, live);
        live.sink.idle();
    }
}

/// Effects on the real world.
struct Live<'a> {
    options: &'a Options,
    clerks: Clerks,
    sender: Sender<Input>,
    sink: &'a mut dyn Sink,
    processes: HashMap<WorkerId, Process>,
}

impl Live<'_> {
    fn reap(&mut self, id: WorkerId) {
        if let Some(process) = self.processes.get_mut(&id) {
            process.reap();
        }
    }
}

impl Effects for Live<'_> {
    fn start(&mut self, die: usize, worker: WorkerId) -> Result<u32, Failure> {
        let process = Process::start(&self.options.launch, die, &self.options.dies[die], worker, &self.sender)?;
        let pid = process.id();
        self.processes.insert(worker, process);
        Ok(pid)
    }

    fn send(&mut self, worker: WorkerId, message: ToWorker) {
        if let Some(process) = self.processes.get(&worker)
            && let Err(error) = process.send(&message)
        {
            // Without this message the worker would wait for ever.
            let _ = self.sender.try_send(Input::Broken(worker, format!("a message cannot be sent to it: {error}")));
        }
    }

    fn kill(&mut self, worker: WorkerId) {
        if let Some(process) = self.processes.get_mut(&worker) {
            process.kill();
        }
    }

    fn forget(&mut self, worker: WorkerId) {
        self.processes.remove(&worker);
    }

    fn claim(&mut self, run: usize) {
        self.clerks.claim(run);
    }

    fn tend(&mut self, others: Vec<usize>) {
        self.clerks.tend(others);
    }

    fn give_up(&mut self, run: usize) {
        self.clerks.give_up(run);
    }

    fn release(&mut self, run: usize, claim: Claim) {
        self.clerks.release(run, claim);
    }

    fn failed(&mut self, claim: Claim, failure: Failure, for_good: bool) {
        self.clerks.failed(claim, failure, for_good);
    }

    fn probe(&mut self, bytes: u64) {
        self.clerks.probe(bytes);
    }

    fn rest(&mut self, run: usize, mark: Mark) {
        self.clerks.rest(run, mark);
    }

    fn publish(&mut self, publication: Publication) {
        self.clerks.publish(publication);
    }

    fn last_words(&mut self, worker: WorkerId, folder: Option<&Path>) -> Option<String> {
        self.processes.get(&worker)?.last_words(folder)
    }

    fn memory_ran_out(&mut self, worker: WorkerId) -> bool {
        self.processes.get(&worker).is_some_and(Process::memory_ran_out)
    }

    fn announce(&mut self, event: Event) {
        self.sink.take(&event);
    }
}
