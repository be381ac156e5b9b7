//! The lines of the driver's log, as C's `printf` writes them. Times are UTC.

use std::time::SystemTime;

use crate::cfmt::{fixed, general};
use crate::event::rfc3339;
use crate::model::{ModelParams, VOCAB};
use crate::run::{Best, Finals, Outcome, Row};
use crate::settings::{Opt, Settings};
use crate::store::{LOG_HEADER, format_row};

/// What a run is computed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Compute capability; (0, 0) of a CPU.
    pub capability: (u32, u32),
    /// Whether it is a GPU.
    pub gpu: bool,
}

impl Device {
    const fn kind(&self) -> &'static str {
        if self.gpu { "GPU" } else { "CPU" }
    }
}

/// What stands above the rows.
#[derive(Clone, Copy, Debug)]
pub struct Heading<'a> {
    /// The run's settings.
    pub settings: &'a Settings,
    /// Its parameters.
    pub params: &'a ModelParams,
    /// What it is computed on.
    pub device: &'a Device,
    /// When it began.
    pub started: SystemTime,
}

/// Text put together from pieces in the manner of C's `printf`.
struct Text(String);

impl Text {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    fn and(mut self, text: impl AsRef<str>) -> Self {
        self.0.push_str(text.as_ref());
        self
    }

    /// `%.<precision>f`.
    fn f(mut self, x: f64, precision: usize) -> Self {
        fixed(&mut self.0, x, precision);
        self
    }

    /// `%.4g`.
    fn g(mut self, x: f64) -> Self {
        general(&mut self.0, x, 4);
        self
    }
}

/// The lines above the rows, the header of the columns last.
pub fn heading(heading: Heading<'_>) -> String {
    let Heading { settings: s, params, device, started } = heading;
    let arm = match s.opt {
        Opt::Sr4 => "SR4",
        Opt::AdamW => "AdamW",
    };
    let kind = device.kind();
    let (total, ternary) = (params.total(), params.ternary_len);
    let (major, minor) = device.capability;
    let lines = [
        format!("# start={}", stamp(started)),
        format!("# device={} cc {major}.{minor}  ({kind} driver)", device.name),
        format!("=== RWKV-x 1M smoke on enwik8 ({arm} arm) [{kind}] ==="),
        format!(
            "config: C={} heads={} hs={} ffn={} lora={}  layers: {} RWKV + {} attn (interleave)",
            s.c, s.n_head, s.head_size, s.ffn, s.lora, s.n_rwkv, s.n_attn
        ),
        format!(
            "vocab={VOCAB} seq_len={} batch={} steps={} eval_every={} eval_batches={} seed={}",
            s.seq_len, s.batch, s.steps, s.eval_every, s.eval_batches, s.seed
        ),
        format!("PARAM COUNT: total={total}  (ternary={ternary}, continuous={})", total - ternary),
        rates(s),
        Text::new("random-init reference bpb = ln(256)/ln2 = ").f((VOCAB as f64).log2(), 4).0,
    ];
    let mut out = lines.join("\n");
    if s.opt == Opt::Sr4 {
        let matrices = params.ternary().count();
        let continuous = params.table.len() - matrices;
        out.push_str(&format!("\n# SR4: {matrices} ternary matrices, {continuous} continuous params"));
    }
    out + "\n" + LOG_HEADER + "\n"
}

/// The line of the arm's rates.
fn rates(s: &Settings) -> String {
    let text = match s.opt {
        Opt::Sr4 => Text::new("SR4 target_step=").g(s.target_step).and(" scale_lr=").g(s.scale_lr).and(" cont_lr="),
        Opt::AdamW => Text::new("AdamW lr="),
    };
    let text = text.g(s.lr).and("->").g(s.lr_min);
    match s.opt {
        Opt::Sr4 => text.and(format!("  (Q_CLAMP={} THETA={})", s.q_clamp, s.theta)).0,
        Opt::AdamW => text.and(" (cosine)").0,
    }
}

/// The line that tells of the recorded step. The driver records it at batch 1 only, and tools look for the line there.
pub const fn graph_note(settings: &Settings) -> &'static str {
    if settings.batch == 1 {
        "# opt#3: CUDA graph captured (full B=1 step on the per-thread stream); replaying per step.\n"
    } else {
        ""
    }
}

/// A logged step's line. Values that the arm does not have are `-`.
pub fn row(row: &Row) -> String {
    let mut out = String::with_capacity(160);
    format_row(&mut out, row, "-");
    out + "\n"
}

/// The line of the best values so far. A value that no row had (each was not a number) is `nan`, at step -1.
pub fn best(val_bpb: Option<Best>, val_acc: Option<Best>) -> String {
    let value = |text: Text, best: Option<Best>| {
        let step = best.map_or("-1".to_owned(), |best| best.step.to_string());
        text.f(best.map_or(f64::NAN, |best| best.value), 5).and(format!(" (step {step})"))
    };
    let text = value(Text::new("# BEST: val_bpb="), val_bpb).and(" val_acc=");
    value(text, val_acc).and("\n").0
}

/// The line of a finished run's last evaluation.
pub fn finals(finals: &Finals, outcome: &Outcome) -> String {
    let text = Text::new("# FINAL: train_bpb=").f(finals.train_bpb, 5).and(" val_bpb=").f(finals.val_bpb, 5);
    let text = text.and(" val_acc=").f(finals.val_acc, 5).and("  wall=").f(outcome.wall_sec, 2);
    text.and("s  (").f(step_sec(outcome), 3).and(format!("s/step over {} steps)\n", outcome.steps)).0
}

/// The line of a run that diverged. The reference driver has none: it goes on with what is not a number.
pub fn diverged(step: u64, loss: f64) -> String {
    Text::new(format!("# DIVERGED: step={step} loss=")).g(loss).and("\n").0
}

/// The lines that close the log.
pub fn summary(settings: &Settings, outcome: &Outcome, ended: SystemTime) -> String {
    let tokens = outcome.steps * (settings.batch * settings.accum_steps * settings.seq_len) as u64;
    Text::new("# ===== END-OF-RUN SUMMARY (extrapolate future-run wall-time from these) =====\n")
        .and(format!("# end={}\n# total_wall_sec=", stamp(ended)))
        .f(outcome.wall_sec, 2)
        .and(format!("  total_steps={}  avg_step_sec=", outcome.steps))
        .f(step_sec(outcome), 4)
        .and("  tok_per_sec=")
        .f(tokens as f64 / outcome.wall_sec, 1)
        .and(format!("  total_tokens={tokens}  (batch={} seq_len={})\n", settings.batch, settings.seq_len))
        .0
}

/// Seconds a step over the run, evaluation included.
fn step_sec(outcome: &Outcome) -> f64 {
    outcome.wall_sec / outcome.steps.max(1) as f64
}

/// `%Y-%m-%dT%H:%M:%S` in UTC.
fn stamp(time: SystemTime) -> String {
    rfc3339(time).chars().take("2026-01-01T00:00:00".len()).collect()
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
