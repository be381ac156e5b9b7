//! The dies over time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::drawing;
use super::events::{Bar, Controller, End};
use super::page::Source;
use super::plot::{Axis, Ended, Mark, Plot, Size, Span};
use super::scale::{Kind, SIDE, Scale};
use super::text::{count, duration, esc};
use crate::report::wording::label;
use crate::run::RunId;

/// Controllers that are drawn, the last ones.
const MOST_CONTROLLERS: usize = 5;
/// Attempts that are drawn of a controller.
const MOST_BARS: usize = 2000;
/// Dies whose names are written.
const MOST_NAMES: usize = 32;
/// Configurations of a legend.
const MOST_TOLD: usize = 24;
/// Rows that have the full height.
const MOST_ROWS: usize = 64;
/// Milliseconds, or the share of an attempt, by which the next may begin before the one before it is on record: a result
/// is published while the lane that made it trains already.
const OVERLAP: (i64, f64) = (100, 0.1);

/// The section.
pub(super) fn section(source: &Source) -> String {
    let mut html = "<section id=\"timeline\"><h2>Dies over time</h2>".to_owned();
    if source.controllers.is_empty() {
        return html + "<p class=\"none\">Nothing has run yet.</p></section>";
    }
    html += "<p class=\"sub\">A bar is an attempt at a run, in its configuration’s colour; a die that trains several runs at \
        once has a row for each lane. Point at a bar to see which it is. Outlined in red: failed; hollow: broken off, at \
        work, or its end is not on record; a black edge: not the run’s first attempt.</p>";
    let all = source.controllers.len();
    if all > MOST_CONTROLLERS {
        let _ = write!(html, "<p class=\"sub\">The last {MOST_CONTROLLERS} of {all} controllers.</p>");
    }
    for warning in &source.left_out {
        let _ = write!(html, "<p class=\"sub\">{}</p>", esc(warning));
    }
    for (controller, plot) in drawn(source) {
        html += &drawing::figure(&plot);
        let _ = write!(html, "<p class=\"sub\">{}", esc(&plot.description));
        if controller.bars.len() > MOST_BARS {
            let _ = write!(html, " The first {MOST_BARS} attempts are drawn; events/ has all.");
        }
        html += "</p>";
    }
    html + "</section>"
}

/// The plots.
pub(in crate::report) fn plots(source: &Source) -> Vec<Plot> {
    drawn(source).into_iter().map(|(_, plot)| plot).collect()
}

fn drawn<'a>(source: &'a Source) -> Vec<(&'a Controller, Plot)> {
    let configurations = configurations(source);
    let first = source.controllers.len().saturating_sub(MOST_CONTROLLERS);
    let last = source.controllers.len().saturating_sub(1);
    let numbered = source.controllers.iter().enumerate().skip(first);
    let plots = numbered.map(|(number, controller)| {
        let at_work = source.running.is_some() && number == last;
        let mut plot = plot(controller, number, at_work, &configurations);
        plot.legend = legend(source, &plot);
        (controller, plot)
    });
    plots.collect()
}

/// The configurations of its attempts, unless they are many.
fn legend(source: &Source, plot: &Plot) -> Vec<(usize, String)> {
    let of = |mark: &Mark| match mark {
        Mark::Span(span) => span.configuration,
        _ => None,
    };
    let there: BTreeSet<usize> = plot.marks.iter().filter_map(of).collect();
    if there.len() > MOST_TOLD {
        return Vec::new();
    }
    there.into_iter().map(|c| (c, label(&source.plan.configurations[c]))).collect()
}

/// The configuration of each run; the first, where it is of several.
fn configurations(source: &Source) -> BTreeMap<RunId, usize> {
    let mut all = BTreeMap::new();
    for (index, configuration) in source.plan.configurations.iter().enumerate() {
        for run in &configuration.runs {
            all.entry(source.plan.runs[*run].id).or_insert(index);
        }
    }
    all
}

