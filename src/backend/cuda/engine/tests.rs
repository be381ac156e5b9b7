//! The engine against the CPU backend, byte by byte. Without a GPU the tests say so and pass: nothing is claimed then.

use std::sync::Arc;

use super::optimizer::{DeviceOptimizer, LaneOptimizer, LaneStep};
use super::*;
use crate::backend::cpu;
use crate::backend::cpu::simd::Level;
use crate::backend::cpu::team::Team;
use crate::backend::cuda::library::Host;
use crate::optim::Optimizer;
use crate::optim::adamw::AdamW;
use crate::optim::lr::ScaleRate;
use crate::settings::{Decay, Opt, Settings};

pub(super) fn die() -> Option<Die> {
    match Die::open(&Host::this(), 0) {
        Ok(die) => Some(die),
        Err(error) if std::env::var_os("DIESWEEP_NEED_GPU").is_some() => panic!("{error}"),
        Err(error) => {
            eprintln!("SKIPPED, no CUDA die: {error}");
            None
        }
    }
}

/// Numbers in [-1, 1) from a counter.
pub(super) fn noise(seed: u64, i: usize) -> f32 {
    let word = crate::rng::first_word(seed, i as u64, 7);
    crate::rng::unit24(word) * 2.0 - 1.0
}

/// The first place where two arrays differ in a bit, told by tensor.
fn difference(what: &str, params: Option<&ModelParams>, ours: &[f32], theirs: &[f32]) -> Option<String> {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let differs = |i: &usize| ours[*i].to_bits() != theirs[*i].to_bits();
    let first = (0..ours.len()).find(differs)?;
    let count = (0..ours.len()).filter(differs).count();
    let tensor = params.and_then(|p| p.table.iter().find(|p| p.id.range().contains(&first)));
    let place = tensor.map_or(format!("[{first}]"), |p| format!("{}[{}]", p.name, first - p.id.range().start));
    Some(format!(
        "{what} {place}: {:?} on the die, {:?} on the CPU; {count} of {} differ",
        ours[first],
        theirs[first],
        ours.len()
    ))
}

/// What one lane trains: a CPU run of the same, and where it stands.
struct Twin {
    engine: cpu::engine::Engine,
    optimizer: Optimizer,
    state: crate::optim::State,
    grads: Vec<f32>,
    seed: u64,
}

impl Twin {
    fn new(team: &Arc<Team>, settings: &Settings, seed: u64) -> Self {
        let config = ModelConfig::from(settings);
        let mut engine = cpu::engine::Engine::new(&config, settings.batch, Arc::clone(team));
        engine.keep_taps();
        let optimizer = Optimizer::new(settings, engine.params());
        let mut state = optimizer.start(team, &config, engine.params(), seed);
        for p in &engine.params().table {
            for i in p.id.range() {
                state.weights[i] += 0.1 * noise(seed, i);
            }
        }
        optimizer.refresh(team, &mut state);
        let grads = vec![0.0; engine.params().arena_len];
        Self { engine, optimizer, state, grads, seed }
    }

    fn tokens(&self, step: u64, rows: usize) -> (Vec<u8>, Vec<u8>) {
        let byte = |i: usize| (crate::rng::first_word(self.seed + step, i as u64, 9) >> 24) as u8;
        let all: Vec<u8> = (0..=rows).map(|i| if i % 3 == 0 { b'e' } else { byte(i) }).collect();
        (all[..rows].to_vec(), all[1..].to_vec())
    }
}

fn lane_step(s: &Settings, optimizer: &Optimizer, step: u64) -> LaneStep {
    let adamw = AdamW::from(s);
    let lr = optimizer.schedule().at(step);
    let scale = ScaleRate::new(s.scale_lr_mode, s.scale_lr, lr, optimizer.schedule().lr);
    LaneStep {
        step,
        matrices: adamw.step(step, lr, true),
        vectors: adamw.step(step, lr, s.decay == Decay::All),
        scales: adamw.step(step, scale.lr, s.decay == Decay::All),
        scale_factor: scale.factor as f32,
    }
}

fn lane_optimizer(s: &Settings) -> LaneOptimizer {
    LaneOptimizer {
        opt: s.opt,
        grad_clip: s.grad_clip,
        target_step: s.target_step,
        clamp: s.q_clamp,
        theta: s.theta,
        dither: s.dither,
        seed: s.dither_seed,
    }
}

