//! Statistics of a comparison by seeds, each with its formula and source beside it.
//!
//! Everything here is a function of numbers alone. What ends up in tables is formed by additions, multiplications,
//! divisions, square roots and `libm` (not the platform's), so the same samples give the same bytes everywhere.

mod bootstrap;
mod family;
mod normal;
mod paired;
mod power;
mod sign_flip;
mod student;
mod summary;
mod wilcoxon;

pub use bootstrap::{RESAMPLES, bca_mean};
pub use family::{holm, holm_smallest, smallest_p};
pub use normal::{normal_cdf, normal_quantile};
pub use paired::{Better, Paired, Pairing, pair_by_seed, probability_of_improvement};
pub use power::{POWER, power_paired_t, seeds_needed};
pub use sign_flip::{DRAWS, EXACT_PAIRS, sign_flip_p};
pub use student::{t_critical, t_two_sided};
pub use summary::{Interval, Summary, interquartile_mean, mean, median};
pub use wilcoxon::wilcoxon_p;

/// Level of every interval.
pub const CONFIDENCE: f64 = 0.95;
/// Level of every test: `1 - CONFIDENCE`.
pub const ALPHA: f64 = 0.05;
