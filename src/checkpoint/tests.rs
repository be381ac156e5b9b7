use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::model::{ModelConfig, ModelParams};
use crate::optim::{PanelState, Sr4State, State};
use crate::run::{Best, Row, Timing};
use crate::settings::{Opt, Settings};
use crate::store::{LogWriter, checkpoint_file};
use crate::trainer::{BadStep, Progressed, Snapshot};

/// A run of made-up numbers, every bit of which must come back.
struct Made {
    run: tempfile::TempDir,
    settings: Settings,
    params: Arc<ModelParams>,
}

impl Made {
    fn new(opt: Opt) -> Self {
        let settings =
            Settings { opt, c: 8, n_head: 2, head_size: 4, ffn: 8, lora: 2, ..crate::testing::settings(1, 1e-3) };
        let params = Arc::new(ModelParams::new(&ModelConfig::from(&settings)));
        Self { run: tempfile::tempdir().unwrap(), settings, params }
    }

    fn identity(&self) -> Identity {
        Identity::of(&self.settings, "00ff")
    }

    fn attempt(&self, number: u32) -> PathBuf {
        let folder = self.run.path().join(format!("attempt-{number}"));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// A state with odd numbers in every array; the gaps between tensors stay zero.
    fn snapshot(&self, steps: u64) -> Snapshot {
        let params = &self.params;
        let value = |i: usize, salt: u32| match i % 7 {
            0 => f32::NAN,
            1 => -0.0,
            2 => f32::from_bits(1),
            _ => ((i as f32) + salt as f32).sin(),
        };
        let arena = |salt: u32, all: bool| {
            let mut arena = vec![0.0; params.arena_len];
            for p in params.table.iter().filter(|p| all || p.ternary.is_none()) {
                p.id.of_mut(&mut arena).iter_mut().enumerate().for_each(|(i, x)| *x = value(i, salt));
            }
            arena
        };
        let sr4 = self.settings.opt == Opt::Sr4;
        let scales = |salt| (0..params.scale_len).map(|i| value(i, salt)).collect::<Vec<f32>>();
        let ternary = |n: usize| (0..params.ternary_len).map(|i| (i % n) as i8 - (n / 2) as i8).collect::<Vec<i8>>();
        let best = Some(Best { value: 1.0 / 3.0, step: steps / 2 });
        Snapshot {
            progress: Progressed {
                steps,
                skipped: 2,
                best_val_bpb: best,
                best_val_acc: None,
                bad: Some(BadStep { step: steps, loss: f64::INFINITY }),
                elapsed: crate::trainer::Elapsed { last_row_steps: 7, ..Default::default() },
            },
            state: State {
                weights: arena(1, true),
                m: arena(2, !sr4),
                v: arena(3, !sr4),
                sr4: sr4.then(|| Sr4State { q: ternary(15), scale: scales(4), m: scales(5), v: scales(6) }),
            },
            panel: PanelState { previous: sr4.then(|| ternary(3)) },
        }
    }

    /// A log of so many rows.
    fn log(folder: &Path, rows: u64) -> LogWriter {
        let mut log = LogWriter::create(&folder.join("log.csv")).unwrap();
        for step in 0..rows {
            let timing = Timing { step_sec: 0.5, tok_per_sec: 1.0, elapsed_sec: 2.0, eta_sec: 3.0 };
            let (train_bpb, val_bpb, val_acc) = (1.0, 2.0, 0.5);
            log.row(&Row { step, train_bpb, val_bpb, val_acc, grad_norm: 1.0, lr: 1e-3, panel: None, timing }).unwrap();
        }
        log
    }

    /// Checkpoints of these steps in an attempt, each with three more rows.
    fn save(&self, attempt: u32, steps: &[u64]) {
        let folder = self.attempt(attempt);
        let log = Self::log(&folder, 3);
        let mut saver = Saver::new(&folder, self.identity(), Arc::clone(&self.params), Vec::new());
        for &steps in steps {
            saver.save(self.snapshot(steps), &log).unwrap();
        }
        assert_eq!(saver.wait().unwrap(), steps.last().copied());
    }

    fn search(&self, attempt: u32) -> Search {
        newest(&self.attempt(attempt), &self.identity(), &self.params, self.settings.opt == Opt::Sr4).unwrap()
    }
}

/// Bits, since NaN is not equal to itself.
fn bits(snapshot: &Snapshot) -> Vec<Vec<u32>> {
    let f32s = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let i8s = |values: &[i8]| values.iter().map(|x| u32::from(x.cast_unsigned())).collect::<Vec<_>>();
    let state = &snapshot.state;
    let mut all = vec![f32s(&state.weights), f32s(&state.m), f32s(&state.v)];
    if let Some(sr4) = &state.sr4 {
        all.extend([i8s(&sr4.q), f32s(&sr4.scale), f32s(&sr4.m), f32s(&sr4.v)]);
    }
    all.extend(snapshot.panel.previous.as_deref().map(i8s));
    all
}

#[test]
fn every_bit_comes_back() {
    for opt in [Opt::AdamW, Opt::Sr4] {
        let made = Made::new(opt);
        made.save(1, &[40]);
        let search = made.search(2);
        assert!(search.refused.is_empty(), "{:?}", search.refused);
        let found = search.found.unwrap();
        assert_eq!(bits(&found.snapshot), bits(&made.snapshot(40)));
        assert_eq!(found.snapshot.progress, made.snapshot(40).progress);
        assert_eq!((found.rows, found.log), (3, fs::read(made.attempt(1).join("log.csv")).unwrap()));
    }
}

#[test]
fn every_flipped_byte_is_seen() {
    let made = Made::new(Opt::Sr4);
    made.save(1, &[40]);
    let path = checkpoint_file(&made.attempt(1), 40);
    let whole = fs::read(&path).unwrap();
    open(&path).unwrap();
    let header = 8 + usize::try_from(u64::from_le_bytes(*whole.first_chunk().unwrap())).unwrap();
    // All of the header, and the body in steps that meet every kind of array and every place of a number.
    for at in (0..header).chain((header..whole.len()).step_by(61)).chain([whole.len() - 1]) {
        let flip = [1u8, 0x20, 0x80][at % 3];
        let mut bytes = whole.clone();
        bytes[at] ^= flip;
        let seen = file::verify(&bytes);
        assert!(seen.is_err(), "byte {at} by {flip:#x}: {seen:?}");
    }
    let mut bytes = whole;
    bytes[header] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(open(&path), Err(CheckpointError::Damaged { .. })));
}

