//! The worker's beat: proof of life, and how far its attempts are.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::link::Link;
use crate::event::Phase;
use crate::protocol::{FromWorker, Place, Pulse};

/// Time between two beats.
const PERIOD: Duration = Duration::from_secs(1);

/// Steps whose durations make the median.
const KEPT: usize = 64;

/// What the attempts in hand do, by lane, as the beat tells it.
#[derive(Debug, Default)]
pub(super) struct Heart {
    lanes: Mutex<BTreeMap<u32, State>>,
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
    fn lanes(&self) -> MutexGuard<'_, BTreeMap<u32, State>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt begins.
    pub(super) fn begin(&self, place: Place) {
        let seconds = VecDeque::with_capacity(KEPT);
        let (phase, since) = (Phase::Opening, Instant::now());
        self.lanes().insert(place.lane, State { place, phase, step: None, since, work: 1.0, seconds });
    }

    /// The attempt enters a phase; `work` is that of the step in hand.
    pub(super) fn enter(&self, lane: u32, phase: Phase, work: f64) {
        if let Some(state) = self.lanes().get_mut(&lane) {
            (state.phase, state.work, state.since) = (phase, work, Instant::now());
        }
    }

    /// Steps up to `step` are done, by one call of the trainer; `work` is that of the next.
    pub(super) fn stepped(&self, lane: u32, step: u64, work: f64) {
        if let Some(state) = self.lanes().get_mut(&lane) {
            let now = Instant::now();
            if state.seconds.len() == KEPT {
                state.seconds.pop_front();
            }
            let steps = step.saturating_sub(state.step.unwrap_or(0)).max(1);
            let done = (steps - 1) as f64 + state.work.max(1.0);
            state.seconds.push_back(now.duration_since(state.since).as_secs_f64() / done);
            state.step = Some(step);
            state.since = now;
            state.work = work;
        }
    }

    /// The attempt goes on from where an earlier one was.
    pub(super) fn resumed(&self, lane: u32, steps: u64) {
        if let Some(state) = self.lanes().get_mut(&lane) {
            state.step = steps.checked_sub(1);
        }
    }

    /// The last step that was trained.
    pub(super) fn step(&self, lane: u32) -> Option<u64> {
        self.lanes().get(&lane).and_then(|state| state.step)
    }

    /// Whether no attempt is in hand.
    pub(super) fn is_idle(&self) -> bool {
        self.lanes().is_empty()
    }

    /// The attempt is not in hand any more.
    pub(super) fn end(&self, lane: u32) {
        self.lanes().remove(&lane);
    }

    /// Sends a beat. No attempt can end meanwhile, so that no pulse comes after its `ended`.
    fn beat(&self, link: &Link) {
        let lanes = self.lanes();
        link.tell(&FromWorker::Beat { pulses: lanes.values().map(State::pulse).collect() });
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

    fn place(lane: u32) -> Place {
        Place { lane, run: RunId::from_bits(1), attempt: 1 }
    }

    #[test]
    fn the_usual_time_is_the_median_times_the_work_in_hand() {
        let heart = Heart::default();
        let pulse = |lane| heart.lanes().get(&lane).map(State::pulse);
        assert!(pulse(2).is_none());
        heart.begin(place(2));
        heart.begin(place(0));
        heart.enter(2, Phase::Training, 1.0);
        assert_eq!(pulse(2).unwrap().usual_ms, None);
        heart.stepped(2, 0, 9.0);
        heart.lanes().get_mut(&2).unwrap().seconds = [0.5, 0.001, 0.1].into();
        let told = pulse(2).unwrap();
        assert_eq!((told.step, told.usual_ms), (Some(0), Some(900)));
        assert_eq!(pulse(0).unwrap().phase, Phase::Opening, "another lane's attempt is left alone");
        heart.end(2);
        assert!(pulse(2).is_none() && heart.step(2).is_none() && pulse(0).is_some());
    }

    #[test]
    fn steps_that_are_made_at_once_share_their_time() {
        let heart = Heart::default();
        heart.begin(place(0));
        heart.enter(0, Phase::Training, 1.0);
        heart.resumed(0, 10);
        heart.lanes().get_mut(&0).unwrap().since = Instant::now() - Duration::from_secs(20);
        heart.stepped(0, 29, 1.0);
        let second = heart.lanes()[&0].seconds[0];
        assert!((1.0..1.1).contains(&second), "{second}");
    }

    #[test]
    fn only_the_last_steps_count() {
        let heart = Heart::default();
        heart.begin(place(0));
        (0..200).for_each(|step| heart.stepped(0, step, 1.0));
        assert_eq!(heart.lanes()[&0].seconds.len(), KEPT);
    }
}
