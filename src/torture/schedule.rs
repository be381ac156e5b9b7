//! What is done to a sweep: a function of a seed and a number.

use std::fmt;

use super::draw::Draw;
use crate::fault::{Answer, FileKind, Moment, Point};

/// What happens to one results folder: calls of `diesweep run` that are disturbed, and damage between them. The last call, which
/// nothing disturbs, is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its number.
    pub number: u32,
    /// Whether the results lie on a small disk of their own.
    pub small_disk: bool,
    /// The disturbed calls.
    pub calls: Vec<Call>,
}

/// A disturbed call, and what its files suffer after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Each strikes once.
    pub faults: Vec<Fault>,
    /// Done when all processes have ended.
    pub damage: Vec<Damage>,
}

/// Something that happens when something is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub trigger: Trigger,
    /// What.
    pub deed: Deed,
}

/// The moment of a fault, tied to what the sweep does, over all its processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A point is passed for the nth time in this call.
    Passed(Point, u32),
    /// A controller tells of an event of this kind for the nth time in this call.
    Told(Told, u32),
}

/// Events that faults wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// A worker is ready.
    WorkerReady,
    /// An attempt began.
    AttemptStarted,
    /// A row was logged.
    Logged,
    /// A checkpoint was written.
    Checkpointed,
    /// A run has a result.
    RunFinished,
}

impl Told {
    /// The event's name in `--json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WorkerReady => "worker_ready",
            Self::AttemptStarted => "attempt_started",
            Self::Logged => "logged",
            Self::Checkpointed => "checkpointed",
            Self::RunFinished => "run_finished",
        }
    }
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// SIGKILL.
    Kill(Whom),
    /// SIGSTOP, and SIGCONT after so many milliseconds: the process's monotonic clock jumps.
    Stop(Whom, u32),
    /// SIGTERM.
    Terminate(Whom),
    /// Another controller is started on the folder.
    Join,
    /// The small disk is full for so many milliseconds.
    Fill(u32),
    /// The process at the point gets this answer. After `half`, it is killed.
    Answer(Answer),
}

/// Whom a deed is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// The process that is at the point.
    Passing,
    /// The first controller of the call.
    Controller,
    /// The controller that joined last.
    Joiner,
    /// One of the workers that were ready, by a number that is taken modulo their count.
    Worker(u32),
}

/// Damage to files that no process has open. Numbers choose among what there is; where there is nothing, nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A bit of a run's newest checkpoint flips: run, place in the file, bit.
    Flip(u32, u32, u8),
    /// A run's newest checkpoint loses its end: run, place.
    CutCheckpoint(u32, u32),
    /// The log of an unpublished attempt loses its end: attempt, place.
    CutLog(u32, u32),
    /// The log of an unpublished attempt ends in half a row.
    TornLog(u32),
    /// A controller's events lose their end: file, place.
    CutEvents(u32, u32),
    /// A half-written temporary file is left beside an attempt's files.
    Stray(u32),
}

/// A worker that is stopped for more milliseconds is taken for hung.
pub(super) const HANG_MS: u32 = 3000;

impl Call {
    /// Whether a worker is stopped for so long that it shall be taken for hung.
    pub(super) fn hangs(&self) -> bool {
        self.faults.iter().any(|fault| matches!(fault.deed, Deed::Stop(Whom::Worker(_), ms) if ms > HANG_MS))
    }
}

/// A point and what happens there.
type Card = (Point, Deed);

/// Cards by the part of a sweep in which their points are passed.
struct Decks {
    /// Passed when a folder is new.
    first: Vec<Card>,
    /// Passed while runs are trained.
    middle: Vec<Card>,
    /// Passed when all runs are done.
    last: Vec<Card>,
}

impl Decks {
    /// All cards, shuffled.
    fn new(seed: u64) -> Self {
        let mut decks = Self { first: Vec::new(), middle: Vec::new(), last: Vec::new() };
        for point in Point::all() {
            let deck = match point.file {
                FileKind::Sweep | FileKind::Plan => &mut decks.first,
                FileKind::Table | FileKind::Report => &mut decks.last,
                _ => &mut decks.middle,
            };
            deck.extend(deeds(point).into_iter().map(|deed| (point, deed)));
        }
        let mut draw = Draw::new(seed, u32::MAX);
        for deck in [&mut decks.first, &mut decks.middle, &mut decks.last] {
            draw.shuffle(deck);
        }
        decks
    }
}

/// What can happen at a point.
fn deeds(point: Point) -> Vec<Deed> {
    if point.file == FileKind::Clock {
        return [-86_400, -1, 3600, 1 << 40].map(|seconds| Deed::Answer(Answer::Jump(seconds))).into();
    }
    let mut deeds = vec![Deed::Kill(Whom::Passing), Deed::Kill(Whom::Controller), Deed::Stop(Whom::Passing, 60)];
    if point.moment == Moment::Write {
        deeds.push(Deed::Answer(Answer::Half));
    }
    match (point.file, point.moment) {
        (FileKind::Protocol, _) => deeds.push(Deed::Answer(Answer::Garbage)),
        (_, Moment::Done | Moment::Remove) => {}
        _ => deeds.push(Deed::Answer(Answer::Full)),
    }
    deeds
}

