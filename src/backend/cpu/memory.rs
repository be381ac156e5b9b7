//! How much memory a worker takes.

use super::recurrence::states_len;
use crate::model::VOCAB;
use crate::plan::work::parameters;
use crate::settings::Settings;

/// What a worker takes before it has a model: program, threads, pipes, the allocator's slack.
const BASE: u64 = 24 << 20;

/// Bytes that a worker takes to train a run with these settings, checkpoint included: the arrays of the engine, and of
/// each trained number its value, two moments, its gradient, twice its place in packed matrices, and the copies that a checkpoint is written
/// from. A corpus in a file is not counted: its pages are the kernel's to drop. For the default model
/// this is 126 MB, a quarter more than a worker was seen to take (docs/performance.md).
pub fn worker_bytes(s: &Settings) -> u64 {
    let rows = (s.batch * s.seq_len) as u64;
    let [c, d, f, h, n] = [s.c, s.lora, s.ffn, s.n_head, s.head_size].map(|v| v as u64);
    let norm = 2 * c + 1;
    let channel_mix = norm + 2 * c + 3 * f;
    let rwkv = norm + 23 * c + 4 * d + 3 * h + channel_mix;
    let states = (s.batch * s.n_head * states_len(s.seq_len, s.head_size)) as u64;
    let attention = norm + 5 * c + h * s.seq_len as u64 + channel_mix;
    let scratch = 23 * c + 4 * d + h + 8 * c;
    let ends = norm + 3 * c + VOCAB as u64 + 2;
    let a_row = s.n_rwkv as u64 * rwkv + s.n_attn as u64 * attention + scratch + ends;
    let activations = rows * a_row + s.n_rwkv as u64 * states + n * n;
    let gradients = if s.accum_steps > 1 { 2 } else { 1 };
    let weights = parameters(s) * (3 + gradients + 2 + 2 * 3);
    BASE.saturating_add(activations.saturating_add(weights).saturating_mul(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_of_anything_takes_more() {
        let of = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            worker_bytes(&settings)
        };
        let default = of(|_| {});
        for change in [
            (|s| s.batch = 2) as fn(&mut Settings),
            |s| s.seq_len = 1024,
            |s| s.c = 256,
            |s| s.n_rwkv = 4,
            |s| s.n_attn = 2,
            |s| s.ffn = 1024,
            |s| s.lora = 64,
            |s| s.accum_steps = 2,
        ] {
            assert!(of(change) > default);
        }
    }
}
