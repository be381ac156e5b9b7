//! Who holds a run, and what an observer may conclude from what it sees. No I/O, no clock: every order of observations is a
//! unit test.

use std::time::{Duration, Instant};

/// What the times of leases are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// A lease whose controller's beat stood still for so long may be taken over.
    pub standing: Duration,
}

impl Default for LeaseTerms {
    fn default() -> Self {
        Self { standing: Duration::from_secs(60) }
    }
}

impl LeaseTerms {
    /// Time between two beats: five may be lost before anybody doubts.
    pub fn beat_every(self) -> Duration {
        self.standing / 6
    }

    /// Time between two looks at somebody else's beat.
    pub fn look_every(self) -> Duration {
        self.standing / 30
    }

    /// The most that one look adds to the time that a beat is taken to have stood still. An observer that slept or was stopped
    /// between two looks has not seen what happened meanwhile, and whoever it watches may have slept with it.
    pub fn longest_gap(self) -> Duration {
        self.standing / 6
    }

    /// A worker that did not hear of its controller for so long leaves: well before anybody may take its run over.
    pub fn worker_patience(self) -> Duration {
        self.standing / 3
    }
}

/// How long something has been seen not to change.
#[derive(Clone, Debug)]
pub(super) struct Watch<T> {
    seen: T,
    stood: Duration,
    looked: Instant,
}

impl<T: PartialEq> Watch<T> {
    /// Begins with a first look.
    pub(super) const fn new(now: Instant, seen: T) -> Self {
        Self { seen, stood: Duration::ZERO, looked: now }
    }

    /// Takes a look in: how long what is seen has stood still, as far as it was watched.
    pub(super) fn look(&mut self, now: Instant, seen: T, terms: LeaseTerms) -> Duration {
        if seen == self.seen {
            self.stood += now.saturating_duration_since(self.looked).min(terms.longest_gap());
        } else {
            (self.seen, self.stood) = (seen, Duration::ZERO);
        }
        self.looked = now;
        self.stood
    }

    /// Whether another look is due.
    pub(super) fn is_due(&self, now: Instant, terms: LeaseTerms) -> bool {
        now.saturating_duration_since(self.looked) >= terms.look_every()
    }

    /// How long it stood still at the last look.
    pub(super) const fn stood(&self) -> Duration {
        self.stood
    }
}

/// What is known of the highest lease of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// It was given back.
    pub(super) released: bool,
    /// It is this controller's own.
    pub(super) ours: bool,
    /// Its process is provably dead.
    pub(super) dead: bool,
    /// How long its controller's beat has been seen to stand still.
    pub(super) stood: Duration,
}

/// Whose a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// This controller's.
    Ours,
    /// Whoever makes the next lease's.
    Free,
    /// The holder's of the highest lease.
    Held,
}

/// Whose a run is, by what is known of its highest lease.
pub(super) fn standing(known: Known, terms: LeaseTerms) -> Standing {
    match known {
        Known { released: true, .. } => Standing::Free,
        Known { ours: true, .. } => Standing::Ours,
        Known { dead: true, .. } => Standing::Free,
        Known { stood, .. } if stood >= terms.standing => Standing::Free,
        Known { .. } => Standing::Held,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TERMS: LeaseTerms = LeaseTerms { standing: Duration::from_secs(60) };

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn times_follow_the_lease() {
        let terms = LeaseTerms::default();
        assert_eq!(terms, TERMS);
        assert_eq!((terms.beat_every(), terms.worker_patience()), (seconds(10), seconds(20)));
        assert!(terms.look_every() < terms.longest_gap(), "looks that are on time count in full");
        assert!(terms.worker_patience() + terms.beat_every() < terms.standing);
    }

    #[test]
    fn a_beat_that_stands_is_taken_over_after_the_standing_time_and_not_before() {
        let start = Instant::now();
        let mut watch = Watch::new(start, 7);
        for second in (2..60).step_by(2) {
            assert!(watch.look(start + seconds(second), 7, TERMS) < TERMS.standing, "after {second} s");
        }
        assert_eq!(watch.look(start + seconds(60), 7, TERMS), TERMS.standing);
    }

    #[test]
    fn a_beat_that_moves_begins_anew() {
        let start = Instant::now();
        let mut watch = Watch::new(start, 7);
        watch.look(start + seconds(9), 7, TERMS);
        assert_eq!(watch.look(start + seconds(10), 8, TERMS), Duration::ZERO);
        assert_eq!(watch.look(start + seconds(15), 8, TERMS), seconds(5));
        // A counter that went backwards has moved as well: another controller may have made the file anew.
        assert_eq!(watch.look(start + seconds(16), 1, TERMS), Duration::ZERO);
    }

    #[test]
    fn an_observer_that_slept_has_seen_nothing() {
        let start = Instant::now();
        let mut watch = Watch::new(start, 7);
        assert_eq!(watch.look(start + seconds(3600), 7, TERMS), TERMS.longest_gap());
        assert_eq!(watch.look(start + seconds(3601), 7, TERMS), TERMS.longest_gap() + seconds(1));
        // A clock that ran backwards counts nothing.
        assert_eq!(watch.look(start, 7, TERMS), TERMS.longest_gap() + seconds(1));
    }

    #[test]
    fn whose_a_run_is() {
        let held = Known { released: false, ours: false, dead: false, stood: Duration::ZERO };
        let of = |known| standing(known, TERMS);
        assert_eq!(of(held), Standing::Held);
        assert_eq!(of(Known { stood: seconds(59), ..held }), Standing::Held);
        assert_eq!(of(Known { stood: seconds(60), ..held }), Standing::Free);
        assert_eq!(of(Known { dead: true, ..held }), Standing::Free);
        assert_eq!(of(Known { released: true, ours: true, ..held }), Standing::Free);
        assert_eq!(of(Known { ours: true, stood: seconds(600), ..held }), Standing::Ours);
    }

    proptest! {
        /// Whatever is seen and whenever: the time counted never exceeds the time since the beat was last seen to move, nor
        /// what the looks since then may add.
        #[test]
        fn no_more_time_is_counted_than_was_watched(looks in prop::collection::vec((0_u64..200, any::<bool>()), 1..60)) {
            let start = Instant::now();
            let (mut now, mut beat, mut moved, mut since) = (start, 0_u64, start, 0_u32);
            let mut watch = Watch::new(start, beat);
            for (pause, moves) in looks {
                now += seconds(pause);
                beat += u64::from(moves);
                let stood = watch.look(now, beat, TERMS);
                if moves {
                    (moved, since) = (now, 0);
                } else {
                    since += 1;
                }
                prop_assert!(stood <= now - moved);
                prop_assert!(stood <= TERMS.longest_gap() * since);
                prop_assert_eq!(stood, watch.stood());
            }
        }
    }
}
