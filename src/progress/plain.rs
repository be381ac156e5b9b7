//! Progress as dated lines, for output that is no terminal.

use std::io::Write;
use std::time::{Duration, Instant, SystemTime};

use super::Sink;
use super::board::Board;
use super::out::Out;
use super::text::{line, span, speed, trouble};
use crate::event::{Event, Past, rfc3339};
use crate::plan::Plan;

/// Time between two summaries.
const SUMMARY: Duration = Duration::from_secs(60);

/// Writes dated lines: one for each run that ends, and a summary at most once a minute.
pub struct Plain<W> {
    out: Out<W>,
    board: Board,
    quiet: bool,
    summed: Instant,
    now: fn() -> (Instant, SystemTime),
}

impl<W: Write> Plain<W> {
    /// Lines on `out`; `quiet` leaves only trouble. `past` tells what the runs had come to before.
    pub fn new(out: W, plan: &Plan, past: &[Past], quiet: bool) -> Self {
        Self::with_clock(out, plan, past, quiet, || (Instant::now(), crate::clock::now()))
    }

    pub(super) fn with_clock(
        out: W,
        plan: &Plan,
        past: &[Past],
        quiet: bool,
        now: fn() -> (Instant, SystemTime),
    ) -> Self {
        Self { out: Out::new(out), board: Board::new(plan, past), quiet, summed: now().0, now }
    }

    fn put(&mut self, text: &str) {
        let stamp = rfc3339((self.now)().1);
        // Whole seconds are enough for eyes.
        let stamp = stamp.split('.').next().unwrap_or_default();
        // A console that is gone must not end a sweep, and there is no other place to tell of it.
        let _ = self.out.write(format!("{stamp}Z {text}\n").as_bytes());
    }

    fn summary(&self) -> String {
        let board = &self.board;
        let failed = if board.failed > 0 { format!(", {} failed", board.failed) } else { String::new() };
        let eta = board.eta().map_or_else(String::new, |eta| format!(", about {} to go", span(eta)));
        let share = 100.0 * board.share();
        let (finished, runs) = (board.finished, board.runs);
        format!("{share:.0}%: {finished} of {runs} runs finished{failed}, {}{eta}", speed(board.speed()))
    }
}

impl<W: Write> Sink for Plain<W> {
    fn take(&mut self, event: &Event) {
        let (now, _) = (self.now)();
        self.board.apply(now, event);
        let shown = !self.quiet || trouble(event) || matches!(event, Event::Stopping { .. });
        if shown && let Some(text) = line(event, self.board.finished, self.board.runs) {
            self.put(&text);
        }
    }

    fn idle(&mut self) {
        let (now, _) = (self.now)();
        if !self.quiet && now.saturating_duration_since(self.summed) >= SUMMARY {
            self.summed = now;
            let text = self.summary();
            self.put(&text);
        }
    }

    fn lost_something(&self) -> bool {
        self.out.failed()
    }
}
