//! A TOML value as a setting's value.

use toml::de::DeValue;

use super::reader::{Item, Reader, nearest};
use crate::plan::Fault;
use crate::plan::request::Given;
use crate::settings::{Kind, Setting, Value};

/// Whole numbers up to this are exact as 64-bit floats.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The value as a whole number: an integer, or a float that is exactly one. Clamped to 128 bits.
pub(super) fn whole(value: &DeValue<'_>) -> Option<i128> {
    match value {
        DeValue::Integer(v) => {
            let beyond = if v.as_str().starts_with('-') { i128::MIN } else { i128::MAX };
            Some(i128::from_str_radix(v.as_str(), v.radix()).unwrap_or(beyond))
        }
        DeValue::Float(v) => match v.as_str().parse::<f64>() {
            Ok(v) if v.fract() == 0.0 && v.abs() <= EXACT => Some(v as i128),
            _ => None,
        },
        _ => None,
    }
}

/// The value as a number, which may be NaN or infinite.
pub(super) fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(_) => whole(value).map(|v| v as f64),
        DeValue::Float(v) => v.as_str().parse().ok(),
        _ => None,
    }
}

impl Reader<'_> {
    /// The setting's value; a fault where it is none.
    pub fn given(&mut self, setting: &'static Setting, item: &Item<'_>) -> Option<Given> {
        let value = match of_kind(setting.kind, item.get_ref()) {
            Ok(value) => value,
            Err(problem) => {
                self.doubtful.push(setting.key);
                let fault = refused(setting, item, problem);
                self.fault(fault);
                return None;
            }
        };
        let span = item.span();
        Some(Given { value, text: self.written(&span), line: self.line(span.start), span })
    }
}

/// Why a value is none of a setting's.
enum Problem {
    Type,
    NotWhole,
    NotFinite,
    Range,
    Word(String),
    Empty,
}

fn of_kind(kind: Kind, item: &DeValue<'_>) -> Result<Value, Problem> {
    let value = match (kind, item) {
        (Kind::IntFromOne { .. }, DeValue::Integer(_) | DeValue::Float(_)) => integer(item, |v| v.max(1))?,
        (Kind::Int { .. } | Kind::IntOr { .. }, DeValue::Integer(_) | DeValue::Float(_)) => integer(item, |v| v)?,
        (Kind::Float(..), DeValue::Integer(_) | DeValue::Float(_)) => {
            let text_is_word = matches!(item, DeValue::Float(v) if v.as_str().contains(['n', 'N']));
            match number(item) {
                Some(v) if v.is_finite() => Value::Float(v),
                _ if text_is_word => return Err(Problem::NotFinite),
                _ => return Err(Problem::Range),
            }
        }
        (Kind::Bool, DeValue::Boolean(v)) => Value::Bool(*v),
        (Kind::Word(_) | Kind::IntOr { .. }, DeValue::String(v)) => {
            let value = Value::Text(v.to_string());
            return if kind.accepts(&value) { Ok(value) } else { Err(Problem::Word(v.to_string())) };
        }
        (Kind::Path, DeValue::String(v)) if v.is_empty() => return Err(Problem::Empty),
        (Kind::Path, DeValue::String(v)) => Value::Text(v.to_string()),
        _ => return Err(Problem::Type),
    };
    if kind.accepts(&value) { Ok(value) } else { Err(Problem::Range) }
}

fn integer(item: &DeValue<'_>, adjust: fn(i128) -> i128) -> Result<Value, Problem> {
    let not_whole = || match number(item) {
        Some(v) if v.is_finite() && v.fract() == 0.0 => Problem::Range,
        Some(v) if v.is_finite() => Problem::NotWhole,
        _ => Problem::NotFinite,
    };
    let value = whole(item).ok_or_else(not_whole)?;
    u64::try_from(adjust(value)).map(Value::Int).map_err(|_| Problem::Range)
}

fn refused(setting: &Setting, item: &Item<'_>, problem: Problem) -> Fault {
    let key = setting.key;
    let allowed = format!("must be {}", setting.kind.describe());
    let found = item.get_ref().type_str();
    let article = if found.starts_with(['a', 'i']) { "an" } else { "a" };
    let message = match &problem {
        Problem::Type => format!("`{key}` cannot be {article} {found}"),
        Problem::NotWhole => format!("`{key}` must be a whole number"),
        Problem::NotFinite => format!("`{key}` must be finite"),
        Problem::Range => format!("`{key}` is out of range"),
        Problem::Word(word) => format!("`{key}` cannot be \"{word}\""),
        Problem::Empty => format!("`{key}` is empty"),
    };
    let fault = Fault::at(item.span(), message).label(allowed);
    let words: &[&str] = match &setting.kind {
        Kind::Word(words) => words,
        Kind::IntOr { word, .. } => std::slice::from_ref(word),
        _ => &[],
    };
    match problem {
        Problem::Word(word) => match nearest(&word, words) {
            Some(near) => fault.help(format!("did you mean \"{near}\"?")),
            None => fault,
        },
        _ => fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::setting;

    fn read(key: &str, text: &str) -> Option<Value> {
        let item = DeValue::parse(text).unwrap();
        let mut reader = Reader { text, faults: Vec::new(), broken: false, doubtful: Vec::new(), meant: Vec::new() };
        let given = reader.given(setting(key).unwrap(), &item).map(|given| given.value);
        assert_eq!(given.is_none(), reader.faults.len() == 1);
        given
    }

    #[test]
    fn whole_numbers_in_every_spelling() {
        for text in ["1000", "1_000", "+1000", "0x3e8", "0o1750", "0b1111101000", "1e3", "1000.0", "1_000.0", "10E+2"] {
            assert_eq!(read("steps", text), Some(Value::Int(1000)), "{text}");
        }
        for text in ["1.5", "1e-3", "nan", "inf", "1e30", "-1", "0", "-0.0", "\"1000\"", "true", "[[1]]"] {
            assert_eq!(read("steps", text), None, "{text}");
        }
        assert_eq!(read("dither_seed", "18446744073709551615"), Some(Value::Int(u64::MAX)));
        assert_eq!(read("dither_seed", "18446744073709551616"), None);
        for text in ["0", "-3", "-3e0", "1"] {
            assert_eq!(read("eval_every", text), Some(Value::Int(1)), "{text}");
        }
        assert_eq!(read("eval_every", "0.5"), None);
    }

    #[test]
    fn numbers_in_every_spelling() {
        for (text, value) in [("1", 1.0), ("+1", 1.0), ("1e-3", 1e-3), ("0.001", 1e-3), ("1_0.5", 10.5), ("0x10", 16.0)]
        {
            assert_eq!(read("lr", text), Some(Value::Float(value)), "{text}");
        }
        for text in ["nan", "+nan", "-nan", "inf", "+inf", "-inf", "1e999", "-1", "\"1\"", "1979-05-27"] {
            assert_eq!(read("lr", text), None, "{text}");
        }
    }

    #[test]
    fn a_word_or_a_number() {
        assert_eq!(read("test_batches", "\"all\""), Some(Value::Text("all".to_owned())));
        assert_eq!(read("test_batches", "64"), Some(Value::Int(64)));
        assert_eq!(read("test_batches", "\"none\""), None);
        assert_eq!(read("test_batches", "0"), None);
    }
}
