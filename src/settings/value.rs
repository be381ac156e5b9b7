//! A setting's value, the values it may take, and the way between them and the fields of [`Settings`].
//!
//! [`Settings`]: super::Settings

use std::fmt;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use super::{Data, Decay, EvalWeights, OnNonfinite, Opt, Precision, ScaleInit, ScaleLrMode, TestBatches};

/// A value as a sweep file or a flag gives it.
///
/// Its text is canonical: the shortest that reads back as the same value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(u64),
    /// A finite number.
    Float(f64),
    /// A switch.
    Bool(bool),
    /// A word or a path.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(v) => write!(f, "{v}"),
            Self::Float(v) => {
                // Debug is the shortest text that round-trips and takes an exponent where that is shorter.
                let text = format!("{v:?}");
                f.write_str(text.strip_suffix(".0").unwrap_or(&text))
            }
            Self::Bool(v) => write!(f, "{v}"),
            Self::Text(v) => f.write_str(v),
        }
    }
}

/// The type and range of a setting.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A whole number in an inclusive range.
    Int {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A whole number; what is below 1 counts as 1.
    IntFromOne {
        /// Largest.
        max: u64,
    },
    /// A whole number in an inclusive range, or one word.
    IntOr {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
        /// The word.
        word: &'static str,
    },
    /// A finite number between two bounds.
    Float(Bound<f64>, Bound<f64>),
    /// `true` or `false`.
    Bool,
    /// One of some words.
    Word(&'static [&'static str]),
    /// The path of a file or folder, or the name of a built-in corpus.
    Path,
}

impl Kind {
    /// Whether the value has this type and lies in its range.
    pub fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Int { min, max } | Self::IntOr { min, max, .. }, Value::Int(v)) => (min..=max).contains(&v),
            (Self::IntFromOne { max }, Value::Int(v)) => v <= max,
            (Self::IntOr { word, .. }, Value::Text(v)) => v == word,
            (Self::Float(low, high), Value::Float(v)) => v.is_finite() && (*low, *high).contains_value(*v),
            (Self::Bool, Value::Bool(_)) => true,
            (Self::Word(words), Value::Text(v)) => words.contains(&v.as_str()),
            (Self::Path, Value::Text(v)) => !v.is_empty(),
            _ => false,
        }
    }

    /// The value that a command line's text stands for, where the text has this type and the value lies in its range.
    pub fn parse(&self, text: &str) -> Option<Value> {
        let value = match self {
            Self::Int { .. } | Self::IntFromOne { .. } => Value::Int(text.parse().ok()?),
            Self::IntOr { word, .. } if text == *word => Value::Text(text.to_owned()),
            Self::IntOr { .. } => Value::Int(text.parse().ok()?),
            Self::Float(..) => Value::Float(text.parse().ok()?),
            Self::Bool => Value::Bool(text.parse().ok()?),
            Self::Word(_) | Self::Path => Value::Text(text.to_owned()),
        };
        self.accepts(&value).then_some(value)
    }

    /// What is allowed, as a phrase: `a whole number from 1 to 64`.
    pub fn describe(&self) -> String {
        match self {
            Self::Int { min, max } => format!("a whole number {}", int_range(*min, *max)),
            Self::IntFromOne { .. } => "a whole number (below 1 counts as 1)".to_owned(),
            Self::IntOr { min, max, word } => {
                format!("a whole number {}, or \"{word}\"", int_range(*min, *max))
            }
            Self::Float(low, high) => {
                let low = match low {
                    Bound::Included(v) => format!("at least {}", Value::Float(*v)),
                    Bound::Excluded(v) => format!("above {}", Value::Float(*v)),
                    Bound::Unbounded => return "a number".to_owned(),
                };
                match high {
                    Bound::Included(v) => {
                        format!("a number {low} and at most {}", Value::Float(*v))
                    }
                    Bound::Excluded(v) => format!("a number {low} and below {}", Value::Float(*v)),
                    Bound::Unbounded => format!("a number {low}"),
                }
            }
            Self::Bool => "true or false".to_owned(),
            Self::Word(words) => alternatives(words),
            Self::Path => "the path of a file or folder, or \"builtin\"".to_owned(),
        }
    }
}

fn int_range(min: u64, max: u64) -> String {
    if max == u64::MAX { format!("from {min} up") } else { format!("from {min} to {max}") }
}

/// `"a"`, `"a" or "b"`, `"a", "b" or "c"`.
fn alternatives(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| format!("\"{w}\"")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

trait ContainsValue {
    fn contains_value(&self, v: f64) -> bool;
}

impl ContainsValue for (Bound<f64>, Bound<f64>) {
    fn contains_value(&self, v: f64) -> bool {
        std::ops::RangeBounds::contains(self, &v)
    }
}

/// A type of a field of [`Settings`](super::Settings).
pub(super) trait Field: Sized {
    /// The field's value.
    fn to_value(&self) -> Value;
    /// The field that the value stands for, where it has the right type.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! int_field {
    ($($t:ty),*) => {$(
        impl Field for $t {
            fn to_value(&self) -> Value {
                Value::Int(*self as u64)
            }
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Int(v) => Self::try_from(*v).ok(),
                    _ => None,
                }
            }
        }
    )*};
}
int_field!(u8, u64, usize);

