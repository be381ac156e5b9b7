//! Where a step's time goes, by the monotonic clock.

use std::fmt::Write;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::backend::cpu::engine::PassPhases;
use crate::backend::cpu::simd::Level;
use crate::model::BlockRef;
use crate::plan::work::step_flops;
use crate::settings::Settings;

/// A phase of training, over all profiled steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Its name: `forward rwkv0`, `loss`.
    pub name: String,
    /// Milliseconds a step.
    pub step_ms: f64,
    /// Share of the profiled time, in `[0, 1]`.
    pub share: f64,
}

/// A run's profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// Steps that were profiled.
    pub steps: u64,
    /// Milliseconds of all of them, evaluations included.
    pub total_ms: f64,
    /// Phases, in the order of a step; `other` is what none of them holds.
    pub phases: Vec<Phase>,
    /// Operations of a training step, by `plan::work::step_flops`.
    pub step_flops: u64,
    /// Operations a second while training: evaluations and checkpoints are not counted.
    pub flops_per_sec: f64,
    /// Most operations a second that the threads could do at the processor's nominal clock; absent where the system does not tell it.
    pub peak_flops_per_sec: Option<f64>,
    /// Share of that which was used.
    pub utilisation: Option<f64>,
    /// Bytes of memory that the process has in use; absent where the system does not tell it.
    pub memory_bytes: Option<u64>,
    /// The most that it had.
    pub memory_peak_bytes: Option<u64>,
}

/// A profile in the making.
#[derive(Debug)]
pub(super) struct Profiling {
    asked: u64,
    done: u64,
    /// Time in the steps.
    total: Duration,
    data: Duration,
    optimizer: Duration,
    evaluation: Duration,
    step: Instant,
    lap: Instant,
}

impl Profiling {
    pub(super) fn begin(steps: u64) -> Self {
        let [total, data, optimizer, evaluation] = [Duration::ZERO; 4];
        let now = Instant::now();
        Self { asked: steps, done: 0, total, data, optimizer, evaluation, step: now, lap: now }
    }

    /// Whether all steps that were asked for are there.
    pub(super) const fn is_over(&self) -> bool {
        self.done >= self.asked
    }

    /// A step begins.
    pub(super) fn step(&mut self) {
        self.step = Instant::now();
        self.lap = self.step;
    }

    /// The windows of a micro-batch are there.
    pub(super) fn gathered(&mut self) {
        self.data += self.lap.elapsed();
    }

    /// A micro-batch's gradients are there.
    pub(super) fn passed(&mut self) {
        self.lap = Instant::now();
    }

    /// The step was evaluated.
    pub(super) fn evaluated(&mut self, took: Duration) {
        if !self.is_over() {
            self.evaluation += took;
        }
    }

    /// A step is done.
    pub(super) fn stepped(&mut self, optimizer: Duration) {
        if !self.is_over() {
            self.done += 1;
            self.total += self.step.elapsed();
            self.optimizer += optimizer;
        }
    }

    pub(super) fn end(
        self,
        settings: &Settings,
        order: &[BlockRef],
        passes: PassPhases,
        (level, threads): (Level, usize),
    ) -> Profile {
        let names: Vec<String> = order
            .iter()
            .map(|block| match block {
                BlockRef::Rwkv(i) => format!("rwkv{i}"),
                BlockRef::Attn(i) => format!("attn{i}"),
            })
            .collect();
        let mut phases = vec![("data".to_owned(), self.data), ("forward embedding".to_owned(), passes.embedding)];
        phases.extend(names.iter().zip(passes.blocks).map(|(name, time)| (format!("forward {name}"), time)));
        phases.push(("forward head".to_owned(), passes.head));
        phases.push(("loss".to_owned(), passes.loss));
        phases.push(("backward head".to_owned(), passes.head_backward));
        let backward = names.iter().zip(passes.blocks_backward).rev();
        phases.extend(backward.map(|(name, time)| (format!("backward {name}"), time)));
        phases.push(("backward embedding".to_owned(), passes.embedding_backward));
        phases.push(("optimizer".to_owned(), self.optimizer));
        phases.push(("evaluation".to_owned(), self.evaluation));
        let known: Duration = phases.iter().map(|(_, time)| *time).sum();
        phases.push(("other".to_owned(), self.total.saturating_sub(known)));
        let steps = self.done.max(1) as f64;
        let total = self.total.as_secs_f64().max(f64::MIN_POSITIVE);
        let phase = |(name, time): (String, Duration)| {
            let seconds = time.as_secs_f64();
            Phase { name, step_ms: seconds * 1e3 / steps, share: seconds / total }
        };
        let training = self.total.saturating_sub(self.evaluation).as_secs_f64().max(f64::MIN_POSITIVE);
        let flops_per_sec = step_flops(settings) as f64 * self.done as f64 / training;
        let peak = clock_hz().map(|hz| hz * f64::from(level.flops_per_cycle()) * threads as f64);
        Profile {
            steps: self.done,
            total_ms: self.total.as_secs_f64() * 1e3,
            phases: phases.into_iter().map(phase).collect(),
            step_flops: step_flops(settings),
            flops_per_sec,
            peak_flops_per_sec: peak,
            utilisation: peak.map(|peak| flops_per_sec / peak),
            memory_bytes: memory("VmRSS:"),
            memory_peak_bytes: memory("VmHWM:"),
        }
    }
}

