//! A row of the table of settings.

use super::Settings;
use super::table::TABLE;
use super::value::{Kind, Value, Words};

/// A set of defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The reference driver's quirks corrected.
    Standard,
    /// The reference driver's quirks reproduced.
    Reference,
}

impl Words for Preset {
    const WORDS: &'static [&'static str] = &["standard", "reference"];
    const VALUES: &'static [Self] = &[Self::Standard, Self::Reference];
}

/// A default, as it can stand in a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    /// A whole number.
    Int(u64),
    /// A number.
    Float(f64),
    /// A switch.
    Bool(bool),
    /// A word or a path.
    Text(&'static str),
    /// The value of the setting of this key.
    Same(&'static str),
}

/// A part of the documentation's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Sizes of the model.
    Model,
    /// Corpus, schedule, evaluation.
    Schedule,
    /// Both arms' optimizer.
    Optimizer,
    /// What the SR4 arm alone reads.
    Sr4,
    /// What changes no number.
    Neutral,
}

/// How a setting reaches its field.
#[derive(Clone, Copy)]
pub struct Access {
    pub(super) get: fn(&Settings) -> Value,
    pub(super) set: fn(&mut Settings, &Value) -> bool,
}

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Setting {
    /// Key in sweep files; the flag is `--` and the key with `-` for `_`.
    pub key: &'static str,
    /// Part of the documentation.
    pub group: Group,
    /// Type and range.
    pub kind: Kind,
    /// Default of the preset `standard`.
    pub standard: Initial,
    /// Default of the preset `reference`, where that differs.
    pub reference: Option<Initial>,
    /// Whether it is part of a run's id.
    pub changes_numbers: bool,
    /// Whether a run so configured reads it.
    pub is_read: fn(&Settings) -> bool,
    /// One sentence for the documentation.
    pub help: &'static str,
    /// `None` for `preset`, which is spent when the settings are resolved.
    pub(super) access: Option<Access>,
}

impl Setting {
    /// The setting's value in `settings`; `None` for `preset`.
    pub fn get(&self, settings: &Settings) -> Option<Value> {
        self.access.map(|access| (access.get)(settings))
    }

    /// Puts an accepted value in its field. Returns whether the field took it: a value that
    /// [`Kind::accepts`] is always taken.
    pub fn set(&self, settings: &mut Settings, value: &Value) -> bool {
        self.access.is_some_and(|access| (access.set)(settings, value))
    }

    /// The name of the trainer's flag.
    pub fn flag(&self) -> String {
        format!("--{}", self.key.replace('_', "-"))
    }

    /// The preset's default.
    pub fn initial(&self, preset: Preset) -> Initial {
        match (preset, self.reference) {
            (Preset::Reference, Some(value)) => value,
            _ => self.standard,
        }
    }

    /// Sets the field to a default; `Same` reads the other setting's field as it is now.
    pub(super) fn set_initial(&self, settings: &mut Settings, initial: Initial) {
        let value = match initial {
            Initial::Int(v) => Value::Int(v),
            Initial::Float(v) => Value::Float(v),
            Initial::Bool(v) => Value::Bool(v),
            Initial::Text(v) => Value::Text(v.to_owned()),
            Initial::Same(key) => match setting(key).and_then(|other| other.get(settings)) {
                Some(value) => value,
                None => return,
            },
        };
        self.set(settings, &value);
    }
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Setting").field(&self.key).finish()
    }
}

/// The row of a key.
pub fn setting(key: &str) -> Option<&'static Setting> {
    TABLE.iter().find(|row| row.key == key)
}
