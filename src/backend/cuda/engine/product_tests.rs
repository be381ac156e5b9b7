//! Batches of products against the CPU's, bit by bit, and their speed.

use std::time::{Duration, Instant};

use super::tests::{die, noise, timed_lanes};
use crate::arith::functions::{sigmoid, tanh};
use crate::backend::cpu::product::{Left, Packed, product};
use crate::backend::cpu::simd::Level;
use crate::backend::cuda::die::{Die, DieError, Launcher};
use crate::backend::cuda::kernel::In;
use crate::backend::cuda::memory::Memory;
use crate::backend::cuda::ops::product::{Batch, Finish, Kind, Medium, Member, Odd, Small, Tiles, Wide, tiles_for};

const KINDS: [Kind; 3] = [Kind::Rows, Kind::Transposed, Kind::Columns];
const TILES: [Tiles; 4] = [Tiles::Odd, Tiles::Small, Tiles::Medium, Tiles::Wide];
const FINISHES: [Finish; 8] = [
    Finish::Set,
    Finish::Add,
    Finish::ReluSquared,
    Finish::ReluSlope,
    Finish::TanhSlope,
    Finish::SigmoidSlope,
    Finish::Tanh,
    Finish::Sigmoid,
];

/// A product's shape, lie and finish.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: Kind,
    finish: Finish,
    shape: [u32; 3],
    further: bool,
}

/// A case's arrays of all lanes.
struct Arrays {
    case: Case,
    a: Memory<f32>,
    b: Memory<f32>,
    with: Memory<f32>,
    out: Memory<f32>,
    host: [Vec<f32>; 4],
}

impl Arrays {
    fn new(die: &Die, case: Case, lanes: usize, seed: u64) -> Self {
        let [m, n, k] = case.shape.map(|x| x as usize);
        let filled = |of: u64, each: usize| (0..lanes * each).map(|i| noise(seed + of, i)).collect::<Vec<f32>>();
        let host = [filled(0, m * k), filled(1, k * n), filled(2, m * n), vec![f32::NAN; lanes * m * n]];
        let [a, b, with, out] = host.each_ref().map(|values| die.copied(values).unwrap());
        Self { case, a, b, with, out, host }
    }

    fn member(&self, out: &Memory<f32>) -> Member {
        let Case { kind, finish, shape: [m, n, k], further } = self.case;
        let lane = |a: u32, b: u32| u64::from(a) * u64::from(b);
        let with = if further { out } else { &self.with };
        Member {
            kind,
            finish: if further { Finish::Add } else { finish },
            further,
            a: (self.a.read(), lane(m, k)),
            b: (self.b.read(), lane(k, n)),
            with: with.write(),
            out: (out.write(), lane(m, n)),
            shape: [m, n, k],
        }
    }

    /// The CPU's out and with of a lane; `before` is what a further term is added to.
    fn expected(&self, level: Level, lane: usize, before: Option<&[f32]>) -> (Vec<f32>, Vec<f32>) {
        let [m, n, k] = self.case.shape.map(|x| x as usize);
        let part = |i: usize, each: usize| &self.host[i][lane * each..][..each];
        let (a, b) = (part(0, m * k), part(1, k * n));
        let mut packed = Packed::new(k, n);
        if self.case.kind == Kind::Transposed {
            packed.pack_transposed(b)
        } else {
            packed.pack(b, n)
        }
        let left = if self.case.kind == Kind::Columns { Left::columns(a, 0, m, m) } else { Left::rows(a, m, k) };
        let mut out = vec![0.0; m * n];
        product(level, left, &packed, &mut out);
        let mut with = part(2, m * n).to_vec();
        for (i, sum) in out.iter_mut().enumerate() {
            let h = with[i];
            *sum = match self.case.finish {
                _ if before.is_some() => before.unwrap()[i] + *sum,
                Finish::Set => *sum,
                Finish::Add => h + *sum,
                Finish::ReluSquared => {
                    let rl = if *sum > 0.0 { *sum } else { 0.0 };
                    with[i] = rl * rl;
                    rl
                }
                Finish::ReluSlope => *sum * (h + h),
                Finish::TanhSlope => *sum * (-h).mul_add(h, 1.0),
                Finish::SigmoidSlope => *sum * (h * (1.0 - h)),
                Finish::Tanh => tanh(*sum),
                Finish::Sigmoid => sigmoid(*sum),
            };
        }
        (out, with)
    }
}