/// Trains `steps` steps of every lane's settings (of one shape) on the die and on the CPU, and compares everything after each.
fn compare(die: &Die, lanes: &[Settings], steps: u64) -> Vec<String> {
    let team = Arc::new(Team::new(2, Level::current().unwrap()).unwrap());
    let config = ModelConfig::from(&lanes[0]);
    let batch = lanes[0].batch;
    let rows = batch * config.seq_len;
    let engine = Engine::new(die, &config, batch, lanes.len()).unwrap();
    let optimizer = DeviceOptimizer::new(die, &engine).unwrap();
    let arena = engine.params().arena_len;
    let mut twins: Vec<Twin> = lanes.iter().enumerate().map(|(l, s)| Twin::new(&team, s, 100 + l as u64)).collect();
    for (lane, (twin, s)) in twins.iter().zip(lanes).enumerate() {
        engine.arenas().weights.upload(lane * arena, &twin.state.weights).unwrap();
        if let Some(sr4) = &twin.state.sr4 {
            optimizer.q.upload(lane * sr4.q.len(), &sr4.q).unwrap();
            optimizer.scale.upload(lane * sr4.scale.len(), &sr4.scale).unwrap();
        }
        optimizer.configure(lane, &lane_optimizer(s)).unwrap();
    }
    let list: Vec<i32> = (0..lanes.len() as i32).collect();
    let list = die.copied(&list).unwrap();
    let mut found = Vec::new();
    for step in 0..steps {
        let mut all_inputs = Vec::new();
        for (lane, twin) in twins.iter().enumerate() {
            let (inputs, targets) = twin.tokens(step, rows);
            engine.inputs.upload(lane * rows, &inputs).unwrap();
            engine.targets.upload(lane * rows, &targets).unwrap();
            all_inputs.push((inputs, targets));
        }
        let of: Vec<LaneStep> = twins.iter().zip(lanes).map(|(t, s)| lane_step(s, &t.optimizer, step)).collect();
        optimizer.set_step(&of).unwrap();
        let mut pass = engine.pass(die, list.read());
        engine.forward(&mut pass).unwrap();
        engine.loss(&mut pass, Some(1.0)).unwrap();
        engine.backward(&mut pass).unwrap();
        optimizer.norm(die, &engine, &list.read()).unwrap();
        optimizer.update(die, &engine, &list.read()).unwrap();
        optimizer.refresh(die, &engine, &list.read()).unwrap();
        die.wait().unwrap();
        let scores = engine.scores().unwrap();
        let norms = optimizer.norms().unwrap();
        let taps = engine.taps().unwrap();
        for (lane, twin) in twins.iter_mut().enumerate() {
            let (inputs, targets) = &all_inputs[lane];
            twin.engine.load(&twin.state.weights, true);
            let theirs = twin.engine.gradients(&twin.state.weights, (inputs, targets), 1.0, &mut twin.grads);
            let mut differ = |text: Option<String>| found.extend(text.map(|t| format!("lane {lane} step {step}: {t}")));
            for (name, values) in &taps {
                let each = values.len() / lanes.len();
                differ(difference(name, None, &values[lane * each..][..each], &twin.engine.taps().unwrap()[name]));
            }
            let each = rows * VOCAB;
            let ours = engine.logits().download(lane * each, each).unwrap();
            differ(difference("logits' gradient", None, &ours, twin.engine.logits()));
            let grads = engine.arenas().grads.download(lane * arena, arena).unwrap();
            let params = twin.engine.params().clone();
            for p in params.table.iter().rev() {
                let range = p.id.range();
                differ(difference(&format!("gradient of {}", p.name), None, &grads[range.clone()], &twin.grads[range]));
            }
            let report = twin.optimizer.apply(&team, &mut twin.state, &mut twin.grads, step);
            twin.optimizer.refresh(&team, &mut twin.state);
            let ours = &scores[lane];
            let exact = |text: &str, a: f64, b: f64| {
                (a.to_bits() != b.to_bits()).then(|| format!("{text}: {a:?} on the die, {b:?} on the CPU"))
            };
            differ(exact("loss", ours.batch_loss, twin.engine.batch_loss(batch)));
            differ(exact("norm", norms[lane], report.grad_norm));
            for (a, b) in ours.loss.iter().zip(&theirs.loss) {
                differ(exact("window loss", *a, *b));
            }
            differ((ours.hits != theirs.hits).then(|| format!("hits {:?} {:?}", ours.hits, theirs.hits)));
            let state = &twin.state;
            for (what, memory, theirs) in [
                ("weights", &engine.arenas().weights, &state.weights),
                ("first moments", &optimizer.m, &state.m),
                ("second moments", &optimizer.v, &state.v),
            ] {
                let ours = memory.download(lane * arena, arena).unwrap();
                differ(difference(what, Some(&params), &ours, theirs));
            }
            if let Some(sr4) = &state.sr4 {
                let n = sr4.scale.len();
                for (what, memory, theirs) in [
                    ("scales", &optimizer.scale, &sr4.scale),
                    ("scales' first moments", &optimizer.scale_m, &sr4.m),
                    ("scales' second moments", &optimizer.scale_v, &sr4.v),
                ] {
                    differ(difference(what, None, &memory.download(lane * n, n).unwrap(), theirs));
                }
                let q = optimizer.q.download(lane * sr4.q.len(), sr4.q.len()).unwrap();
                let wrong = q.iter().zip(&sr4.q).filter(|(a, b)| a != b).count();
                differ((wrong > 0).then(|| format!("accumulators: {wrong} of {} differ", q.len())));
            }
        }
    }
    found
}

