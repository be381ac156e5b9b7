//! Initial weights.
//!
//! Every value is computed in f64 and rounded once. Powers and roots come from the `libm` crate, the same software on
//! every machine, so that initial weights are the same bytes everywhere. The formulas are those of the current
//! RWKV-LM training code (x070), with uniform in place of orthogonal matrices of the same element variance.
//!
//! For channel n of C: `d = n/C`, `lin = n/(C-1) - 0.5`, `z = ((n mod N) - (N-1)/2) / ((N-1)/2)`, `zz = z*|z|`;
//! for the block at place l of L in the execution order: `r01 = l/(L-1)`, `r10 = 1 - l/L`.

use libm::{pow, sqrt};

use super::config::ModelConfig;
use super::params::{Init, ModelParams, Param};
use crate::rng::{domain, first_word, pair};

/// Fills an arena of weights (`params.arena_len` floats) with the initial weights of a seed; gaps become zero.
pub fn init_params(config: &ModelConfig, params: &ModelParams, seed: u64, arena: &mut [f32]) {
    assert_eq!(arena.len(), params.arena_len, "the arena must be this model's");
    arena.fill(0.0);
    for p in &params.table {
        init_tensor(config, p, seed, p.id.of_mut(arena));
    }
}

fn init_tensor(config: &ModelConfig, p: &Param, seed: u64, out: &mut [f32]) {
    let c = config.c as f64;
    let depth = Depth::new(p.depth, config.blocks());
    let by_channel = |out: &mut [f32], f: &dyn Fn(f64) -> f64| {
        for (n, o) in out.iter_mut().enumerate() {
            *o = f(n as f64) as f32;
        }
    };
    match p.init {
        Init::Zero => out.fill(0.0),
        Init::Fill(x) => out.fill(x as f32),
        Init::Uniform(bound) => uniform(p, seed, bound, out),
        Init::Projection(x) => uniform(p, seed, x / sqrt(c), out),
        Init::Orthogonal(x) => uniform(p, seed, x * sqrt(3.0 / c), out),
        Init::Mix(x) => by_channel(out, &|n| 1.0 - pow(n / c, x * depth.r10)),
        Init::ChannelMix => by_channel(out, &|n| 1.0 - pow(n / c, pow(depth.r10, 4.0))),
        Init::Decay => by_channel(out, &|n| {
            let ramp = pow(share(n, c), 1.0 + pow(depth.r01, 0.3));
            -6.0 + 6.0 * ramp + 0.5 + 2.5 * zigzag(n, config.head_size)
        }),
        Init::Line { base, zigzag: zz, slope } => by_channel(out, &|n| {
            let lin = share(n, c) - 0.5;
            // A factor of 0 adds an exact zero: the sum is then that of the shorter formula.
            base + zz * zigzag(n, config.head_size) + slope * lin
        }),
        Init::Depth => out.fill(pow((1.0 + p.depth as f64) / config.blocks() as f64, 0.7) as f32),
    }
}

fn uniform(p: &Param, seed: u64, bound: f64, out: &mut [f32]) {
    // Tables have tens of lines for each block; their index fits a counter word on any real model.
    let counter = pair(u32::try_from(p.id.index()).expect("fewer than 2^32 tensors"), domain::INIT);
    for (e, o) in out.iter_mut().enumerate() {
        let u = f64::from(crate::rng::unit24(first_word(seed, e as u64, counter)));
        *o = ((2.0 * u - 1.0) * bound) as f32;
    }
}

/// `n/(C-1)`, and 0 for a model of one channel.
fn share(n: f64, c: f64) -> f64 {
    if c > 1.0 { n / (c - 1.0) } else { 0.0 }
}

/// A curve from -1 to 1 over the channels of a head; 0 for heads of one channel.
fn zigzag(n: f64, head_size: usize) -> f64 {
    let half = (head_size as f64 - 1.0) / 2.0;
    if half == 0.0 {
        return 0.0;
    }
    let z = (n % head_size as f64 - half) / half;
    z * z.abs()
}

/// Where a block stands among the blocks.
struct Depth {
    r01: f64,
    r10: f64,
}

impl Depth {
    fn new(place: usize, blocks: usize) -> Self {
        let (l, all) = (place as f64, blocks as f64);
        let r01 = if blocks > 1 { l / (all - 1.0) } else { 0.0 };
        let r10 = if blocks > 0 { 1.0 - l / all } else { 1.0 };
        Self { r01, r10 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::tests::default_config;
    use super::*;

    fn filled(config: &ModelConfig, seed: u64) -> (ModelParams, Vec<f32>) {
        let params = ModelParams::new(config);
        let mut arena = vec![f32::NAN; params.arena_len];
        init_params(config, &params, seed, &mut arena);
        (params, arena)
    }

    #[test]
    fn every_value_is_finite_even_for_the_smallest_sizes() {
        let smallest =
            ModelConfig { c: 1, n_head: 1, head_size: 1, ffn: 1, lora: 1, n_rwkv: 1, n_attn: 0, ..default_config() };
        for config in [smallest, default_config()] {
            let (_, arena) = filled(&config, 7);
            assert!(arena.iter().all(|x| x.is_finite()));
        }
    }

    #[test]
    fn uniform_tensors_fill_their_bound_and_differ_by_seed_and_tensor() {
        let (params, a) = filled(&default_config(), 1);
        let (_, b) = filled(&default_config(), 2);
        let block = &params.rwkv[0];
        let bound = 0.5 / 128f32.sqrt();
        let largest = block.receptance_w.of(&a).iter().fold(0f32, |m, x| m.max(x.abs()));
        assert!(largest <= bound && largest > 0.99 * bound, "{largest} of {bound}");
        assert_ne!(block.receptance_w.of(&a), block.receptance_w.of(&b));
        assert_ne!(block.receptance_w.of(&a), block.value_w.of(&a));
    }
}
