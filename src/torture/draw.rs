//! Random choices that follow from a seed.

use crate::rng::philox;

/// The choices of one schedule.
#[derive(Debug)]
pub(super) struct Draw {
    seed: u64,
    stream: u32,
    drawn: u32,
}

impl Draw {
    pub(super) const fn new(seed: u64, stream: u32) -> Self {
        Self { seed, stream, drawn: 0 }
    }

    /// Any word.
    pub(super) fn word(&mut self) -> u32 {
        self.drawn += 1;
        // The last word keeps these numbers apart from those that a run is made of.
        philox([self.drawn, self.stream, 0, 0x544F_5254], self.seed)[0]
    }

    /// A number below `n`, which is not 0.
    pub(super) fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.word()) * u64::from(n)) >> 32) as u32
    }

    /// True once in `n` times.
    pub(super) fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    /// Any order.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(u32::try_from(i + 1).unwrap_or(u32::MAX)) as usize;
            items.swap(i, j);
        }
    }
}
