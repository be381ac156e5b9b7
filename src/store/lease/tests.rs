//! Several controllers on one folder, in one process: their names tell them apart.

use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::file::{LeaseFile, begin_beat, write_beat};
use super::*;
use crate::plan::Plan;
use crate::store::{Holder, Published, Results};
use crate::testing::{execution, finished, plan, row, write_log};

const TERMS: LeaseTerms = LeaseTerms { standing: Duration::from_millis(300) };

fn open(root: &Path, plan: &Plan, name: &str) -> Results {
    let mut results = Results::open_as(name, root, plan, "").unwrap().results;
    results.set_lease_terms(TERMS);
    results
}

fn is_ours(claim: &Claim) -> bool {
    matches!(claim, Claim::Ours(_))
}

fn this_process() -> String {
    Holder::this_process().to_string()
}

#[test]
fn a_run_is_one_controllers_until_it_is_given_back() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1, 2]);
    let (a, b) = (open(root.path(), &plan, "a"), open(root.path(), &plan, "b"));
    let run = &plan.runs[0];
    assert!(is_ours(&a.claim(run).unwrap()));
    assert_eq!(b.claim(run).unwrap(), Claim::Elsewhere { holder: this_process() });
    assert_eq!(b.look(run).unwrap(), Look::Held { holder: this_process() });
    assert!(is_ours(&b.claim(&plan.runs[1]).unwrap()), "the other run is free");
    assert!(is_ours(&a.claim(run).unwrap()), "another attempt under the same lease");
    a.give_back(run.id).unwrap();
    assert_eq!(b.look(run).unwrap(), Look::Free);
    assert!(is_ours(&b.claim(run).unwrap()));
    assert!(a.run_paths(run).lease(2).exists(), "no number is used twice");
    // Whoever leaves gives back what it has.
    drop(b);
    assert!(is_ours(&a.claim(run).unwrap()) && is_ours(&a.claim(&plan.runs[1]).unwrap()));
    assert_eq!(a.controllers().unwrap().len(), 1);
}

#[test]
fn leases_go_with_the_result_and_the_others_see_it() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1]);
    let (a, b) = (open(root.path(), &plan, "a"), open(root.path(), &plan, "b"));
    let run = &plan.runs[0];
    crate::testing::publish(&a, run, &finished(2.0, None), 1.0);
    assert!(matches!(b.claim(run).unwrap(), Claim::Finished(_)));
    assert!(matches!(b.look(run).unwrap(), Look::Finished(_)));
    assert_eq!(a.lease(run).unwrap(), None);
}

#[test]
fn a_provably_dead_holder_is_followed_at_once() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1]);
    let (a, run) = (open(root.path(), &plan, "a"), &plan.runs[0]);
    let paths = a.run_paths(run);
    fs::create_dir_all(paths.dir()).unwrap();
    fs::write(paths.lease(3), LeaseFile::new("dead", Holder::dead(), 1).to_json()).unwrap();
    assert!(is_ours(&a.claim(run).unwrap()));
    assert!(paths.lease(4).exists());
}

#[test]
fn a_holder_elsewhere_is_followed_when_its_beat_has_stood_and_not_while_it_moves() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1]);
    let (a, run) = (open(root.path(), &plan, "a"), &plan.runs[0]);
    let paths = a.run_paths(run);
    fs::create_dir_all(paths.dir()).unwrap();
    let beat = a.layout().beat("other-1-x");
    begin_beat(&beat, 1).unwrap();
    fs::write(paths.lease(1), LeaseFile::new("other-1-x", Holder::elsewhere(), 1).to_json()).unwrap();
    let holder = Holder::elsewhere().to_string();
    let began = Instant::now();
    for count in 2.. {
        assert_eq!(a.claim(run).unwrap(), Claim::Elsewhere { holder: holder.clone() });
        if began.elapsed() > 2 * TERMS.standing {
            break;
        }
        write_beat(&beat, count).unwrap();
        std::thread::sleep(TERMS.look_every());
    }
    // Its last beat was seen at this point or later.
    let stands = Instant::now();
    while a.look(run).unwrap() != Look::Free {
        std::thread::sleep(TERMS.look_every());
    }
    let took = stands.elapsed();
    assert!(took >= TERMS.standing - TERMS.look_every(), "taken over after {took:?}");
    assert!(is_ours(&a.claim(run).unwrap()));
}

#[test]
fn what_is_no_lease_stands_still_and_is_followed() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1]);
    let (a, run) = (open(root.path(), &plan, "a"), &plan.runs[0]);
    let paths = a.run_paths(run);
    fs::create_dir_all(paths.dir()).unwrap();
    fs::write(paths.lease(1), "").unwrap();
    assert_eq!(a.claim(run).unwrap(), Claim::Elsewhere { holder: "an unknown process".to_owned() });
    while a.look(run).unwrap() != Look::Free {
        std::thread::sleep(TERMS.look_every());
    }
    assert!(is_ours(&a.claim(run).unwrap()));
}

