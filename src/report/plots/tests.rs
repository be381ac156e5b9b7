//! Tests of the plots as files.

use std::collections::BTreeMap;
use std::path::Path;

use super::write_plots;
use crate::plan::Plan;
use crate::report::analyse;
use crate::report::html::tests::{good, open, publish};
use crate::store::Results;
use crate::testing::{diverged, plan};

fn write(results: &Results, plan: &Plan) -> usize {
    let loaded = results.load(plan).unwrap();
    write_plots(results, plan, &loaded, &analyse(plan, &loaded)).unwrap()
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())).collect()
}

/// Width, height and the values of a picture.
fn decode(png: &[u8]) -> tiny_skia::Pixmap {
    tiny_skia::Pixmap::decode_png(png).unwrap()
}

#[test]
fn every_plot_is_there_in_both_formats_and_the_same_each_time() {
    let root = tempfile::tempdir().unwrap();
    let (plan, results) = good(root.path());
    let start = std::time::Instant::now();
    let count = write(&results, &plan);
    println!("{count} plots in {:?}", start.elapsed());
    let first = files(&results.layout().plots());
    let names: Vec<&str> = first.keys().filter_map(|name| name.strip_suffix(".svg")).collect();
    let mut expected = vec!["axis-lr", "effect-sr4"];
    let health =
        ["churn", "dead_pct", "pct_neg", "pct_pos", "pct_zero", "rail_pct", "scale_max", "scale_mean", "scale_min"];
    let health: Vec<String> = health.iter().map(|q| format!("health-{q}")).collect();
    expected.extend(health.iter().map(String::as_str));
    expected.extend(["learning-train_bpb", "learning-val_acc", "learning-val_bpb", "paired-sr4", "timeline-1"]);
    assert_eq!(names, expected);
    assert_eq!((first.len(), count), (2 * expected.len(), expected.len()));
    std::fs::write(results.layout().plots().join("axis-gone.svg"), "").unwrap();
    std::fs::write(results.layout().plots().join("mine.svg"), "").unwrap();
    write(&results, &plan);
    let mut again = files(&results.layout().plots());
    assert!(again.remove("mine.svg").is_some(), "a file of the user stays");
    assert_eq!(again.keys().collect::<Vec<_>>(), first.keys().collect::<Vec<_>>());
    assert!(again == first, "the same bytes");
}

#[test]
fn a_drawing_names_what_it_shows_and_needs_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let (plan, results) = good(root.path());
    write(&results, &plan);
    let files = files(&results.layout().plots());
    let svg = |name: &str| String::from_utf8(files[name].clone()).unwrap();
    let learning = svg("learning-val_bpb.svg");
    for text in [
        "<title>val_bpb over training, mean over seeds with 95% interval</title>",
        ">validation loss, bits per byte</text>",
        ">training step</text>",
        ">sr4 lr=0.001</text>",
        ">adamw</text>",
    ] {
        assert!(learning.contains(text), "{text} in {learning}");
    }
    for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with(".svg")) {
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(!text.contains("NaN") && !text.contains("inf") && !text.contains("href"), "{name}: {text}");
        crate::report::html::tests::assert_well_formed(&text);
    }
}

#[test]
fn a_picture_has_the_colours_of_its_arms_within_its_axes() {
    let root = tempfile::tempdir().unwrap();
    let (plan, results) = good(root.path());
    write(&results, &plan);
    let files = files(&results.layout().plots());
    let picture = decode(&files["learning-val_bpb.png"]);
    assert_eq!(picture.width(), 1600);
    let looks = super::Looks::of(&plan);
    for configuration in 0..plan.configurations.len() {
        let [r, g, b] = looks.colour(configuration);
        let same = |p: &&tiny_skia::PremultipliedColorU8| (p.red(), p.green(), p.blue(), p.alpha()) == (r, g, b, 255);
        assert!(picture.pixels().iter().filter(same).count() > 50, "configuration {configuration}");
    }
    // Letters: dark points in the upper left corner, where the title is.
    let title = |p: &&tiny_skia::PremultipliedColorU8| p.red() < 60;
    let top = &picture.pixels()[..picture.width() as usize * 62];
    assert!(top.iter().filter(title).count() > 1000);
}

#[test]
fn a_sweep_without_results_has_no_plots() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[("adamw", &[]), ("sr4", &[])], &[1, 2]);
    let results = open(root.path(), &plan, "");
    assert_eq!(write(&results, &plan), 0);
    publish(&results, &plan, 0, &diverged(17), 3);
    // The curve of the run that diverged, for each quantity, and the timeline.
    assert_eq!(write(&results, &plan), 4);
}
