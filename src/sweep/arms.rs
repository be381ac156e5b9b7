//! `[base]` and the arms.

use toml::de::{DeTable, DeValue};

use super::points::setting_keys;
use super::reader::{Item, Key, Reader, entries, nearest, suggest};
use crate::plan::Fault;
use crate::plan::request::{Arm, Assignment};
use crate::settings::{Setting, setting};

/// Keys of an arm that are no settings.
const ARM_KEYS: [&str; 3] = ["name", "zip", "exclude"];
/// Settings that are part of the format and that the trainer cannot do yet.
pub(super) const NOT_BUILT: [&str; 1] = ["profile"];
/// Keys of `[run]` that might be taken for settings.
const RUN_ONLY: [&str; 3] = ["checkpoint_every", "keep_checkpoints", "report_every"];

impl<'i> Reader<'i> {
    /// Reads `[base]`.
    pub fn base(&mut self, item: &Item<'i>) -> Vec<Assignment> {
        let Some(table) = self.table("`base`", item) else {
            self.doubtful.extend(setting_keys());
            return Vec::new();
        };
        entries(table).into_iter().filter_map(|(key, value)| self.assignment(key, value, "[base]", &[])).collect()
    }

    /// The arms' tables.
    pub fn arm_tables<'t>(&mut self, item: &'t Item<'i>) -> Vec<&'t Item<'i>> {
        let list = match item.get_ref() {
            DeValue::Array(list) => list,
            DeValue::Table(_) => {
                let fault = Fault::at(item.span(), "`arm` must be a list of tables").label("one table");
                self.fault(fault.help("write `[[arm]]`, in double brackets, before each arm"));
                return Vec::new();
            }
            _ => {
                self.wrong_type("`arm`", item, "a list of tables, each headed by `[[arm]]`");
                return Vec::new();
            }
        };
        let is_table = |arm: &&Item<'i>| arm.get_ref().is_table();
        for arm in list.iter().filter(|arm| !is_table(arm)) {
            self.wrong_type("an arm", arm, "a table");
        }
        list.iter().filter(is_table).collect()
    }

    /// Reads the arms, also those whose name is at fault.
    pub fn arms(&mut self, tables: &[&Item<'i>]) -> Vec<Arm> {
        let mut arms: Vec<Arm> = Vec::new();
        for item in tables {
            let Some(table) = item.get_ref().as_table() else {
                continue;
            };
            let arm = self.arm(item, table);
            if let Some(other) = arms.iter().find(|other| !arm.name.is_empty() && other.name == arm.name) {
                let message = format!("two arms are named `{}`", arm.name);
                let line = self.line(other.name_span.start);
                self.fault(
                    Fault::at(arm.name_span.clone(), message).label(format!("the name of the arm in line {line}")),
                );
            }
            arms.push(arm);
        }
        arms
    }

    fn arm(&mut self, item: &Item<'i>, table: &DeTable<'i>) -> Arm {
        let mut arm = Arm {
            name: String::new(),
            name_span: item.span(),
            settings: Vec::new(),
            zip: Vec::new(),
            exclude: Vec::new(),
        };
        let mut named = false;
        for (key, value) in entries(table) {
            match key.get_ref().as_ref() {
                "name" => {
                    named = true;
                    if let Some(name) = self.string("the name of an arm", value) {
                        arm.name_span = value.span();
                        self.name_fits("the name of an arm", &name, value.span());
                        arm.name = name;
                    }
                }
                "zip" => arm.zip = self.zip(value),
                "exclude" => arm.exclude = self.exclude(value, None),
                _ => arm.settings.extend(self.assignment(key, value, "an arm", &ARM_KEYS)),
            }
        }
        if !named {
            let fault = Fault::at(item.span(), "an arm has no name").label("`name` is missing");
            self.absent(fault.help("add a line such as `name = \"adamw\"`"));
        }
        arm
    }

    /// A setting with its value or values. `others` are the keys of the place that are no settings.
    fn assignment(&mut self, key: &Key<'i>, item: &Item<'i>, place: &str, others: &[&str]) -> Option<Assignment> {
        let name = key.get_ref().as_ref();
        let row = match setting(name) {
            Some(row) if row.key == "seed" => {
                let fault = Fault::at(key.span(), "seeds are no setting of an arm").label("stands in the wrong place");
                self.fault(
                    fault.help("put `seeds = [1, 2, 3]` or `seeds = { first = 1, count = 3 }` at the top of the file"),
                );
                return None;
            }
            Some(row) => row,
            None => {
                // A slip of the pen: the setting that was meant is not here.
                self.doubtful.extend(nearest(name, &setting_keys()).and_then(setting).map(|row| row.key));
                let fault = self.no_setting(key, place, others);
                self.fault(fault);
                return None;
            }
        };
        let values = self.values(row, item)?;
        let is_axis = item.get_ref().is_array();
        Some(Assignment { setting: row, values, is_axis, span: item.span(), line: self.line(key.span().start) })
    }

    fn values(&mut self, row: &'static Setting, item: &Item<'i>) -> Option<Vec<crate::plan::request::Given>> {
        let Some(list) = item.get_ref().as_array() else {
            return self.given(row, item).map(|given| vec![given]);
        };
        if list.is_empty() {
            let fault = Fault::at(item.span(), format!("`{}` is an axis without values", row.key));
            self.doubtful.push(row.key);
            self.fault(fault.label(format!("each value must be {}", row.kind.describe())));
            return None;
        }
        let values: Vec<_> = list.iter().filter_map(|value| self.given(row, value)).collect();
        (values.len() == list.len()).then_some(values)
    }

    fn no_setting(&self, key: &Key<'_>, place: &str, others: &[&str]) -> Fault {
        let name = key.get_ref().as_ref();
        if RUN_ONLY.contains(&name) {
            let fault = Fault::at(key.span(), format!("`{name}` stands in {place}")).label("stands in the wrong place");
            return fault.help("it stands in [run]: it is the same for all runs");
        }
        if NOT_BUILT.contains(&name) {
            return Fault::at(key.span(), format!("`{name}` is not built yet")).label("leave it out");
        }
        let fault =
            Fault::at(key.span(), format!("unknown setting `{name}` in {place}")).label("not a setting of the trainer");
        let known: Vec<&str> =
            setting_keys().into_iter().filter(|k| *k != "seed").chain(others.iter().copied()).collect();
        match nearest(name, super::top::KEYS) {
            Some(top) if nearest(name, &known).is_none() => {
                fault.help(format!("`{top}` stands at the top of the file, before the first table"))
            }
            _ => suggest(fault, name, &known),
        }
    }
}
