//! Whole runs in lanes against the CPU backend's, number by number. Without a GPU the tests say so and pass: nothing is claimed then.

use super::*;
use crate::backend::cpu::simd::Level;
use crate::backend::cuda::library::Host;
use crate::optim::State;
use crate::run::{Ending, Outcome, Row, Timing};
use crate::settings::{EvalWeights, Opt, TestBatches};
use crate::trainer::Run;

fn die() -> Option<Rc<Die>> {
    match Die::open(&Host::this(), 0) {
        Ok(die) => Some(Rc::new(die)),
        Err(error) if std::env::var_os("DIESWEEP_NEED_GPU").is_some() => panic!("{error}"),
        Err(error) => {
            eprintln!("SKIPPED, no CUDA die: {error}");
            None
        }
    }
}

fn team() -> Arc<Team> {
    Arc::new(Team::new(2, Level::current().unwrap()).unwrap())
}

fn corpus() -> Corpus {
    let byte = |i: u32| b"the quick brown fox "[(i as usize * 7 + (i as usize / 13)) % 20];
    Corpus::from_bytes("test", (0..20_000).map(byte).collect())
}

/// A run's rows and outcome without what depends on the clock, and its state after the last step.
#[derive(Debug, PartialEq)]
struct Course {
    rows: Vec<Row>,
    outcome: Option<Outcome>,
    state: Option<State>,
}

impl Course {
    fn new() -> Self {
        Self { rows: Vec::new(), outcome: None, state: None }
    }

    fn take(&mut self, progress: Progress) {
        match progress {
            Progress::Stepped { .. } => {}
            Progress::Logged(row) => {
                let timing = Timing { step_sec: 0.0, tok_per_sec: 0.0, elapsed_sec: 0.0, eta_sec: 0.0 };
                self.rows.push(Row { timing, ..row });
            }
            Progress::Ended(outcome) => {
                self.outcome = Some(Outcome { wall_sec: 0.0, tok_per_sec: 0.0, ..*outcome });
            }
        }
    }
}

fn on_cpu(settings: &Settings, corpus: &Corpus) -> Course {
    let mut run = Run::new(settings, corpus.clone(), team(), None).unwrap();
    let mut course = Course::new();
    while course.outcome.is_none() {
        course.take(run.advance());
        if course.rows.last().is_some_and(|row| row.step + 1 == settings.steps) {
            course.state = Some(run.state().clone());
        }
    }
    course
}

/// Runs all settings through `count` lanes, each lane filled again as soon as its run ends.
fn in_lanes(die: &Rc<Die>, all: &[Settings], corpus: &Corpus, count: usize) -> Vec<Course> {
    let longest = all.iter().max_by_key(|s| LaneRun::windows(s, corpus)).unwrap();
    let mut lanes = Lanes::new(Rc::clone(die), longest, corpus.clone(), count, team()).unwrap();
    let mut courses: Vec<Course> = all.iter().map(|_| Course::new()).collect();
    let mut which = vec![None; count];
    let mut next = 0;
    loop {
        for (lane, which) in which.iter_mut().enumerate() {
            if which.is_none() && next < all.len() {
                lanes.fill(lane, &all[next]).unwrap();
                *which = Some(next);
                next += 1;
            }
        }
        let progress = lanes.advance().unwrap();
        if progress.is_empty() {
            return courses;
        }
        for (lane, progress) in progress {
            let run = which[lane].expect("only filled lanes move");
            let last = matches!(&progress, Progress::Logged(row) if row.step + 1 == all[run].steps);
            if last {
                courses[run].state = Some(lanes.state(lane).unwrap());
            }
            if matches!(progress, Progress::Ended(_)) {
                which[lane] = None;
            }
            courses[run].take(progress);
        }
    }
}

/// A small model, and settings that differ in everything that lanes may differ in.
fn settings() -> Vec<Settings> {
    let mut s = Settings {
        c: 32,
        n_head: 2,
        head_size: 16,
        n_rwkv: 2,
        n_attn: 1,
        ffn: 48,
        lora: 8,
        seq_len: 40,
        chunk_size: 40,
        batch: 2,
        accum_steps: 2,
        steps: 7,
        eval_every: 3,
        eval_batches: 3,
        test_batches: TestBatches::Windows(5),
        ..Settings::default()
    };
    let mut all = Vec::new();
    for (seed, opt) in [(1, Opt::Sr4), (2, Opt::AdamW), (3, Opt::Sr4), (4, Opt::AdamW), (5, Opt::Sr4)] {
        (s.seed, s.dither_seed, s.opt) = (seed, seed, opt);
        s.steps += 1;
        all.push(s.clone());
    }
    // Learning rates that make a run diverge, at the first step or later.
    all[1].lr = 1e6;
    all[1].diverge_above = 20.0;
    let mut at_once = s.clone();
    at_once.diverge_above = 1.0;
    all.push(at_once);
    all[3].grad_clip = 0.1;
    all[3].eval_every = 2;
    all[4].eval_weights = EvalWeights::Stale;
    all[4].eval_every = 1;
    all[4].eval_batches = 5;
    all[0].test_batches = TestBatches::All;
    // Longer than the table of rates on the die.
    all[2].steps = CHUNK as u64 + 30;
    all[2].eval_every = 100;
    all
}