impl Schedule {
    /// The schedule of this number.
    ///
    /// Cards are dealt from shuffled decks, so that enough schedules strike at every point in every way.
    pub fn new(seed: u64, number: u32) -> Self {
        let decks = Decks::new(seed);
        let mut draw = Draw::new(seed, number);
        let deal = |deck: &[Card], turn: u32| deck[turn as usize % deck.len()];
        let third = number / 3;
        // Of three schedules, the first opens with a card of the first deck, the second closes with one of the last.
        let (opening, closing) = match number % 3 {
            0 => (deal(&decks.first, third), deal(&decks.middle, 4 * third)),
            1 => (deal(&decks.middle, 4 * third + 1), deal(&decks.last, third)),
            _ => (deal(&decks.middle, 4 * third + 2), deal(&decks.middle, 4 * third + 3)),
        };
        let mut calls = vec![opening_call(opening, &mut draw)];
        if draw.one_in(2) {
            calls.push(rough_call(&mut draw));
        }
        calls.push(closing_call(closing, &mut draw));
        let small_disk = number % 8 == 5;
        if small_disk {
            // Shorter than a sweep waits for room, and longer.
            let fill = Deed::Fill(if draw.one_in(2) { 300 } else { 2000 });
            calls[0].faults.push(Fault { trigger: Trigger::Told(Told::Logged, 1 + draw.below(24)), deed: fill });
        }
        if number % 16 == 3 {
            // Longer than a worker may be silent.
            let hang = Deed::Stop(Whom::Worker(draw.below(2)), HANG_MS + 1500);
            let last = calls.len() - 1;
            calls[last].faults.push(Fault { trigger: Trigger::Told(Told::Logged, 1 + draw.below(8)), deed: hang });
        }
        Self { number, small_disk, calls }
    }
}

/// A card, and an end before all runs are done.
fn opening_call(card: Card, draw: &mut Draw) -> Call {
    let mut faults = card_faults(card, draw);
    faults.extend(draw.one_in(3).then(|| soft_fault(draw)));
    let end = if draw.one_in(4) { Deed::Terminate(Whom::Controller) } else { Deed::Kill(Whom::Controller) };
    faults.push(Fault { trigger: Trigger::Told(Told::RunFinished, 3 + draw.below(2)), deed: end });
    Call { faults, damage: damage(draw) }
}

/// An early end of the controller, with a second controller or without.
fn rough_call(draw: &mut Draw) -> Call {
    let early = |draw: &mut Draw| match draw.below(4) {
        0 => Trigger::Told(Told::WorkerReady, 1 + draw.below(2)),
        1 => Trigger::Told(Told::AttemptStarted, 1 + draw.below(3)),
        2 => Trigger::Told(Told::Checkpointed, 1 + draw.below(6)),
        _ => Trigger::Told(Told::Logged, 1 + draw.below(12)),
    };
    let mut faults = Vec::new();
    if draw.one_in(2) {
        faults.push(Fault { trigger: early(draw), deed: Deed::Join });
        let deed = match draw.below(3) {
            0 => Deed::Kill(Whom::Joiner),
            1 => Deed::Terminate(Whom::Joiner),
            // Longer than a lease: what it held is taken over meanwhile.
            _ => Deed::Stop(Whom::Joiner, 1500),
        };
        faults.push(Fault { trigger: Trigger::Told(Told::Logged, 14 + draw.below(10)), deed });
    }
    let deed = match draw.below(4) {
        0 | 1 => Deed::Kill(Whom::Controller),
        2 => Deed::Terminate(Whom::Controller),
        _ => Deed::Stop(Whom::Controller, if draw.one_in(2) { 1500 } else { 50 }),
    };
    faults.push(Fault { trigger: early(draw), deed });
    Call { faults, damage: damage(draw) }
}

/// A card, and all else as it may come.
fn closing_call(card: Card, draw: &mut Draw) -> Call {
    let mut faults = card_faults(card, draw);
    faults.extend(draw.one_in(3).then(|| soft_fault(draw)));
    Call { faults, damage: damage(draw) }
}

/// A card's fault, with what it takes for its point to be passed.
fn card_faults((point, deed): Card, draw: &mut Draw) -> Vec<Fault> {
    use FileKind::{Checkpoint, Events, Folder, Log, Protocol, Result, Run, Weights};
    let most = match point.file {
        Log | Protocol if point.moment == Moment::Write => 20,
        Checkpoint | Events | Folder => 6,
        Log | Result | Run | Weights => 3,
        FileKind::Clock => 10,
        _ => 1,
    };
    let strike = Fault { trigger: Trigger::Passed(point, 1 + draw.below(most)), deed };
    if point.file == FileKind::Failure {
        // Something must fail first.
        let kill = Deed::Kill(Whom::Worker(draw.below(2)));
        return vec![Fault { trigger: Trigger::Told(Told::Logged, 1 + draw.below(8)), deed: kill }, strike];
    }
    vec![strike]
}