/// The processor's clock as the system tells it.
fn clock_hz() -> Option<f64> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("cpu MHz"))?;
    line.split_once(':')?.1.trim().parse::<f64>().ok().map(|mhz| mhz * 1e6)
}

/// An amount of memory of this process.
fn memory(key: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let rest = status.lines().find_map(|line| line.strip_prefix(key))?;
    rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

impl Profile {
    /// Adds a phase that is not part of a step, such as a checkpoint: its share is of the profiled time, to which it is added.
    pub fn add(&mut self, name: &str, took: Duration) {
        let ms = took.as_secs_f64() * 1e3;
        let total = self.total_ms + ms;
        self.phases.iter_mut().for_each(|phase| phase.share *= self.total_ms / total);
        self.phases.push(Phase { name: name.to_owned(), step_ms: ms / self.steps.max(1) as f64, share: ms / total });
        self.total_ms = total;
    }

    /// The table.
    pub fn text(&self) -> String {
        let mut out = format!("# PROFILE of {} steps\n{:<24}{:>12}{:>9}\n", self.steps, "phase", "ms a step", "share");
        for Phase { name, step_ms, share } in &self.phases {
            let _ = writeln!(out, "{name:<24}{step_ms:>12.3}{:>8.1}%", 100.0 * share);
        }
        let step = self.total_ms / self.steps.max(1) as f64;
        let _ = writeln!(out, "{:<24}{step:>12.3}{:>8.1}%", "all", 100.0);
        let giga = |flops: f64| flops / 1e9;
        let _ =
            write!(out, "{:.2} GFLOP a step, {:.2} GFLOP/s", giga(self.step_flops as f64), giga(self.flops_per_sec));
        if let (Some(share), Some(peak)) = (self.utilisation, self.peak_flops_per_sec) {
            let _ = write!(out, ", {:.1}% of the {:.1} GFLOP/s of these threads", 100.0 * share, giga(peak));
        }
        out.push('\n');
        if let (Some(now), Some(most)) = (self.memory_bytes, self.memory_peak_bytes) {
            let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
            let _ = writeln!(out, "{:.1} MiB of memory in use, {:.1} MiB at the most", mib(now), mib(most));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::cpu::team::Team;
    use crate::data::Corpus;
    use crate::settings::Data;
    use crate::trainer::{Progress, Run};

    fn train(profiled: Option<u64>) -> (Vec<u64>, Option<Profile>) {
        let settings = Settings { steps: 6, eval_every: 3, accum_steps: 2, ..crate::testing::settings(1, 1e-3) };
        let team = Arc::new(Team::new(1, Level::PORTABLE).unwrap());
        let mut run = Run::new(&settings, Corpus::open(&Data::Builtin).unwrap(), team, None).unwrap();
        if let Some(steps) = profiled {
            run.profile(steps);
        }
        let (mut values, mut profile) = (Vec::new(), None);
        loop {
            match run.advance() {
                Progress::Stepped { .. } => {}
                Progress::Logged(row) => values.extend([row.val_bpb.to_bits(), row.grad_norm.to_bits()]),
                Progress::Ended(_) => return (values, profile),
            }
            profile = profile.or(run.profiled());
        }
    }

    #[test]
    fn a_profile_covers_its_steps_and_changes_no_number() {
        let (plain, none) = train(None);
        assert_eq!(none, None);
        let (values, profile) = train(Some(4));
        assert_eq!(values, plain);
        let profile = profile.unwrap();
        assert_eq!(profile.steps, 4);
        let names: Vec<&str> = profile.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "data",
                "forward embedding",
                "forward rwkv0",
                "forward attn0",
                "forward head",
                "loss",
                "backward head",
                "backward attn0",
                "backward rwkv0",
                "backward embedding",
                "optimizer",
                "evaluation",
                "other"
            ]
        );
        let shares: f64 = profile.phases.iter().map(|phase| phase.share).sum();
        assert!((shares - 1.0).abs() < 1e-6, "the phases are the whole: {shares}");
        assert!(profile.phases.iter().all(|phase| phase.step_ms >= 0.0));
        assert!(profile.phases[2].step_ms > 0.0 && profile.phases[8].step_ms > 0.0);
        assert_eq!(train(Some(100)).1.unwrap().steps, 6, "a run that is over ends it");
    }

    #[test]
    fn a_profile_is_a_table() {
        let phase = |name: &str, step_ms, share| Phase { name: name.into(), step_ms, share };
        let mut profile = Profile {
            steps: 10,
            total_ms: 50.0,
            phases: vec![phase("data", 1.0, 0.2), phase("loss", 4.0, 0.8)],
            step_flops: 2_000_000_000,
            flops_per_sec: 4e11,
            peak_flops_per_sec: Some(1e12),
            utilisation: Some(0.4),
            memory_bytes: Some(3 << 20),
            memory_peak_bytes: Some(4 << 20),
        };
        profile.add("checkpoint", Duration::from_millis(50));
        let expected = "\
# PROFILE of 10 steps
phase                      ms a step    share
data                           1.000    10.0%
loss                           4.000    40.0%
checkpoint                     5.000    50.0%
all                           10.000   100.0%
2.00 GFLOP a step, 400.00 GFLOP/s, 40.0% of the 1000.0 GFLOP/s of these threads
3.0 MiB of memory in use, 4.0 MiB at the most
";
        assert_eq!(profile.text(), expected);
    }
}
