//! Progress on a terminal.

use std::time::{Duration, Instant};

use console::{Term, truncate_str};
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
    /// Beginning of the sweep's name.
    name: String,
    colour: bool,
}

impl Bars {
    /// Draws on standard error; `colour` allows escape codes for colours.
    pub fn new(plan: &Plan, past: &[Past], colour: bool) -> Self {
        Self::on(ProgressDrawTarget::stderr_with_hz(8), plan, past, colour)
    }

    fn on(target: ProgressDrawTarget, plan: &Plan, past: &[Past], colour: bool) -> Self {
        let multi = MultiProgress::with_draw_target(target);
        let overall = multi.add(ProgressBar::new(PARTS));
        overall.set_style(style(template(width(), colour)).progress_chars("=> "));
        let board = Board::new(plan, past);
        let label = plan.runs.iter().map(|run| run.label().chars().count()).max().unwrap_or(0);
        let name: String = plan.name.chars().take(NAME).collect();
        Self { multi, overall, lines: Vec::new(), board, drawn: Instant::now(), label, name, colour }
    }

    fn draw(&mut self) {
        self.drawn = Instant::now();
        let board = &self.board;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of PARTS")]
        #[expect(clippy::cast_precision_loss, reason = "PARTS is small")]
        self.overall.set_position((board.share() * PARTS as f64) as u64);
        let failed = if board.failed > 0 { format!(", {} failed", board.failed) } else { String::new() };
        let eta = board.eta().map_or_else(|| "ETA unknown yet".to_owned(), |eta| format!("ETA {}", span(eta)));
        let columns = width();
        self.overall.set_style(style(template(columns, self.colour)).progress_chars("=> "));
        let message = format!("{}/{} runs{failed}  {eta}  {}", board.finished, board.runs, self.name);
        self.overall.set_message(fitted(&message, columns.saturating_sub(fixed(columns))));
        for (die, line) in self.lines.iter().enumerate() {
            let doing = match board.on(die)[..] {
                [] => "idle".to_owned(),
                [going] => describe(going, self.label),
                ref lanes => describe_lanes(lanes),
            };
            line.set_message(fitted(&format!("  die {die}  {doing}"), columns));
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

/// Attempts that share a die in a line: `3 lanes  step 5-121/300  val_bpb 2.1114-4.0327  9.6k tok/s  adamw seed=1, …`.
fn describe_lanes(lanes: &[&Going]) -> String {
    let steps = range(lanes.iter().map(|going| going.trained), |step| step.to_string());
    let ends = range(lanes.iter().map(|going| going.steps), |steps| steps.to_string());
    let bpb = range(lanes.iter().filter_map(|going| going.val_bpb), |bpb| format!("{bpb:.4}"));
    let bpb = if bpb.is_empty() { bpb } else { format!("  val_bpb {bpb}") };
    let tokens: f64 = lanes.iter().filter_map(|going| going.speed()).sum();
    let tokens = if tokens > 0.0 { format!("  {}", speed(tokens)) } else { String::new() };
    let names: Vec<_> = lanes.iter().map(|going| going.at.label.as_str()).collect();
    format!("{} lanes  step {steps}/{ends}{bpb}{tokens}  {}", lanes.len(), names.join(", "))
}

/// The least and the greatest value, `5-121`; one text where they read alike, none without values.
fn range<T: PartialOrd + Copy>(values: impl Iterator<Item = T>, text: impl Fn(T) -> String) -> String {
    let ends = values.fold(None, |ends: Option<(T, T)>, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((if value < low { value } else { low }, if value > high { value } else { high }))
    });
    ends.map_or_else(String::new, |(low, high)| {
        let (low, high) = (text(low), text(high));
        if low == high { low } else { format!("{low}-{high}") }
    })
}

/// Columns from which on there is room for a bar.
const WIDE: usize = 80;
/// Characters of a sweep's name that are shown.
const NAME: usize = 32;
/// Columns that stay free at the right: the `^C` that a terminal shows must not break a line, or what is drawn over later
/// would be another line than it.
const MARGIN: usize = 4;

/// Columns of the terminal, now.
fn width() -> usize {
    usize::from(Term::stderr().size().1)
}

/// The overall line on a terminal of so many columns.
const fn template(columns: usize, colour: bool) -> &'static str {
    match (columns >= WIDE, colour) {
        (true, true) => "[{bar:30.cyan/dim}] {percent:>3}%  {msg}",
        (true, false) => "[{bar:30}] {percent:>3}%  {msg}",
        (false, _) => "{percent:>3}%  {msg}",
    }
}

/// Columns of the overall line before its message.
const fn fixed(columns: usize) -> usize {
    if columns >= WIDE { 39 } else { 6 }
}

/// As much of a text as fits.
fn fitted(text: &str, columns: usize) -> String {
    truncate_str(text, columns.saturating_sub(MARGIN), "").into_owned()
}

/// A style from a template that is known to be right.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Sink for Bars {
    fn take(&mut self, event: &Event) {
        self.board.apply(Instant::now(), event);
        if let Event::SweepStarted { dies, .. } = event {
            let line = || self.multi.add(ProgressBar::new(1).with_style(style("{msg}")));
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

impl Drop for Bars {
    fn drop(&mut self) {
        // However the sweep ended, no bar stays that nobody moves any more.
        self.lines.iter().for_each(ProgressBar::finish_and_clear);
        self.overall.finish_and_clear();
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
        assert!(board.on(0).is_empty());
        let started = Event::AttemptStarted { at: at.clone(), steps: 100, tokens_per_step: 64, shape: 0 };
        board.apply(began, &started);
        assert_eq!(describe(board.on(0)[0], 14), "step   0/100  adamw seed=1    attempt 2");
        let row = testing::row(49, 2.5, 1.0);
        board.apply(began + Duration::from_secs(2), &Event::Logged { at, row });
        let line = describe(board.on(0)[0], 14);
        assert_eq!(line, "step  50/100  val_bpb 2.5000  1.6k tok/s  adamw seed=1    attempt 2");
    }

    #[test]
    fn lanes_share_a_line_that_tells_of_all_of_them() {
        let plan = testing::plan(&[("adamw", &[])], &[1, 2, 3]);
        let began = Instant::now();
        let mut board = Board::new(&plan, &[const { Past::Open }; 3]);
        let at =
            |run: usize| At { run: plan.runs[run].id, attempt: 1, die: 0, label: format!("adamw seed={}", run + 1) };
        let lanes = |board: &Board| describe_lanes(&board.on(0));
        for run in 0..3 {
            board.apply(began, &Event::AttemptStarted { at: at(run), steps: 100, tokens_per_step: 64, shape: 0 });
        }
        assert_eq!(lanes(&board), "3 lanes  step 0/100  adamw seed=1, adamw seed=2, adamw seed=3");
        let later = began + Duration::from_secs(2);
        board.apply(later, &Event::Logged { at: at(2), row: testing::row(9, 2.5, 1.0) });
        board.apply(later, &Event::Logged { at: at(0), row: testing::row(49, 2.25, 1.0) });
        let all = "3 lanes  step 0-50/100  val_bpb 2.2500-2.5000  1.9k tok/s  adamw seed=1, adamw seed=2, adamw seed=3";
        assert_eq!(lanes(&board), all);
        // The lane that ends leaves the others in the line.
        board.apply(later, &Event::AttemptAbandoned { at: at(2) });
        assert_eq!(lanes(&board), "2 lanes  step 0-50/100  val_bpb 2.2500  1.6k tok/s  adamw seed=1, adamw seed=2");
    }

    /// What stands before the message is as wide as it is said to be, so that message and margin end on the same line.
    #[test]
    fn the_overall_line_fits_any_terminal() {
        for columns in [40, 79, 80, 200] {
            let plain = template(columns, false);
            let bar = plain.replace("{bar:30}", &"=".repeat(30)).replace("{percent:>3}", "100").replace("{msg}", "");
            assert_eq!(bar.chars().count(), fixed(columns), "{columns}");
            let message = fitted(&"x".repeat(300), columns.saturating_sub(fixed(columns)));
            assert_eq!(bar.chars().count() + message.len() + MARGIN, columns);
        }
        assert_eq!(fitted("ä wide line", 10), "ä wide");
    }
}
