//! What a sweep asks for, each value with the place of the text that says it.

use super::{Compare, RunOptions, Span, StopRule};
use crate::settings::{Setting, Value};

/// A value of a setting, accepted by its [kind](crate::settings::Kind).
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// The value.
    pub value: Value,
    /// Its text as written.
    pub text: String,
    /// Line of the text, from 1.
    pub line: usize,
    /// Its place.
    pub span: Span,
}

/// A setting with its value, or with a list of values: an axis.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The setting.
    pub setting: &'static Setting,
    /// The values, at least one; exactly one where it is no axis.
    pub values: Vec<Given>,
    /// Whether the values stand in a list.
    pub is_axis: bool,
    /// Place of the values, the whole list for an axis.
    pub span: Span,
    /// Line of the key, from 1.
    pub line: usize,
}

/// Axes that are walked side by side.
#[derive(Clone, Debug)]
pub struct Zip {
    /// The axes' keys and their places; at least two, all different.
    pub keys: Vec<(&'static Setting, Span)>,
}

/// Points that are left out: those that have every one of the values.
#[derive(Clone, Debug)]
pub struct Exclude {
    /// The arm's name; all arms where absent.
    pub arm: Option<String>,
    /// Settings and their values.
    pub values: Vec<(&'static Setting, Given)>,
    /// Its text as written.
    pub text: String,
    /// Line of the text, from 1.
    pub line: usize,
}

/// An arm.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Its name, unlike that of the others and fit for the name of a folder.
    pub name: String,
    /// Place of the name.
    pub name_span: Span,
    /// Its own settings.
    pub settings: Vec<Assignment>,
    /// Its own zips.
    pub zip: Vec<Zip>,
    /// Its own excludes.
    pub exclude: Vec<Exclude>,
}

/// A sweep.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name of the sweep, fit for the name of a folder.
    pub name: String,
    /// Seeds, none twice, at least one.
    pub seeds: Vec<u64>,
    /// Settings of every arm.
    pub base: Vec<Assignment>,
    /// Place of `[base]`.
    pub base_span: Option<Span>,
    /// Zips that hold in every arm.
    pub zip: Vec<Zip>,
    /// Excludes that hold in every arm.
    pub exclude: Vec<Exclude>,
    /// Arms, at least one.
    pub arms: Vec<Arm>,
    /// Comparison; its baseline is an arm.
    pub compare: Compare,
    /// Options that change no number.
    pub options: RunOptions,
    /// Rule of early stopping.
    pub stop: Option<StopRule>,
    /// Settings of which some value was at fault and is not here: what they have a part in is not judged.
    pub doubtful: Vec<&'static str>,
}

impl Request {
    /// Whether one of the keys is doubtful.
    pub fn doubts(&self, keys: &[&str]) -> bool {
        self.doubtful.iter().any(|key| keys.contains(key))
    }
}
