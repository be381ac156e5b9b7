//! A call of `diesweep run`, disturbed.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use rustix::process::Signal;
use serde_json::Value;

use super::TortureError;
use super::disk::SmallDisk;
use super::listen::{News, read_events};
use super::process::{Held, all_of};
use super::schedule::{Deed, Fault, Told, Trigger, Whom};
use super::sweep::{Patience, Sweep};
use crate::fault::{Answer, Moment, Point};

/// A call in which nothing happens for so long will not end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Workers are gone so long after their controller.
const GONE: Duration = Duration::from_secs(5);

/// Where a call takes place.
pub(super) struct Place<'a> {
    pub(super) sweep: &'a Sweep,
    /// `--results`.
    pub(super) results: &'a Path,
    /// Where processes ask.
    pub(super) socket: &'a Path,
    pub(super) news: (&'a Sender<News>, &'a Receiver<News>),
    /// The disk under `results`, if it is a small one.
    pub(super) disk: Option<&'a SmallDisk>,
    /// How patient its controllers are.
    pub(super) patience: Patience,
    /// Standard errors go to `<log>.<controller>.txt`.
    pub(super) log: PathBuf,
}

/// What a call came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// How each controller ended.
    pub(super) exits: Vec<ExitStatus>,
    /// Events of all controllers.
    pub(super) events: Vec<Value>,
    /// Faults that struck.
    pub(super) struck: Vec<Fault>,
    /// What must not be.
    pub(super) troubles: Vec<String>,
}

/// Calls, and does what `faults` say, until all processes have ended.
pub(super) fn run(place: &Place<'_>, faults: &[Fault]) -> Result<Outcome, TortureError> {
    let mut driver = Driver {
        place,
        faults: faults.to_vec(),
        passed: HashMap::new(),
        told: HashMap::new(),
        controllers: Vec::new(),
        workers: Vec::new(),
        undone: Vec::new(),
        outcome: Outcome::default(),
    };
    driver.start_controller()?;
    while driver.controllers.iter().any(|controller| controller.exit.is_none()) {
        match place.news.1.recv_timeout(driver.undo_due()) {
            Ok(news) => driver.take(news)?,
            Err(RecvTimeoutError::Timeout) if driver.undone.is_empty() => {
                driver.outcome.troubles.push(format!("nothing happened for {PATIENCE:?}: the call does not end"));
                break;
            }
            Err(_) => {}
        }
    }
    Ok(driver.end())
}

struct Controller {
    child: Child,
    exit: Option<ExitStatus>,
    /// Whether it told of an event.
    begun: bool,
    /// What terminates it once it has: before that it has nothing to give back, and ends as the system has it.
    due: Vec<Fault>,
}

/// The other half of a deed.
enum Undo {
    /// A stopped process goes on.
    GoOn(Held),
    /// The disk has room again.
    Free,
}

struct Driver<'a> {
    place: &'a Place<'a>,
    /// Those that have not struck.
    faults: Vec<Fault>,
    passed: HashMap<Point, u32>,
    told: HashMap<&'static str, u32>,
    controllers: Vec<Controller>,
    /// Workers that were ready.
    workers: Vec<u32>,
    /// What is undone when its time has come.
    undone: Vec<(Instant, Undo)>,
    outcome: Outcome,
}

