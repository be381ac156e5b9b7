//! `[stop]`: the rule by which runs are stopped early.

use super::reader::{Item, Reader, entries, nearest};
use crate::plan::{Fault, Metric, Span, StopKind, StopRule};

/// Kinds of rules.
const KINDS: [&str; 3] = ["median", "halving", "target"];
/// Keys of the table.
const KEYS: [&str; 5] = ["kind", "metric", "rungs", "factor", "target"];
const RUNGS: &str = "a list of numbers of steps, ascending, such as [250, 500]";
/// More rungs than this are taken for a mistake.
const MOST_RUNGS: usize = 1000;
/// Of so many configurations one goes on, where it is not said.
const FACTOR: u64 = 2;

/// The values of the table, each with the place of its key.
#[derive(Default)]
struct Parts {
    kind: Option<String>,
    metric: Option<Metric>,
    rungs: Option<(Span, Vec<u64>)>,
    factor: Option<(Span, u64)>,
    target: Option<(Span, f64)>,
    /// Whether some value was at fault: then none is missed.
    refused: bool,
}

impl<'i> Reader<'i> {
    /// The rule, if the table holds; `metric` is that of the comparison, which counts where the table names none.
    pub(super) fn stop_rule(&mut self, span: Span, item: &Item<'i>, metric: Metric) -> Option<StopRule> {
        let before = self.faults.len();
        let mut parts = self.stop_parts(item)?;
        parts.refused |= self.faults.len() > before;
        let metric = parts.metric.unwrap_or(metric);
        let kind = match parts.kind.as_deref() {
            Some("median") => {
                self.out_of_place(&parts, &[("factor", parts.factor.as_ref().map(|f| &f.0))]);
                StopKind::Median { rungs: self.needed_rungs(&span, &parts)? }
            }
            Some("halving") => {
                let factor = parts.factor.as_ref().map_or(FACTOR, |(_, factor)| *factor);
                self.out_of_place(&parts, &[]);
                StopKind::Halving { rungs: self.needed_rungs(&span, &parts)?, factor }
            }
            Some("target") => {
                for (key, place) in
                    [("rungs", parts.rungs.as_ref().map(|r| &r.0)), ("factor", parts.factor.as_ref().map(|f| &f.0))]
                {
                    self.not_read(key, place, "target");
                }
                let Some((_, value)) = parts.target else {
                    self.lacking(&span, &parts, "target", "the value at which a run stops, such as `target = 2.1`");
                    return None;
                };
                StopKind::Target { value }
            }
            _ => {
                self.lacking(&span, &parts, "kind", "one of \"median\", \"halving\", \"target\"");
                return None;
            }
        };
        (self.faults.len() == before).then_some(StopRule { kind, metric })
    }

    fn stop_parts(&mut self, item: &Item<'i>) -> Option<Parts> {
        let mut parts = Parts::default();
        for (key, value) in entries(self.table("`stop`", item)?) {
            let place = key.span();
            match key.get_ref().as_ref() {
                "kind" => parts.kind = self.stop_kind(value),
                "metric" => parts.metric = self.metric(value),
                "rungs" => parts.rungs = self.rungs(value).map(|rungs| (place, rungs)),
                "factor" => {
                    let factor = self.whole("`factor`", value, 2..=1000, "a whole number from 2 to 1000");
                    parts.factor = factor.map(|factor| (place, factor));
                }
                "target" => match super::convert::number(value.get_ref()).filter(|target| target.is_finite()) {
                    Some(target) => parts.target = Some((place, target)),
                    None => self.wrong_type("`target`", value, "a number"),
                },
                _ => self.unknown_key(key, "in [stop]", &KEYS),
            }
        }
        Some(parts)
    }

    fn stop_kind(&mut self, value: &Item<'_>) -> Option<String> {
        let word = self.string("`kind`", value)?;
        if KINDS.contains(&word.as_str()) {
            return Some(word);
        }
        let fault = Fault::at(value.span(), format!("`kind` cannot be \"{word}\""));
        let fault = fault.label(format!("must be one of {}", KINDS.join(", ")));
        self.fault(match nearest(&word, &KINDS) {
            _ if word == "asha" => fault.help(
                "`halving` is the same rule with rungs at which all are waited for, so that nothing depends on who is there first",
            ),
            Some(near) => fault.help(format!("did you mean \"{near}\"?")),
            None => fault,
        });
        None
    }

    fn rungs(&mut self, item: &Item<'_>) -> Option<Vec<u64>> {
        let Some(list) = item.get_ref().as_array() else {
            self.wrong_type("`rungs`", item, RUNGS);
            return None;
        };
        let mut rungs: Vec<u64> = Vec::new();
        for value in list {
            let rung = self.whole("a rung", value, 1..=u64::MAX, "a whole number from 1 up")?;
            if rungs.last().is_some_and(|&last| last >= rung) {
                self.fault(Fault::at(value.span(), "the rungs do not ascend").label(format!("must be {RUNGS}")));
                return None;
            }
            rungs.push(rung);
        }
        if rungs.is_empty() || rungs.len() > MOST_RUNGS {
            let many = if rungs.is_empty() { "no rungs" } else { "more than 1000 rungs" };
            self.fault(Fault::at(item.span(), format!("there are {many}")).label(format!("must be {RUNGS}")));
            return None;
        }
        Some(rungs)
    }

