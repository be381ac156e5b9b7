//! What every plan keeps: its counts, its order, its ids, and what it asks of the machine.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

use diesweep::plan::{CorpusInfo, Plan};
use diesweep::settings::Data;
use diesweep::sweep;
use proptest::prelude::*;

/// A corpus of the given name that exists in the test alone.
fn corpus(data: &Data) -> Result<CorpusInfo, String> {
    let path = match data {
        Data::Path(path) => Some(PathBuf::from("/corpora").join(path)),
        Data::Builtin => None,
    };
    // Two names of one content, as a copy has.
    let content = path.as_ref().map_or("builtin".into(), |p| p.to_string_lossy().replace("copy-of-", ""));
    Ok(CorpusInfo {
        path,
        bytes: 1 << 20,
        digest: blake3::hash(content.as_bytes()).to_hex().to_string(),
        entropy: None,
    })
}

fn plan(text: &str) -> Plan {
    sweep::plan(text, "sweep.toml", &mut corpus).unwrap_or_else(|faults| panic!("{faults}"))
}

fn sweep_text(seeds: &str, base: &str, adamw: &str, sr4: &str) -> String {
    format!(
        "name = \"s\"\nseeds = {seeds}\n[base]\ndata = \"a\"\n{base}\n\
         [[arm]]\nname = \"adamw\"\nopt = \"adamw\"\n{adamw}\n[[arm]]\nname = \"sr4\"\nopt = \"sr4\"\n{sr4}\n"
    )
}

#[test]
fn an_axis_of_one_arm_never_crosses_another() {
    let plan =
        plan(&sweep_text("[1, 2]", "lr = [1e-3, 2e-3]", "beta2 = [0.9, 0.99, 0.999]", "target_step = [0.1, 0.2]"));
    assert_eq!(plan.axes, ["lr", "beta2", "target_step"]);
    let count = |arm: &str| plan.configurations.iter().filter(|c| c.arm == arm).count();
    assert_eq!((count("adamw"), count("sr4"), plan.runs.len()), (6, 4, 20));
    for c in &plan.configurations {
        let axes: Vec<&str> = c.axes.iter().map(|v| v.axis.as_str()).collect();
        let own = if c.arm == "adamw" { "beta2" } else { "target_step" };
        assert_eq!(axes, ["lr", own]);
    }
}

#[test]
fn the_first_half_is_a_fair_comparison() {
    let plan = plan(&sweep_text("[5, 3, 9, 1]", "lr = [1e-3, 2e-3, 3e-3]", "", "target_step = [0.1, 0.2, 0.3]"));
    let seeds: Vec<u64> = plan.runs.iter().map(|run| run.seed).collect();
    let mut blocks = seeds.clone();
    blocks.dedup();
    assert_eq!(blocks, [5, 3, 9, 1], "seed-major, in the order of the file");
    // At every beginning the arms have their shares, 1 to 3, to within a run.
    for (n, _) in plan.runs.iter().enumerate() {
        let adamw = plan.runs[..=n].iter().filter(|run| run.arm == "adamw").count() as f64;
        assert!((adamw - (n + 1) as f64 / 4.0).abs() <= 1.0, "{adamw} of {}", n + 1);
    }
    // Configurations list their runs by seed.
    for c in &plan.configurations {
        assert_eq!(c.runs.iter().map(|&i| plan.runs[i].seed).collect::<Vec<_>>(), [1, 3, 5, 9]);
    }
}

#[test]
fn shapes_come_one_after_the_other() {
    let plan = plan(&sweep_text("[1, 2]", "batch = [1, 2]", "", "accum_steps = [1, 2]"));
    let shapes: Vec<usize> = plan.runs.iter().map(|run| run.shape).collect();
    assert!(shapes.is_sorted(), "{shapes:?}");
    let keys: BTreeSet<_> = plan.runs.iter().map(|r| (r.shape, r.settings.batch, r.settings.accum_steps)).collect();
    assert_eq!(keys.len(), 4, "a shape is one batch and one number of accumulated batches");
}

