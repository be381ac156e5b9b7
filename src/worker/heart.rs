//! The worker's beat: proof of life, and how far its attempt is.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::link::Link;
use crate::event::Phase;
use crate::protocol::{FromWorker, Place, Pulse};

/// Time between two beats.
const PERIOD: Duration = Duration::from_secs(1);

/// Steps whose durations make the median.
const KEPT: usize = 64;

/// What the attempt in hand does, as the beat tells it.
#[derive(Debug, Default)]
pub(super) struct Heart {
    state: Mutex<Option<State>>,
}

#[derive(Debug)]
struct State {
    place: Place,
    phase: Phase,
    step: Option<u64>,
    since: Instant,
    /// Work of the step in hand, in plain steps.
    work: f64,
    /// Seconds for the work of a plain step, of the last steps.
    seconds: VecDeque<f64>,
}

impl Heart {
    fn state(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt begins.
    pub(super) fn begin(&self, place: Place) {
        *self.state() = Some(State {
            place,
            phase: Phase::Opening,
            step: None,
            since: Instant::now(),
            work: 1.0,
            seconds: VecDeque::with_capacity(KEPT),
        });
    }

    /// The attempt enters a phase; `work` is that of the step in hand.
    pub(super) fn enter(&self, phase: Phase, work: f64) {
        if let Some(state) = self.state().as_mut() {
            *state =
                State { phase, work, since: Instant::now(), seconds: std::mem::take(&mut state.seconds), ..*state };
        }
    }

    /// The step in hand is done; `work` is that of the next.
    pub(super) fn stepped(&self, step: u64, work: f64) {
        if let Some(state) = self.state().as_mut() {
            let now = Instant::now();
            if state.seconds.len() == KEPT {
                state.seconds.pop_front();
            }
            state.seconds.push_back(now.duration_since(state.since).as_secs_f64() / state.work.max(1.0));
            state.step = Some(step);
            state.since = now;
            state.work = work;
        }
    }

    /// The attempt goes on from where an earlier one was.
    pub(super) fn resumed(&self, steps: u64) {
        if let Some(state) = self.state().as_mut() {
            state.step = steps.checked_sub(1);
        }
    }

    /// The last step that was trained.
    pub(super) fn step(&self) -> Option<u64> {
        self.state().as_ref().and_then(|state| state.step)
    }

    /// Whether no attempt is in hand.
    pub(super) fn is_idle(&self) -> bool {
        self.state().is_none()
    }

    /// No attempt is in hand any more.
    pub(super) fn end(&self) {
        *self.state() = None;
    }

    /// Sends a beat. The attempt cannot end meanwhile, so that no pulse comes after its `ended`.
    fn beat(&self, link: &Link) {
        let state = self.state();
        let pulses = state.as_ref().map(State::pulse).into_iter().collect();
        link.tell(&FromWorker::Beat { pulses });
    }
}

impl State {
    fn pulse(&self) -> Pulse {
        Pulse {
            place: self.place,
            phase: self.phase,
            step: self.step,
            still_ms: millis(self.since.elapsed().as_secs_f64()),
            usual_ms: median(&self.seconds).map(|seconds| millis(seconds * self.work)),
        }
    }
}

/// Whole milliseconds, rounded up, so that what took any time is never 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from f64 saturates")]
fn millis(seconds: f64) -> u64 {
    (seconds * 1e3).ceil() as u64
}

/// The upper median.
fn median(values: &VecDeque<f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// Starts the thread that beats as long as the process lives.
pub(super) fn start(heart: Arc<Heart>, link: Arc<Link>) -> std::io::Result<()> {
    let beat = move || {
        loop {
            std::thread::sleep(PERIOD);
            heart.beat(&link);
        }
    };
    std::thread::Builder::new().name("beat".to_owned()).spawn(beat).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunId;

    #[test]
    fn the_usual_time_is_the_median_times_the_work_in_hand() {
        let heart = Heart::default();
        let pulse = || heart.state().as_ref().map(State::pulse);
        assert!(pulse().is_none());
        heart.begin(Place { lane: 0, run: RunId::from_bits(1), attempt: 1 });
        heart.enter(Phase::Training, 1.0);
        assert_eq!(pulse().unwrap().usual_ms, None);
        heart.stepped(0, 9.0);
        {
            let mut state = heart.state();
            state.as_mut().unwrap().seconds = [0.5, 0.001, 0.1].into();
        }
        let told = pulse().unwrap();
        assert_eq!((told.step, told.usual_ms), (Some(0), Some(900)));
        heart.end();
        assert!(pulse().is_none() && heart.step().is_none());
    }

    #[test]
    fn only_the_last_steps_count() {
        let heart = Heart::default();
        heart.begin(Place { lane: 0, run: RunId::from_bits(1), attempt: 1 });
        (0..200).for_each(|step| heart.stepped(step, 1.0));
        assert_eq!(heart.state().as_ref().unwrap().seconds.len(), KEPT);
    }
}
