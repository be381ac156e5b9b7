//! A status for eyes.

use std::fmt::Write;

use super::{Counts, Held, Life, Status};
use crate::duration;

/// Held runs that are listed.
const MOST_HELD: usize = 32;
/// Characters of a failure's message that are shown.
const MESSAGE: usize = 160;

impl Status {
    /// One line: `sweep: 24 runs: 10 finished, 2 held, 12 to do; 52%, about 12m to go`.
    pub fn line(&self) -> String {
        let eta = self.eta_sec.map_or_else(String::new, |eta| format!(", about {} to go", duration::text(whole(eta))));
        format!("{}: {}; {:.0}%{eta}", self.sweep, counts(&self.runs), 100.0 * self.done)
    }

    /// Some lines, each with what matters most first.
    pub fn text(&self) -> String {
        let mut out = self.line() + "\n";
        if !self.held.is_empty() {
            out += "\nheld\n";
            let widths = self.held.iter().map(|held| held.steps.to_string().len()).max().unwrap_or(0);
            for held in self.held.iter().take(MOST_HELD) {
                let _ = writeln!(out, "  {}", held_line(held, widths));
            }
            if self.held.len() > MOST_HELD {
                let _ = writeln!(out, "  and {} more", self.held.len() - MOST_HELD);
            }
        }
        if !self.failures.is_empty() {
            out += "\nlast failures\n";
            for failure in &self.failures {
                let what = if failure.for_good { "given up" } else { "tried again" };
                let message: String = failure.message.chars().filter(|c| !c.is_control()).take(MESSAGE).collect();
                let (time, label, attempt, cause) = (&failure.time, &failure.label, failure.attempt, &failure.cause);
                let _ = writeln!(out, "  {time}  {label}, attempt {attempt}, {what}: {cause}: {message}");
            }
        }
        if !self.standing.is_empty() {
            let _ = writeln!(out, "\nbest so far, mean {}", self.metric);
            let arms = self.standing.iter().map(|one| one.arm.chars().count()).max().unwrap_or(0);
            for one in &self.standing {
                let axes =
                    if one.configuration.is_empty() { String::new() } else { format!("  {}", one.configuration) };
                let (arm, mean, seeds, planned) = (&one.arm, one.mean, one.seeds, one.planned);
                let _ = writeln!(out, "  {arm:<arms$}  {mean:.4}  {seeds} of {planned} seeds{axes}");
            }
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "warning: {warning}");
        }
        out
    }
}

fn whole(seconds: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from f64 saturates")]
    let seconds = seconds.round() as u64;
    // Minutes are enough for hours.
    if seconds >= 3600 { seconds / 60 * 60 } else { seconds }
}

fn counts(counts: &Counts) -> String {
    let parts = [
        (counts.finished, "finished"),
        (counts.diverged, "diverged"),
        (counts.failed, "failed"),
        (counts.stopped, "stopped early"),
        (counts.held, "held"),
        (counts.todo, "to do"),
    ];
    let parts: Vec<_> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let runs = if counts.planned == 1 { "run" } else { "runs" };
    format!("{} {runs}: {}", counts.planned, parts.join(", "))
}

fn held_line(held: &Held, width: usize) -> String {
    let bpb = held.val_bpb.map_or_else(String::new, |bpb| format!("  val_bpb {bpb:.4}"));
    let life = match held.life {
        Life::Alive => "alive",
        Life::Dead => "dead",
        Life::Unknown => "unknown",
    };
    let (step, steps, label, since) = (held.step, held.steps, &held.label, &held.since);
    let attempt = if held.attempt > 1 { format!(", attempt {}", held.attempt) } else { String::new() };
    format!("step {step:>width$}/{steps}{bpb}  {label}{attempt}  {}:{} {life} since {since}", held.host, held.pid)
}
