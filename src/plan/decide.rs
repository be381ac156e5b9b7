//! Which runs go on, by the plan's rule of early stopping: a function of what the runs have logged, whoever asks and in whatever order
//! they got there.
//!
//! Configurations of one arm are compared, by the mean over all their seeds, and stop or go on with all their seeds: no seed is picked for its
//! luck, and every arm keeps its best. A rung is decided when all of the arm's configurations that are left have reached it.

use super::stop::{Mark, Rest, StopKind, StopRule, cost, steps_at};
use super::{Configuration, Plan};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CourseEnd {
    /// It trained all its steps.
    Finished,
    /// Its loss was bad.
    Diverged,
    /// It was given up.
    Failed,
}

/// What is known of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// Where it rested, or would have.
    pub marks: Vec<Mark>,
    /// How it ended, if it did.
    pub end: Option<CourseEnd>,
}

impl Course {
    fn at(&self, steps: u64) -> Option<&Mark> {
        self.marks.iter().find(|mark| mark.steps == steps)
    }
}

/// What becomes of a run that has not ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// It is trained on, as far as there.
    GoesOn(Option<Rest>),
    /// It waits for others to get as far.
    Rests {
        /// Steps that it has done.
        steps: u64,
    },
    /// It is trained no further.
    Stopped {
        /// Steps after which it was judged.
        steps: u64,
    },
}

impl Fate {
    /// Of the fates that a run has in several configurations the one that has it trained furthest counts.
    fn rank(self) -> (u8, u64) {
        match self {
            Self::GoesOn(None | Some(Rest::Value { .. })) => (3, 0),
            Self::GoesOn(Some(Rest::Steps { steps })) => (2, steps),
            Self::Rests { steps } => (1, steps),
            Self::Stopped { steps } => (0, steps),
        }
    }
}

/// How a configuration stood at a rung.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Index of the configuration in the plan.
    pub configuration: usize,
    /// Mean of the metric over the seeds that got there; infinite, or minus infinite where more is better, if one had diverged by then;
    /// absent if none got there.
    pub value: Option<f64>,
    /// Seeds that count.
    pub seeds: usize,
    /// Seeds that had failed for good, which do not count.
    pub failed: usize,
    /// Whether it goes on.
    pub goes_on: bool,
}

/// A rung of an arm that is decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Arm.
    pub arm: String,
    /// The rung, in steps.
    pub rung: u64,
    /// What was seen, in the order of the plan.
    pub standings: Vec<Standing>,
}

/// What follows from the rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Decisions {
    /// What becomes of each run of the plan, in its order.
    pub fates: Vec<Fate>,
    /// Rungs that are decided, arm by arm.
    pub rungs: Vec<Decision>,
}

/// Applies the plan's rule. `courses` has an entry for each run of the plan.
pub fn decide(plan: &Plan, courses: &[Course]) -> Decisions {
    let Some(rule) = &plan.stop else {
        return Decisions { fates: vec![Fate::GoesOn(None); plan.runs.len()], rungs: Vec::new() };
    };
    if let StopKind::Target { value } = rule.kind {
        return Decisions { fates: by_target(plan, courses, rule, value), rungs: Vec::new() };
    }
    let mut fates: Vec<Option<Fate>> = vec![None; plan.runs.len()];
    let mut rungs = Vec::new();
    let mut arms: Vec<&str> = Vec::new();
    for configuration in &plan.configurations {
        if !arms.contains(&configuration.arm.as_str()) {
            arms.push(&configuration.arm);
        }
    }
    for arm in arms {
        let climbed = Climb::of(plan, courses, rule, arm);
        rungs.extend(climbed.decisions);
        for (configuration, state) in climbed.states {
            for &run in &plan.configurations[configuration].runs {
                let fate = state.fate(plan, courses, run);
                fates[run] = fates[run].filter(|old| old.rank() >= fate.rank()).or(Some(fate));
            }
        }
    }
    Decisions { fates: fates.into_iter().map(|fate| fate.unwrap_or(Fate::GoesOn(None))).collect(), rungs }
}

fn by_target(plan: &Plan, courses: &[Course], rule: &StopRule, value: f64) -> Vec<Fate> {
    let fate = |(run, course): (&super::PlannedRun, &Course)| {
        let reached = course.marks.iter().filter(|mark| mark.reaches(rule.metric, value)).map(|mark| mark.steps).min();
        match reached.filter(|&steps| steps < run.settings.steps) {
            Some(steps) => Fate::Stopped { steps },
            None => Fate::GoesOn(Some(Rest::Value { metric: rule.metric, value })),
        }
    };
    plan.runs.iter().zip(courses).map(fate).collect()
}

/// How far a configuration got.
#[derive(Clone, Copy, Debug)]
enum Climbed {
    /// Behind all rungs.
    Through,
    /// To a rung that is not decided.
    To(u64),
    /// It was stopped at a rung.
    StoppedAt(u64),
}