impl Field for f64 {
    fn to_value(&self) -> Value {
        Value::Float(*self)
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Float(v) => Some(*v),
            _ => None,
        }
    }
}

impl Field for bool {
    fn to_value(&self) -> Value {
        Value::Bool(*self)
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(v) => Some(*v),
            _ => None,
        }
    }
}

/// An enumeration each of whose values has a word.
pub(super) trait Words: Sized + Copy + PartialEq + 'static {
    /// Every value with its word.
    const WORDS: &'static [&'static str];
    /// Every value, in the order of [`Words::WORDS`].
    const VALUES: &'static [Self];
}

impl<T: Words> Field for T {
    fn to_value(&self) -> Value {
        let at = T::VALUES.iter().position(|v| v == self);
        Value::Text(at.map_or("", |i| T::WORDS[i]).to_owned())
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(v) => T::WORDS.iter().position(|w| w == v).map(|i| T::VALUES[i]),
            _ => None,
        }
    }
}

macro_rules! words {
    ($t:ident: $($value:ident = $word:literal),*) => {
        impl Words for $t {
            const WORDS: &'static [&'static str] = &[$($word),*];
            const VALUES: &'static [Self] = &[$($t::$value),*];
        }
    };
}
words!(Opt: AdamW = "adamw", Sr4 = "sr4");
words!(Decay: All = "all", Matrices = "matrices");
words!(ScaleInit: Unit = "unit", FanIn = "fan_in");
words!(ScaleLrMode: Lr = "lr", Grad = "grad");
words!(EvalWeights: Fresh = "fresh", Stale = "stale");
words!(Precision: Fp32 = "fp32", Tf32 = "tf32", Tf32x3 = "tf32x3", Bf16 = "bf16");
words!(OnNonfinite: Diverged = "diverged", Skip = "skip");

impl Field for TestBatches {
    fn to_value(&self) -> Value {
        match self {
            Self::Windows(n) => Value::Int(*n),
            Self::All => Value::Text("all".to_owned()),
        }
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Int(n) => Some(Self::Windows(*n)),
            Value::Text(word) if word == "all" => Some(Self::All),
            _ => None,
        }
    }
}

impl Field for Data {
    fn to_value(&self) -> Value {
        match self {
            Self::Path(path) => Value::Text(path_text(path)),
            Self::Builtin => Value::Text("builtin".to_owned()),
        }
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(word) if word == "builtin" => Some(Self::Builtin),
            Value::Text(path) => Some(Self::Path(PathBuf::from(path))),
            _ => None,
        }
    }
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_shortest_that_read_back() {
        let texts = [(1.0, "1"), (0.001, "0.001"), (3e-4, "0.0003"), (1e-8, "1e-8"), (1e300, "1e300"), (-0.5, "-0.5")];
        for (value, text) in texts {
            assert_eq!(Value::Float(value).to_string(), text);
            assert_eq!(text.parse::<f64>().unwrap(), value);
        }
    }

    /// `run.json` and `plan.json` are written by serde, tables and ids by the words: they must agree.
    #[test]
    fn words_are_those_of_serde() {
        fn agree<T: Words + serde::Serialize>() {
            assert_eq!(T::WORDS.len(), T::VALUES.len());
            for (word, value) in T::WORDS.iter().zip(T::VALUES) {
                assert_eq!(serde_json::to_value(value).unwrap(), serde_json::json!(word));
            }
        }
        agree::<Opt>();
        agree::<Decay>();
        agree::<ScaleInit>();
        agree::<ScaleLrMode>();
        agree::<EvalWeights>();
        agree::<Precision>();
        agree::<OnNonfinite>();
    }

    #[test]
    fn bounds_are_kept_and_described() {
        let rate = Kind::Float(Bound::Included(0.0), Bound::Excluded(1.0));
        assert!(rate.accepts(&Value::Float(0.0)) && !rate.accepts(&Value::Float(1.0)));
        assert!(!rate.accepts(&Value::Float(f64::NAN)) && !rate.accepts(&Value::Int(0)));
        assert_eq!(rate.describe(), "a number at least 0 and below 1");
        let open = Kind::Float(Bound::Excluded(0.0), Bound::Unbounded);
        assert!(!open.accepts(&Value::Float(0.0)) && !open.accepts(&Value::Float(f64::INFINITY)));
        let count = Kind::Int { min: 1, max: 8 };
        assert!(count.accepts(&Value::Int(8)) && !count.accepts(&Value::Int(9)) && !count.accepts(&Value::Int(0)));
    }
}
