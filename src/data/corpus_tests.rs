use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

fn open(path: &Path) -> Result<Corpus, String> {
    Corpus::open(&Data::Path(path.to_owned())).map_err(|e| e.to_string())
}

#[test]
fn splits_cover_every_byte_once() {
    for len in [0, 1, 19, 20, 99, 12_345, 100_000_000, usize::MAX] {
        let [train, val, test] = Split::ALL.map(|s| s.range(len));
        assert_eq!((train.start, val.start, test.start, test.end), (0, train.end, val.end, len));
    }
    assert_eq!(Split::Test.range(12_345), 11_727..12_345);
}

#[test]
fn a_file_is_read_as_it_is() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("corpus");
    fs::write(&path, [7u8; 300]).expect("a file");
    let corpus = open(&path).expect("a corpus");
    assert_eq!(corpus.bytes(), [7; 300]);
    assert_eq!(corpus.digest(), blake3::hash(&[7; 300]));
    assert!(corpus.generator().is_none());
}

#[test]
fn a_folders_files_are_joined_by_name_without_hidden_ones() {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, text) in [("b", "second "), ("a", "first "), ("Z", "upper "), (".c", "hidden"), ("é", "last")] {
        fs::write(dir.path().join(name), text).expect("a file");
    }
    fs::create_dir(dir.path().join(".git")).expect("a folder");
    assert_eq!(open(dir.path()).expect("a corpus").bytes(), b"upper first second last");
}

#[test]
fn what_cannot_be_a_corpus_is_named_with_its_reason() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    fs::write(at("empty"), "").expect("a file");
    fs::create_dir_all(at("hidden/.git")).expect("a folder");
    fs::create_dir_all(at("nested/inner")).expect("a folder");
    fs::create_dir(at("zeros")).expect("a folder");
    fs::write(at("zeros/a"), "").expect("a file");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a pipe");
    let text = |name: &str| open(&at(name)).expect_err(name).replace(&dir.path().display().to_string(), "DIR");
    assert_eq!(text("none"), "the corpus `DIR/none` does not exist (data = \"builtin\" needs no file)");
    assert_eq!(text("empty"), "the corpus `DIR/empty` is empty");
    assert_eq!(text("zeros"), "the corpus `DIR/zeros` is empty");
    assert_eq!(text("pipe"), "the corpus `DIR/pipe` is neither a file nor a folder");
    assert_eq!(text("hidden"), "the corpus folder `DIR/hidden` holds no files (hidden ones do not count)");
    assert_eq!(
        text("nested"),
        "the corpus folder `DIR/nested` holds the folder `DIR/nested/inner`: only files directly in a corpus folder are read"
    );
    assert_eq!(text("empty/x"), "the corpus `DIR/empty/x` cannot be read: Not a directory (os error 20)");
}

#[test]
fn an_unreadable_file_is_named() {
    if rustix::process::geteuid().is_root() {
        return; // root reads everything
    }
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("secret");
    fs::write(&path, "x").expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("permissions");
    assert!(open(&path).expect_err("no access").ends_with("cannot be read: Permission denied (os error 13)"));
}

#[test]
fn the_first_split_without_a_window_is_named() {
    let check = |len, seq_len| Corpus::from_bytes("`x`", vec![0; len]).check(seq_len).map_err(|e| e.to_string());
    assert_eq!(check(20 * 49, 48), Ok(()));
    assert_eq!(
        check(20 * 49 - 1, 48).expect_err("48 bytes"),
        "the corpus `x` of 979 bytes is too short: its val split has 48 bytes, but seq_len = 48 needs 49"
    );
    assert_eq!(
        check(20, 48).expect_err("18 bytes"),
        "the corpus `x` of 20 bytes is too short: its train split has 18 bytes, but seq_len = 48 needs 49"
    );
}

#[test]
fn a_rewritten_file_is_noticed() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("corpus");
    fs::write(&path, [1; 100]).expect("a file");
    let corpus = open(&path).expect("a corpus");
    corpus.check_unchanged().expect("unchanged");
    fs::write(&path, [1; 101]).expect("a longer file");
    let text = corpus.check_unchanged().expect_err("changed").to_string();
    assert!(text.ends_with("was changed while it was in use"), "{text}");
}

#[test]
fn test_windows_are_the_same_for_all_and_consecutive_on_demand() {
    let corpus = Corpus::from_bytes("x", (0..2000u32).map(|i| i as u8).collect());
    let all: Vec<_> = corpus.test_ranges(TestBatches::All, 33).collect();
    assert_eq!(all, [1900..1934, 1933..1967, 1966..2000]);
    let some: Vec<_> = corpus.test_windows(TestBatches::Windows(3), 33).collect();
    assert_eq!(some.len(), 3);
    assert_eq!(some[1], &corpus.bytes()[corpus.window(Split::Test, 0, 1, 33)]);
}
