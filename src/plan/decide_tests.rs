use super::*;
use crate::plan::Metric;
use crate::testing;

/// A plan of two arms, `a` with four rates and `b` with one, and two seeds; runs have 100 steps, rows at 0, 50 and 99.
fn plan(kind: StopKind, metric: Metric) -> Plan {
    let mut plan = testing::plan(&[("a", &["1", "2", "3", "4"]), ("b", &["1"])], &[1, 2]);
    plan.stop = Some(StopRule { kind, metric });
    plan
}

fn mark(steps: u64, value: f64) -> Mark {
    Mark { steps, train_bpb: value, val_bpb: value, val_acc: value, best_val_bpb: None, best_val_acc: None }
}

/// Courses in which every run has got to 51 steps, with the value of its configuration.
fn courses(plan: &Plan, values: &[f64]) -> Vec<Course> {
    let mut courses = vec![Course::default(); plan.runs.len()];
    for (configuration, value) in plan.configurations.iter().zip(values) {
        for (&run, luck) in configuration.runs.iter().zip([0.25, -0.25]) {
            courses[run].marks.push(mark(51, value + luck));
        }
    }
    courses
}

fn stopped(plan: &Plan, decisions: &Decisions) -> Vec<usize> {
    let stopped = |at: &usize| {
        let runs = &plan.configurations[*at].runs;
        let count = runs.iter().filter(|&&run| matches!(decisions.fates[run], Fate::Stopped { steps: 51 })).count();
        assert!(count == 0 || count == runs.len(), "a configuration stops with all its seeds");
        count > 0
    };
    (0..plan.configurations.len()).filter(stopped).collect()
}

const MEDIAN: fn() -> StopKind = || StopKind::Median { rungs: vec![40] };

#[test]
fn what_is_worse_than_the_median_of_its_arm_stops() {
    let lower = plan(MEDIAN(), Metric::ValBpb);
    let decisions = decide(&lower, &courses(&lower, &[4.0, 1.0, 3.0, 2.0, 9.0]));
    assert_eq!(stopped(&lower, &decisions), [0, 2], "the only one of an arm is never stopped");
    let higher = plan(MEDIAN(), Metric::ValAcc);
    assert_eq!(stopped(&higher, &decide(&higher, &courses(&higher, &[4.0, 1.0, 3.0, 2.0, 9.0]))), [1, 3]);
    let [decision] = &decisions.rungs[..] else { panic!("{decisions:?}") };
    assert_eq!((decision.arm.as_str(), decision.rung, decision.standings.len()), ("a", 40, 4));
    assert_eq!(decision.standings[2].value, Some(3.0), "the mean over the seeds");
    let alike = decide(&lower, &courses(&lower, &[1.0; 5]));
    assert_eq!(stopped(&lower, &alike), [0_usize; 0], "equal ones go on together");
}

#[test]
fn the_best_one_in_so_many_go_on() {
    let keep = |factor| {
        let plan = plan(StopKind::Halving { rungs: vec![40], factor }, Metric::ValBpb);
        stopped(&plan, &decide(&plan, &courses(&plan, &[4.0, 1.0, 3.0, 2.0, 9.0])))
    };
    assert_eq!((keep(2), keep(3), keep(4)), (vec![0, 2], vec![0, 2], vec![0, 2, 3]));
    assert_eq!(keep(100), [0, 2, 3], "one always does");
}

#[test]
fn nothing_is_decided_before_all_are_there() {
    let plan = plan(MEDIAN(), Metric::ValBpb);
    let mut courses = courses(&plan, &[4.0, 1.0, 3.0, 2.0, 9.0]);
    let late = plan.configurations[3].runs[1];
    courses[late].marks.clear();
    let decisions = decide(&plan, &courses);
    assert_eq!(decisions.rungs, []);
    assert_eq!(decisions.fates[late], Fate::GoesOn(Some(Rest::Steps { steps: 51 })));
    assert_eq!(decisions.fates[plan.configurations[0].runs[0]], Fate::Rests { steps: 51 });
    assert_eq!(decisions.fates[plan.configurations[4].runs[0]], Fate::GoesOn(None), "nobody is waited for alone");
}

#[test]
fn a_diverged_seed_is_worst_and_a_failed_one_does_not_count() {
    let plan = plan(MEDIAN(), Metric::ValBpb);
    let mut courses = courses(&plan, &[1.0, 2.0, 3.0, 4.0, 9.0]);
    for (configuration, end) in [(0, CourseEnd::Diverged), (1, CourseEnd::Failed)] {
        courses[plan.configurations[configuration].runs[0]] = Course { marks: vec![], end: Some(end) };
    }
    let decisions = decide(&plan, &courses);
    assert_eq!(stopped(&plan, &decisions), [0, 3]);
    let standings = &decisions.rungs[0].standings;
    assert_eq!((standings[0].value, standings[0].goes_on), (Some(f64::INFINITY), false));
    assert_eq!((standings[1].value, standings[1].failed, standings[1].seeds), (Some(1.75), 1, 1));
}

#[test]
fn the_order_of_the_marks_makes_no_difference() {
    let kind = StopKind::Halving { rungs: vec![1, 40], factor: 2 };
    let plan = plan(kind, Metric::ValBpb);
    let mut courses = courses(&plan, &[4.0, 1.0, 3.0, 2.0, 9.0]);
    for (run, course) in courses.iter_mut().enumerate() {
        course.marks.push(mark(1, run as f64));
    }
    let forward = decide(&plan, &courses);
    courses.iter_mut().for_each(|course| course.marks.reverse());
    assert_eq!(decide(&plan, &courses), forward);
    assert_eq!(forward.rungs.len(), 2);
    assert_eq!(forward.rungs[1].standings.len(), 2, "who was stopped is not asked again");
}

#[test]
fn a_target_stops_each_run_for_itself() {
    let plan = plan(StopKind::Target { value: 2.0 }, Metric::ValBpb);
    let mut courses = vec![Course::default(); plan.runs.len()];
    courses[0].marks = vec![mark(51, 2.0), mark(1, 2.5)];
    courses[1].marks = vec![mark(51, 2.1)];
    courses[2].marks = vec![mark(100, 1.0)];
    let fates = decide(&plan, &courses).fates;
    let on = Fate::GoesOn(Some(Rest::Value { metric: Metric::ValBpb, value: 2.0 }));
    assert_eq!(fates[..3], [Fate::Stopped { steps: 51 }, on, on], "one that is trained to its end finishes");
}

#[test]
fn a_run_of_two_configurations_goes_on_for_either() {
    let mut plan = plan(MEDIAN(), Metric::ValBpb);
    let shared = plan.configurations[0].runs.clone();
    plan.configurations[4].runs = shared.clone();
    let decisions = decide(&plan, &courses(&plan, &[4.0, 1.0, 3.0, 2.0]));
    assert_eq!(shared.iter().map(|&run| decisions.fates[run]).collect::<Vec<_>>(), [Fate::GoesOn(None); 2]);
}