fn plot(controller: &Controller, number: usize, at_work: bool, configurations: &BTreeMap<RunId, usize>) -> Plot {
    let dies = dies_of(controller);
    let seconds = ((controller.to - controller.from) as f64 / 1000.0).max(1e-3);
    let (unit, length) = match seconds {
        s if s < 180.0 => ("seconds", 1.0),
        s if s < 3.0 * 3600.0 => ("minutes", 60.0),
        _ => ("hours", 3600.0),
    };
    let (rows_of, lanes) = rows(controller, &dies);
    let rows: usize = lanes.iter().sum();
    let every = dies.len().div_ceil(MOST_NAMES).max(1);
    let mut ticks = Vec::new();
    let mut top = 0;
    for (i, (die, lanes)) in dies.iter().zip(&lanes).enumerate() {
        if i % every == 0 {
            ticks.push((rows as f64 - top as f64 - *lanes as f64 / 2.0, (*die).to_owned()));
        }
        top += lanes;
    }
    let y = Scale { kind: Kind::Linear, lo: 0.0, hi: rows as f64 };
    let mut plot = Plot::new(
        format!("timeline-{}", number + 1),
        format!("Controller {}, started {}", number + 1, controller.started),
        Axis::new(format!("{unit} since its start"), Scale { kind: Kind::Linear, lo: 0.0, hi: seconds / length }, 6),
        Axis { title: "die".to_owned(), scale: y, ticks },
        Size::Rows(rows.min(MOST_ROWS)),
    );
    plot.description = describe(controller, dies.len(), seconds);
    for (bar, row) in controller.bars.iter().zip(rows_of).take(MOST_BARS) {
        let height = SIDE / rows as f64;
        let configuration = configurations.get(&bar.run).copied();
        plot.marks.push(Mark::Span(span(bar, controller, at_work, configuration, (row as f64 * height, height))));
    }
    plot
}

fn dies_of(controller: &Controller) -> Vec<&str> {
    let mut dies: Vec<&str> = controller.bars.iter().map(|bar| bar.die.as_str()).collect();
    // By number where they are numbers: 2 before 10.
    dies.sort_by_key(|die| (die.parse::<u64>().unwrap_or(u64::MAX), *die));
    dies.dedup();
    dies
}

/// The row of each bar, from the top, and how many rows each die has: attempts that a die trains at once do not cover
/// each other.
fn rows(controller: &Controller, dies: &[&str]) -> (Vec<usize>, Vec<usize>) {
    let place: BTreeMap<&str, usize> = dies.iter().enumerate().map(|(i, die)| (*die, i)).collect();
    // When each lane of each die is free again.
    let mut free: Vec<Vec<i64>> = vec![Vec::new(); dies.len()];
    let mut taken = Vec::new();
    for bar in &controller.bars {
        let die = place.get(bar.die.as_str()).copied().unwrap_or(0);
        let early = OVERLAP.0.max((OVERLAP.1 * (bar.to - bar.from) as f64) as i64);
        let lanes = controller.lanes.get(&bar.die).copied().unwrap_or(usize::MAX);
        let fits = free[die].iter().position(|end| bar.from + early >= *end);
        let lane = fits.or_else(|| first_free(&free[die]).filter(|_| free[die].len() >= lanes));
        let lane = lane.unwrap_or(free[die].len());
        if lane == free[die].len() {
            free[die].push(bar.to);
        }
        free[die][lane] = bar.to;
        taken.push((die, lane));
    }
    let lanes: Vec<usize> = free.iter().map(Vec::len).collect();
    let first = |die: usize| lanes[..die].iter().sum::<usize>();
    (taken.into_iter().map(|(die, lane)| first(die) + lane).collect(), lanes)
}

/// The lane that is free before the others.
fn first_free(ends: &[i64]) -> Option<usize> {
    ends.iter().enumerate().min_by_key(|(_, end)| **end).map(|(lane, _)| lane)
}