fn launch(mut to: impl Launcher, lanes: In<i32>, members: Vec<Member>, tiles: Tiles) -> Result<(), DieError> {
    let batch = Batch::new(lanes, members, tiles);
    match tiles {
        Tiles::Odd => to.launch(&Odd(batch)),
        Tiles::Small => to.launch(&Small(batch)),
        Tiles::Medium => to.launch(&Medium(batch)),
        Tiles::Wide => to.launch(&Wide(batch)),
    }
}

fn same(ours: &[f32], theirs: &[f32]) -> bool {
    ours.iter().zip(theirs).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// Launches the cases as one batch, with the middle of three lanes at rest, and compares every array with the CPU's.
fn check(die: &Die, cases: &[Case], tiles: Tiles) {
    const LANES: usize = 3;
    let level = Level::current().unwrap();
    let all: Vec<Arrays> =
        cases.iter().enumerate().map(|(i, &case)| Arrays::new(die, case, LANES, 10 * i as u64)).collect();
    let mut out = 0;
    let members = all.iter().enumerate().map(|(i, arrays)| {
        out = if arrays.case.further { out } else { i };
        arrays.member(&all[out].out)
    });
    let list = die.copied(&[0, -1, 2]).unwrap();
    launch(die, list.read(), members.collect(), tiles).unwrap();
    die.wait().unwrap();
    for lane in [0, 2] {
        for (i, arrays) in all.iter().enumerate().filter(|(_, arrays)| !arrays.case.further) {
            let (mut out, with) = arrays.expected(level, lane, None);
            for term in all[i + 1..].iter().take_while(|arrays| arrays.case.further) {
                out = term.expected(level, lane, Some(&out)).0;
            }
            let each = out.len();
            let ours = arrays.out.download(lane * each, each).unwrap();
            assert!(same(&ours, &out), "{:?} in {tiles:?} tiles, lane {lane}: out differs", arrays.case);
            let ours = arrays.with.download(lane * each, each).unwrap();
            assert!(same(&ours, &with), "{:?} in {tiles:?} tiles, lane {lane}: with differs", arrays.case);
        }
    }
    for arrays in &all {
        let each = arrays.out.len() / LANES;
        assert!(arrays.out.download(each, each).unwrap().iter().all(|x| x.is_nan()), "a lane at rest was written");
    }
}

fn in_fours(die: &Die, case: Case) -> bool {
    let arrays = Arrays::new(die, case, 2, 0);
    tiles_for(2, &[arrays.member(&arrays.out)]) != Tiles::Odd
}

#[test]
fn products_of_every_shape_give_the_bytes_of_the_cpu() {
    let Some(die) = die() else { return };
    let sizes = [1, 3, 31, 32, 33, 36, 64, 127, 128, 129, 132, 200, 256, 300, 512];
    let mut finish = FINISHES.iter().copied().cycle();
    let mut seen = 0;
    for (i, &m) in sizes.iter().enumerate() {
        for (j, &n) in sizes.iter().enumerate() {
            // Every pair of rows and columns meets a few sums, and every sum a few of them.
            for k in [sizes[(i + j) % sizes.len()], sizes[(i + 2 * j + 7) % sizes.len()]] {
                let cases =
                    KINDS.map(|kind| Case { kind, finish: finish.next().unwrap(), shape: [m, n, k], further: false });
                for tiles in TILES
                    .into_iter()
                    .filter(|&t| t == Tiles::Odd || in_fours(&die, cases[0]) && in_fours(&die, cases[2]))
                {
                    check(&die, &cases, tiles);
                    seen += cases.len();
                }
            }
        }
    }
    eprintln!("equal bytes: {seen} products, code {}", die.image().target);
}

#[test]
fn sums_of_products_give_the_bytes_of_the_cpu() {
    let Some(die) = die() else { return };
    let case = |kind, shape, further| Case { kind, finish: Finish::Set, shape, further };
    for (m, n, ks) in [(512, 128, [128, 32, 512]), (40, 20, [300, 4, 132]), (33, 7, [129, 1, 300])] {
        let cases = [
            case(Kind::Rows, [m, n, ks[0]], false),
            case(Kind::Transposed, [m, n, ks[1]], true),
            case(Kind::Columns, [m, n, ks[2]], true),
            case(Kind::Columns, [n, m, ks[2]], false),
        ];
        for tiles in TILES.into_iter().filter(|&t| t == Tiles::Odd || cases.iter().all(|&c| in_fours(&die, c))) {
            check(&die, &cases, tiles);
        }
    }
}

/// The launches of a training step of the default model.
fn launches() -> Vec<(&'static str, Vec<Case>)> {
    let one = |kind, finish, m, n, k| Case { kind, finish, shape: [m, n, k], further: false };
    let rows = |m, n, k| one(Kind::Rows, Finish::Set, m, n, k);
    let back = |m, n, k| one(Kind::Transposed, Finish::Set, m, n, k);
    let grad = |m, n, k| one(Kind::Columns, Finish::Set, m, n, k);
    let times = |count: usize, case: Case| std::iter::repeat_n(case, count);
    vec![
        ("r, k, v, low ranks down", times(3, rows(512, 128, 128)).chain(times(4, rows(512, 32, 128))).collect()),
        ("low ranks up", times(4, rows(512, 128, 32)).collect()),
        ("output", vec![one(Kind::Rows, Finish::Add, 512, 128, 128)]),
        ("channel mix key", vec![one(Kind::Rows, Finish::ReluSquared, 512, 512, 128)]),
        ("channel mix value", vec![one(Kind::Rows, Finish::Add, 512, 128, 512)]),
        ("back through value", vec![one(Kind::Transposed, Finish::ReluSlope, 512, 512, 128), grad(512, 128, 512)]),
        ("back through key", vec![back(512, 128, 512), grad(128, 512, 512)]),
        ("back through output", vec![back(512, 128, 128), grad(128, 128, 512)]),
        (
            "back, first",
            times(2, back(512, 128, 128))
                .chain(times(1, grad(128, 128, 512)))
                .chain(times(4, grad(32, 128, 512)))
                .chain(times(4, back(512, 32, 128)))
                .collect(),
        ),
        (
            "back, second",
            times(2, grad(128, 128, 512))
                .chain(times(4, grad(128, 32, 512)))
                .chain(times(3, back(512, 128, 32)))
                .chain([back(512, 128, 128), Case { further: true, ..back(512, 128, 32) }])
                .collect(),
        ),
        ("head", vec![rows(512, 256, 128)]),
        ("back through head", vec![back(512, 128, 256), grad(128, 256, 512)]),
    ]
}

/// Microseconds of a launch: the best of five means of 20 in a graph.
fn time(die: &Die, all: &[Arrays], lanes: usize, tiles: Tiles) -> f64 {
    const TIMES: u32 = 20;
    let list: Vec<i32> = (0..lanes as i32).collect();
    let list = die.copied(&list).unwrap();
    let mut out = 0;
    let members: Vec<Member> = all
        .iter()
        .enumerate()
        .map(|(i, arrays)| {
            out = if arrays.case.further { out } else { i };
            arrays.member(&all[out].out)
        })
        .collect();
    let graph = die
        .record(|recording| (0..TIMES).try_for_each(|_| launch(&mut *recording, list.read(), members.clone(), tiles)))
        .unwrap();
    let mut best = Duration::MAX;
    for _ in 0..6 {
        let from = Instant::now();
        graph.replay().unwrap();
        die.wait().unwrap();
        best = best.min(from.elapsed() / TIMES);
    }
    best.as_secs_f64() * 1e6
}

/// Prints the time of each launch of products of a step of the default model, by size of tiles. By hand, with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn speed_of_products() {
    let Some(die) = die() else { return };
    println!("| launch | lanes | odd us | small us | medium us | wide us | chosen | TFLOP/s |");
    for lanes in timed_lanes(&[1, 4, 16, 64]) {
        for (name, cases) in launches() {
            let all: Vec<Arrays> =
                cases.iter().enumerate().map(|(i, &case)| Arrays::new(&die, case, lanes, i as u64)).collect();
            let work: f64 = cases.iter().map(|c| c.shape.iter().map(|&x| f64::from(x)).product::<f64>() * 2.0).sum();
            let members: Vec<Member> = all.iter().map(|arrays| arrays.member(&arrays.out)).collect();
            let chosen = tiles_for(lanes, &members);
            let times = TILES.map(|tiles| time(&die, &all, lanes, tiles));
            let rate = work * lanes as f64 / times[TILES.iter().position(|&t| t == chosen).unwrap()] * 1e-6;
            let [odd, small, medium, wide] = times;
            println!("| {name} | {lanes} | {odd:.1} | {small:.1} | {medium:.1} | {wide:.1} | {chosen:?} | {rate:.1} |");
        }
    }
}