fn settings(config: &ModelConfig, batch: usize, opt: Opt) -> Settings {
    let mut s = Settings::default();
    (s.c, s.n_head, s.head_size) = (config.c, config.n_head, config.head_size);
    (s.n_rwkv, s.n_attn, s.ffn, s.lora) = (config.n_rwkv, config.n_attn, config.ffn, config.lora);
    (s.seq_len, s.chunk_size, s.moba_top_k) = (config.seq_len, config.chunk_size, config.top_k);
    (s.batch, s.opt) = (batch, opt);
    s
}

fn shape(heads: usize, n: usize, blocks: (usize, usize), tokens: usize) -> ModelConfig {
    ModelConfig {
        c: heads * n,
        n_head: heads,
        head_size: n,
        n_rwkv: blocks.0,
        n_attn: blocks.1,
        ffn: 2 * heads * n + 5,
        lora: 7,
        seq_len: tokens,
        chunk_size: tokens,
        top_k: 0,
    }
}

/// Both arms side by side, with options that the defaults leave off.
fn arms(config: &ModelConfig, batch: usize) -> Vec<Settings> {
    let adamw = settings(config, batch, Opt::AdamW);
    let mut decayed = adamw.clone();
    (decayed.weight_decay, decayed.decay, decayed.grad_clip) = (0.1, Decay::Matrices, 0.5);
    let sr4 = settings(config, batch, Opt::Sr4);
    let mut quirky = sr4.clone();
    (quirky.dither, quirky.theta, quirky.q_clamp, quirky.target_step) = (false, 3, 5, 0.05);
    quirky.scale_lr_mode = crate::settings::ScaleLrMode::Grad;
    quirky.weight_decay = 0.1;
    // A range of accumulators that is wider than the usual limit of moves, and moves that reach its ends.
    let mut wide = sr4.clone();
    (wide.q_clamp, wide.theta, wide.target_step) = (40, 20, 25.0);
    vec![adamw, sr4, decayed, quirky, wide]
}

fn assert_equal(config: &ModelConfig, batch: usize, steps: u64) {
    let Some(die) = die() else { return };
    let found = compare(&die, &arms(config, batch), steps);
    assert!(
        found.is_empty(),
        "{} differences on {:?}:\n{}",
        found.len(),
        die,
        found.iter().take(40).cloned().collect::<Vec<_>>().join("\n")
    );
    eprintln!("equal bytes: {config:?} batch {batch}, {steps} steps, code {}", die.image().target);
}

#[test]
fn heads_of_awkward_sizes_give_the_bytes_of_the_cpu() {
    for (heads, n) in [(2, 3), (3, 8), (1, 16), (2, 20), (4, 32), (1, 33), (2, 64), (1, 65), (1, 128)] {
        assert_equal(&shape(heads, n, (2, 1), 37), 2, 2);
    }
}

#[test]
fn many_heads_at_once_give_the_bytes_of_the_cpu() {
    for (batch, rows_a_thread) in [(1, 1), (9, 2), (20, 4)] {
        let config = shape(4, 32, (1, 0), 21);
        let heads = (arms(&config, batch).len() * batch * 4) as u64;
        assert_eq!(crate::backend::cuda::ops::recurrence::rows_a_thread(heads, 32), rows_a_thread);
        assert_equal(&config, batch, 2);
    }
}

#[test]
fn orders_of_blocks_give_the_bytes_of_the_cpu() {
    for blocks in [(1, 0), (0, 2), (3, 2), (1, 3)] {
        assert_equal(&shape(2, 8, blocks, 20), 1, 2);
    }
}

#[test]
fn long_windows_give_the_bytes_of_the_cpu() {
    for tokens in [1, 31, 64, 129, 300] {
        assert_equal(&shape(2, 32, (1, 1), tokens), 2, 2);
    }
}

#[test]
fn sparse_attention_gives_the_bytes_of_the_cpu() {
    for (chunk_size, top_k) in [(16, 0), (16, 1), (7, 2), (40, 9)] {
        assert_equal(&ModelConfig { chunk_size, top_k, ..shape(2, 16, (1, 1), 100) }, 2, 2);
    }
}

#[test]
fn the_default_model_gives_the_bytes_of_the_cpu() {
    let config = ModelConfig::from(&Settings::default());
    assert_equal(&config, 1, 3);
}

