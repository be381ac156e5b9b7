//! `zip` and `exclude`, at the top or in an arm.

use toml::de::DeValue;

use super::reader::{Item, Reader, entries, suggest};
use crate::plan::Fault;
use crate::plan::request::{Exclude, Zip};
use crate::settings::table::TABLE;
use crate::settings::{Setting, setting};

const ZIP: &str = "a list of lists of keys, such as [[\"lr\", \"lr_min\"]]";
const EXCLUDE: &str = "a list of tables, such as [{ lr = 0.003, target_step = 0.01 }]";

/// Keys of all settings.
pub(super) fn setting_keys() -> Vec<&'static str> {
    TABLE.iter().map(|row| row.key).collect()
}

impl<'i> Reader<'i> {
    /// Reads a `zip`.
    pub fn zip(&mut self, item: &Item<'i>) -> Vec<Zip> {
        let Some(groups) = self.list("`zip`", item, ZIP) else {
            return Vec::new();
        };
        let mut zips: Vec<Zip> = Vec::new();
        for group in groups {
            let Some(names) = self.list("a group of `zip`", group, "a list of keys, such as [\"lr\", \"lr_min\"]")
            else {
                continue;
            };
            let mut keys: Vec<(&'static Setting, _)> = Vec::new();
            for name in names {
                let Some(row) = self.zipped(name) else {
                    continue;
                };
                if keys.iter().chain(zips.iter().flat_map(|z| &z.keys)).any(|(known, _)| known.key == row.key) {
                    let message = format!("`{}` is zipped twice", row.key);
                    self.fault(Fault::at(name.span(), message).label("a key can stand in one group"));
                } else {
                    keys.push((row, name.span()));
                }
            }
            if names.len() < 2 {
                let fault = Fault::at(group.span(), "a group of `zip` needs two keys or more");
                self.fault(fault.label("lists are walked side by side with others"));
            } else {
                zips.push(Zip { keys });
            }
        }
        zips
    }

    fn zipped(&mut self, name: &Item<'_>) -> Option<&'static Setting> {
        let key = self.string("a key of `zip`", name)?;
        let row = setting(&key);
        if row.is_none() {
            let fault =
                Fault::at(name.span(), format!("unknown setting `{key}`")).label("not a setting of the trainer");
            self.fault(suggest(fault, &key, &setting_keys()));
        }
        row
    }

    /// Reads an `exclude`. At the top it may name one of `arms`; in an arm it may not.
    pub fn exclude(&mut self, item: &Item<'i>, arms: Option<&[&str]>) -> Vec<Exclude> {
        let Some(points) = self.list("`exclude`", item, EXCLUDE) else {
            return Vec::new();
        };
        let mut excludes = Vec::new();
        for point in points {
            let Some(table) = self.table("a point of `exclude`", point) else {
                continue;
            };
            let span = point.span();
            let (text, line) = (self.written(&span), self.line(span.start));
            let mut exclude = Exclude { arm: None, values: Vec::new(), text, line };
            if table.is_empty() {
                let fault = Fault::at(span, "an empty point of `exclude` would leave nothing");
                self.fault(fault.label("must name at least one setting or arm"));
                continue;
            }
            for (key, value) in entries(table) {
                match (key.get_ref().as_ref(), arms) {
                    ("arm", Some(arms)) => exclude.arm = self.excluded_arm(value, arms),
                    (name, _) => match setting(name) {
                        Some(row) => exclude.values.extend(self.excluded_value(row, value)),
                        None => {
                            let mut known = setting_keys();
                            known.extend(arms.map(|_| "arm"));
                            let fault = Fault::at(key.span(), format!("unknown setting `{name}` in `exclude`"));
                            self.fault(suggest(fault.label("not a setting of the trainer"), name, &known));
                        }
                    },
                }
            }
            excludes.push(exclude);
        }
        excludes
    }

    fn excluded_arm(&mut self, item: &Item<'_>, arms: &[&str]) -> Option<String> {
        let name = self.string("`arm`", item)?;
        if !arms.contains(&name.as_str()) {
            let fault = Fault::at(item.span(), format!("there is no arm `{name}`")).label("not an arm of this sweep");
            self.absent(suggest(fault, &name, arms));
        }
        Some(name)
    }

    fn excluded_value(
        &mut self,
        row: &'static Setting,
        item: &Item<'_>,
    ) -> Option<(&'static Setting, crate::plan::request::Given)> {
        if matches!(item.get_ref(), DeValue::Array(_)) {
            let fault = Fault::at(item.span(), format!("`{}` of an excluded point cannot be a list", row.key));
            self.fault(fault.label("one value").help("give one table for each value"));
            return None;
        }
        self.given(row, item).map(|given| (row, given))
    }
}
