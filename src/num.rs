//! Numbers in JSON, which has no NaN and no infinity: those are written as the strings `nan`, `inf` and `-inf`.
//!
//! Finite numbers are written in the shortest form that reads back as the same bits. Use it on a field as
//! `#[serde(with = "crate::num")]`; the field is a `f64` or an `Option<f64>` (absent: `null`). The sign and the
//! payload of a NaN are not kept.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::ser::Serializer;

/// What a field written by this module holds: `f64` or `Option<f64>`.
pub trait Number: Sized {
    /// The value, or `None` for an absent one.
    fn get(&self) -> Option<f64>;
    /// The field from what was read; `None` where an absent value is not allowed.
    fn from_read(value: Option<f64>) -> Option<Self>;
}

impl Number for f64 {
    fn get(&self) -> Option<f64> {
        Some(*self)
    }

    fn from_read(value: Option<f64>) -> Option<Self> {
        value
    }
}

impl Number for Option<f64> {
    fn get(&self) -> Option<f64> {
        *self
    }

    fn from_read(value: Option<f64>) -> Option<Self> {
        Some(value)
    }
}

/// Writes a number.
pub fn serialize<T: Number, S: Serializer>(number: &T, serializer: S) -> Result<S::Ok, S::Error> {
    match number.get() {
        None => serializer.serialize_none(),
        Some(x) => match non_finite_text(x) {
            Some(text) => serializer.serialize_str(text),
            None => serializer.serialize_f64(x),
        },
    }
}

/// Reads a number.
pub fn deserialize<'de, T: Number, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let read = deserializer.deserialize_any(NumberVisitor)?;
    T::from_read(read).ok_or_else(|| de::Error::invalid_type(de::Unexpected::Unit, &NumberVisitor))
}

/// `nan`, `inf` or `-inf`; `None` for a finite number.
pub fn non_finite_text(x: f64) -> Option<&'static str> {
    if x.is_nan() {
        Some("nan")
    } else if x == f64::INFINITY {
        Some("inf")
    } else if x == f64::NEG_INFINITY {
        Some("-inf")
    } else {
        None
    }
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = Option<f64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or one of \"nan\", \"inf\" and \"-inf\"")
    }

    fn visit_f64<E: de::Error>(self, x: f64) -> Result<Self::Value, E> {
        Ok(Some(x))
    }

    fn visit_u64<E: de::Error>(self, x: u64) -> Result<Self::Value, E> {
        Ok(Some(x as f64))
    }

    fn visit_i64<E: de::Error>(self, x: i64) -> Result<Self::Value, E> {
        Ok(Some(x as f64))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        match text {
            "nan" => Ok(Some(f64::NAN)),
            "inf" => Ok(Some(f64::INFINITY)),
            "-inf" => Ok(Some(f64::NEG_INFINITY)),
            other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
        }
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, Serialize, Deserialize)]
    struct Sample {
        #[serde(with = "crate::num")]
        x: f64,
        #[serde(with = "crate::num")]
        y: Option<f64>,
    }

    #[test]
    fn non_finite_numbers_are_strings() {
        let text = |x, y| serde_json::to_string(&Sample { x, y }).unwrap();
        assert_eq!(text(f64::NAN, None), r#"{"x":"nan","y":null}"#);
        assert_eq!(text(f64::INFINITY, Some(f64::NEG_INFINITY)), r#"{"x":"inf","y":"-inf"}"#);
        assert_eq!(text(0.1, Some(3.0)), r#"{"x":0.1,"y":3.0}"#);
    }

    #[test]
    fn integers_and_strings_are_read() {
        let sample: Sample = serde_json::from_str(r#"{"x":3,"y":"-inf"}"#).unwrap();
        assert_eq!((sample.x, sample.y), (3.0, Some(f64::NEG_INFINITY)));
        let sample: Sample = serde_json::from_str(r#"{"x":"nan","y":null}"#).unwrap();
        assert!(sample.x.is_nan());
        assert_eq!(sample.y, None);
    }

    #[test]
    fn anything_else_is_refused() {
        for (text, message) in [
            (r#"{"x":null,"y":1}"#, "invalid type: null, expected a number, or one of \"nan\", \"inf\" and \"-inf\""),
            (r#"{"x":"NaN","y":1}"#, "invalid value: string \"NaN\", expected a number"),
            (r#"{"x":true,"y":1}"#, "invalid type: boolean `true`, expected a number"),
        ] {
            let error = serde_json::from_str::<Sample>(text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    proptest! {
        #[test]
        fn every_number_reads_back(bits in any::<u64>()) {
            let x = f64::from_bits(bits);
            let text = serde_json::to_string(&Sample { x, y: Some(x) }).unwrap();
            let back: Sample = serde_json::from_str(&text).unwrap();
            let same = |z: f64| z.to_bits() == bits || (z.is_nan() && x.is_nan());
            prop_assert!(same(back.x) && back.y.is_some_and(same), "{}", text);
        }
    }
}
