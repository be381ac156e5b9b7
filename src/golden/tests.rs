use std::fs;
use std::path::PathBuf;

use super::*;
use crate::backend::cpu::simd::Level;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn team(threads: usize, level: Level) -> Arc<Team> {
    Arc::new(Team::new(threads, level).expect("threads"))
}

#[test]
fn every_case_holds_at_every_level() {
    let names = cases(&golden()).expect("cases");
    assert_eq!(names.len(), 22);
    for level in Level::available() {
        let team = team(2, level);
        for name in &names {
            let report = run(&golden(), name, &team).result.unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(!report.checks.is_empty(), "{name}");
            let failed: Vec<_> = report.checks.iter().filter(|c| !c.passed()).map(ToString::to_string).collect();
            assert!(failed.is_empty(), "{name} ({level}): {failed:#?}");
        }
    }
}

/// Copies a case, changes the copy, and runs it.
fn changed(name: &str, change: impl FnOnce(&Path)) -> String {
    let dir = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(golden()).expect("the golden folder") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().and_then(|s| s.to_str());
        if stem == Some(name) || stem == Some("corpus") {
            fs::copy(&path, dir.path().join(path.file_name().expect("a name"))).expect("a copy");
        }
    }
    change(dir.path());
    let outcome = run(dir.path(), name, &team(1, Level::PORTABLE));
    match outcome.result {
        Ok(report) => format!("{} failed: {report}", report.failed()),
        Err(error) => error.to_string().replace(&dir.path().display().to_string(), "DIR"),
    }
}

fn replace(dir: &Path, file: &str, from: &str, to: &str) {
    let path = dir.join(file);
    let text = fs::read_to_string(&path).expect("a text");
    assert!(text.contains(from), "{file} holds {from}");
    fs::write(&path, text.replacen(from, to, 1)).expect("a file");
}

#[test]
fn a_wrong_answer_falls_short() {
    let text = changed("philox", |dir| replace(dir, "philox.json", "1713891541", "1713891540"));
    assert!(text.starts_with("1 failed: known answer 0: error 1.000e0, must be equal (1 of "), "{text}");
    let text = changed("model_b1", |dir| replace(dir, "model_b1.json", "5.887876956608164", "5.88789"));
    assert!(text.starts_with("1 failed: loss: error 1."), "{text}");
    let text = changed("sr4_odd", |dir| replace(dir, "sr4_odd.json", "\"changed\": 5", "\"changed\": 6"));
    assert!(text.starts_with("1 failed: accumulators changed by step 0"), "{text}");
    let text = changed("train_sr4_fanin_b1", |dir| {
        replace(dir, "train_sr4_fanin_b1.json", "\"sr4_seed\": 42", "\"sr4_seed\": 43");
    });
    assert!(!text.starts_with("0 failed"), "{text}");
}

#[test]
fn unusable_cases_say_why() {
    let kind = changed("lr", |dir| replace(dir, "lr.json", "\"lr\"", "\"rl\""));
    assert_eq!(kind, "unknown kind `rl` (known: philox, windows, lr, init, init_digest, adamw, sr4, model, train)");
    let json = changed("lr", |dir| fs::write(dir.join("lr.json"), "{").expect("a file"));
    assert_eq!(json, "`DIR/lr.json` is malformed: EOF while parsing an object at line 1 column 1");
    let missing = changed("model_b1", |dir| fs::remove_file(dir.join("model_b1.safetensors")).expect("removed"));
    assert_eq!(missing, "`DIR/model_b1.safetensors` cannot be read: No such file or directory (os error 2)");
    let torn = changed("adamw_wd0", |dir| fs::write(dir.join("adamw_wd0.safetensors"), [1; 20]).expect("a file"));
    assert!(torn.starts_with("`DIR/adamw_wd0.safetensors` is malformed: "), "{torn}");
    let shape = changed("model_b1", |dir| replace(dir, "model_b1.json", "\"ffn\": 64", "\"ffn\": 65"));
    assert_eq!(shape, "array `param.rwkv0.ffn_key_w` has shape [32, 64], not [32, 65]");
    let heads = changed("model_b1", |dir| replace(dir, "model_b1.json", "\"n_head\": 2", "\"n_head\": 3"));
    assert_eq!(heads, "3 heads of 16 channels do not make 32 channels");
    let word = changed("train_adamw_b1", |dir| replace(dir, "train_adamw_b1.json", "\"wd\"", "\"decay\""));
    assert!(word.contains("unknown field `decay`"), "{word}");
    let corpus = changed("train_adamw_b1", |dir| fs::remove_file(dir.join("corpus.bin")).expect("removed"));
    assert!(corpus.starts_with("the corpus `DIR/corpus.bin` does not exist"), "{corpus}");
    let arrays = changed("sr4_small", |dir| replace(dir, "sr4_small.json", "\"rows\": 32", "\"rows\": 31"));
    assert_eq!(arrays, "array `q0` has shape [32, 48], not [31, 48]");
}

#[test]
fn folders_without_usable_cases_say_why() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = |dir: &Path| cases(dir).expect_err("no cases").to_string();
    assert!(text(dir.path()).ends_with("holds no golden cases (*.json)"));
    fs::write(dir.path().join("lost.safetensors"), "").expect("a file");
    assert!(text(dir.path()).ends_with("lost.safetensors` has no case beside it (`lost.json`)"));
    assert!(text(&dir.path().join("none")).ends_with("cannot be read: No such file or directory (os error 2)"));
}