impl Climbed {
    fn fate(self, plan: &Plan, courses: &[Course], run: usize) -> Fate {
        let steps = |rung| steps_at(&plan.runs[run].settings, rung);
        match self {
            Self::Through => Fate::GoesOn(None),
            Self::To(rung) => match steps(rung) {
                Some(steps) if courses[run].at(steps).is_some() => Fate::Rests { steps },
                steps => Fate::GoesOn(steps.map(|steps| Rest::Steps { steps })),
            },
            Self::StoppedAt(rung) => steps(rung).map_or(Fate::GoesOn(None), |steps| Fate::Stopped { steps }),
        }
    }
}

/// An arm's way up its rungs.
struct Climb {
    states: Vec<(usize, Climbed)>,
    decisions: Vec<Decision>,
}

impl Climb {
    fn of(plan: &Plan, courses: &[Course], rule: &StopRule, arm: &str) -> Self {
        let of_arm = |(_, configuration): &(usize, &Configuration)| configuration.arm == arm;
        let mut left: Vec<usize> = plan.configurations.iter().enumerate().filter(of_arm).map(|(at, _)| at).collect();
        let mut climb = Self { states: Vec::new(), decisions: Vec::new() };
        for &rung in rule.rungs() {
            let steps = |run: usize| steps_at(&plan.runs[run].settings, rung);
            let takes_part = |at: &usize| plan.configurations[*at].runs.iter().any(|&run| steps(run).is_some());
            let there: Vec<usize> = left.iter().copied().filter(takes_part).collect();
            // One alone has nobody to be compared with.
            if there.len() < 2 {
                continue;
            }
            let known = |run: &usize| {
                courses[*run].end.is_some() || steps(*run).is_none_or(|steps| courses[*run].at(steps).is_some())
            };
            if !there.iter().all(|&at| plan.configurations[at].runs.iter().all(known)) {
                climb.states.extend(there.iter().map(|&at| (at, Climbed::To(rung))));
                left.retain(|at| !there.contains(at));
                continue;
            }
            let decision = judge(plan, courses, rule, (arm, rung), &there);
            let stopped = decision.standings.iter().filter(|standing| !standing.goes_on);
            let stopped: Vec<usize> = stopped.map(|standing| standing.configuration).collect();
            left.retain(|at| !stopped.contains(at));
            climb.states.extend(stopped.into_iter().map(|at| (at, Climbed::StoppedAt(rung))));
            climb.decisions.push(decision);
        }
        climb.states.extend(left.into_iter().map(|at| (at, Climbed::Through)));
        climb
    }
}

fn judge(plan: &Plan, courses: &[Course], rule: &StopRule, (arm, rung): (&str, u64), there: &[usize]) -> Decision {
    let mut standings: Vec<Standing> = there.iter().map(|&at| standing(plan, courses, rule, (at, rung))).collect();
    let mut costs: Vec<f64> = standings.iter().filter_map(|s| s.value).map(|value| cost(rule.metric, value)).collect();
    costs.sort_by(f64::total_cmp);
    let limit = match (&rule.kind, costs.len()) {
        (_, 0) => f64::INFINITY,
        (StopKind::Halving { factor, .. }, n) => {
            costs[n.div_ceil(usize::try_from(*factor).unwrap_or(usize::MAX)).max(1) - 1]
        }
        (_, n) if n % 2 == 1 => costs[n / 2],
        (_, n) => f64::midpoint(costs[n / 2 - 1], costs[n / 2]),
    };
    let some_finite = costs.first().is_some_and(|least| least.is_finite());
    for standing in &mut standings {
        let Some(cost) = standing.value.map(|value| cost(rule.metric, value)) else { continue };
        standing.goes_on = cost <= limit && !(cost.is_infinite() && some_finite);
    }
    Decision { arm: arm.to_owned(), rung, standings }
}

fn standing(plan: &Plan, courses: &[Course], rule: &StopRule, (configuration, rung): (usize, u64)) -> Standing {
    let (mut values, mut diverged, mut failed) = (Vec::new(), 0, 0);
    for &run in &plan.configurations[configuration].runs {
        let mark = steps_at(&plan.runs[run].settings, rung).and_then(|steps| courses[run].at(steps));
        match (mark, courses[run].end) {
            (Some(mark), _) => values.push(mark.value(rule.metric)),
            (None, Some(CourseEnd::Diverged)) => diverged += 1,
            (None, _) => failed += 1,
        }
    }
    let worst = if cost(rule.metric, 1.0) > 0.0 { f64::INFINITY } else { f64::NEG_INFINITY };
    let value = match (values.len(), diverged) {
        (_, 1..) => Some(worst),
        (0, 0) => None,
        (n, 0) => Some(values.iter().sum::<f64>() / n as f64),
    };
    Standing { configuration, value, seeds: values.len() + diverged, failed, goes_on: true }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