#[test]
fn every_length_but_the_whole_is_seen() {
    let made = Made::new(Opt::AdamW);
    made.save(1, &[40]);
    let path = checkpoint_file(&made.attempt(1), 40);
    let whole = fs::read(&path).unwrap();
    for length in [0, 1, 7, 8, 9, 500, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(matches!(open(&path), Err(CheckpointError::Damaged { .. })), "{length} bytes");
    }
    fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
    assert!(matches!(open(&path), Err(CheckpointError::Damaged { .. })), "a byte more");
}

#[test]
fn the_last_two_are_kept_over_all_attempts() {
    let made = Made::new(Opt::AdamW);
    made.save(1, &[10, 20, 30]);
    let names = |attempt| {
        let mut names: Vec<_> = fs::read_dir(made.attempt(attempt))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "log.csv")
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(1), ["checkpoint-20.safetensors", "checkpoint-30.safetensors"]);
    let search = made.search(2);
    let folder = made.attempt(2);
    let log = Made::log(&folder, 1);
    let mut saver = Saver::new(&folder, made.identity(), Arc::clone(&made.params), search.older);
    saver.save(made.snapshot(35), &log).unwrap();
    saver.wait().unwrap();
    assert_eq!(
        (names(1).concat(), names(2).concat()),
        ("checkpoint-30.safetensors".into(), "checkpoint-35.safetensors".into())
    );
}

