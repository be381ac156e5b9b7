//! The comparison as JSON.

use serde_json::{Map, Value, json};

use super::compare::{Comparisons, Finding, PairedComparison};
use super::gather::{Request, Samples};
use super::text::notes;
use crate::stats::{Better, Interval, Paired, Summary, seeds_needed, smallest_p};

/// All of it, with numbers that read back as they are; absent ones are null.
pub fn json(samples: &Samples, comparisons: &Comparisons, request: &Request) -> Value {
    let label = |i: usize| samples.configurations[i].label();
    let configurations = (0..samples.configurations.len()).map(|i| configuration(samples, comparisons, i));
    let family =
        |comparisons: &[PairedComparison]| comparisons.iter().map(|c| comparison(samples, c)).collect::<Vec<_>>();
    json!({
        "metric": request.metric,
        "test": request.test,
        "better": match samples.better { Better::Lower => "lower", Better::Higher => "higher" },
        "seeds": samples.seeds,
        "configurations": configurations.collect::<Vec<_>>(),
        "best": comparisons.best.iter().map(|i| label(*i)).collect::<Vec<_>>(),
        "baseline": comparisons.baseline.map(label),
        "verdict": family(&comparisons.arms),
        "exploratory": family(&comparisons.exploratory),
        "notes": notes(samples, comparisons),
        "warnings": samples.warnings,
    })
}

fn names(samples: &Samples, seeds: &[u64]) -> Vec<String> {
    seeds.iter().filter_map(|n| samples.seeds.get(*n as usize).cloned()).collect()
}

fn ends(interval: Option<Interval>) -> Value {
    interval.map_or(Value::Null, |i| json!([i.lo, i.hi]))
}

fn configuration(samples: &Samples, comparisons: &Comparisons, i: usize) -> Value {
    let configuration = &samples.configurations[i];
    let by: Map<String, Value> = configuration.by.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let test: Vec<f64> = configuration.test_values.iter().map(|(_, x)| *x).collect();
    json!({
        "label": configuration.label(),
        "arm": configuration.arm,
        "by": by,
        "values": comparisons.summaries[i].as_ref().map(summary),
        "test_values": Summary::of(&test).as_ref().map(summary),
        "seeds_diverged": names(samples, &configuration.diverged),
        "seeds_without_value": names(samples, &configuration.without_value),
        "seeds_without_row": names(samples, &configuration.absent),
    })
}

fn summary(s: &Summary) -> Value {
    json!({
        "n": s.n,
        "mean": s.mean,
        "sd": s.sd,
        "sem": s.sem,
        "ci95": ends(s.ci95),
        "median": s.median,
        "iqm": s.iqm,
        "min": s.min,
        "max": s.max,
    })
}

fn comparison(samples: &Samples, c: &PairedComparison) -> Value {
    json!({
        "label": samples.configurations[c.configuration].label(),
        "finding": match c.finding {
            Finding::Better => "better",
            Finding::Worse => "worse",
            Finding::NoDifference => "no difference shown",
            Finding::NotEnoughSeeds => "not enough seeds",
            Finding::NoCommonSeed => "no common seed",
            Finding::NoValue => "no value",
        },
        "paired": c.paired.as_ref().map(paired),
        "holm_p": c.holm_p,
        "seeds_unpaired": names(samples, &c.unpaired),
    })
}

fn paired(p: &Paired) -> Value {
    json!({
        "n": p.n,
        "mean_diff": p.mean_diff,
        "ci95": ends(p.ci95),
        "bca": ends(p.bca),
        "sign_flip_p": p.sign_flip_p,
        "wilcoxon_p": p.wilcoxon_p,
        "t_p": p.t_p,
        "cohen_dz": p.cohen_dz,
        "prob_improvement": p.prob_improvement,
        "smallest_p": smallest_p(p.n),
        "seeds_needed": p.cohen_dz.and_then(seeds_needed),
    })
}
