//! Files of every kind, gathered and compared.

use std::path::Path;

use super::*;
use crate::stats::Better;

fn request() -> Request {
    Request {
        arm: "arm".to_owned(),
        seed: "seed".to_owned(),
        metric: "val_bpb".to_owned(),
        baseline: "a".to_owned(),
        ..Request::default()
    }
}

fn read(bytes: &[u8], request: &Request) -> Result<Samples, SamplesError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.csv");
    std::fs::write(&path, bytes).unwrap();
    Samples::gather(&Table::read(&path, &request.wanted())?, request)
}

/// Warnings and errors without the folder in front of the file.
fn plain(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.rfind("/r.csv") {
        Some(at) => &word[at + 1..],
        None => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

fn error(bytes: &[u8], request: &Request) -> String {
    plain(&read(bytes, request).unwrap_err().to_string())
}

fn warnings(samples: &Samples) -> Vec<String> {
    samples.warnings.iter().map(|w| plain(w)).collect()
}

const PLAIN: &str = "arm,seed,val_bpb\na,1,2.5\nb,1,2.25\na,2,2.75\nb,2,2.5\n";

#[test]
fn every_dialect_is_read_alike() {
    let want = read(PLAIN.as_bytes(), &request()).unwrap();
    assert_eq!(want.configurations[0].values, [(0, 2.5), (1, 2.75)]);
    assert_eq!(want.configurations[1].label(), "b");
    assert!(want.warnings.is_empty());
    let semicolons = PLAIN.replace(',', ";");
    let utf16: Vec<u8> = [0xFF, 0xFE].into_iter().chain(PLAIN.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let dialects: Vec<Vec<u8>> = vec![
        semicolons.clone().into_bytes(),
        semicolons.replace('.', ",").into_bytes(),
        PLAIN.replace(',', "\t").into_bytes(),
        PLAIN.replace(',', "|").into_bytes(),
        PLAIN.replace('\n', "\r\n").into_bytes(),
        PLAIN.replace('\n', "\r").into_bytes(),
        format!("\u{feff}{PLAIN}").into_bytes(),
        format!("sep=;\n{semicolons}").into_bytes(),
        PLAIN.trim_end().as_bytes().to_vec(),
        PLAIN.replace('\n', "\n\n").into_bytes(),
        PLAIN.replace("a,", "\"a\",").replace("2.5", "\"2.5\"").into_bytes(),
        PLAIN.replace(',', " , ").into_bytes(),
        utf16,
    ];
    for bytes in dialects {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert_eq!(read(&bytes, &request()).unwrap(), want, "{text}");
    }
}

#[test]
fn a_comma_is_a_point_only_where_the_column_has_none() {
    let mixed = read(b"arm;seed;val_bpb\na;1;2,5\na;2;2.5\nb;1;3\n", &request()).unwrap();
    assert_eq!(warnings(&mixed), ["r.csv:2: `val_bpb` is `2,5`, not a number; the row has no value"]);
}

#[test]
fn what_has_no_number_is_named_and_what_is_not_finite_is_diverged() {
    let text = "arm,seed,val_bpb\na,1,2.5\na,2,\na,3,oops\na,4,nan\na,5,-inf\n,6,1\na,,1\nb,1,2.0\nb,9,NA\n";
    let samples = read(text.as_bytes(), &request()).unwrap();
    assert_eq!(samples.seeds, ["1", "2", "3", "4", "5", "9"]);
    let a = &samples.configurations[0];
    assert_eq!(a.values, [(0, 2.5)]);
    assert_eq!((&a.diverged[..], &a.without_value[..], &a.absent[..]), (&[3, 4][..], &[1, 2][..], &[5][..]));
    assert_eq!(
        warnings(&samples),
        [
            "r.csv:3: `val_bpb` is blank; the row has no value",
            "r.csv:4: `val_bpb` is `oops`, not a number; the row has no value",
            "r.csv:7: `arm` is blank; the row is left out",
            "r.csv:8: `seed` is blank; the row is left out",
            "r.csv:10: `val_bpb` is `NA`; the row has no value",
        ]
    );
}

#[test]
fn seeds_pair_by_what_they_are_and_come_in_order() {
    let text = "arm,seed,val_bpb\na,10,1\na,2.0,2\na,x,3\nb,x,4\nb,010,5\nb,2,6\n";
    let samples = read(text.as_bytes(), &request()).unwrap();
    assert_eq!(samples.seeds, ["2", "10", "x"]);
    let comparisons = Comparisons::of(&samples, "a", false);
    assert_eq!(comparisons.arms[0].paired.unwrap().mean_diff, 3.0);
}

#[test]
fn a_label_leaves_out_what_is_no_setting_of_the_arm() {
    let text = "arm,lr,step,seed,val_bpb\na,0.1,NaN,1,2.5\nb,,0.01,1,2.25\n";
    let by = vec!["lr".to_owned(), "step".to_owned()];
    let samples = read(text.as_bytes(), &Request { by, ..request() }).unwrap();
    let labels: Vec<String> = samples.configurations.iter().map(|c| c.label()).collect();
    assert_eq!(labels, ["a lr=0.1", "b step=0.01"]);
}

#[test]
fn a_row_twice_is_an_error_or_the_one_asked_for() {
    let text = "arm,seed,val_bpb\na,1,2.5\nb,1,2.25\na,1,2.75\n";
    let refused = "several rows have the same arm, configuration and seed: a seed 1 on lines 2, 4. Name the columns that tell them \
                   apart with --by, or say which counts with --duplicates";
    assert_eq!(error(text.as_bytes(), &request()), refused);
    for (duplicates, value) in [(Duplicates::First, 2.5), (Duplicates::Last, 2.75)] {
        let samples = read(text.as_bytes(), &Request { duplicates, ..request() }).unwrap();
        assert_eq!(samples.configurations[0].values, [(0, value)]);
        assert!(samples.warnings[0].starts_with("a seed 1 on lines 2, 4: the "), "{:?}", samples.warnings);
    }
}

#[test]
fn faults_are_named() {
    let empty = error(b"", &request());
    assert_eq!(empty, "r.csv is empty");
    assert_eq!(error(b"arm,seed,val_bpb\n", &request()), "r.csv has a header and no row");
    let metric = |name: &str| Request { metric: name.to_owned(), ..request() };
    assert_eq!(
        error(PLAIN.as_bytes(), &metric("val_bbp")),
        "r.csv has no column `val_bbp` (cells apart by commas); did you mean `val_bpb`?"
    );
    assert_eq!(
        error(PLAIN.as_bytes(), &metric("loss")),
        "r.csv has no column `loss` (cells apart by commas); there is arm, seed, val_bpb"
    );
    assert_eq!(error(PLAIN.as_bytes(), &metric("seed")), "`seed` is given for --seed and for --metric");
    let twice = PLAIN.replace("seed,val_bpb", "val_bpb,val_bpb").replace("arm", "seed,arm").replace("\na", "\n1,a");
    let twice = twice.replace("\nb", "\n1,b");
    assert_eq!(error(twice.as_bytes(), &request()), "r.csv has 2 columns named `val_bpb`");
    assert_eq!(
        error(PLAIN.as_bytes(), &Request { baseline: "A1".to_owned(), ..request() }),
        "no row has the arm `A1` in column `arm`; did you mean `a`?"
    );
    assert_eq!(
        error(b"arm,seed,val_bpb\na,1\nb,1,2,3\na,2,5\n", &request()),
        "r.csv: line 2 has 2 cells, line 3 has 4 cells, where the header has 3 (cells apart by commas)"
    );
    let other = PLAIN.replace("val_bpb", "x");
    assert_eq!(
        error(other.as_bytes(), &metric("x")),
        "the name `x` does not tell which values are better: give --lower-is-better or --higher-is-better"
    );
    assert!(matches!(Table::read(Path::new("/nowhere.csv"), &[]), Err(SamplesError::Io { .. })));
}

#[test]
fn a_line_that_was_cut_off_is_left_out() {
    let samples = read(format!("{PLAIN}a,3").as_bytes(), &request()).unwrap();
    assert_eq!(warnings(&samples), ["r.csv:6: the last line is cut off and left out"]);
    assert_eq!(samples.rows, 4);
}

#[test]
fn the_best_is_chosen_on_one_column_and_compared_on_another() {
    let mut text = "arm,lr,seed,val_bpb,t\n".to_owned();
    for seed in 0..8 {
        text += &format!("a,1,{seed},{},{}\n", 3.0 + f64::from(seed) / 16.0, 4.0);
        text += &format!("a,2,{seed},{},{}\n", 2.0, if seed == 0 { "nan" } else { "4" });
        text += &format!("b,1,{seed},{},{}\n", 2.0, 3.5);
    }
    let request =
        Request { test: Some("t".to_owned()), by: vec!["lr".to_owned()], better: Some(Better::Lower), ..request() };
    let samples = read(text.as_bytes(), &request).unwrap();
    let comparisons = Comparisons::of(&samples, "a", true);
    // lr=2 has the better mean and a diverged run.
    assert_eq!(comparisons.best, [0, 2]);
    assert_eq!(comparisons.arms[0].paired.unwrap().mean_diff, -0.5);
    assert_eq!(comparisons.arms[0].finding, Finding::Better);
    assert_eq!(comparisons.exploratory.len(), 2);
    assert_eq!(samples.configurations[1].diverged, [0]);
}

#[test]
fn names_tell_the_direction() {
    for (name, better) in [("val_loss", Better::Lower), ("eval/acc", Better::Higher), ("mean-return", Better::Higher)] {
        let text = PLAIN.replace("val_bpb", name);
        let request = Request { metric: name.to_owned(), ..request() };
        let samples = read(text.as_bytes(), &request).unwrap();
        assert_eq!((samples.better, samples.guessed), (better, true));
    }
}
