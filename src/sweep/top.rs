//! The file as a whole: its top-level keys, seeds, `[compare]` and `[run]`.

use toml::de::{DeTable, DeValue};

use super::arms::NOT_BUILT;
use super::reader::{Item, Reader, entries, suggest};
use crate::plan::request::{Arm, Request};
use crate::plan::{CheckpointEvery, Compare, Fault, Metric, RunOptions, Span};
use crate::plan::{LanesAsked, MOST_LANES};
use crate::settings::{Settings, setting};

/// Every key of the top.
pub(super) const KEYS: &[&str] =
    &["name", "seeds", "zip", "exclude", "base", "arm", "compare", "run", "trainer", "stop", "slurm"];
/// Tables that are part of the format and that the program cannot do yet.
const TABLES_NOT_BUILT: [(&str, &str); 2] =
    [("trainer", "external trainers are not built in yet"), ("slurm", "running under Slurm is not built yet")];
const SEEDS: &str = "a list such as [1, 2, 3], or { first = 1234, count = 8 }";
/// Keys of `[run]`.
const RUN_KEYS: [&str; 5] = ["attempts", "checkpoint_every", "keep_checkpoints", "lanes", "report_every"];
const REPORT_EVERY: &str = "a time of at least 100 ms, such as \"30s\" or \"5m\"";
/// The least of `report_every`, in milliseconds.
const LEAST_REPORT_EVERY: u64 = 100;
const EVERY: &str = "a number of steps from 1 up, or a time such as \"60s\" or \"5m\"";
/// More seeds than this are taken for a mistake.
const MOST_SEEDS: u64 = 100_000;

/// What stands at the top of the file, unread.
#[derive(Default)]
struct Parts<'t, 'i> {
    name: Option<&'t Item<'i>>,
    seeds: Option<&'t Item<'i>>,
    zip: Option<&'t Item<'i>>,
    exclude: Option<&'t Item<'i>>,
    base: Option<(Span, &'t Item<'i>)>,
    arm: Option<&'t Item<'i>>,
    compare: Option<&'t Item<'i>>,
    run: Option<&'t Item<'i>>,
    stop: Option<(Span, &'t Item<'i>)>,
}

impl<'i> Reader<'i> {
    /// Reads the whole file. The request is whole only where no fault was found.
    pub fn request(&mut self, root: &DeTable<'i>) -> Request {
        let parts = self.parts(root);
        let name = self.sweep_name(parts.name);
        let mut seeds = parts.seeds.map(|item| self.seeds(item)).unwrap_or_default();
        if seeds.is_empty() {
            // None given, or all at fault: the rest is judged with the trainer's own.
            seeds.push(Settings::default().seed);
        }
        let base = parts.base.as_ref().map(|(_, item)| self.base(item)).unwrap_or_default();
        let tables = parts.arm.map(|item| self.arm_tables(item)).unwrap_or_default();
        let no_arm = parts.arm.is_none_or(|item| item.get_ref().as_array().is_some_and(|list| list.is_empty()));
        if no_arm && !self.meant.contains(&"arm") {
            let fault = Fault::of_file("the sweep has no arms");
            self.absent(fault.help("add at least one table headed by `[[arm]]`, with a `name`"));
        }
        let arms = self.arms(&tables);
        let zip = parts.zip.map(|item| self.zip(item)).unwrap_or_default();
        let names: Vec<&str> = named(&tables);
        let exclude = parts.exclude.map(|item| self.exclude(item, Some(&names))).unwrap_or_default();
        let compare = self.compare(parts.compare, &names, &arms);
        let options = self.run_options(parts.run);
        let stop = parts.stop.and_then(|(span, item)| self.stop_rule(span, item, compare.metric));
        let base_span = parts.base.map(|(span, _)| span);
        if self.meant.contains(&"base") {
            self.doubtful.extend(super::points::setting_keys());
        }
        let doubtful = std::mem::take(&mut self.doubtful);
        Request { name, seeds, base, base_span, zip, exclude, arms, compare, options, stop, doubtful }
    }

