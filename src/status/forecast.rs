//! How much is done, and how long the rest takes.

use std::collections::HashMap;

use super::Held;
use crate::plan::Plan;
use crate::store::RunState;

/// Steps and seconds that were measured of one shape.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    steps: f64,
    seconds: f64,
}

/// What the results tell about the rest.
#[derive(Debug)]
pub(super) struct Forecast {
    /// Steps of all runs, and of those that need no more.
    total: f64,
    over: f64,
    /// Steps of held runs that are trained.
    trained: f64,
    /// Steps of runs that are open, by shape.
    open: HashMap<usize, f64>,
    measured: HashMap<usize, Measured>,
}

impl Forecast {
    /// Sums up.
    pub(super) fn of(plan: &Plan, states: &[RunState], held: &[Held]) -> Self {
        let (mut total, mut over) = (0.0, 0.0);
        let mut open: HashMap<usize, f64> = HashMap::new();
        let mut measured: HashMap<usize, Measured> = HashMap::new();
        let trained: HashMap<&str, u64> = held.iter().map(|held| (held.run.as_str(), held.step)).collect();
        let mut in_hand = 0.0;
        for (run, state) in plan.runs.iter().zip(states) {
            let steps = run.settings.steps as f64;
            total += steps;
            match state {
                RunState::Ended(result) => {
                    over += steps;
                    let sum = measured.entry(run.shape).or_default();
                    sum.steps += result.outcome.steps as f64;
                    sum.seconds += result.outcome.wall_sec;
                }
                RunState::Failed { failure, .. } if failure.for_good => over += steps,
                RunState::Stopped { .. } => over += steps,
                RunState::Failed { .. } | RunState::Unfinished => {
                    let done = if trained.is_empty() { None } else { trained.get(run.id.to_string().as_str()) };
                    let done = done.map_or(0.0, |&step| step as f64);
                    in_hand += done;
                    *open.entry(run.shape).or_default() += steps - done;
                }
            }
        }
        Self { total, over, trained: in_hand, open, measured }
    }

    /// Share of the steps that are done.
    pub(super) fn done(&self) -> f64 {
        if self.total > 0.0 { ((self.over + self.trained) / self.total).clamp(0.0, 1.0) } else { 1.0 }
    }

    /// Seconds to go with as many runs at once as are held by processes not known to be dead. Each shape goes at its own
    /// speed, one that was not met yet at the mean of the others.
    pub(super) fn seconds(&self, held: &[Held]) -> Option<f64> {
        let at_once = held.iter().filter(|held| held.life != super::Life::Dead).count();
        let all = self.measured.values().fold(Measured::default(), |sum, one| Measured {
            steps: sum.steps + one.steps,
            seconds: sum.seconds + one.seconds,
        });
        if at_once == 0 || all.steps <= 0.0 || all.seconds <= 0.0 {
            return None;
        }
        let pace = |shape: &usize| {
            let one = self.measured.get(shape).copied().filter(|one| one.steps > 0.0).unwrap_or(all);
            one.seconds / one.steps
        };
        let seconds: f64 = self.open.iter().map(|(shape, steps)| steps * pace(shape)).sum();
        Some(seconds / at_once as f64)
    }
}