/// What a sweep survives without being called again.
fn soft_fault(draw: &mut Draw) -> Fault {
    let worker = Whom::Worker(draw.below(2));
    let deed = match draw.below(4) {
        0 => Deed::Kill(worker),
        1 => Deed::Stop(worker, 100),
        2 => Deed::Stop(Whom::Controller, 100),
        _ => Deed::Join,
    };
    Fault { trigger: Trigger::Told(Told::Logged, 1 + draw.below(16)), deed }
}

fn damage(draw: &mut Draw) -> Vec<Damage> {
    let mut damage = Vec::new();
    while damage.len() < 2 && draw.one_in(2) {
        let (which, place) = (draw.word(), draw.word());
        damage.push(match draw.below(6) {
            0 => Damage::Flip(which, place, (draw.below(8)) as u8),
            1 => Damage::CutCheckpoint(which, place),
            2 => Damage::CutLog(which, place),
            3 => Damage::TornLog(which),
            4 => Damage::CutEvents(which, place),
            _ => Damage::Stray(which),
        });
    }
    damage
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.small_disk {
            writeln!(f, "on a small disk")?;
        }
        for (i, call) in self.calls.iter().enumerate() {
            writeln!(f, "call {}", i + 1)?;
            for fault in &call.faults {
                writeln!(f, "  {fault}")?;
            }
            for damage in &call.damage {
                writeln!(f, "  after it: {damage:?}")?;
            }
        }
        writeln!(f, "call {}, undisturbed", self.calls.len() + 1)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.trigger {
            Trigger::Passed(point, nth) => write!(f, "{point} number {nth}: ")?,
            Trigger::Told(told, nth) => write!(f, "event {} number {nth}: ", told.name())?,
        }
        match self.deed {
            Deed::Kill(whom) => write!(f, "kill {whom}"),
            Deed::Stop(whom, ms) => write!(f, "stop {whom} for {ms} ms"),
            Deed::Terminate(whom) => write!(f, "terminate {whom}"),
            Deed::Fill(ms) => write!(f, "fill the disk for {ms} ms"),
            Deed::Join => f.write_str("start another controller"),
            Deed::Answer(answer) => write!(f, "{answer}"),
        }
    }
}

impl fmt::Display for Whom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passing => f.write_str("the process itself"),
            Self::Controller => f.write_str("the controller"),
            Self::Joiner => f.write_str("the controller that joined"),
            Self::Worker(number) => write!(f, "worker {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn cards(schedules: u32, seed: u64) -> BTreeSet<String> {
        let schedules = (0..schedules).map(|number| Schedule::new(seed, number));
        let faults = schedules.flat_map(|schedule| schedule.calls).flat_map(|call| call.faults);
        let struck = faults.filter_map(|fault| match fault.trigger {
            Trigger::Passed(point, _) => Some(format!("{point} {:?}", fault.deed)),
            Trigger::Told(..) => None,
        });
        struck.collect()
    }

    #[test]
    fn a_schedule_follows_from_seed_and_number() {
        let all = |seed| (0..50).map(|number| Schedule::new(seed, number)).collect::<Vec<_>>();
        assert_eq!(all(7), all(7));
        let (a, b) = (all(7), all(8));
        assert!(a.iter().zip(&b).all(|(a, b)| a != b));
        let distinct: BTreeSet<String> = a.iter().map(ToString::to_string).collect();
        assert_eq!(distinct.len(), a.len());
    }

    #[test]
    fn two_hundred_schedules_hold_every_deed_at_every_point() {
        let wanted: BTreeSet<String> = Point::all()
            .flat_map(|point| deeds(point).into_iter().map(move |deed| format!("{point} {deed:?}")))
            .collect();
        for seed in [1, 2, 1234] {
            let missing: Vec<_> = wanted.difference(&cards(200, seed)).cloned().collect();
            assert_eq!(missing, Vec::<String>::new(), "seed {seed}");
        }
    }

    #[test]
    fn a_schedule_reads_as_text() {
        let fault = |trigger, deed| Fault { trigger, deed };
        let point = Point { file: FileKind::Result, moment: Moment::Flush };
        let schedule = Schedule {
            number: 3,
            small_disk: true,
            calls: vec![Call {
                faults: vec![
                    fault(Trigger::Passed(point, 2), Deed::Answer(Answer::Full)),
                    fault(Trigger::Told(Told::Logged, 5), Deed::Stop(Whom::Worker(1), 60)),
                ],
                damage: vec![Damage::TornLog(4)],
            }],
        };
        let text = "on a small disk\ncall 1\n  result.flush number 2: full\n  event logged number 5: stop worker 1 for 60 ms\n  \
            after it: TornLog(4)\ncall 2, undisturbed\n";
        assert_eq!(schedule.to_string(), text);
    }
}
