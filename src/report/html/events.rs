//! What happened when: the attempts on each die, from the controllers' events.

use std::collections::BTreeMap;

use crate::event::{At, Event, Failure};
use crate::plan::Plan;
use crate::run::{Ending, RunId};
use crate::store::{Loaded, ReadJournal, Record};

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Finished,
    Diverged,
    Failed(Failure),
    Abandoned,
    /// No event tells of it: the controller was killed, or still works.
    Unknown,
}

/// An attempt on a die. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bar {
    pub(super) run: RunId,
    pub(super) label: String,
    pub(super) attempt: u32,
    pub(super) die: String,
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) end: End,
}

/// What one controller did, from its start to its last event.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) struct Controller {
    /// When it began, as it wrote it.
    pub(super) started: String,
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) bars: Vec<Bar>,
    /// How many runs each die trains at once, where that is on record.
    pub(super) lanes: BTreeMap<String, usize>,
}

/// The controllers of a folder, oldest first. Without events there is one, from the results alone.
pub(super) fn controllers(plan: &Plan, loaded: &Loaded, journals: &[ReadJournal]) -> Vec<Controller> {
    let mut controllers: Vec<Controller> = journals.iter().filter_map(|journal| controller(&journal.records)).collect();
    controllers.retain(|controller| !controller.bars.is_empty());
    if controllers.is_empty() {
        controllers.extend(from_results(plan, loaded));
    }
    controllers.sort_by(|a, b| (a.from, &a.started).cmp(&(b.from, &b.started)));
    controllers
}

/// A controller from its events. An attempt whose end is not among them ends with the last of them.
fn controller(records: &[Record]) -> Option<Controller> {
    let mut open: BTreeMap<(RunId, u32), Bar> = BTreeMap::new();
    let mut controller: Option<Controller> = None;
    for Record { time, event } in records {
        let Some(now) = milliseconds(time) else {
            continue;
        };
        let controller = controller.get_or_insert_with(|| Controller {
            started: time.clone(),
            from: now,
            to: now,
            bars: Vec::new(),
            lanes: BTreeMap::new(),
        });
        controller.to = controller.to.max(now);
        let (at, end) = match event {
            Event::AttemptStarted { at, .. } => {
                open.insert((at.run, at.attempt), begun(at, now));
                continue;
            }
            Event::RunFinished { at, outcome } => match outcome.ending {
                Ending::Finished(_) => (at, End::Finished),
                Ending::Diverged { .. } => (at, End::Diverged),
            },
            Event::WorkerReady { die, lanes, .. } | Event::WorkerLanes { die, lanes, .. } => {
                let known = controller.lanes.entry(die.to_string()).or_default();
                *known = (*lanes as usize).max(*known);
                continue;
            }
            Event::AttemptFailed { at, failure, .. } => (at, End::Failed(failure.clone())),
            Event::AttemptAbandoned { at } => (at, End::Abandoned),
            _ => continue,
        };
        if let Some(bar) = open.remove(&(at.run, at.attempt)) {
            controller.bars.push(Bar { to: now, end, ..bar });
        }
    }
    let mut controller = controller?;
    let to = controller.to;
    controller.bars.extend(open.into_values().map(|bar| Bar { to, ..bar }));
    controller.bars.sort_by_key(|bar| (bar.from, bar.run, bar.attempt));
    Some(controller)
}

fn begun(at: &At, now: i64) -> Bar {
    let die = at.die.to_string();
    Bar { run: at.run, label: at.label.clone(), attempt: at.attempt, die, from: now, to: now, end: End::Unknown }
}

fn from_results(plan: &Plan, loaded: &Loaded) -> Option<Controller> {
    let mut bars = Vec::new();
    for (run, state) in plan.runs.iter().zip(&loaded.states) {
        let Some(result) = state.result() else {
            continue;
        };
        let execution = &result.execution;
        let (Some(from), Some(to)) = (milliseconds(&execution.started), milliseconds(&execution.ended)) else {
            continue;
        };
        let end = match result.outcome.ending {
            Ending::Finished(_) => End::Finished,
            Ending::Diverged { .. } => End::Diverged,
        };
        let die = format!("{}:{}", execution.host, execution.die);
        bars.push((
            Bar { run: run.id, label: run.label(), attempt: execution.attempts, die, from, to: to.max(from), end },
            &execution.started,
        ));
    }
    let (first, started) = bars.iter().min_by_key(|(bar, _)| bar.from)?;
    let (from, started) = (first.from, (*started).clone());
    let bars: Vec<Bar> = bars.into_iter().map(|(bar, _)| bar).collect();
    let to = bars.iter().map(|bar| bar.to).max()?;
    Some(Controller { started, from, to, bars, lanes: BTreeMap::new() })
}

/// Milliseconds since 1970 of a stamp in UTC, `2026-11-30T19:48:14.250Z`; the fraction may be absent.
///
/// Dates become days by Howard Hinnant's `days_from_civil`
/// (<https://howardhinnant.github.io/date_algorithms.html>).
pub(in crate::report) fn milliseconds(stamp: &str) -> Option<i64> {
    let (date, time) = stamp.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = time.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    let plausible = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !plausible || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (shifted / 400, shifted % 400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + (fraction * 1000.0).round() as i64)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::event::rfc3339;

    #[test]
    fn stamps_are_read_as_they_are_written() {
        for ms in [0, 951_782_399_999, 951_782_400_000, 1_796_068_094_250, 4_107_542_400_000_u64] {
            let stamp = rfc3339(SystemTime::UNIX_EPOCH + Duration::from_millis(ms));
            assert_eq!(milliseconds(&stamp), Some(ms as i64), "{stamp}");
        }
        for bad in
            ["", "2026-11-30", "2026-13-01T00:00:00Z", "2026-11-30T24:00:00Z", "2026-11-30T00:00:00", "x-y-zT::Z"]
        {
            assert_eq!(milliseconds(bad), None, "{bad}");
        }
        assert_eq!(milliseconds("1970-01-01T00:00:01Z"), Some(1000));
    }

    #[test]
    fn attempts_end_as_their_events_tell() {
        let at = |run: u64, attempt| {
            format!(r#""at":{{"run":"{run:016x}","attempt":{attempt},"die":1,"label":"a seed={run}"}}"#)
        };
        let started = |second, run, attempt| {
            let at = at(run, attempt);
            format!(
                r#"{{"time":"2026-11-30T00:00:0{second}.000Z","event":"attempt_started",{at},"steps":1,"tokens_per_step":1,"shape":0}}"#
            )
        };
        let failed = format!(
            r#"{{"time":"2026-11-30T00:00:02.500Z","event":"attempt_failed",{},"failure":{{"cause":"crashed","message":"by signal 9"}},"again":true}}"#,
            at(1, 1)
        );
        let lines = [started(1, 1, 1), failed, started(3, 1, 2)];
        let records: Vec<Record> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let controller = controller(&records).unwrap();
        assert_eq!(controller.bars.len(), 2);
        assert_eq!(controller.bars[0].to - controller.bars[0].from, 1500);
        assert!(matches!(&controller.bars[0].end, End::Failed(failure) if failure.message == "by signal 9"));
        assert_eq!((controller.bars[1].attempt, &controller.bars[1].end), (2, &End::Unknown));
    }
}
