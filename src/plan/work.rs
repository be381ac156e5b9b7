//! How much work a plan is: operations, tokens, bytes on disk.
//!
//! Operations are counted as floating-point additions and multiplications (a fused multiply-add is two). docs/sweep-file.md
//! gives the formulas.

use std::collections::HashMap;

use super::Plan;
use crate::settings::{Settings, TestBatches};

/// Tokens of the vocabulary: bytes.
const VOCABULARY: u128 = 256;
/// A row of `log.csv` and its copy in `curves.csv`, in bytes.
const ROW_BYTES: u64 = 2 * 190;
/// A run's other files (`run.json`, `result.json`, `worker.log`, its rows of the tables), in bytes.
const RUN_BYTES: u64 = 8 * 1024;

/// Operations of the forward pass of one window.
///
/// A matrix product of R rows with a `[K, N]` matrix is `2·R·K·N`. Per token and RWKV-7 block: `2·(4·C² + 8·C·D + 2·C·F)`
/// and the recurrence, `9·C·N` (`S·a` and `S·r` 2 each, the update of S 5). Attention block: `2·(4·C² + 2·C·F)` per token,
/// `4·C` per visible key, and `2·C` per earlier chunk that is ranked. Head: `2·C·256` per token.
pub fn forward_flops(s: &Settings) -> u64 {
    let [c, n, d, f, t] = [s.c, s.head_size, s.lora, s.ffn, s.seq_len].map(|v| v as u128);
    let mixes = 2 * (4 * c * c + 2 * c * f);
    let rwkv = t * (mixes + 2 * 8 * c * d + 9 * c * n);
    let (keys, ranked) = attended(s);
    let attention = t * mixes + 4 * c * keys + 2 * c * ranked;
    let total = s.n_rwkv as u128 * rwkv + s.n_attn as u128 * attention + t * 2 * c * VOCABULARY;
    u64::try_from(total).unwrap_or(u64::MAX)
}

/// Keys that all queries of a window see, and earlier chunks that they rank.
fn attended(s: &Settings) -> (u128, u128) {
    let (t, chunk) = (s.seq_len, s.chunk_size.clamp(1, s.seq_len));
    let (mut keys, mut ranked) = (0u128, 0u128);
    for (j, start) in (0..t).step_by(chunk).enumerate() {
        let len = chunk.min(t - start) as u128;
        keys += len * (len + 1) / 2 + len * (s.moba_top_k.min(j) * chunk) as u128;
        if s.moba_top_k > 0 {
            ranked += len * j as u128;
        }
    }
    (keys, ranked)
}

/// Operations of a training step: three times the forward pass (the backward pass has two products for each of its
/// products), over `batch * accum_steps` windows. Optimizers are linear in the parameters and not counted.
pub fn step_flops(s: &Settings) -> u64 {
    let windows = s.batch.saturating_mul(s.accum_steps) as u64;
    forward_flops(s).saturating_mul(3).saturating_mul(windows)
}

/// Rows that a run logs.
pub fn rows(s: &Settings) -> u64 {
    let last = s.steps.saturating_sub(1);
    let every = s.eval_every.max(1);
    last / every + 1 + u64::from(!last.is_multiple_of(every))
}

/// Operations of a whole run: its steps, logged evaluations, final evaluation, training probe and test.
pub fn run_flops(s: &Settings, corpus_bytes: u64) -> u64 {
    let test = match s.test_batches {
        TestBatches::Windows(n) => n,
        TestBatches::All => (corpus_bytes / 20).saturating_sub(1) / s.seq_len.max(1) as u64,
    };
    let evaluated = rows(s).saturating_add(2).saturating_mul(s.eval_batches).saturating_add(test).saturating_add(1);
    let trained = step_flops(s).saturating_mul(s.steps);
    trained.saturating_add(forward_flops(s).saturating_mul(evaluated))
}

/// Trained numbers of the model, ternary ones included and their scales not.
pub fn parameters(s: &Settings) -> u64 {
    let [c, d, f] = [s.c, s.lora, s.ffn].map(|v| v as u128);
    let matrices = 4 * c * c + 2 * c * f;
    let rwkv = matrices + 8 * c * d + 19 * c;
    let attention = matrices + 5 * c;
    let total = s.n_rwkv as u128 * rwkv + s.n_attn as u128 * attention + 2 * VOCABULARY * c + 2 * c;
    u64::try_from(total).unwrap_or(u64::MAX)
}