    fn parts<'t>(&mut self, root: &'t DeTable<'i>) -> Parts<'t, 'i> {
        let mut parts = Parts::default();
        for (key, item) in entries(root) {
            match key.get_ref().as_ref() {
                "name" => parts.name = Some(item),
                "seeds" => parts.seeds = Some(item),
                "zip" => parts.zip = Some(item),
                "exclude" => parts.exclude = Some(item),
                "base" => parts.base = Some((key.span(), item)),
                "arm" => parts.arm = Some(item),
                "compare" => parts.compare = Some(item),
                "run" => parts.run = Some(item),
                "stop" => parts.stop = Some((key.span(), item)),
                name => match TABLES_NOT_BUILT.iter().find(|(table, _)| *table == name) {
                    Some((_, message)) => self.fault(Fault::at(key.span(), *message).label("leave it out")),
                    None if name == "seed" => {
                        let fault =
                            Fault::at(key.span(), "unknown key `seed` at the top of the file").label("not known here");
                        self.fault(fault.help(format!("a sweep has `seeds`: {SEEDS}")));
                    }
                    None if setting(name).is_some() || NOT_BUILT.contains(&name) => {
                        let message = format!("the setting `{name}` stands at the top of the file");
                        let fault = Fault::at(key.span(), message).label("stands in the wrong place");
                        self.doubtful.extend(setting(name).map(|row| row.key));
                        self.fault(fault.help("settings stand in [base] or in an arm"));
                    }
                    None => self.unknown_key(key, "at the top of the file", KEYS),
                },
            }
        }
        parts
    }

    fn sweep_name(&mut self, item: Option<&Item<'i>>) -> String {
        let Some(item) = item else {
            if self.meant.contains(&"name") {
                return String::new();
            }
            let fault =
                Fault::of_file("the sweep has no name").help("add a line such as `name = \"sr4-vs-adamw\"` at the top");
            self.absent(fault.help("results go to the folder results/<name>"));
            return String::new();
        };
        let name = self.string("the name of the sweep", item).inspect(|name| {
            self.name_fits("the name of the sweep", name, item.span());
        });
        name.unwrap_or_default()
    }

    fn seeds(&mut self, item: &Item<'i>) -> Vec<u64> {
        match item.get_ref() {
            DeValue::Array(list) => self.seed_list(item, list),
            DeValue::Table(table) => self.seed_range(item, table),
            _ => {
                self.wrong_type("`seeds`", item, SEEDS);
                Vec::new()
            }
        }
    }

    fn seed_list(&mut self, item: &Item<'i>, list: &[Item<'i>]) -> Vec<u64> {
        if list.is_empty() {
            self.fault(Fault::at(item.span(), "there are no seeds").label(format!("must be {SEEDS}")));
        }
        let mut seeds: Vec<u64> = Vec::with_capacity(list.len());
        let mut known = std::collections::HashSet::new();
        for value in list {
            let Some(seed) = self.whole("a seed", value, 1..=u64::MAX, "a whole number from 1 up") else {
                continue;
            };
            if known.insert(seed) {
                seeds.push(seed);
            } else {
                let fault = Fault::at(value.span(), format!("the seed {seed} stands twice"));
                self.fault(fault.label("a seed makes one run of each configuration"));
            }
        }
        seeds
    }

    fn seed_range(&mut self, item: &Item<'i>, table: &DeTable<'i>) -> Vec<u64> {
        let (mut first, mut count) = (None, None);
        let mut refused = false;
        for (key, value) in entries(table) {
            let read = match key.get_ref().as_ref() {
                "first" => {
                    first = self.whole("the first seed", value, 1..=u64::MAX, "a whole number from 1 up");
                    first
                }
                "count" => {
                    let allowed = format!("a whole number from 1 to {MOST_SEEDS}");
                    count = self.whole("the number of seeds", value, 1..=MOST_SEEDS, &allowed);
                    count
                }
                _ => {
                    self.unknown_key(key, "in `seeds`", &["first", "count"]);
                    None
                }
            };
            refused |= read.is_none();
        }
        match (first, count) {
            _ if refused => Vec::new(),
            (Some(first), Some(count)) => match first.checked_add(count - 1) {
                Some(last) => (first..=last).collect(),
                None => {
                    let fault = Fault::at(item.span(), "the last seed is out of range");
                    self.fault(fault.label(format!("seeds go up to {}", u64::MAX)));
                    Vec::new()
                }
            },
            (first, _) => {
                let missing = if first.is_none() { "first" } else { "count" };
                let fault = Fault::at(item.span(), format!("`seeds` lacks `{missing}`"));
                self.absent(fault.label(format!("must be {SEEDS}")));
                Vec::new()
            }
        }
    }

    fn compare(&mut self, item: Option<&Item<'i>>, names: &[&str], arms: &[Arm]) -> Compare {
        let mut compare =
            Compare { baseline: arms.first().map(|arm| arm.name.clone()).unwrap_or_default(), metric: Metric::ValBpb };
        let Some(table) = item.and_then(|item| self.table("`compare`", item)) else {
            return compare;
        };
        for (key, value) in entries(table) {
            match key.get_ref().as_ref() {
                "baseline" => {
                    let Some(name) = self.string("`baseline`", value) else {
                        continue;
                    };
                    if !names.contains(&name.as_str()) {
                        let fault = Fault::at(value.span(), format!("there is no arm `{name}`"));
                        self.absent(suggest(fault.label("not an arm of this sweep"), &name, names));
                    }
                    compare.baseline = name;
                }
                "metric" => compare.metric = self.metric(value).unwrap_or(compare.metric),
                _ => self.unknown_key(key, "in [compare]", &["baseline", "metric"]),
            }
        }
        compare
    }

    fn run_options(&mut self, item: Option<&Item<'i>>) -> RunOptions {
        let mut options = RunOptions::default();
        let Some(table) = item.and_then(|item| self.table("`run`", item)) else {
            return options;
        };
        for (key, value) in entries(table) {
            match key.get_ref().as_ref() {
                "attempts" => {
                    let allowed = "a whole number from 1 to 1000";
                    let attempts = self.whole("`attempts`", value, 1..=1000, allowed);
                    options.attempts = attempts.and_then(|v| u32::try_from(v).ok()).unwrap_or(options.attempts);
                }
                "checkpoint_every" => {
                    options.checkpoint_every = self.checkpoint_every(value).unwrap_or(options.checkpoint_every);
                }
                "keep_checkpoints" => match value.get_ref().as_bool() {
                    Some(keep) => options.keep_checkpoints = keep,
                    None => self.wrong_type("`keep_checkpoints`", value, "true or false"),
                },
                "report_every" => options.report_every = self.report_every(value),
                "retries" => {
                    let fault = Fault::at(key.span(), "unknown key `retries` in [run]").label("not known here");
                    self.fault(fault.help("`attempts` counts the first try too: `attempts = 3` is two retries"));
                }
                "lanes" => options.lanes = self.lanes(value).unwrap_or_default(),
                "profile" => {
                    self.fault(Fault::at(key.span(), "`profile` is not built yet").label("leave it out"));
                }
                _ => self.unknown_key(key, "in [run]", &RUN_KEYS),
            }
        }
        options
    }

    fn lanes(&mut self, item: &Item<'i>) -> Option<LanesAsked> {
        if item.get_ref().as_str() == Some("auto") {
            return Some(LanesAsked::Auto);
        }
        let count =
            self.whole("`lanes`", item, 1..=u64::from(MOST_LANES), "`\"auto\"` or a whole number from 1 to 4096")?;
        u32::try_from(count).ok().map(LanesAsked::Count)
    }

    fn report_every(&mut self, item: &Item<'i>) -> Option<u64> {
        let Some(text) = item.get_ref().as_str() else {
            self.wrong_type("`report_every`", item, REPORT_EVERY);
            return None;
        };
        let time = crate::duration::parse(text).map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let why = match time {
            Ok(ms) if ms >= LEAST_REPORT_EVERY => return Some(ms),
            Ok(_) => "`report_every` is out of range".to_owned(),
            Err(why) => format!("`report_every`: {why}"),
        };
        self.fault(Fault::at(item.span(), why).label(format!("must be {REPORT_EVERY}")));
        None
    }

    fn checkpoint_every(&mut self, item: &Item<'i>) -> Option<CheckpointEvery> {
        match item.get_ref() {
            DeValue::Integer(_) | DeValue::Float(_) => {
                let steps = self.whole("`checkpoint_every`", item, 1..=u64::MAX, EVERY)?;
                Some(CheckpointEvery::Steps(steps))
            }
            DeValue::String(text) => {
                let time = crate::duration::parse(text);
                match time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)) {
                    Ok(0) => {
                        let fault = Fault::at(item.span(), "`checkpoint_every` is out of range");
                        self.fault(fault.label(format!("must be {EVERY}")));
                        None
                    }
                    Ok(ms) => Some(CheckpointEvery::Milliseconds(ms)),
                    Err(why) => {
                        let fault = Fault::at(item.span(), format!("`checkpoint_every`: {why}"));
                        self.fault(fault.label(format!("must be {EVERY}")));
                        None
                    }
                }
            }
            _ => {
                self.wrong_type("`checkpoint_every`", item, EVERY);
                None
            }
        }
    }
}

/// The arms' names, also those of arms that are at fault otherwise.
fn named<'t>(tables: &[&'t Item<'_>]) -> Vec<&'t str> {
    let name = |item: &&'t Item<'_>| item.get_ref().as_table()?.get("name")?.get_ref().as_str();
    let mut names: Vec<&str> = Vec::new();
    for name in tables.iter().filter_map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