#[test]
fn a_run_has_one_id_in_every_sweep() {
    let ids = |text: &str| plan(text).runs.iter().map(|run| run.id).collect::<HashSet<_>>();
    let small = ids(&sweep_text("[1, 2]", "lr = 1e-3", "", "target_step = 0.01"));
    let large = ids(&sweep_text("[3, 2, 1]", "lr = [3e-3, 0.001]", "", "target_step = [0.003, 1e-2]"));
    assert!(small.is_subset(&large) && small.len() == 4);
    let kept = sweep_text("[1, 2]", "save_final = true", "", "target_step = 0.01").replace("\"a\"", "\"copy-of-a\"");
    assert_eq!(ids(&kept), small, "neither the path nor what is kept is part of a run");
    let other = sweep_text("[1, 2]", "", "", "target_step = 0.01").replace("\"a\"", "\"b\"");
    assert!(ids(&other).is_disjoint(&small), "other bytes make other runs");
}

#[test]
fn each_corpus_is_asked_for_once() {
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    let mut resolver = |data: &Data| {
        *asked.entry(format!("{data:?}")).or_default() += 1;
        corpus(data)
    };
    let text = sweep_text("{ first = 1, count = 50 }", "lr = [1e-3, 2e-3]", "", "data = [\"a\", \"b\", \"builtin\"]");
    let plan = sweep::plan(&text, "sweep.toml", &mut resolver).unwrap();
    assert_eq!(asked.into_values().collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(plan.corpora.len(), 3);
    assert!(plan.corpora.iter().all(|c| c.path.as_ref().is_none_or(|p| p.is_absolute())));
}

#[test]
fn a_copy_of_a_corpus_makes_no_runs_of_its_own() {
    let plan = plan(&sweep_text("[1]", "", "", "data = [\"a\", \"copy-of-a\"]"));
    assert_eq!((plan.configurations.len(), plan.runs.len()), (2, 2));
    assert!(plan.notes.iter().any(|note| note.contains("hold the same bytes")), "{:?}", plan.notes);
}

#[test]
fn copies_of_two_corpora_keep_their_names_apart() {
    let plan = plan(&sweep_text("[1]", "", "", "data = [\"a\", \"copy-of-a\", \"b\", \"copy-of-b\"]"));
    let data: Vec<&str> = plan.configurations[1..].iter().map(|c| c.axes[0].value.as_str()).collect();
    assert_eq!(data, ["a", "b"]);
}

#[test]
fn a_shared_run_keeps_its_weights_if_one_of_its_arms_wants_them() {
    let text = sweep_text("[1]", "", "", "")
        .replace("\"sr4\"\nopt = \"sr4\"", "\"again\"\nopt = \"adamw\"\nsave_final = true");
    let plan = plan(&text);
    assert_eq!((plan.runs.len(), plan.configurations.len()), (1, 2));
    assert!(plan.runs[0].settings.save_final);
    assert_eq!(plan.configurations[0].runs, plan.configurations[1].runs);
}

#[test]
fn the_dither_follows_the_seed_unless_it_is_given() {
    let of = |base: &str| {
        let plan = plan(&sweep_text("[1, 2]", base, "", ""));
        let sr4 = plan.runs.iter().filter(|run| run.arm == "sr4").map(|run| run.settings.dither_seed);
        sr4.collect::<Vec<_>>()
    };
    assert_eq!(of(""), [1, 2]);
    assert_eq!(of("preset = \"reference\""), [42, 42]);
    assert_eq!(of("preset = \"reference\"\ndither_seed = 7"), [7, 7]);
}

#[test]
fn the_shipped_sweeps_can_reach_significance() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sweeps");
    let mut seen = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let loaded = sweep::load(&path, &mut corpus).unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!(loaded.plan.notes, Vec::<String>::new(), "{}", path.display());
        assert_eq!(loaded.text, std::fs::read_to_string(&path).unwrap());
        seen.push(path.file_stem().unwrap().to_string_lossy().into_owned());
    }
    seen.sort();
    assert_eq!(seen, ["multi_seed", "quickstart", "sr4_vs_adamw"]);
}