impl Driver<'_> {
    fn start_controller(&mut self) -> Result<(), TortureError> {
        let place = self.place;
        let number = self.controllers.len();
        let mut log = place.log.clone().into_os_string();
        log.push(format!(".{number}.txt"));
        let log = PathBuf::from(log);
        let errors = File::create(&log).map_err(|error| TortureError::io("create", &log, error))?;
        let mut command = place.sweep.command(place.results, place.patience);
        command.env(crate::fault::VARIABLE, place.socket).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().map_err(TortureError::Start)?;
        if let Some(output) = child.stdout.take() {
            let news = place.news.0.clone();
            std::thread::spawn(move || read_events(output, number, &news));
        }
        self.controllers.push(Controller { child, exit: None, begun: false, due: Vec::new() });
        Ok(())
    }

    /// Undoes what is due; how long to wait for the next.
    fn undo_due(&mut self) -> Duration {
        let now = Instant::now();
        let due: Vec<_> = self.undone.extract_if(.., |(until, _)| *until <= now).collect();
        due.into_iter().for_each(|(_, undo)| self.undo(&undo));
        let next = self.undone.iter().map(|(until, _)| until.saturating_duration_since(now)).min();
        next.unwrap_or(PATIENCE)
    }

    fn undo(&self, undo: &Undo) {
        match (undo, self.place.disk) {
            (Undo::GoOn(held), _) => held.signal(Signal::CONT),
            (Undo::Free, Some(disk)) => disk.free(),
            (Undo::Free, None) => {}
        }
    }

    fn undo_in(&mut self, ms: u32, undo: Undo) {
        self.undone.push((Instant::now() + Duration::from_millis(u64::from(ms)), undo));
    }

    fn take(&mut self, news: News) -> Result<(), TortureError> {
        match news {
            News::Asked { pid, point, reply } => {
                let answer = self.asked(pid, point)?;
                // A process that was killed meanwhile hears nothing.
                let _ = reply.send(answer);
            }
            News::Told { controller, event } => {
                self.begun(controller);
                self.heard(&event)?;
                self.outcome.events.push(event);
            }
            News::Riddle { controller, line } => {
                self.outcome.troubles.push(format!("controller {controller} wrote what is no event: {line}"));
            }
            News::Closed { controller } => {
                let controller = &mut self.controllers[controller];
                let exit = controller.child.wait().map_err(TortureError::Start)?;
                controller.exit = Some(exit);
                self.outcome.exits.push(exit);
            }
        }
        Ok(())
    }

    fn asked(&mut self, pid: u32, point: Point) -> Result<Answer, TortureError> {
        if point.moment == Moment::Torn {
            self.kill_pid(pid);
            return Ok(Answer::Go);
        }
        let count = self.passed.entry(point).or_default();
        *count += 1;
        let now = Trigger::Passed(point, *count);
        self.strike(now, Some(pid))
    }

    fn heard(&mut self, event: &Value) -> Result<(), TortureError> {
        let name = event["event"].as_str().unwrap_or_default();
        if let Some(pid) = event["pid"].as_u64().filter(|_| name == Told::WorkerReady.name()) {
            self.workers.extend(u32::try_from(pid));
        }
        let kinds = [Told::WorkerReady, Told::AttemptStarted, Told::Logged, Told::Checkpointed, Told::RunFinished];
        let Some(kind) = kinds.into_iter().find(|kind| kind.name() == name) else { return Ok(()) };
        let count = self.told.entry(kind.name()).or_default();
        *count += 1;
        let now = Trigger::Told(kind, *count);
        self.strike(now, None).map(drop)
    }

    /// Does what is to be done now.
    fn strike(&mut self, now: Trigger, passing: Option<u32>) -> Result<Answer, TortureError> {
        let mut answer = Answer::Go;
        let due: Vec<Fault> = self.faults.extract_if(.., |fault| fault.trigger == now).collect();
        for fault in due {
            let done = match fault.deed {
                Deed::Answer(given) => {
                    answer = given;
                    true
                }
                Deed::Join => self.start_controller().map(|()| true)?,
                Deed::Fill(ms) => match self.place.disk {
                    Some(disk) => {
                        disk.fill().map_err(|error| TortureError::io("fill", self.place.results, error))?;
                        self.undo_in(ms, Undo::Free);
                        true
                    }
                    None => false,
                },
                Deed::Kill(whom) => self.signal(whom, passing, Signal::KILL),
                Deed::Terminate(whom) => match self.not_begun(whom) {
                    Some(controller) => {
                        controller.due.push(fault);
                        false
                    }
                    None => self.signal(whom, passing, Signal::TERM),
                },
                Deed::Stop(whom, ms) => match self.hold(whom, passing) {
                    Some(held) => {
                        held.signal(Signal::STOP);
                        self.undo_in(ms, Undo::GoOn(held));
                        true
                    }
                    None => false,
                },
            };
            self.outcome.struck.extend(done.then_some(fault));
        }
        Ok(answer)
    }

    /// The controller that is meant, if it has not begun.
    fn not_begun(&mut self, whom: Whom) -> Option<&mut Controller> {
        let controller = match whom {
            Whom::Controller => self.controllers.first_mut(),
            Whom::Joiner => self.controllers[1..].last_mut(),
            Whom::Passing | Whom::Worker(_) => None,
        };
        controller.filter(|controller| !controller.begun && controller.exit.is_none())
    }

    /// A controller told of an event: what waited for that is done.
    fn begun(&mut self, controller: usize) {
        let controller = &mut self.controllers[controller];
        controller.begun = true;
        for fault in std::mem::take(&mut controller.due) {
            if let Some(held) = Held::open(controller.child.id(), self.place.socket) {
                held.signal(Signal::TERM);
                self.outcome.struck.push(fault);
            }
        }
    }

    fn signal(&self, whom: Whom, passing: Option<u32>, signal: Signal) -> bool {
        let held = self.hold(whom, passing);
        if let Some(held) = &held {
            held.signal(signal);
        }
        held.is_some()
    }

    fn kill_pid(&self, pid: u32) {
        if let Some(held) = Held::open(pid, self.place.socket) {
            held.signal(Signal::KILL);
        }
    }

    /// The process that is meant, if it lives.
    fn hold(&self, whom: Whom, passing: Option<u32>) -> Option<Held> {
        let pid = match whom {
            Whom::Passing => passing?,
            Whom::Controller => self.controllers.first().filter(|c| c.exit.is_none())?.child.id(),
            Whom::Joiner => self.controllers[1..].last().filter(|c| c.exit.is_none())?.child.id(),
            Whom::Worker(number) => {
                let living: Vec<u32> =
                    self.workers.iter().copied().filter(|pid| Held::open(*pid, self.place.socket).is_some()).collect();
                *living.get(number as usize % living.len().max(1))?
            }
        };
        Held::open(pid, self.place.socket)
    }

    /// All controllers have ended, or will not: nothing may be left of them.
    fn end(mut self) -> Outcome {
        for (_, undo) in std::mem::take(&mut self.undone) {
            self.undo(&undo);
        }
        let deadline = Instant::now() + GONE;
        let hopeless = self.controllers.iter().any(|controller| controller.exit.is_none());
        for held in all_of(self.place.socket) {
            if hopeless || !held.ends_by(deadline) {
                self.outcome.troubles.push(format!("process {} is left", held.pid));
                held.signal(Signal::KILL);
                held.ends_by(Instant::now() + GONE);
            }
        }
        for controller in self.controllers.iter_mut().filter(|controller| controller.exit.is_none()) {
            // It was killed just now.
            self.outcome.exits.extend(controller.child.wait());
        }
        self.outcome
    }
}
