//! No module changes files behind the points' back.

use std::fs;
use std::path::{Path, PathBuf};

/// Calls that change a file system.
const CALLS: [&str; 11] = [
    "fs::write(",
    "File::create",
    "File::options(",
    "OpenOptions::new(",
    "fs::rename(",
    "renameat",
    "hard_link(",
    "remove_file(",
    "fs::create_dir",
    "sync_all(",
    "sync_data(",
];

/// Files that have such calls, and why they may.
const ALLOWED: [(&str, &str); 15] = [
    ("store/durable.rs", "passes the points"),
    ("store/journal.rs", "passes the points"),
    ("store/lease/file.rs", "passes the points"),
    ("store/log.rs", "passes the points"),
    ("store/attempt.rs", "passes the points; puts damaged files aside"),
    ("store/results.rs", "passes the points"),
    ("store/view.rs", "makes the folder of the plots"),
    ("store/die_claim.rs", "claims dies outside of results folders"),
    ("report/tables.rs", "makes the folder that tables are asked for in"),
    ("report/export/tables.rs", "makes the folder of what is exported"),
    ("report/export/tensorboard.rs", "makes the folder of what is exported"),
    ("driver/output.rs", "writes the log of a single run, outside of results folders"),
    ("worker/attempt.rs", "opens worker.log, which nothing depends on"),
    ("backend/cuda/cache.rs", "keeps compiled kernels outside of results folders"),
    ("testing.rs", "is for tests"),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn files_are_changed_where_points_are_passed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    sources(&root, &mut all);
    assert!(all.len() > 100, "{} sources", all.len());
    for path in all {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let is_test = name.split('/').any(|part| part.trim_end_matches(".rs").ends_with("tests"));
        if is_test || name.contains("torture") || ALLOWED.iter().any(|(allowed, _)| *allowed == name) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let product = product.replace("NewFile::create", "");
        for call in CALLS {
            assert!(!product.contains(call), "{name} calls `{call}`: a durable write is made by store/durable.rs");
        }
    }
}