    fn needed_rungs(&mut self, span: &Span, parts: &Parts) -> Option<Vec<u64>> {
        if parts.rungs.is_none() {
            self.lacking(span, parts, "rungs", RUNGS);
        }
        parts.rungs.as_ref().map(|(_, rungs)| rungs.clone())
    }

    /// Keys that a rule with rungs does not read.
    fn out_of_place(&mut self, parts: &Parts, others: &[(&str, Option<&Span>)]) {
        let kind = parts.kind.clone().unwrap_or_default();
        self.not_read("target", parts.target.as_ref().map(|t| &t.0), &kind);
        for (key, place) in others {
            self.not_read(key, *place, &kind);
        }
    }

    fn not_read(&mut self, key: &str, place: Option<&Span>, kind: &str) {
        if let Some(place) = place {
            let message = format!("`{key}` is not read by `kind = \"{kind}\"`");
            self.fault(Fault::at(place.clone(), message).label("leave it out"));
        }
    }

    fn lacking(&mut self, span: &Span, parts: &Parts, key: &str, wanted: &str) {
        if !parts.refused {
            self.absent(Fault::at(span.clone(), format!("[stop] lacks `{key}`")).label(format!("wanted: {wanted}")));
        }
    }

    /// A metric by its name.
    pub(super) fn metric(&mut self, value: &Item<'_>) -> Option<Metric> {
        let word = self.string("`metric`", value)?;
        if let Some((_, metric)) = Metric::NAMES.iter().find(|(known, _)| *known == word) {
            return Some(*metric);
        }
        let known = Metric::NAMES.map(|(known, _)| known);
        let fault = Fault::at(value.span(), format!("`metric` cannot be \"{word}\""));
        let fault = fault.label(format!("must be one of {}", known.join(", ")));
        self.fault(match nearest(&word, &known) {
            Some(near) => fault.help(format!("did you mean \"{near}\"?")),
            None => fault,
        });
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::CorpusInfo;
    use crate::sweep;

    fn rule(stop: &str) -> Result<Option<StopRule>, String> {
        let text = format!(
            "name = \"x\"\n[base]\ndata = \"builtin\"\n[[arm]]\nname = \"a\"\nlr = [1e-3, 2e-3]\n[compare]\nmetric = \"val_acc\"\n{stop}"
        );
        let mut corpus = |_: &crate::settings::Data| {
            Ok(CorpusInfo { path: None, bytes: 1 << 20, digest: "0".into(), entropy: None })
        };
        sweep::plan(&text, "x.toml", &mut corpus).map(|plan| plan.stop).map_err(|faults| faults.render(false))
    }

    #[test]
    fn rules_are_read() {
        assert_eq!(rule(""), Ok(None));
        let read = |kind, metric| Ok(Some(StopRule { kind, metric }));
        let median = StopKind::Median { rungs: vec![10, 20] };
        assert_eq!(rule("[stop]\nkind = \"median\"\nrungs = [10, 2e1]"), read(median, Metric::ValAcc));
        let halving = StopKind::Halving { rungs: vec![10], factor: 3 };
        let text = "[stop]\nkind = \"halving\"\nrungs = [10]\nfactor = 3\nmetric = \"val_bpb\"";
        assert_eq!(rule(text), read(halving, Metric::ValBpb));
        let target = StopKind::Target { value: 2.0 };
        assert_eq!(rule("[stop]\nkind = \"target\"\ntarget = 2"), read(target, Metric::ValAcc));
    }

    #[test]
    fn faults_say_what_is_wanted() {
        for (text, said) in [
            ("", "[stop] lacks `kind`"),
            ("kind = \"median\"", "[stop] lacks `rungs`"),
            ("kind = \"target\"", "[stop] lacks `target`"),
            ("kind = \"asha\"\nrungs = [1]", "`halving` is the same rule with rungs at which all are waited for"),
            ("kind = \"medain\"\nrungs = [1]", "did you mean \"median\"?"),
            ("kind = \"median\"\nrungs = [10, 10]", "the rungs do not ascend"),
            ("kind = \"median\"\nrungs = []", "there are no rungs"),
            ("kind = \"median\"\nrungs = [5]\ntarget = 1.0", "`target` is not read by `kind = \"median\"`"),
            ("kind = \"median\"\nrungs = [5]\nfactor = 3", "`factor` is not read by `kind = \"median\"`"),
            ("kind = \"target\"\ntarget = 1.0\nrungs = [5]", "`rungs` is not read by `kind = \"target\"`"),
            ("kind = \"halving\"\nrungs = [5]\nfactor = 1", "`factor` is out of range"),
            ("kind = \"median\"\nrung = [5]", "unknown key `rung` in [stop]"),
        ] {
            let faults = rule(&format!("[stop]\n{text}")).unwrap_err();
            assert!(faults.contains(said), "{text}: {faults}");
        }
    }
}
