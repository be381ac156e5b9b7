//! Rows of `kernels/control.cu`.

use super::optimizer::RATES;
use crate::backend::cuda::kernel::{In, Out, kernel};

/// Floats of a step's row of the table of rates.
pub const TABLE_ROW: usize = 2 * RATES + 1;
/// Counts of the panel.
pub const COUNTS: usize = 5;

kernel! {
    /// What a step begins with.
    BeginStep = "begin_step" in "control.cu", |_s| [1, 1], 32;
    halted: In<u8> [1],
    limits: In<u64> [1],
    steps: In<u64> [1],
    table: In<f32> [_s.chunk as usize * TABLE_ROW],
    training: Out<i32> [1],
    step_numbers: Out<u64> [1],
    numbers: Out<u64> [1],
    rates: Out<f32> [RATES],
    scale_rates: Out<f32> [RATES],
    scale_factors: Out<f32> [1],
    chunk: u32,
    windows: u32,
}

kernel! {
    /// A batch's loss.
    CollectLoss = "collect_loss" in "control.cu", |_s| [1, 1], 32;
    sums: In<f64> [1],
    losses: Out<f64> [1],
    numbers: Out<u64> [1],
    rows: u32,
    windows: u32,
    part: u32,
    parts: u32,
}

kernel! {
    /// Whether a step's update is taken.
    JudgeStep = "judge_step" in "control.cu", |_s| [1, 1], 32;
    losses: In<f64> [1],
    norms: In<f64> [1],
    ceilings: In<f64> [1],
    skips: In<u8> [1],
    training: In<i32> [1],
    updating: Out<i32> [1],
    halted: Out<u8> [1],
    steps: Out<u64> [1],
    skipped: Out<u64> [1],
}

kernel! {
    /// The next group of windows of an evaluation.
    BeginGroup = "begin_group" in "control.cu", |_s| [1, 1], 32;
    due: In<i32> [1],
    counts: In<u32> [1],
    groups: Out<u32> [1],
    scoring: Out<i32> [1],
    windows: u32,
}

kernel! {
    /// Bytes of a group's windows.
    GatherGroup = "gather_group" in "control.cu", |s| [s.rows.div_ceil(256), 1], 256;
    corpus: In<u8> {s.length as usize},
    offsets: In<u64> [s.capacity as usize],
    groups: In<u32> [1],
    inputs: Out<u8> [s.rows as usize],
    targets: Out<u8> [s.rows as usize],
    length: u64,
    capacity: u32,
    rows: u32,
    tokens: u32,
    windows: u32,
}

kernel! {
    /// What a group's windows scored.
    KeepScores = "keep_scores" in "control.cu", |_s| [1, 1], 32;
    losses: In<f64> [_s.windows as usize],
    hits: In<u32> [_s.windows as usize],
    groups: In<u32> [1],
    kept_losses: Out<f64> [_s.capacity as usize],
    kept_hits: Out<u32> [_s.capacity as usize],
    capacity: u32,
    windows: u32,
}

kernel! {
    /// Summary of the scales.
    PanelScales = "panel_scales" in "control.cu", |_s| [1, 1], 1024;
    scales: In<f32> [_s.count as usize],
    summary: Out<f64> [3],
    counts: Out<u32> [COUNTS],
    count: u32,
}

kernel! {
    /// Counts of the ternary weights.
    PanelWeights = "panel_weights" in "control.cu", |s| [s.count.div_ceil(256), 1], 256;
    q: In<i8> [s.count as usize],
    lane_settings: In<u32> [4],
    previous: Out<i8> [s.count as usize],
    counts: Out<u32> [COUNTS],
    count: u32,
}
