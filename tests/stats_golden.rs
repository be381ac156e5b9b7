//! The statistics against numbers from scipy and statsmodels.

use diesweep::stats::{self, Better, Interval, Paired, Summary};
use serde_json::Value;

/// Closed forms.
const CLOSED: f64 = 1e-9;
/// Exact p values.
const EXACT: f64 = 1e-12;

fn golden() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stats/golden.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Compares with a golden value; one that is not there has nothing to say. Returns whether it was.
#[track_caller]
fn check(what: &str, golden: &Value, got: Option<f64>, relative: f64) -> usize {
    let Some(want) = golden.as_f64() else {
        return 0;
    };
    let got = got.unwrap_or_else(|| panic!("{what}: nothing for {want}"));
    assert!((got - want).abs() <= relative * want.abs(), "{what}: {got:e} for {want:e}");
    1
}

#[track_caller]
fn check_interval(what: &str, golden: &Value, got: Option<Interval>) -> usize {
    check(what, &golden[0], got.map(|i| i.lo), CLOSED) + check(what, &golden[1], got.map(|i| i.hi), CLOSED)
}

fn check_summary(what: &str, golden: &Value, sample: &[f64]) -> usize {
    let got = Summary::of(sample).unwrap();
    assert_eq!(got.n as u64, golden["n"].as_u64().unwrap());
    check(what, &golden["mean"], Some(got.mean), CLOSED)
        + check(what, &golden["median"], Some(got.median), CLOSED)
        + check(what, &golden["min"], Some(got.min), 0.0)
        + check(what, &golden["max"], Some(got.max), 0.0)
        + check(what, &golden["iqm"], Some(got.iqm), CLOSED)
        + check(what, &golden["std"], got.sd, CLOSED)
        + check(what, &golden["sem"], got.sem, CLOSED)
        + check_interval(what, &golden["ci95"], got.ci95)
}

#[test]
fn cases() {
    let golden = golden();
    let mut checked = 0;
    for case in golden["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let (a, b) = (numbers(&case["a"]), numbers(&case["b"]));
        checked += check_summary(name, &case["summary_a"], &a);
        checked += check_summary(name, &case["summary_b"], &b);
        let pairs: Vec<(f64, f64)> = a.iter().copied().zip(b.iter().copied()).collect();
        let got = Paired::of(&pairs, Better::Lower).unwrap();
        let want = &case["paired"];
        checked += check(name, &want["mean"], Some(got.mean_diff), CLOSED)
            + check_interval(name, &want["ci95"], got.ci95)
            + check(name, &want["t_p"], got.t_p, CLOSED)
            + check(name, &want["cohen_dz"], got.cohen_dz, CLOSED)
            + check(name, &want["wilcoxon_exact_p"], Some(got.wilcoxon_p), EXACT)
            + check(name, &want["sign_flip_p"], Some(got.sign_flip_p), EXACT)
            + check(name, &case["probability_of_improvement"], Some(got.prob_improvement), CLOSED);
    }
    assert_eq!(checked, 203, "golden values that were compared");
}

#[test]
fn holm() {
    let golden = golden();
    let got = stats::holm(&numbers(&golden["holm"]["p"]));
    for (got, want) in got.iter().zip(numbers(&golden["holm"]["adjusted"])) {
        assert!((got - want).abs() <= EXACT * want);
    }
}

#[test]
fn t_quantiles() {
    let golden = golden();
    let quantiles = golden["t_quantiles"].as_object().unwrap();
    assert_eq!(quantiles.len(), 7);
    for (degrees, want) in quantiles {
        let got = stats::t_critical(degrees.parse().unwrap());
        let want = want.as_f64().unwrap();
        assert!((got - want).abs() <= 1e-13 * want, "{degrees}: {got} for {want}");
    }
}
