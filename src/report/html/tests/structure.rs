//! The page is well-formed, complete, the same each time, and small.

use std::collections::BTreeSet;

use super::{good, page, two_hundred, write_report};
use crate::report::analyse;

/// Elements without an end.
const VOID: [&str; 4] = ["meta", "link", "input", "br"];

/// The tags of a page outside of scripts and styles, in order: name without `<`, `>`.
fn tags(html: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find('>').expect("a tag ends");
        let tag = rest[..end].to_owned();
        rest = &rest[end + 1..];
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        if matches!(name, "script" | "style") {
            rest = &rest[rest.find(&format!("</{name}>")).expect("raw text ends")..];
        }
        tags.push(tag);
    }
    tags
}

/// Every element is closed, in order.
pub(in crate::report) fn assert_well_formed(html: &str) {
    let mut open: Vec<String> = Vec::new();
    for tag in tags(html) {
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closed out of order");
        } else if !tag.ends_with('/') && !tag.starts_with('!') {
            let name = tag.split(' ').next().unwrap_or_default();
            if !VOID.contains(&name) {
                open.push(name.to_owned());
            }
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

fn attributes<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    html.split(start.as_str()).skip(1).map(|rest| rest.split('"').next().unwrap_or_default()).collect()
}

#[test]
fn a_good_sweep_has_every_section_and_well_formed_markup() {
    let root = tempfile::tempdir().unwrap();
    let (plan, results) = good(root.path());
    let html = page(&results, &plan);
    assert_well_formed(&html);
    let body = &html[html.find("<body>").unwrap()..];
    let sections: Vec<&str> = body.split("<section id=\"").skip(1).map(|s| s.split('"').next().unwrap()).collect();
    let expected =
        ["verdict", "configurations", "learning", "axes", "paired", "health", "troubles", "timeline", "reproduce"];
    assert_eq!(sections, expected);
    assert!(body.contains("<strong>sr4 (lr=0.1) is better than adamw on the test split:</strong>"), "{body}");
    assert!(body.contains("None: no run has diverged or failed."));
    // One plot, and what the script needs to draw it for 3 metrics along 3 quantities on 2 kinds of axes, whole or half;
    // nine panels of weights.
    let learning = &body[body.find("<section id=\"learning\"").unwrap()..body.find("<section id=\"axes\"").unwrap()];
    assert_eq!((learning.matches("<figure").count(), learning.matches("\"xtitle\":").count()), (1, 36));
    let health = &body[body.find("<section id=\"health\"").unwrap()..body.find("<section id=\"troubles\"").unwrap()];
    assert_eq!(health.matches("<figure").count(), 9);
}

#[test]
fn every_drawing_has_a_name_and_a_description() {
    let root = tempfile::tempdir().unwrap();
    let (plan, results) = good(root.path());
    let html = page(&results, &plan);
    let ids = attributes(&html, "id");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "ids are unique");
    for labels in attributes(&html, "aria-labelledby") {
        for label in labels.split(' ') {
            assert!(ids.contains(&label), "{label}");
        }
    }
    let drawings = tags(&html).into_iter().filter(|tag| tag.starts_with("svg"));
    for drawing in drawings {
        let named = drawing.contains("role=\"img\"") && drawing.contains("aria-label");
        assert!(named || drawing.contains("aria-hidden=\"true\""), "{drawing}");
    }
    assert!(html.contains("Line plot of validation loss, bits per byte over training steps. adamw ends at"), "{html}");
}

#[test]
fn nothing_is_asked_of_a_network_and_the_page_is_the_same_each_time() {
    let root = tempfile::tempdir().unwrap();
    let (plan, results) = good(root.path());
    let html = page(&results, &plan);
    for (name, values) in ["src", "href"].map(|name| (name, attributes(&html, name))) {
        assert!(values.iter().all(|value| *value == "data:,"), "{name}: {values:?}");
    }
    for word in ["@import", "url(", "fetch(", "XMLHttpRequest", "http:", "https:"] {
        assert!(!html.contains(word), "{word}");
    }
    assert!(html.contains("default-src 'none'"));
    assert_eq!(html, page(&results, &plan));
    let loaded = results.load(&plan).unwrap();
    write_report(&results, &plan, &loaded, &analyse(&plan, &loaded), None).unwrap();
    assert_eq!(std::fs::read_to_string(results.layout().report()).unwrap(), html);
}

#[test]
fn two_hundred_runs_stay_below_three_megabytes() {
    let root = tempfile::tempdir().unwrap();
    let (plan, results) = two_hundred(root.path());
    let html = page(&results, &plan);
    assert_eq!(plan.runs.len(), 200);
    assert!(html.len() < 3 << 20, "{} bytes", html.len());
    assert!(html.contains("The best 16 of 20 configurations are drawn, in turn from each arm; curves.csv has all."));
}
