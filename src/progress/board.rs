//! What events add up to: who trains what, how far it is, how fast, and how long it will take.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use crate::event::{At, Event, Past};
use crate::plan::Plan;
use crate::run::{Ending, RunId};

/// An attempt under way.
#[derive(Clone, Debug)]
pub(super) struct Going {
    pub(super) at: At,
    pub(super) steps: u64,
    /// Steps that are trained.
    pub(super) trained: u64,
    /// Steps that an earlier attempt had trained.
    from: u64,
    pub(super) val_bpb: Option<f64>,
    tokens_per_step: u64,
    shape: usize,
    began: Instant,
    heard: Instant,
}

impl Going {
    /// Tokens a second since the attempt began, as far as it is known.
    pub(super) fn speed(&self) -> Option<f64> {
        let seconds = self.heard.duration_since(self.began).as_secs_f64();
        let trained = self.trained - self.from;
        (seconds > 0.0 && trained > 0).then(|| float(trained * self.tokens_per_step) / seconds)
    }
}

/// Training that was measured, of one shape.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    tokens: f64,
    seconds: f64,
}

/// The sum of the events so far.
#[derive(Debug)]
pub(super) struct Board {
    /// Runs of the plan.
    pub(super) runs: usize,
    /// Runs with a result.
    pub(super) finished: usize,
    /// Runs given up.
    pub(super) failed: usize,
    /// Dies that the sweep uses.
    dies: usize,
    /// Attempts under way: the keys grow in the order in which they began.
    going: BTreeMap<u64, Going>,
    /// Attempts that began so far.
    begun: u64,
    /// Runs without a result: shape and training tokens.
    open: HashMap<RunId, (usize, f64)>,
    /// Tokens of all runs.
    total: f64,
    measured: HashMap<usize, Measured>,
}

#[expect(clippy::cast_precision_loss, reason = "a display")]
fn float(count: u64) -> f64 {
    count as f64
}

impl Board {
    /// A sweep at its beginning; `past` tells what its runs had come to before.
    pub(super) fn new(plan: &Plan, past: &[Past]) -> Self {
        let mut open = HashMap::new();
        let mut total = 0.0;
        for (run, past) in plan.runs.iter().zip(past) {
            let settings = &run.settings;
            let per_step = settings.batch * settings.seq_len * settings.accum_steps;
            let tokens = float(settings.steps) * float(per_step as u64);
            total += tokens;
            if *past == Past::Open {
                open.insert(run.id, (run.shape, tokens));
            }
        }
        Self {
            runs: plan.runs.len(),
            finished: past.iter().filter(|past| **past == Past::Finished).count(),
            failed: past.iter().filter(|past| matches!(past, Past::Failed(_))).count(),
            dies: 0,
            going: BTreeMap::new(),
            begun: 0,
            open,
            total,
            measured: HashMap::new(),
        }
    }

    /// Adds an event.
    pub(super) fn apply(&mut self, now: Instant, event: &Event) {
        match event {
            Event::SweepStarted { dies, .. } => self.dies = *dies,
            Event::AttemptStarted { at, steps, tokens_per_step, shape } => {
                let going = Going {
                    at: at.clone(),
                    steps: *steps,
                    trained: 0,
                    from: 0,
                    val_bpb: None,
                    tokens_per_step: *tokens_per_step,
                    shape: *shape,
                    began: now,
                    heard: now,
                };
                self.leave(at.run);
                self.going.insert(self.begun, going);
                self.begun += 1;
            }
            Event::AttemptResumed { at, steps, .. } => {
                if let (Some(going), Some(steps)) = (self.find(at.run), steps) {
                    (going.trained, going.from) = (*steps, *steps);
                    (going.began, going.heard) = (now, now);
                }
            }
            Event::Logged { at, row } => {
                self.advance(at.run, row.step + 1, now);
                if let Some(going) = self.find(at.run) {
                    going.val_bpb = Some(row.val_bpb);
                }
            }
            Event::Beat { at, step: Some(step), .. } => self.advance(at.run, step + 1, now),
            Event::RunFinished { at, outcome } => {
                if matches!(outcome.ending, Ending::Finished(_)) {
                    self.advance(at.run, outcome.steps, now);
                }
                self.finished += 1;
                self.open.remove(&at.run);
                self.leave(at.run);
            }
            Event::AttemptFailed { at, .. } | Event::AttemptAbandoned { at } => self.leave(at.run),
            Event::RunFailed { run, .. } => {
                self.failed += 1;
                self.open.remove(run);
            }
            Event::FinishedElsewhere { run, .. } => {
                self.finished += 1;
                self.open.remove(run);
            }
            Event::LeaseLost { run, .. } => self.leave(*run),
            Event::WorkerReady { .. }
            | Event::WorkerLanes { .. }
            | Event::WorkerLost { .. }
            | Event::DieSetAside { .. }
            | Event::Beat { step: None, .. }
            | Event::Checkpointed { .. }
            | Event::RunElsewhere { .. }
            | Event::ResultDiffers { .. }
            | Event::Waiting { .. }
            | Event::BeatFailed { .. }
            | Event::WorkerLeft { .. }
            | Event::NotSaved { .. }
            | Event::DiskFull { .. }
            | Event::DiskFree { .. }
            | Event::Stopping { .. }
            | Event::SweepEnded { .. } => {}
        }
    }

