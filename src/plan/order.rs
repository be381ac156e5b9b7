//! Numbers the runs in the order in which they are to start.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::merge::Merged;
use super::{Configuration, PlannedRun, names};
use crate::run::RunId;
use crate::settings::{Precision, Settings};

/// What runs must have in common to share a worker's lanes.
pub type ShapeKey = ([usize; 12], Precision);

/// A run's shape key.
pub fn shape_key(s: &Settings) -> ShapeKey {
    let sizes = [
        s.c,
        s.n_head,
        s.head_size,
        s.n_rwkv,
        s.n_attn,
        s.ffn,
        s.lora,
        s.seq_len,
        s.batch,
        s.accum_steps,
        s.chunk_size,
        s.moba_top_k,
    ];
    (sizes, s.precision)
}

/// Place of a run in the order: its shape, then its seed, then its place among its arm's configurations as a fraction,
/// so that every beginning of the list holds each arm in proportion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    shape: usize,
    seed: usize,
    fraction: u64,
    configuration: usize,
}

/// The runs, each once, and the configurations that list them.
///
/// # Panics
/// If a run is lost or doubled on the way, which would be a fault of this module.
pub(super) fn order(
    seeds: &[u64],
    merged: Vec<Merged>,
    notes: &mut Vec<String>,
) -> (Vec<PlannedRun>, Vec<Configuration>) {
    let shapes = shapes_of(&merged);
    let fractions = fractions(&merged, &shapes);
    let mut first_of: HashMap<RunId, usize> = HashMap::new();
    let mut places: Vec<Place> = Vec::new();
    // What one arm wants kept is kept, though the run counts for another too.
    let mut saved: HashSet<RunId> = HashSet::new();
    let mut shared: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for (configuration, m) in merged.iter().enumerate() {
        for (seed, (id, settings, excluded)) in m.runs.iter().enumerate() {
            if *excluded {
                continue;
            }
            if settings.save_final {
                saved.insert(*id);
            }
            let place = Place { shape: shapes[configuration], seed, fraction: fractions[configuration], configuration };
            match first_of.get(id) {
                None => {
                    first_of.insert(*id, places.len());
                    places.push(place);
                }
                Some(&at) => {
                    let arms = (merged[places[at].configuration].arm, m.arm);
                    *shared.entry(arms).or_default() += 1;
                }
            }
        }
    }
    notes.extend(shared.into_iter().map(|(arms, runs)| shared_note(&merged, arms, runs)));
    places.sort_unstable();
    let mut runs: Vec<PlannedRun> = places.iter().map(|place| planned(&merged, seeds, place)).collect();
    for run in &mut runs {
        run.settings.save_final |= saved.contains(&run.id);
    }
    let configurations = listed(&merged, &runs);
    assert_eq!(runs.len(), first_of.len(), "every run is planned once");
    let labels: HashSet<_> = configurations.iter().map(|c| (&c.arm, &c.axes)).collect();
    assert_eq!(labels.len(), configurations.len(), "no two configurations look alike");
    let named: HashSet<&str> = runs.iter().map(|run| run.folder.as_str()).collect();
    assert_eq!(named.len(), runs.len(), "every run has a folder of its own");
    (runs, configurations)
}

fn shared_note(merged: &[Merged], (one, other): (usize, usize), runs: u64) -> String {
    let name = |arm: usize| merged.iter().find(|m| m.arm == arm).map_or("", |m| m.name.as_str());
    let runs = if runs == 1 { "1 run, which is".to_owned() } else { format!("{runs} runs, which are") };
    if one == other {
        format!("configurations of arm `{}` have in common {runs} trained once", name(one))
    } else {
        format!("arms `{}` and `{}` have in common {runs} trained once", name(one), name(other))
    }
}

/// Each configuration's shape, numbered by first mention. A configuration's runs have one shape.
fn shapes_of(merged: &[Merged]) -> Vec<usize> {
    let mut known: HashMap<ShapeKey, usize> = HashMap::new();
    let shape = |m: &Merged| {
        let next = known.len();
        *known.entry(shape_key(&m.runs[0].1)).or_insert(next)
    };
    merged.iter().map(shape).collect()
}

/// Each configuration's place among those of its arm and shape, in `[0, 1)` as a fixed-point number.
fn fractions(merged: &[Merged], shapes: &[usize]) -> Vec<u64> {
    let mut counts: HashMap<(usize, usize), u64> = HashMap::new();
    for (m, shape) in merged.iter().zip(shapes) {
        *counts.entry((m.arm, *shape)).or_default() += 1;
    }
    let mut seen: HashMap<(usize, usize), u64> = HashMap::new();
    let place = |(m, shape): (&Merged, &usize)| {
        let seen = seen.entry((m.arm, *shape)).or_default();
        let place = (*seen << 32) / counts[&(m.arm, *shape)];
        *seen += 1;
        place
    };
    merged.iter().zip(shapes).map(place).collect()
}

fn planned(merged: &[Merged], seeds: &[u64], place: &Place) -> PlannedRun {
    let m = &merged[place.configuration];
    let (id, settings, _) = &m.runs[place.seed];
    let seed = seeds[place.seed];
    PlannedRun {
        id: *id,
        folder: names::folder(&m.name, &m.axes, seed, *id),
        arm: m.name.clone(),
        axes: m.axes.clone(),
        seed,
        shape: place.shape,
        settings: settings.clone(),
    }
}

fn listed(merged: &[Merged], runs: &[PlannedRun]) -> Vec<Configuration> {
    let number: HashMap<RunId, usize> = runs.iter().enumerate().map(|(i, run)| (run.id, i)).collect();
    let list = |m: &Merged| {
        let mut list: Vec<usize> =
            m.runs.iter().filter(|(_, _, excluded)| !excluded).map(|(id, _, _)| number[id]).collect();
        list.sort_by_key(|&i| runs[i].seed);
        Configuration { arm: m.name.clone(), axes: m.axes.clone(), runs: list }
    };
    merged.iter().map(list).collect()
}
