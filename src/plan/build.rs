//! From a request to a plan.

use std::collections::HashMap;

use super::exclude::{Asked, Hits};
use super::expand::{ArmAxes, Point, expand};
use super::merge::{self, Resolved};
use super::request::Request;
use super::{CorpusInfo, Fault, Plan, Span, notes, order};
use crate::settings::{Data, Settings, Value, canonical, conflicts, resolve, run_id, setting};

/// Finds a corpus: opens it, measures it and takes its digest. It is asked once for every distinct `data`.
///
/// The error says what is wrong with the corpus: ``the corpus `x` does not exist``.
pub type Resolver<'a> = dyn FnMut(&Data) -> Result<CorpusInfo, String> + 'a;

/// Makes the plan.
///
/// # Errors
/// Every fault of the request: zips that do not fit, settings that do not go together, corpora that are missing or
/// too short, arms of which nothing is left.
pub fn build(request: &Request, resolver: &mut Resolver<'_>) -> Result<Plan, Vec<Fault>> {
    let (arms, points) = expand(request)?;
    let mut check = Check { request, arms: &arms, corpora: Corpora::new(resolver), faults: Vec::new() };
    let mut hits = Hits::new(request);
    let resolved: Vec<Resolved<'_>> = points.iter().filter_map(|p| check.resolve(p, &mut hits)).collect();
    check.empty_arms(&resolved);
    if !check.faults.is_empty() {
        return Err(check.faults);
    }
    let mut notes = hits.notes();
    let (axes, configurations) = merge::merge(&arms, resolved, &mut notes);
    let (runs, configurations) = order::order(&request.seeds, configurations, &mut notes);
    notes.extend(notes::rising_rates(&configurations, &runs));
    notes.extend(power_of(request, &configurations, &runs));
    notes.extend(request.stop.as_ref().map(|rule| format!("early stopping is on: {rule}")));
    Ok(Plan {
        name: request.name.clone(),
        axes,
        runs,
        configurations,
        compare: request.compare.clone(),
        corpora: check.corpora.infos,
        options: request.options.clone(),
        stop: request.stop.clone(),
        notes,
    })
}

/// The faults that [`build`] would find in what is sound of a request that is at fault elsewhere.
pub fn faults(request: &Request, resolver: &mut Resolver<'_>) -> Vec<Fault> {
    let (arms, points) = match expand(request) {
        Ok(expanded) => expanded,
        Err(faults) => return faults,
    };
    let mut check = Check { request, arms: &arms, corpora: Corpora::new(resolver), faults: Vec::new() };
    let mut hits = Hits::new(request);
    for point in &points {
        check.judge(point, &mut hits);
    }
    check.faults
}

fn power_of(request: &Request, configurations: &[super::Configuration], runs: &[super::PlannedRun]) -> Option<String> {
    let others = request.arms.len().saturating_sub(1);
    if let ([arm], 0) = (request.arms.as_slice(), others) {
        let arm = &arm.name;
        return Some(format!(
            "there is one arm, `{arm}`: its configurations are compared for exploration, without a verdict"
        ));
    }
    let pairs = notes::fewest_pairs(configurations, runs, &request.compare.baseline);
    notes::power(pairs, others)
}

/// The corpora met so far.
struct Corpora<'a, 'r> {
    resolver: &'a mut Resolver<'r>,
    seen: HashMap<Data, Result<usize, String>>,
    infos: Vec<CorpusInfo>,
}

impl<'a, 'r> Corpora<'a, 'r> {
    fn new(resolver: &'a mut Resolver<'r>) -> Self {
        Self { resolver, seen: HashMap::new(), infos: Vec::new() }
    }

    /// The corpus, asked for once; the error is the resolver's.
    fn find(&mut self, data: &Data) -> Result<&CorpusInfo, String> {
        if !self.seen.contains_key(data) {
            let found = (self.resolver)(data).map(|info| {
                let known = self.infos.iter().position(|other| *other == info);
                known.unwrap_or_else(|| {
                    self.infos.push(info);
                    self.infos.len() - 1
                })
            });
            self.seen.insert(data.clone(), found);
        }
        match &self.seen[data] {
            Ok(i) => Ok(&self.infos[*i]),
            Err(message) => Err(message.clone()),
        }
    }
}

/// Shortest corpus whose three splits each hold a window of `seq_len` bytes and the byte after it.
fn splits_hold(bytes: u64, seq_len: usize) -> bool {
    let bytes = u128::from(bytes);
    let (train, val) = (bytes * 90 / 100, bytes * 5 / 100);
    let window = seq_len as u128 + 1;
    train.min(val).min(bytes - train - val) >= window
}

/// Said of a corpus that nobody named.
const DEFAULT_DATA: &str = "`data` is not given, so that its default holds";

/// A sound point.
struct Judged {
    /// Its corpus, as an absolute path.
    data: Data,
    /// The corpus's digest.
    digest: String,
    /// For each seed the settings in canonical form and whether they are excluded.
    runs: Vec<(Settings, bool)>,
}

struct Check<'a, 'c, 'r> {
    request: &'a Request,
    arms: &'a [ArmAxes<'a>],
    corpora: Corpora<'c, 'r>,
    faults: Vec<Fault>,
}