/// Times each kernel by itself, many times over in one graph, and adds up by entry.
struct Timed<'a> {
    die: &'a Die,
    found: std::collections::BTreeMap<&'static str, (usize, f64)>,
}

impl Launcher for Timed<'_> {
    fn launch(&mut self, kernel: &impl crate::backend::cuda::kernel::Kernel) -> Result<(), DieError> {
        const TIMES: u32 = 20;
        let graph = self.die.record(|to| (0..TIMES).try_for_each(|_| to.launch(kernel)))?;
        let mut best = f64::MAX;
        for _ in 0..3 {
            let from = std::time::Instant::now();
            graph.replay()?;
            self.die.wait()?;
            best = best.min(from.elapsed().as_secs_f64() / f64::from(TIMES));
        }
        let entry = self.found.entry(entry_of(kernel)).or_insert((0, 0.0));
        (entry.0, entry.1) = (entry.0 + 1, entry.1 + best);
        Ok(())
    }
}

const fn entry_of<K: crate::backend::cuda::kernel::Kernel>(_: &K) -> &'static str {
    K::ROW.entry
}

/// Numbers of lanes to measure: those of DIESWEEP_TIMED_LANES, with commas between them, or `usual`.
pub fn timed_lanes(usual: &[usize]) -> Vec<usize> {
    let asked = std::env::var("DIESWEEP_TIMED_LANES").ok();
    asked.map_or_else(|| usual.to_vec(), |list| list.split(',').map(|n| n.parse().unwrap()).collect())
}

/// Prints the time of each kernel of a training step; run by hand with `--ignored --nocapture` on a GPU.
#[test]
#[ignore = "a measurement"]
fn times_of_the_kernels() {
    let Some(die) = die() else { return };
    let mut columns: Vec<std::collections::BTreeMap<&'static str, (usize, f64)>> = Vec::new();
    let counts = timed_lanes(&[1, 16, 64]);
    for &count in &counts {
        let s = Settings { opt: Opt::Sr4, ..Settings::default() };
        let engine = Engine::new(&die, &ModelConfig::from(&s), 1, count).unwrap();
        let optimizer = DeviceOptimizer::new(&die, &engine).unwrap();
        let team = Arc::new(Team::new(2, Level::current().unwrap()).unwrap());
        let twin = Twin::new(&team, &s, 1);
        let sr4 = twin.state.sr4.as_ref().unwrap();
        for lane in 0..count {
            engine.arenas().weights.upload(lane * twin.state.weights.len(), &twin.state.weights).unwrap();
            optimizer.q.upload(lane * sr4.q.len(), &sr4.q).unwrap();
            optimizer.scale.upload(lane * sr4.scale.len(), &sr4.scale).unwrap();
            optimizer.configure(lane, &lane_optimizer(&s)).unwrap();
            let (inputs, targets) = twin.tokens(lane as u64, s.seq_len);
            engine.inputs.upload(lane * s.seq_len, &inputs).unwrap();
            engine.targets.upload(lane * s.seq_len, &targets).unwrap();
        }
        optimizer.set_step(&vec![lane_step(&s, &twin.optimizer, 0); count]).unwrap();
        let list: Vec<i32> = (0..count as i32).collect();
        let list = die.copied(&list).unwrap();
        let mut pass = engine.pass(Timed { die: &die, found: Default::default() }, list.read());
        engine.forward(&mut pass).unwrap();
        engine.loss(&mut pass, Some(1.0)).unwrap();
        engine.backward(&mut pass).unwrap();
        optimizer.norm(&mut pass.to, &engine, &list.read()).unwrap();
        optimizer.update(&mut pass.to, &engine, &list.read()).unwrap();
        optimizer.refresh(&mut pass.to, &engine, &list.read()).unwrap();
        columns.push(pass.to.found);
    }
    let mut names: Vec<_> = columns.iter().flat_map(|c| c.keys().copied()).collect();
    names.sort_unstable();
    names.dedup();
    println!("{:<30} {:>8} {:>9} µs at {counts:?} lanes", "kernel", "launches", "");
    for name in names {
        let row: Vec<_> = columns.iter().map(|c| c.get(name).copied().unwrap_or_default()).collect();
        let launches = row.iter().map(|r| r.0).max().unwrap_or(0);
        let times: String = row.iter().map(|r| format!(" {:>9.1}", r.1 * 1e6)).collect();
        println!("{name:<30} {launches:>8}{times}");
    }
    let all: Vec<f64> = columns.iter().map(|c| c.values().map(|v| v.1 * 1e6).sum()).collect();
    println!("{:<30} {:>8}{}", "all", "", all.iter().map(|us| format!(" {us:>9.1}")).collect::<String>());
}