fn span(bar: &Bar, controller: &Controller, at_work: bool, configuration: Option<usize>, row: (f64, f64)) -> Span {
    let whole = (controller.to - controller.from).max(1) as f64;
    let x = |at: i64| SIDE * (at - controller.from) as f64 / whole;
    let (ended, how) = match &bar.end {
        End::Finished => (Ended::Well, "finished".to_owned()),
        End::Diverged => (Ended::Well, "diverged".to_owned()),
        End::Failed(failure) => (Ended::Failed, format!("failed: {failure}")),
        End::Abandoned => (Ended::Open, "broken off as the sweep stopped".to_owned()),
        End::Unknown if at_work => (Ended::Open, "at work".to_owned()),
        End::Unknown => (Ended::Open, "its end is not on record".to_owned()),
    };
    let seconds = duration((bar.to - bar.from) as f64 / 1000.0);
    // A sliver of a gap keeps neighbours apart.
    let (from, width) = (x(bar.from), (x(bar.to) - x(bar.from) - 0.8).max(0.8));
    Span {
        configuration,
        ended,
        again: bar.attempt > 1,
        place: [from, row.0 + 0.12 * row.1, width, 0.76 * row.1],
        name: format!("{}, attempt {}, {seconds}, {how}", bar.label, bar.attempt),
    }
}

/// Milliseconds in which a die had at least one attempt. (While one is published the next one trains already, and a
/// die may train several at once.)
fn busy_on(controller: &Controller, die: &str) -> i64 {
    let mut spans: Vec<(i64, i64)> =
        controller.bars.iter().filter(|bar| bar.die == die).map(|bar| (bar.from, bar.to)).collect();
    spans.sort_unstable();
    let (mut busy, mut covered) = (0, i64::MIN);
    for (from, to) in spans {
        busy += (to - from.max(covered)).max(0);
        covered = covered.max(to);
    }
    busy
}

fn describe(controller: &Controller, dies: usize, seconds: f64) -> String {
    let busy: i64 = dies_of(controller).into_iter().map(|die| busy_on(controller, die)).sum();
    let share = 100.0 * busy as f64 / 1000.0 / (seconds * dies as f64);
    let failed = controller.bars.iter().filter(|bar| matches!(bar.end, End::Failed(_))).count();
    let again = controller.bars.iter().filter(|bar| bar.attempt > 1).count();
    format!(
        "{} on {} in {}: {failed} failed, {again} not the run’s first; dies were busy {:.0}% of the time.",
        count(controller.bars.len(), "attempt"),
        count(dies, "die"),
        duration(seconds),
        share
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller(bars: &[(&str, i64, i64)]) -> Controller {
        let bar = |(die, from, to): &(&str, i64, i64)| Bar {
            run: RunId::from_bits(1),
            label: String::new(),
            attempt: 1,
            die: (*die).to_owned(),
            from: *from,
            to: *to,
            end: End::Finished,
        };
        let to = bars.iter().map(|bar| bar.2).max().unwrap();
        let bars = bars.iter().map(bar).collect();
        Controller { started: String::new(), from: 0, to, bars, lanes: BTreeMap::new() }
    }

    #[test]
    fn attempts_that_overlap_keep_a_die_busy_once() {
        let bars = [("0", 0, 60), ("0", 50, 100), ("0", 60, 80), ("10", 0, 25), ("2", 10, 10)];
        let controller = controller(&bars);
        assert_eq!(dies_of(&controller), ["0", "2", "10"]);
        assert_eq!(["0", "2", "10"].map(|die| busy_on(&controller, die)), [100, 0, 25]);
        let told = "5 attempts on 3 dies in 0.1 s: 0 failed, 0 not the run’s first; dies were busy 42% of the time.";
        assert_eq!(describe(&controller, 3, 0.1), told);
    }

    #[test]
    fn attempts_that_a_die_trains_at_once_have_rows_of_their_own() {
        // Two lanes on die 0, the first of which begins its second run while the first is published.
        let bars =
            [("0", 0, 5000), ("0", 0, 9000), ("1", 0, 3000), ("1", 2950, 8000), ("0", 4960, 9000), ("0", 9000, 9500)];
        let mut some = controller(&bars);
        assert_eq!(rows(&some, &dies_of(&some)), (vec![0, 1, 2, 2, 0, 0], vec![2, 1]));
        // A result that is published slowly makes no lane that the die does not have.
        some = controller(&[("0", 0, 5000), ("0", 2000, 8000), ("0", 8000, 9000)]);
        assert_eq!(rows(&some, &dies_of(&some)).1, [2]);
        some.lanes.insert("0".to_owned(), 1);
        assert_eq!(rows(&some, &dies_of(&some)), (vec![0, 0, 0], vec![1]));
    }
}
