//! Early stopping: runs that rest until others have got as far, and what the plan's rule makes of them.

use std::collections::HashSet;
use std::time::Instant;

use super::clerk::{Claim, LedgerError};
use super::effects::Effects;
use super::state::{RunState, State};
use crate::event::{Event, RungStanding};
use crate::plan::{Course, CourseEnd, Decision, Fate, Mark, Plan, Rest, StopKind, decide};
use crate::run::{Ending, Outcome};

/// What is known for the sake of the rule.
#[derive(Debug, Default)]
pub(super) struct Stopping {
    courses: Vec<Course>,
    fates: Vec<Fate>,
    /// Rungs that were told of.
    told: HashSet<(String, u64)>,
}

impl State {
    /// Begins with what earlier calls and other controllers left of each run. What was decided by then was told of then.
    pub(super) fn begin_stopping(&mut self, courses: Vec<Course>) {
        self.stopping.courses = courses;
        self.decide();
    }

    /// Where an attempt at a run rests.
    pub(super) fn rest_of(&self, run: usize) -> Option<Rest> {
        match self.stopping.fates.get(run) {
            Some(Fate::GoesOn(rest)) => *rest,
            _ => None,
        }
    }

    /// Whether the rule lets a run go on now.
    pub(super) fn goes_on(&self, run: usize) -> bool {
        matches!(self.stopping.fates.get(run), None | Some(Fate::GoesOn(_)))
    }

    /// An attempt rests, and is saved.
    pub(super) fn rests(&self, run: usize, mark: &Mark) -> Result<(), String> {
        let steps = self.run(run).settings.steps;
        match &self.plan.stop {
            Some(_) if mark.steps < steps => Ok(()),
            Some(_) => Err(format!("a rest after {} steps of {steps}", mark.steps)),
            None => Err("a rest that nobody asked for".to_owned()),
        }
    }

    /// The ledger's answer to a rest.
    pub(super) fn rested(
        &mut self,
        run: usize,
        mark: Mark,
        answer: Result<Option<String>, LedgerError>,
        now: Instant,
        fx: &mut dyn Effects,
    ) {
        match answer {
            Ok(differs) => {
                self.tell_of_difference(run, differs, fx);
                self.starved = None;
                self.set(run, RunState::Rested);
                self.marked(run, vec![mark], fx);
            }
            // It is attempted again, and rests at once.
            Err(error) => self.unwritten(run, error, now, fx),
        }
    }

    /// Marks of a run, found on disk or made here.
    pub(super) fn marked(&mut self, run: usize, marks: Vec<Mark>, fx: &mut dyn Effects) {
        let Some(course) = self.stopping.courses.get_mut(run) else { return };
        let before = course.marks.len();
        for mark in marks {
            if course.marks.iter().all(|known| known.steps != mark.steps) {
                course.marks.push(mark);
            }
        }
        if course.marks.len() > before || self.runs[run].state == RunState::Rested {
            self.reconsider(fx);
        }
    }

    /// A run has a result.
    pub(super) fn course_ended(&mut self, run: usize, outcome: &Outcome, fx: &mut dyn Effects) {
        let end = match outcome.ending {
            Ending::Finished(_) => CourseEnd::Finished,
            Ending::Diverged { .. } => CourseEnd::Diverged,
        };
        self.end_course(run, end, fx);
    }

    /// A run has ended, one way or another.
    pub(super) fn end_course(&mut self, run: usize, end: CourseEnd, fx: &mut dyn Effects) {
        if let Some(course) = self.stopping.courses.get_mut(run) {
            course.end = Some(end);
            self.reconsider(fx);
        }
    }

    /// Applies the rule again: some run's state has changed.
    pub(super) fn reconsider(&mut self, fx: &mut dyn Effects) {
        self.decide().into_iter().for_each(|event| fx.announce(event));
    }

    /// Applies the rule to what is known now; what is to be told of it.
    fn decide(&mut self) -> Vec<Event> {
        if self.plan.stop.is_none() {
            return Vec::new();
        }
        let decisions = decide(&self.plan, &self.stopping.courses);
        self.stopping.fates = decisions.fates;
        let mut events = Vec::new();
        for decision in &decisions.rungs {
            if self.stopping.told.insert((decision.arm.clone(), decision.rung)) {
                events.push(rung_decided(&self.plan, decision));
            }
        }
        for run in 0..self.runs.len() {
            let fate = self.stopping.fates[run];
            match (&self.runs[run].state, fate) {
                (RunState::Waiting | RunState::Rested, Fate::Stopped { steps }) => {
                    events.push(self.run_stopped(run, steps));
                    self.leave_queue(run, RunState::Stopped);
                }
                (RunState::Waiting, Fate::Rests { .. }) => self.leave_queue(run, RunState::Rested),
                (RunState::Rested | RunState::Stopped, Fate::GoesOn(_)) => {
                    self.set(run, RunState::Waiting);
                    self.waiting.push_back(run);
                }
                _ => {}
            }
        }
        events
    }

    /// Takes a run out of the queue.
    fn leave_queue(&mut self, run: usize, state: RunState) {
        self.waiting.retain(|&waiting| waiting != run);
        self.resting.retain(|&(_, resting)| resting != run);
        self.set(run, state);
    }

    /// A claim of a run that another controller has got as far as the rule lets it go: the claim is given back.
    pub(super) fn claimed_in_vain(&mut self, run: usize, claim: Claim, fx: &mut dyn Effects) {
        fx.release(run, claim);
        self.set(run, RunState::Waiting);
        self.reconsider(fx);
    }

    fn run_stopped(&self, run: usize, steps: u64) -> Event {
        let rule = self.plan.stop.as_ref();
        let mark = self.stopping.courses[run].marks.iter().find(|mark| mark.steps == steps);
        let value = rule.zip(mark).map(|(rule, mark)| mark.value(rule.metric));
        let target = rule.is_some_and(|rule| matches!(rule.kind, StopKind::Target { .. }));
        let metric = rule.map_or("", |rule| rule.metric.key()).to_owned();
        let (id, label) = (self.run(run).id, self.run(run).label());
        Event::RunStopped { run: id, label, steps, metric, value: value.unwrap_or(f64::NAN), target }
    }
}

fn rung_decided(plan: &Plan, decision: &Decision) -> Event {
    let standing = |standing: &crate::plan::Standing| {
        let configuration = &plan.configurations[standing.configuration];
        let axes: Vec<String> = configuration.axes.iter().map(|a| format!("{}={}", a.axis, a.value)).collect();
        RungStanding {
            configuration: axes.join(" "),
            value: standing.value,
            seeds: standing.seeds,
            failed: standing.failed,
            goes_on: standing.goes_on,
        }
    };
    Event::RungDecided {
        arm: decision.arm.clone(),
        steps: decision.rung,
        metric: plan.stop.as_ref().map_or("", |rule| rule.metric.key()).to_owned(),
        standings: decision.standings.iter().map(standing).collect(),
    }
}
