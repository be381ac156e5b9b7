//! The board's sums, and what is shown of them.

use std::time::{Duration, Instant, SystemTime};

use super::board::Board;
use super::plain::Plain;
use super::{Sink, Sinks};
use crate::event::{At, Cause, Event, Failure, Past};
use crate::plan::Plan;
use crate::testing;

/// Four runs, of 100 steps of 64 tokens each.
fn plan() -> Plan {
    let mut plan = testing::plan(&[("adamw", &[]), ("sr4", &[])], &[1, 2]);
    plan.runs.iter_mut().for_each(|run| run.settings.steps = 100);
    plan
}

fn at(plan: &Plan, run: usize, die: usize) -> At {
    At { run: plan.runs[run].id, attempt: 1, die, label: plan.runs[run].label() }
}

fn started(plan: &Plan, run: usize, die: usize) -> Event {
    Event::AttemptStarted { at: at(plan, run, die), steps: 100, tokens_per_step: 64, shape: plan.runs[run].shape }
}

fn sweep_started(dies: usize) -> Event {
    Event::SweepStarted { sweep: "s".into(), results: "results/s".into(), runs: 4, finished: 0, failed: 0, dies }
}

fn logged(plan: &Plan, run: usize, die: usize, step: u64) -> Event {
    Event::Logged { at: at(plan, run, die), row: testing::row(step, 2.5, 1.0) }
}

fn finished(plan: &Plan, run: usize, die: usize) -> Event {
    Event::RunFinished { at: at(plan, run, die), outcome: Box::new(testing::finished(2.25, None)) }
}

#[test]
fn time_to_go_follows_from_measured_speed() {
    let (plan, began) = (plan(), Instant::now());
    let mut board = Board::new(&plan, &[Past::Finished, Past::Open, Past::Open, Past::Open]);
    let after = |seconds: u64| began + Duration::from_secs(seconds);
    board.apply(began, &sweep_started(2));
    assert_eq!((board.share(), board.eta()), (0.25, None));
    board.apply(began, &started(&plan, 1, 0));
    board.apply(began, &started(&plan, 2, 1));
    board.apply(after(10), &logged(&plan, 1, 0, 49));
    board.apply(after(10), &logged(&plan, 2, 1, 49));
    // Half of two runs is done in 10 s; 2 runs' worth of work is left for two dies.
    assert_eq!((board.share(), board.eta()), (0.5, Some(20.0)));
    assert_eq!(board.speed(), 2.0 * 50.0 * 64.0 / 10.0);
    board.apply(after(20), &finished(&plan, 1, 0));
    assert_eq!((board.finished, board.on(0).len(), board.on(1).len()), (2, 0, 1));
    // What failed for good is not to be waited for.
    let failure = Failure::new(Cause::Bug, "x");
    let run_failed = Event::RunFailed { run: plan.runs[3].id, label: String::new(), attempts: 1, failure };
    board.apply(after(20), &run_failed);
    assert_eq!(board.failed, 1);
    assert_eq!(board.eta(), Some(10.0));
}

#[test]
fn a_failed_attempt_gives_its_steps_back() {
    let (plan, began) = (plan(), Instant::now());
    let mut board = Board::new(&plan, &[const { Past::Open }; 4]);
    board.apply(began, &sweep_started(1));
    board.apply(began, &started(&plan, 0, 0));
    board.apply(began + Duration::from_secs(1), &logged(&plan, 0, 0, 49));
    assert_eq!(board.share(), 0.125);
    let failure = Failure::new(Cause::Crashed, "x");
    board.apply(began + Duration::from_secs(1), &Event::AttemptFailed { at: at(&plan, 0, 0), failure, again: true });
    assert_eq!(board.share(), 0.0);
    assert!(board.on(0).is_empty());
}

thread_local! {
    static CLOCK: std::cell::Cell<(Option<Instant>, u64)> = const { std::cell::Cell::new((None, 0)) };
}

/// The test's clock: seconds after its first use, dated from 2026-11-30T20:00:00Z.
fn clock() -> (Instant, SystemTime) {
    let (began, seconds) = CLOCK.get();
    let began = began.unwrap_or_else(Instant::now);
    CLOCK.set((Some(began), seconds));
    let seconds = Duration::from_secs(seconds);
    (began + seconds, SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_068_800) + seconds)
}

fn set_clock(seconds: u64) {
    CLOCK.set((CLOCK.get().0, seconds));
}

/// What is written of a small sweep with a summary due.
fn written(quiet: bool) -> String {
    let plan = plan();
    let mut text = Vec::new();
    set_clock(0);
    let mut plain = Plain::with_clock(&mut text, &plan, &[const { Past::Open }; 4], quiet, clock);
    plain.take(&sweep_started(1));
    plain.take(&started(&plan, 0, 0));
    for seconds in 1..=59 {
        set_clock(seconds);
        plain.idle();
    }
    plain.take(&logged(&plan, 0, 0, 49));
    set_clock(60);
    plain.idle();
    plain.idle();
    plain.take(&finished(&plan, 0, 0));
    let failure = Failure::new(Cause::Bug, "the trainer panicked: no");
    let (run, label) = (plan.runs[1].id, plan.runs[1].label());
    plain.take(&Event::RunFailed { run, label, attempts: 1, failure });
    plain.take(&Event::SweepEnded { finished: 1, failed: 1, left: 2, here: 1, elsewhere: 0, wall_sec: 60.4 });
    String::from_utf8(text).unwrap()
}

#[test]
fn plain_lines_are_dated_and_a_summary_comes_once_a_minute() {
    let plan = plan();
    let [first, second] = [plan.runs[0].label(), plan.runs[1].label()];
    assert_eq!(
        written(false),
        format!(
            "2026-11-30T20:00:00Z s: 4 runs: 0 finished, 4 to do, on 1 die; results in results/s\n\
             2026-11-30T20:01:00Z 12%: 0 of 4 runs finished, 54 tok/s, about 6m 53s to go\n\
             2026-11-30T20:01:00Z finished 1/4  {first}  val_bpb 2.2500\n\
             2026-11-30T20:01:00Z FAILED after 1 attempt: {second}: bug: the trainer panicked: no\n\
             2026-11-30T20:01:00Z 1 run finished, 1 failed, 2 left, in 1m 00s\n"
        )
    );
}

#[test]
fn quiet_shows_trouble_alone() {
    let second = plan().runs[1].label();
    let trouble = format!("2026-11-30T20:01:00Z FAILED after 1 attempt: {second}: bug: the trainer panicked: no\n");
    assert_eq!(written(true), trouble);
}

#[test]
fn all_takers_get_all_events() {
    struct Count(std::rc::Rc<std::cell::Cell<u32>>);
    impl Sink for Count {
        fn take(&mut self, _: &Event) {
            self.0.set(self.0.get() + 1);
        }
        fn idle(&mut self) {
            self.0.set(self.0.get() + 10);
        }
    }
    let count = std::rc::Rc::<std::cell::Cell<u32>>::default();
    let mut sinks = Sinks(vec![Box::new(Count(count.clone())), Box::new(Count(count.clone()))]);
    sinks.take(&sweep_started(1));
    sinks.idle();
    assert_eq!(count.get(), 22);
}