#[test]
fn messages_are_coloured_only_where_asked() {
    let faults = sweep::plan("name = 1\n", "sweep.toml", &mut corpus).unwrap_err();
    assert!(faults.render(true).contains('\u{1b}'));
    assert!(!faults.render(false).contains('\u{1b}'));
    assert_eq!(faults.to_string(), faults.render(false).trim_end());
}

/// Run with `cargo test --release --test plans -- --ignored`.
#[test]
#[ignore = "a measurement, for an idle machine and the release profile"]
fn ten_thousand_runs_are_planned_in_under_300_ms() {
    let list = |from: f64| (1..=50).map(|i| (from * f64::from(i)).to_string()).collect::<Vec<_>>().join(", ");
    let text = sweep_text(
        "{ first = 1, count = 10 }",
        &format!("lr = [{}]\nlr_min = 0", list(1e-5)),
        "beta2 = [0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99]",
        "target_step = [0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008, 0.009, 0.01]",
    );
    let begin = std::time::Instant::now();
    let plan = plan(&text);
    let took = begin.elapsed();
    assert_eq!(plan.runs.len(), 10_000);
    assert!(took.as_millis() < 300, "{took:?}");
}

proptest! {
    /// Distinct values make as many runs as their numbers multiply to; doubled ones make no more.
    #[test]
    fn runs_are_the_product_of_distinct_values(
        lr in proptest::collection::vec(1u32..6, 1..5),
        batch in proptest::collection::vec(1u32..4, 1..4),
        step in proptest::collection::vec(1u32..6, 1..5),
        seeds in proptest::collection::btree_set(1u64..100, 1..5),
    ) {
        let distinct = |v: &[u32]| v.iter().collect::<BTreeSet<_>>().len();
        let rates = lr.iter().map(|v| format!("{v}e-3")).collect::<Vec<_>>().join(", ");
        let base = format!("lr = [{rates}]\nbatch = {batch:?}");
        let text = sweep_text(&format!("{:?}", seeds.iter().collect::<Vec<_>>()), &base, "", &format!("target_step = {step:?}"));
        let plan = plan(&text);
        let common = distinct(&lr) * distinct(&batch);
        prop_assert_eq!(plan.configurations.len(), common * (1 + distinct(&step)));
        prop_assert_eq!(plan.runs.len(), common * (1 + distinct(&step)) * seeds.len());
        let ids: HashSet<_> = plan.runs.iter().map(|run| run.id).collect();
        prop_assert_eq!(ids.len(), plan.runs.len());
        for run in &plan.runs {
            let suffix = format!("-{}", run.id);
            prop_assert!(run.folder.len() <= 64 && run.folder.ends_with(&suffix));
        }
    }

    /// Whatever the text, the answer is a plan or faults that can be shown.
    #[test]
    fn no_text_is_too_bad_to_be_refused(
        cut in 0usize..600, insert in "[\\[\\]{}=\",.\\nä0-9a-z# -]{0,12}", drop in 0usize..8,
    ) {
        let good = sweep_text("{ first = 1, count = 3 }", "lr = [1e-3, 2e-3]", "", "exclude = [{ lr = 1e-3 }]\n# größe 大");
        let boundary = |mut at: usize| {
            at = at.min(good.len());
            while !good.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (head, tail) = (&good[..boundary(cut)], &good[boundary(cut + drop)..]);
        let text = format!("{head}{insert}{tail}");
        if let Err(faults) = sweep::plan(&text, "sweep.toml", &mut corpus) {
            prop_assert!(!faults.faults().is_empty());
            prop_assert!(faults.render(false).ends_with("nothing was started\n"));
        }
    }
}
