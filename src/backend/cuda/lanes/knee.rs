//! How many lanes pay.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Lanes, LanesError};
use crate::backend::cpu::team::Team;
use crate::backend::cuda::die::{Die, DieError};
use crate::data::Corpus;
use crate::settings::{OnNonfinite, Settings};

/// Counts that are tried, within the number of runs.
const TRIED: [usize; 5] = [1, 4, 16, 64, 256];

/// Steps that are timed, after as many that are not.
const TIMED: u32 = 3;

/// Fewer lanes are taken where they cost no more than this much time: they want less memory.
const WORTH: f64 = 1.05;

/// A step's time in so many lanes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Lanes.
    pub lanes: usize,
    /// Time of a training step of all of them.
    pub step: Duration,
}

impl Measured {
    /// How long `runs` runs take, in steps of one run: lanes are filled in turns.
    fn cost(&self, runs: usize) -> f64 {
        runs.div_ceil(self.lanes) as f64 * self.step.as_secs_f64()
    }
}

/// The fewest lanes that train `runs` runs about as soon as any count that was measured.
pub fn knee(measured: &[Measured], runs: usize) -> Option<Measured> {
    let best = measured.iter().map(|m| m.cost(runs)).min_by(f64::total_cmp)?;
    measured.iter().filter(|m| m.cost(runs) <= best * WORTH).min_by_key(|m| m.lanes).copied()
}

/// Counts to try for `runs` runs, ascending.
fn counts(runs: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = TRIED.into_iter().filter(|&n| n < runs).collect();
    counts.push(runs.clamp(1, TRIED[TRIED.len() - 1]));
    counts.dedup();
    counts
}

/// Times a few numbers of lanes with a run's shape, as far as they fit into the die's memory.
///
/// # Errors
/// Not even one lane can be had.
pub fn measure(
    die: &Rc<Die>,
    settings: &Settings,
    corpus: &Corpus,
    runs: usize,
    team: &Arc<Team>,
) -> Result<Vec<Measured>, LanesError> {
    let mut measured = Vec::new();
    for count in counts(runs) {
        let made = Lanes::new(Rc::clone(die), settings, corpus.clone(), count, Arc::clone(team));
        let mut lanes = match made {
            Err(LanesError::Die(DieError::OutOfMemory { .. })) if count > 1 => break,
            made => made?,
        };
        lanes.fill_alike(settings)?;
        measured.push(Measured { lanes: count, step: lanes.time_steps(TIMED, TIMED)? });
    }
    Ok(measured)
}

impl Lanes {
    /// Puts one and the same run in every lane, long enough for any measurement.
    ///
    /// # Errors
    /// The run is of another shape, or the die's error.
    pub fn fill_alike(&mut self, settings: &Settings) -> Result<(), LanesError> {
        let settings = Settings { steps: 1_000_000, on_nonfinite: OnNonfinite::Skip, ..settings.clone() };
        let (run, params) = (self.run(&settings)?, self.engine.params());
        let state = self.team.enter(|| run.start(&self.team, params));
        for lane in 0..self.count() {
            let run = self.run(&settings)?;
            self.place(lane, run, &state)?;
        }
        Ok(())
    }

    /// Mean time of `timed` training steps of all lanes by replays of their graph, after `before` others.
    ///
    /// # Errors
    /// The die's.
    pub fn time_steps(&mut self, before: u32, timed: u32) -> Result<Duration, LanesError> {
        self.supply(u64::from(before + timed))?;
        for _ in 0..before {
            self.graphs.step.replay()?;
        }
        self.die.wait()?;
        let from = Instant::now();
        for _ in 0..timed {
            self.graphs.step.replay()?;
        }
        self.die.wait()?;
        let took = from.elapsed() / timed.max(1);
        self.read_steps()?;
        Ok(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds of a step, as measured of the default model on one chip.
    fn measured() -> Vec<Measured> {
        let of = |(lanes, ms): (usize, u64)| Measured { lanes, step: Duration::from_micros(ms) };
        [(1, 2630), (4, 3130), (16, 5610), (64, 16_200), (256, 64_000)].map(of).to_vec()
    }

    #[test]
    fn the_knee_lies_where_more_lanes_stop_to_pay() {
        let lanes = |runs| knee(&measured(), runs).map(|m| m.lanes);
        assert_eq!(lanes(1), Some(1));
        assert_eq!(lanes(3), Some(4), "three runs in four lanes take one turn");
        assert_eq!(lanes(16), Some(16));
        assert_eq!(lanes(100_000), Some(64), "256 lanes are but 1 % faster");
        // Forty runs: three turns of 16 lanes take 16.8 ms a step, one turn of 64 takes 16.2.
        assert_eq!(lanes(40), Some(16));
        assert_eq!(lanes(48), Some(16));
        assert_eq!(lanes(64), Some(64));
        assert_eq!(knee(&[], 9), None);
    }

    #[test]
    fn counts_stay_within_the_runs() {
        assert_eq!(counts(0), [1]);
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(4), [1, 4]);
        assert_eq!(counts(40), [1, 4, 16, 40]);
        assert_eq!(counts(10_000), [1, 4, 16, 64, 256]);
    }
}