impl<'a> Check<'a, '_, '_> {
    /// The point's runs, or `None` where it is at fault or wholly excluded.
    fn resolve(&mut self, point: &'a Point<'a>, hits: &mut Hits<'a>) -> Option<Resolved<'a>> {
        let Judged { data, digest, runs } = self.judge(point, hits)?;
        let with_id = |(settings, excluded)| {
            let settings = Settings { data: data.clone(), ..settings };
            (run_id(&settings, &digest), settings, excluded)
        };
        Some(Resolved::new(point, runs.into_iter().map(with_id).collect()))
    }

    /// The point's corpus and, for each seed, its settings in canonical form and whether they are excluded. What is
    /// wholly excluded is not judged: an exclude may well leave out what does not go together.
    fn judge(&mut self, point: &Point<'_>, hits: &mut Hits<'_>) -> Option<Judged> {
        let axes = &self.arms[point.arm];
        let mut given = axes.given(point);
        let seed_row = setting("seed")?;
        let mut runs = Vec::with_capacity(self.request.seeds.len());
        given.push((seed_row, Value::Int(0)));
        for &seed in &self.request.seeds {
            if let Some(last) = given.last_mut() {
                last.1 = Value::Int(seed);
            }
            let all = resolve(&given);
            let read = canonical(&all);
            let excluded = hits.excluded(point.arm, &axes.arm.name, &Asked { given: &given, all: &all, read: &read });
            runs.push((read, excluded));
        }
        if runs.iter().all(|(_, excluded)| *excluded) {
            return None;
        }
        let first = &runs[0].0;
        let sound = self.conflicts(point, first);
        let (data, digest) = self.corpus(point, first)?;
        sound.then_some(Judged { data, digest, runs })
    }

    /// Whether the point's settings go together.
    fn conflicts(&mut self, point: &Point<'_>, settings: &Settings) -> bool {
        let axes = &self.arms[point.arm];
        let mut found = conflicts(settings);
        found.retain(|conflict| !self.request.doubts(conflict.keys));
        let sound = found.is_empty();
        for conflict in found {
            let span = axes.place_of(point, conflict.keys).unwrap_or(axes.arm.name_span.clone());
            self.fault(Fault::at(span, conflict.message).label(conflict.allowed));
        }
        sound
    }

    /// The point's corpus, as an absolute path, and its digest.
    fn corpus(&mut self, point: &Point<'_>, settings: &Settings) -> Option<(Data, String)> {
        if self.request.doubts(&["data"]) {
            return None;
        }
        let found = self.corpora.find(&settings.data).cloned();
        match found {
            Ok(info) if splits_hold(info.bytes, settings.seq_len) => {
                let data = info.path.map_or(Data::Builtin, Data::Path);
                Some((data, info.digest))
            }
            Ok(_) if self.request.doubts(&["seq_len"]) => None,
            Ok(info) => {
                let (bytes, t) = (info.bytes, settings.seq_len);
                let message = format!("the corpus is too short: {bytes} bytes for windows of seq_len = {t}");
                let label = format!("each split (90% train, 5% val, 5% test) needs {} bytes", t + 1);
                let fault = Fault::at(self.data_place(point), message).label(label);
                self.fault(fault.help(format!("at least {} bytes, or a shorter `seq_len`", (t as u128 + 1) * 20)));
                None
            }
            Err(message) => {
                let mut fault = Fault::at(self.data_place(point), message);
                if self.arms[point.arm].place_of(point, &["data"]).is_none() {
                    fault = fault.label(DEFAULT_DATA);
                }
                self.fault(fault.help("`data` is a file or folder, relative to the working directory, or \"builtin\""));
                None
            }
        }
    }

    fn data_place(&self, point: &Point<'_>) -> Span {
        let axes = &self.arms[point.arm];
        let given = axes.place_of(point, &["data"]).or_else(|| self.request.base_span.clone());
        given.unwrap_or(axes.arm.name_span.clone())
    }

    /// Many points can share a fault; it is said once.
    fn fault(&mut self, fault: Fault) {
        let said = |known: &Fault| *known == fault || (known.message == fault.message && known.label == DEFAULT_DATA);
        if !self.faults.iter().any(said) {
            self.faults.push(fault);
        }
    }

    fn empty_arms(&mut self, resolved: &[Resolved<'_>]) {
        if !self.faults.is_empty() {
            return;
        }
        for (i, axes) in self.arms.iter().enumerate() {
            if !resolved.iter().any(|r| r.point.arm == i && r.has_runs()) {
                let message = format!("every run of arm `{}` is excluded", axes.arm.name);
                self.fault(Fault::at(axes.arm.name_span.clone(), message).label("nothing is left of this arm"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_corpus_is_twenty_windows() {
        for seq_len in [1, 7, 64, 512] {
            let shortest = 20 * (seq_len as u64 + 1);
            assert!(splits_hold(shortest, seq_len) && !splits_hold(shortest - 1, seq_len), "{seq_len}");
        }
        assert!(splits_hold(u64::MAX, 1 << 20) && !splits_hold(0, 1));
    }
}