#[test]
fn whoever_lost_its_lease_learns_it_and_publishes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1]);
    let (a, b) = (open(root.path(), &plan, "a"), open(root.path(), &plan, "b"));
    let run = &plan.runs[0];
    let Claim::Ours(late) = a.claim(run).unwrap() else { panic!("not claimed") };
    // `a` stands still from now on: nobody calls `tend`.
    while b.look(run).unwrap() != Look::Free {
        b.tend().unwrap();
        std::thread::sleep(TERMS.look_every());
    }
    let Claim::Ours(attempt) = b.claim(run).unwrap() else { panic!("not claimed") };
    write_log(&late, 1.0);
    write_log(&attempt, 2.0);
    let outcome = finished(2.0, None);
    let published = a.publish(run, &late, &outcome, &execution(1, "0")).unwrap();
    assert_eq!(published, Published::LeaseLost { holder: this_process(), differs: None });
    assert_eq!(b.finished(run).unwrap(), None);
    assert_eq!(a.tend().unwrap(), [Lost { run: run.id, holder: this_process() }]);
    assert_eq!(a.tend().unwrap(), []);
    let published = b.publish(run, &attempt, &outcome, &execution(2, "0")).unwrap();
    assert!(matches!(published, Published::Done { differs: None, .. }));
    // What it would have published is held against what was.
    let published = a.publish(run, &late, &finished(2.5, None), &execution(1, "0")).unwrap();
    let Published::LeaseLost { differs: Some(differs), .. } = published else { panic!("{published:?}") };
    assert!(differs.starts_with("the result of ") && differs.contains("attempt-1 is not the one"), "{differs}");
}

#[test]
fn the_first_publication_wins_and_the_second_is_held_against_it() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[])], &[1]);
    let (a, run) = (open(root.path(), &plan, "a"), &plan.runs[0]);
    for (differs, outcome, val_bpb) in [(None, 2.0, 8.0), (Some("result"), 2.5, 8.0), (Some("log"), 2.0, 7.0)] {
        let [first, second] = [(); 2].map(|()| crate::testing::attempt(&a, run));
        write_log(&first, 1.0);
        let mut log = crate::store::LogWriter::create(&second.log()).unwrap();
        for step in [0, 50, 99] {
            log.row(&row(step, val_bpb - step as f64 / 100.0, 2.0)).unwrap();
        }
        log.finish().unwrap();
        a.publish(run, &first, &finished(2.0, None), &execution(1, "0")).unwrap();
        // As if this controller had found itself the holder right before the other one published.
        fs::write(a.run_paths(run).lease(1), LeaseFile::new("a", Holder::this_process(), 1).to_json()).unwrap();
        a.claims.hold(run.id, 1, a.run_paths(run));
        let published = a.publish(run, &second, &finished(outcome, None), &execution(2, "1")).unwrap();
        let Published::Done { result, differs: told } = published else { panic!("{published:?}") };
        assert_eq!(result.execution, execution(1, "0"));
        assert_eq!(fs::read(a.run_paths(run).log()).unwrap(), fs::read(first.log()).unwrap());
        match differs {
            None => assert_eq!(told, None),
            Some(what) => assert!(told.unwrap().starts_with(&format!("the {what} of "))),
        }
        fs::remove_dir_all(a.run_paths(run).dir()).unwrap();
    }
}

#[test]
fn of_many_that_race_for_a_run_one_gets_it() {
    const RACERS: usize = 8;
    for dead in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let seeds: Vec<u64> = (1..=12).collect();
        let plan = plan(&[("adamw", &[])], &seeds);
        let racers: Vec<Results> = (0..RACERS).map(|i| open(root.path(), &plan, &format!("racer-{i}"))).collect();
        if dead {
            for run in &plan.runs {
                let paths = racers[0].run_paths(run);
                fs::create_dir_all(paths.dir()).unwrap();
                fs::write(paths.lease(7), LeaseFile::new("dead", Holder::dead(), 1).to_json()).unwrap();
            }
        }
        let barrier = Barrier::new(RACERS);
        let won = std::thread::scope(|scope| {
            let race = |results: &Results| {
                barrier.wait();
                // Everybody stays alive in the eyes of the others, however slow the machine.
                let ours = |run| {
                    let claim = results.claim(run).unwrap();
                    results.tend().unwrap();
                    is_ours(&claim)
                };
                plan.runs.iter().map(ours).collect::<Vec<_>>()
            };
            let threads: Vec<_> = racers.iter().map(|results| scope.spawn(move || race(results))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        for (number, run) in plan.runs.iter().enumerate() {
            let winners = won.iter().filter(|won| won[number]).count();
            assert_eq!(winners, 1, "run {}", run.id);
            let folders = fs::read_dir(racers[0].run_paths(run).dir()).unwrap();
            let names = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            assert_eq!(names.filter(|name| name.starts_with("attempt-")).count(), 1);
        }
    }
}
