//! Progress on a terminal.

use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Sink;
use super::board::{Board, Going};
use super::text::{line, span, speed};
use crate::event::{Event, Past};
use crate::plan::Plan;

/// Parts of the overall bar.
const PARTS: u64 = 1000;

/// Time between two looks at the lines of the dies.
const REFRESH: Duration = Duration::from_millis(200);

/// An overall bar, one line for each die, and above them a line for each run that ends.
pub struct Bars {
    multi: MultiProgress,
    overall: ProgressBar,
    lines: Vec<ProgressBar>,
    board: Board,
    drawn: Instant,
    /// Width of the longest run's label.
    label: usize,
}

impl Bars {
    /// Draws on standard error; `colour` allows escape codes for colours.
    pub fn new(plan: &Plan, past: &[Past], colour: bool) -> Self {
        Self::on(ProgressDrawTarget::stderr_with_hz(8), plan, past, colour)
    }

    fn on(target: ProgressDrawTarget, plan: &Plan, past: &[Past], colour: bool) -> Self {
        let multi = MultiProgress::with_draw_target(target);
        let overall = multi.add(ProgressBar::new(PARTS));
        let template = if colour {
            "{prefix} [{bar:30.cyan/dim}] {percent:>3}%  {msg}"
        } else {
            "{prefix} [{bar:30}] {percent:>3}%  {msg}"
        };
        overall.set_style(style(template).progress_chars("=> "));
        overall.set_prefix(plan.name.clone());
        let board = Board::new(plan, past);
        let label = plan.runs.iter().map(|run| run.label().chars().count()).max().unwrap_or(0);
        Self { multi, overall, lines: Vec::new(), board, drawn: Instant::now(), label }
    }

    fn draw(&mut self) {
        self.drawn = Instant::now();
        let board = &self.board;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of PARTS")]
        #[expect(clippy::cast_precision_loss, reason = "PARTS is small")]
        self.overall.set_position((board.share() * PARTS as f64) as u64);
        let failed = if board.failed > 0 { format!(", {} failed", board.failed) } else { String::new() };
        let eta = board.eta().map_or_else(|| "ETA unknown yet".to_owned(), |eta| format!("ETA {}", span(eta)));
        self.overall.set_message(format!("{}/{} runs{failed}  {eta}", board.finished, board.runs));
        for (die, line) in self.lines.iter().enumerate() {
            let doing = board.on(die).map_or_else(|| "idle".to_owned(), |going| describe(going, self.label));
            line.set_message(format!("  die {die}  {doing}"));
        }
    }
}

/// An attempt in a line, under the others: `step  121/300  val_bpb 2.1114  3.1k tok/s  adamw lr=0.001 seed=1`. What
/// moves comes first: a narrow terminal cuts the end off.
fn describe(going: &Going, label: usize) -> String {
    let steps = going.steps.to_string().len();
    let bpb = going.val_bpb.map_or_else(String::new, |bpb| format!("  val_bpb {bpb:.4}"));
    let speed = going.speed().map_or_else(String::new, |x| format!("  {}", speed(x)));
    let attempt = if going.at.attempt > 1 { format!("  attempt {}", going.at.attempt) } else { String::new() };
    let (name, trained) = (&going.at.label, going.trained);
    format!("step {trained:>steps$}/{}{bpb}{speed}  {name:<label$}{attempt}", going.steps)
}

/// A style from a template that is known to be right.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Sink for Bars {
    fn take(&mut self, event: &Event) {
        self.board.apply(Instant::now(), event);
        if let Event::SweepStarted { dies, .. } = event {
            let line = || self.multi.add(ProgressBar::new(1).with_style(style("{wide_msg}")));
            self.lines = (0..*dies).map(|_| line()).collect();
        }
        if let Some(text) = line(event, self.board.finished, self.board.runs) {
            // A terminal that is gone must not end a sweep.
            let _ = self.multi.println(text);
        }
        if matches!(event, Event::SweepEnded { .. }) {
            self.lines.iter().for_each(ProgressBar::finish_and_clear);
            self.overall.finish_and_clear();
        }
    }

    fn idle(&mut self) {
        if self.drawn.elapsed() >= REFRESH && !self.overall.is_finished() {
            self.draw();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::At;
    use crate::testing;

    #[test]
    fn a_die_has_a_line_in_columns() {
        let plan = testing::plan(&[("adamw", &[])], &[1]);
        let began = Instant::now();
        let mut board = Board::new(&plan, &[Past::Open]);
        let at = At { run: plan.runs[0].id, attempt: 2, die: 0, label: "adamw seed=1".into() };
        let results = "results/s".into();
        board.apply(
            began,
            &Event::SweepStarted { sweep: "s".into(), results, runs: 1, finished: 0, failed: 0, dies: 1 },
        );
        assert!(board.on(0).is_none());
        let started = Event::AttemptStarted { at: at.clone(), steps: 100, tokens_per_step: 64, shape: 0 };
        board.apply(began, &started);
        assert_eq!(describe(board.on(0).unwrap(), 14), "step   0/100  adamw seed=1    attempt 2");
        let row = testing::row(49, 2.5, 1.0);
        board.apply(began + Duration::from_secs(2), &Event::Logged { at, row });
        let line = describe(board.on(0).unwrap(), 14);
        assert_eq!(line, "step  50/100  val_bpb 2.5000  1.6k tok/s  adamw seed=1    attempt 2");
    }
}
