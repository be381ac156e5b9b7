//! Tests of the report as a whole.

mod closing;
mod diff;
mod markup;
mod speed;
mod tables;
mod verdict;

use super::{ConfigurationResults, SeedResult, SeedState};
use crate::plan::{Configuration, Plan};

/// Results of a plan's configurations, from a function of configuration and seed.
pub(super) fn results(plan: &Plan, state: impl Fn(&Configuration, u64) -> SeedState) -> Vec<ConfigurationResults> {
    let of = |configuration: &Configuration| {
        let seeds = configuration.runs.iter().map(|run| plan.runs[*run].seed);
        let seeds = seeds.map(|seed| SeedResult { seed, state: state(configuration, seed) });
        ConfigurationResults { seeds: seeds.collect() }
    };
    plan.configurations.iter().map(of).collect()
}

/// A finished run whose test value is 0.1 above.
pub(super) fn done(value: f64) -> SeedState {
    SeedState::Finished { value, test: Some(value + 0.1) }
}

/// Noise of a seed that both arms share, and a smaller one that they do not.
pub(super) fn noise(seed: u64, own: u64) -> f64 {
    let word =
        |a: u64, b: u64| f64::from(crate::rng::philox([a as u32, b as u32, 0, 0], 3)[0]) / f64::from(u32::MAX) - 0.5;
    0.1 * word(seed, 0) + 0.02 * word(seed, 1 + own)
}