    /// An attempt has trained so many steps.
    fn advance(&mut self, run: RunId, trained: u64, now: Instant) {
        let Some(going) = self.going.values_mut().find(|going| going.at.run == run) else {
            return;
        };
        let Some(more) = trained.checked_sub(going.trained).filter(|&more| more > 0) else {
            return;
        };
        let measured = self.measured.entry(going.shape).or_default();
        measured.tokens += float(more * going.tokens_per_step);
        measured.seconds += now.duration_since(going.heard).as_secs_f64();
        going.trained = trained;
        going.heard = now;
    }

    fn find(&mut self, run: RunId) -> Option<&mut Going> {
        self.going.values_mut().find(|going| going.at.run == run)
    }

    fn leave(&mut self, run: RunId) {
        self.going.retain(|_, going| going.at.run != run);
    }

    /// The attempts on a die, one for each lane that is at work, in the order in which they began.
    pub(super) fn on(&self, die: usize) -> Vec<&Going> {
        self.going.values().filter(|going| going.at.die == die).collect()
    }

    /// Tokens a second over all dies.
    pub(super) fn speed(&self) -> f64 {
        self.going.values().filter_map(Going::speed).sum()
    }

    /// Share of the training tokens that is done, in `[0, 1]`.
    pub(super) fn share(&self) -> f64 {
        let trained = self.trained();
        let left: f64 = self.open.iter().map(|(run, &(_, tokens))| tokens - trained.get(run).unwrap_or(&0.0)).sum();
        if self.total > 0.0 { (1.0 - left / self.total).clamp(0.0, 1.0) } else { 1.0 }
    }

    /// Tokens that the attempts under way have trained.
    fn trained(&self) -> HashMap<RunId, f64> {
        self.going.values().map(|going| (going.at.run, float(going.trained * going.tokens_per_step))).collect()
    }

    /// Seconds to go at the speeds measured so far: each shape at its own, one not met yet at the mean of the others.
    pub(super) fn eta(&self) -> Option<f64> {
        let all = self.measured.values().fold(Measured::default(), |sum, one| Measured {
            tokens: sum.tokens + one.tokens,
            seconds: sum.seconds + one.seconds,
        });
        if all.tokens <= 0.0 || all.seconds <= 0.0 {
            return None;
        }
        let pace = |shape: usize| {
            let one = self.measured.get(&shape).copied().filter(|one| one.tokens > 0.0).unwrap_or(all);
            one.seconds / one.tokens
        };
        let trained = self.trained();
        let left = |run, tokens: f64| (tokens - trained.get(run).unwrap_or(&0.0)).max(0.0);
        let seconds: f64 = self.open.iter().map(|(run, &(shape, tokens))| left(run, tokens) * pace(shape)).sum();
        let lanes = self.dies.max(self.going.len()).min(self.open.len()).max(1);
        Some(seconds / float(lanes as u64))
    }
}