/// Bytes of a run's checkpoint at the most: three numbers of 4 bytes for each parameter, and what describes them.
pub fn checkpoint_bytes(s: &Settings) -> u64 {
    parameters(s).saturating_mul(12).saturating_add(64 << 10)
}

/// Bytes of what stays of a run on disk: its logs, tables' rows, and final weights where they are kept.
pub fn files_bytes(s: &Settings) -> u64 {
    let weights = if s.save_final { parameters(s).saturating_mul(4) } else { 0 };
    rows(s).saturating_mul(ROW_BYTES).saturating_add(RUN_BYTES).saturating_add(weights)
}

/// The work of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Training steps.
    pub steps: u64,
    /// Tokens trained on.
    pub tokens: u64,
    /// Operations, evaluations included.
    pub flops: u64,
    /// Bytes that the results take.
    pub disk: u64,
}

/// Counts the work of all runs.
pub fn work(plan: &Plan) -> Work {
    let mut total = Work { steps: 0, tokens: 0, flops: 0, disk: 0 };
    let bytes: HashMap<_, _> = plan.corpora.iter().map(|c| (c.path.as_deref(), c.bytes)).collect();
    for s in plan.runs.iter().map(|run| &run.settings) {
        let path = match &s.data {
            crate::settings::Data::Path(path) => Some(path.as_path()),
            crate::settings::Data::Builtin => None,
        };
        let tokens = s.steps as u128 * (s.batch * s.accum_steps) as u128 * s.seq_len as u128;
        total.steps = total.steps.saturating_add(s.steps);
        total.tokens = total.tokens.saturating_add(u64::try_from(tokens).unwrap_or(u64::MAX));
        total.flops = total.flops.saturating_add(run_flops(s, bytes.get(&path).copied().unwrap_or(0)));
        total.disk = total.disk.saturating_add(files_bytes(s));
    }
    total
}

/// How fast a die is, for a forecast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// Nothing was measured: a stated number of operations a second a die.
    Assumed(f64),
    /// Operations a second a die over earlier runs on this machine.
    Measured(f64),
}

/// Operations a second that a core is assumed to do before anything was measured.
pub const ASSUMED_SPEED: Speed = Speed::Assumed(4e10);

impl Speed {
    /// Seconds for the work on so many dies.
    pub fn seconds(self, work: Work, dies: usize) -> f64 {
        let (Self::Assumed(rate) | Self::Measured(rate)) = self;
        work.flops as f64 / (rate * dies.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_model_has_its_parameters() {
        assert_eq!(parameters(&Settings::default()), 958_464);
    }

    /// By hand for C=2, N=2, D=1, F=3, T=4, one block of each kind.
    #[test]
    fn operations_of_a_small_model() {
        let s = Settings {
            c: 2,
            n_head: 1,
            head_size: 2,
            n_rwkv: 1,
            n_attn: 1,
            ffn: 3,
            lora: 1,
            seq_len: 4,
            chunk_size: 4,
            ..Settings::default()
        };
        let mixes = 2 * (4 * 4 + 2 * 6);
        let rwkv = 4 * (mixes + 2 * 16 + 36);
        let attention = 4 * mixes + 8 * (1 + 2 + 3 + 4);
        assert_eq!(forward_flops(&s), rwkv + attention + 4 * 2 * 2 * 256);
        assert_eq!(step_flops(&Settings { batch: 2, accum_steps: 5, ..s.clone() }), 30 * forward_flops(&s));
        // Chunks of two: queries see 1, 2, 1+2, 2+2 keys, and the last two rank one chunk each.
        let sparse = Settings { chunk_size: 2, moba_top_k: 1, ..s.clone() };
        assert_eq!(attended(&sparse), (1 + 2 + 3 + 4, 2));
        assert_eq!(attended(&Settings { moba_top_k: 0, ..sparse }), (1 + 2 + 1 + 2, 0));
    }

    #[test]
    fn rows_are_every_so_many_steps_and_the_last() {
        let count = |steps, eval_every| rows(&Settings { steps, eval_every, ..Settings::default() });
        for (steps, every) in [(1, 5), (5, 5), (6, 5), (7, 5), (1000, 1), (1000, 7), (1001, 5)] {
            let expected = (0..steps).filter(|s| s % every == 0 || *s == steps - 1).count() as u64;
            assert_eq!(count(steps, every), expected, "{steps} {every}");
        }
    }
}