#[test]
fn a_damaged_one_gives_way_to_the_one_before_and_is_named() {
    let made = Made::new(Opt::Sr4);
    made.save(1, &[10, 20]);
    let newer = checkpoint_file(&made.attempt(1), 20);
    let mut bytes = fs::read(&newer).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&newer, &bytes).unwrap();
    let search = made.search(2);
    assert_eq!(search.found.unwrap().snapshot.progress.steps, 10);
    let refused: Vec<_> = search.refused.iter().map(ToString::to_string).collect();
    let path = newer.display();
    assert_eq!(refused, [format!("{path} is damaged: its bytes do not have the digest that it names")]);
}

#[test]
fn one_whose_rows_are_gone_is_of_no_use() {
    let made = Made::new(Opt::AdamW);
    made.save(1, &[10]);
    let path = made.attempt(1).join("log.csv");
    let log = fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let search = made.search(2);
        assert!(search.found.is_none());
        search.refused[0].to_string()
    };
    assert!(refused(&log[..log.len() - 1]).contains("where there were"), "cut");
    let mut changed = log.clone();
    let last = changed.len() - 2;
    changed[last] ^= 1;
    assert!(refused(&changed).contains("are not those that were written"), "changed");
    // Rows that came after the checkpoint are cut.
    fs::write(&path, [&log[..], b"3,1.0,torn"].concat()).unwrap();
    assert_eq!(made.search(2).found.unwrap().log, log);
    fs::remove_file(&path).unwrap();
    assert!(made.search(2).refused[0].to_string().contains("cannot read"));
}

#[test]
fn another_run_or_arithmetic_is_refused() {
    let made = Made::new(Opt::AdamW);
    made.save(1, &[10]);
    let refused = |identity: &Identity, sr4: bool| {
        let search = newest(&made.attempt(2), identity, &made.params, sr4).unwrap();
        assert!(search.found.is_none());
        search.refused[0].to_string()
    };
    let ours = made.identity();
    let other = Identity::of(&Settings { lr: 0.5, ..made.settings.clone() }, "00ff");
    assert!(refused(&other, false).ends_with(&format!("does not fit: it is of run {}", ours.run)));
    let later = Identity { numerics: ours.numerics + 1, ..ours.clone() };
    assert!(refused(&later, false).contains("does not fit: its arithmetic is version"));
    assert!(refused(&ours, true).contains("arrays, where the run has"));
}

#[test]
fn final_weights_are_the_same_bytes_whoever_writes_them() {
    let made = Made::new(Opt::Sr4);
    let weights = made.snapshot(1).state.weights;
    let bytes = [1, 2].map(|attempt| {
        let folder = made.attempt(attempt);
        save_final(&folder, made.identity(), &made.params, &weights).unwrap();
        fs::read(crate::store::final_weights(&folder)).unwrap()
    });
    assert_eq!(bytes[0], bytes[1]);
    let file = open(&crate::store::final_weights(&made.attempt(1))).unwrap();
    assert_eq!((file.label.holds, file.label.progress.clone()), (Holds::Final, None));
    let tensors = file.tensors().unwrap();
    assert_eq!(tensors.len(), made.params.table.len());
    for p in &made.params.table {
        let array = tensors.tensor(&p.name).unwrap();
        assert_eq!(array.shape(), p.shape);
        let read: Vec<u32> = array.data().as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
        assert_eq!(read, p.id.of(&weights).iter().map(|x| x.to_bits()).collect::<Vec<_>>(), "{}", p.name);
    }
    // A file of final weights is nothing to go on from.
    fs::rename(crate::store::final_weights(&made.attempt(1)), checkpoint_file(&made.attempt(1), 5)).unwrap();
    assert!(made.search(3).refused[0].to_string().ends_with("does not fit: it is no checkpoint"));
}

