//! The dies over time.

use std::fmt::Write;

use super::events::{Bar, End, Session};
use super::page::Source;
use super::plot::{Axis, Plot};
use super::scale::{Kind, Scale};
use super::text::{coordinate, count, duration, esc};
use crate::run::RunId;

/// Sessions that are drawn, the last ones.
const MOST_SESSIONS: usize = 5;
/// Attempts that are drawn of a session.
const MOST_BARS: usize = 2000;
/// Dies whose names are written.
const MOST_NAMES: usize = 32;

/// The section.
pub(super) fn section(source: &Source) -> String {
    let mut html = "<section id=\"timeline\"><h2>Dies over time</h2>".to_owned();
    if source.sessions.is_empty() {
        return html + "<p class=\"none\">Nothing has run yet.</p></section>";
    }
    html += "<p class=\"sub\">A bar is an attempt at a run, in its configuration’s colour. Point at one to see which. \
        Outlined in red: failed; hollow: broken off, or its end is not on record.</p>";
    let all = source.sessions.len();
    if all > MOST_SESSIONS {
        let _ = write!(html, "<p class=\"sub\">The last {MOST_SESSIONS} of {all} sessions.</p>");
    }
    for warning in &source.left_out {
        let _ = write!(html, "<p class=\"sub\">{}</p>", esc(warning));
    }
    for (number, session) in source.sessions.iter().enumerate().skip(all.saturating_sub(MOST_SESSIONS)) {
        html += &figure(source, session, number);
    }
    html + "</section>"
}

fn figure(source: &Source, session: &Session, number: usize) -> String {
    let dies = dies_of(session);
    let seconds = ((session.to - session.from) as f64 / 1000.0).max(1e-3);
    let (unit, length) = match seconds {
        s if s < 180.0 => ("seconds", 1.0),
        s if s < 3.0 * 3600.0 => ("minutes", 60.0),
        _ => ("hours", 3600.0),
    };
    let rows = dies.len() as f64;
    let every = dies.len().div_ceil(MOST_NAMES).max(1);
    let ticks = dies.iter().enumerate().step_by(every).map(|(i, die)| (rows - i as f64 - 0.5, (*die).to_owned()));
    let mut plot = Plot {
        id: format!("timeline-{number}"),
        title: format!("Session of {}", session.started),
        description: describe(session, dies.len(), seconds),
        x: Axis::new(format!("{unit} since the start"), Scale { kind: Kind::Linear, lo: 0.0, hi: seconds / length }, 6),
        y: Axis {
            title: "die".to_owned(),
            scale: Scale { kind: Kind::Linear, lo: 0.0, hi: rows },
            ticks: ticks.collect(),
        },
        class: "chart timeline",
        attributes: format!(" style=\"--rows:{}\"", dies.len().min(64)),
        body: String::new(),
    };
    for bar in session.bars.iter().take(MOST_BARS) {
        let row = dies.iter().position(|die| *die == bar.die).unwrap_or(0);
        let top = 1000.0 * row as f64 / rows;
        draw(&mut plot, bar, session, configuration_of(source, bar.run), top, 1000.0 / rows);
    }
    let mut html = plot.html();
    let _ = write!(html, "<p class=\"sub\">{}", esc(&plot.description));
    if session.bars.len() > MOST_BARS {
        let _ = write!(html, " The first {MOST_BARS} attempts are drawn.");
    }
    html + "</p>"
}

fn dies_of(session: &Session) -> Vec<&str> {
    let mut dies: Vec<&str> = session.bars.iter().map(|bar| bar.die.as_str()).collect();
    // By number where they are numbers: 2 before 10.
    dies.sort_by_key(|die| (die.parse::<u64>().unwrap_or(u64::MAX), *die));
    dies.dedup();
    dies
}

fn configuration_of(source: &Source, run: RunId) -> Option<usize> {
    let plan = source.plan;
    let index = plan.runs.iter().position(|planned| planned.id == run)?;
    plan.configurations.iter().position(|c| c.runs.contains(&index))
}

fn draw(plot: &mut Plot, bar: &Bar, session: &Session, configuration: Option<usize>, top: f64, height: f64) {
    let span = (session.to - session.from).max(1) as f64;
    let x = |at: i64| 1000.0 * (at - session.from) as f64 / span;
    let (class, ended) = match &bar.end {
        End::Finished => ("finished", "finished".to_owned()),
        End::Diverged => ("finished", "diverged".to_owned()),
        End::Failed(failure) => ("failed", format!("failed: {failure}")),
        End::Abandoned => ("hollow", "broken off as the sweep stopped".to_owned()),
        End::Unknown => ("hollow", "its end is not on record".to_owned()),
    };
    let seconds = duration((bar.to - bar.from) as f64 / 1000.0);
    let name = format!("{}, attempt {}, {seconds}, {ended}", bar.label, bar.attempt);
    let colour = configuration.map_or_else(String::new, |c| format!("k{c} "));
    // A sliver of a gap keeps neighbours apart.
    let (from, width) = (x(bar.from), (x(bar.to) - x(bar.from) - 0.8).max(0.8));
    let [from, top, width, height] = [from, top + 0.12 * height, width, 0.76 * height].map(coordinate);
    let _ = write!(
        plot.body,
        "<rect class=\"{colour}{class}\" x=\"{from}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"><title>{}</title></rect>",
        esc(&name)
    );
}

/// Milliseconds in which a die had at least one attempt. (While one is published the next one trains already, and a
/// die may train several at once.)
fn busy_on(session: &Session, die: &str) -> i64 {
    let mut spans: Vec<(i64, i64)> =
        session.bars.iter().filter(|bar| bar.die == die).map(|bar| (bar.from, bar.to)).collect();
    spans.sort_unstable();
    let (mut busy, mut covered) = (0, i64::MIN);
    for (from, to) in spans {
        busy += (to - from.max(covered)).max(0);
        covered = covered.max(to);
    }
    busy
}

fn describe(session: &Session, dies: usize, seconds: f64) -> String {
    let busy: i64 = dies_of(session).into_iter().map(|die| busy_on(session, die)).sum();
    let share = 100.0 * busy as f64 / 1000.0 / (seconds * dies as f64);
    let failed = session.bars.iter().filter(|bar| matches!(bar.end, End::Failed(_))).count();
    let again = session.bars.iter().filter(|bar| bar.attempt > 1).count();
    format!(
        "{} on {} in {}: {failed} failed, {again} not the run’s first; dies were busy {:.0}% of the time.",
        count(session.bars.len(), "attempt"),
        count(dies, "die"),
        duration(seconds),
        share
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_that_overlap_keep_a_die_busy_once() {
        let bar = |die: &str, from, to| Bar {
            run: RunId::from_bits(1),
            label: String::new(),
            attempt: 1,
            die: die.to_owned(),
            from,
            to,
            end: End::Finished,
        };
        let bars = vec![bar("0", 0, 60), bar("0", 50, 100), bar("0", 60, 80), bar("10", 0, 25), bar("2", 10, 10)];
        let session = Session { started: String::new(), from: 0, to: 100, bars };
        assert_eq!(dies_of(&session), ["0", "2", "10"]);
        assert_eq!(["0", "2", "10"].map(|die| busy_on(&session, die)), [100, 0, 25]);
        let told = "5 attempts on 3 dies in 0.1 s: 0 failed, 0 not the run’s first; dies were busy 42% of the time.";
        assert_eq!(describe(&session, 3, 0.1), told);
    }
}