/// Runs `runs` of the settings, again from the first after the last, through `count` lanes, and compares each with the CPU's.
fn check(die: &Rc<Die>, count: usize, runs: usize, expected: &[Course]) {
    let these: Vec<Settings> = settings().into_iter().cycle().take(runs).collect();
    let ours = in_lanes(die, &these, &corpus(), count);
    assert_eq!(ours.len(), runs);
    for (i, (ours, expected)) in ours.iter().zip(expected.iter().cycle()).enumerate() {
        assert_eq!(ours.rows, expected.rows, "run {i} in {count} lanes");
        assert_eq!(ours.outcome, expected.outcome, "run {i} in {count} lanes");
        assert!(ours.state == expected.state, "run {i} in {count} lanes: the state differs");
    }
    eprintln!("equal numbers: {runs} runs in {count} lanes, code {}", die.image().target);
}

fn all_on_cpu() -> Vec<Course> {
    settings().iter().map(|s| on_cpu(s, &corpus())).collect()
}

#[test]
fn runs_in_lanes_give_the_numbers_of_the_cpu_whatever_their_neighbours() {
    let Some(die) = die() else { return };
    let expected = all_on_cpu();
    let diverged = |c: &&Course| matches!(c.outcome.as_ref().unwrap().ending, Ending::Diverged { .. });
    assert_eq!(expected.iter().filter(diverged).count(), 2, "two runs are meant to diverge");
    for count in [1, 3, 8] {
        check(&die, count, expected.len(), &expected);
    }
}

/// Every run comes many times over, and lanes are filled again while their neighbours go on.
#[test]
fn sixty_four_lanes_give_the_numbers_of_the_cpu() {
    let Some(die) = die() else { return };
    check(&die, 64, 80, &all_on_cpu());
}

#[test]
fn a_run_of_another_shape_is_refused() {
    let Some(die) = die() else { return };
    let (all, corpus) = (settings(), corpus());
    let mut lanes = Lanes::new(die, &all[2], corpus, 2, team()).unwrap();
    let wider = Settings { ffn: 64, ..all[2].clone() };
    assert!(matches!(lanes.fill(0, &wider), Err(LanesError::Shape)));
    let tf32 = Settings { precision: Precision::Tf32, ..all[2].clone() };
    assert!(matches!(lanes.fill(0, &tf32), Err(LanesError::Unsupported(_))));
}

/// Prints step times; run by hand with `--ignored --nocapture` on a GPU. `DIESWEEP_LANES=64` times that count alone.
#[test]
#[ignore = "a measurement"]
fn speed_of_the_default_model() {
    let Some(die) = die() else { return };
    let corpus = Corpus::open(&crate::settings::Data::Builtin).unwrap();
    let only = std::env::var("DIESWEEP_LANES").ok().map(|text| text.parse::<usize>().unwrap());
    let both = |count| [(Opt::AdamW, count), (Opt::Sr4, count)];
    for (opt, count) in [1, 4, 16, 64].into_iter().filter(|&n| only.is_none_or(|only| only == n)).flat_map(both) {
        let settings = Settings { opt, steps: 100_000, eval_every: 200, ..Settings::default() };
        let mut lanes = Lanes::new(Rc::clone(&die), &settings, corpus.clone(), count, team()).unwrap();
        (0..count).for_each(|lane| lanes.fill(lane, &settings).unwrap());
        lanes.supply(200).unwrap();
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let from = Instant::now();
            (0..20).for_each(|_| lanes.graphs.step.replay().unwrap());
            lanes.die().wait().unwrap();
            best = best.min(from.elapsed() / 20);
        }
        let (free, total) = lanes.die().memory_info().unwrap();
        println!(
            "{opt:?} {count} lanes: {:.3} ms a step, {:.0} lane-steps/s, {} kernels a step, {} MiB in use",
            best.as_secs_f64() * 1e3,
            count as f64 / best.as_secs_f64(),
            lanes.step_nodes(),
            (total - free) >> 20
        );
    }
}