#[test]
fn a_checkpoint_that_could_not_be_written_costs_no_other() {
    let made = Made::new(Opt::Sr4);
    let folder = made.attempt(1);
    let log = Made::log(&folder, 3);
    let mut saver = Saver::new(&folder, made.identity(), Arc::clone(&made.params), Vec::new());
    let mut save = |steps| {
        saver.save(made.snapshot(steps), &log)?;
        saver.wait()
    };
    assert_eq!(save(10).unwrap(), Some(10));
    assert_eq!(save(20).unwrap(), Some(20));
    // A folder of that name is in the way.
    let taken = checkpoint_file(&folder, 30);
    fs::create_dir_all(taken.join("x")).unwrap();
    save(30).unwrap_err();
    let there = |steps| checkpoint_file(&folder, steps).is_file();
    assert_eq!([10, 20].map(there), [true, true]);
    assert_eq!(save(40).unwrap(), Some(40));
    assert_eq!([10, 20, 40].map(there), [false, true, true]);
}

/// What a checkpoint every 50 steps costs, and what going on from one does, with the default model on one core, as a worker has
/// it. Compared is CPU time: what the snapshot and the thread that writes take on that core, training loses. It is measured in
/// turn with the training, since what else the machine does moves both; the difference of two blocks of 50 steps moves far more
/// than a checkpoint costs. `taskset -c 0 cargo test --lib checkpoints_cost -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement, of a minute"]
fn checkpoints_cost_little() {
    use crate::backend::cpu::simd::Level;
    use crate::backend::cpu::team::Team;
    use std::time::{Duration, Instant};

    const BLOCKS: usize = 15;
    const BLOCK: u64 = 50;
    let cpu_time = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::try_from(time).unwrap().as_secs_f64()
    };
    let made = tempfile::tempdir().unwrap();
    let folder = made.path().join("attempt-1");
    fs::create_dir(&folder).unwrap();
    let settings = Settings { opt: Opt::Sr4, steps: 10_000, eval_every: 10_000, ..Settings::default() };
    let team = Arc::new(Team::new(1, Level::current().unwrap()).unwrap());
    let corpus = crate::data::Corpus::open(&crate::settings::Data::Builtin).unwrap();
    let mut run = crate::trainer::Run::new(&settings, corpus.clone(), Arc::clone(&team), None).unwrap();
    let params = Arc::new(ModelParams::new(&ModelConfig::from(&settings)));
    let identity = Identity::of(&settings, "00ff");
    let log = Made::log(&folder, 100);
    let mut saver = Saver::new(&folder, identity.clone(), Arc::clone(&params), Vec::new());
    run.advance();
    let mut shares: Vec<f64> = (0..BLOCKS)
        .map(|_| {
            let began = cpu_time();
            (0..BLOCK).for_each(|_| drop(run.advance()));
            let trained = cpu_time();
            saver.save(run.snapshot(), &log).unwrap();
            saver.wait().unwrap();
            (cpu_time() - trained) / (trained - began)
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    let median = shares[BLOCKS / 2];
    println!("a checkpoint each {BLOCK} steps: {:.2}% of the training's CPU time (median of {BLOCKS})", 100.0 * median);
    println!("least {:.2}%, most {:.2}%", 100.0 * shares[0], 100.0 * shares[BLOCKS - 1]);

    let trained = run.snapshot().progress.steps;
    saver.save(run.snapshot(), &log).unwrap();
    saver.wait().unwrap();
    let began = Instant::now();
    let next = made.path().join("attempt-2");
    let found = newest(&next, &identity, &params, true).unwrap().found.unwrap();
    let mut resumed = crate::trainer::Run::new(&settings, corpus, team, None).unwrap();
    resumed.restore(found.snapshot);
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!(resumed.snapshot().progress.steps, trained);
    println!("from a checkpoint to the state before its next step: {seconds:.3} s");
    assert!(median <= 0.02, "checkpoints cost more than 2%");
    assert!(seconds < 0.5, "going on from a checkpoint takes half a second");
}
