//! Spans of time as they are written on command lines and in sweep files.

use std::time::Duration;

/// Reads `20s`, `500ms`, `2m`, `1.5h`; a bare number is seconds.
///
/// # Errors
/// The text is no such time: says what is wrong with it.
pub fn parse(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is not a unit of time: use ms, s, m or h")),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{text}` is not a time such as 20s or 2m"))?;
    Duration::try_from_secs_f64(number * scale).map_err(|_| format!("`{text}` is too long a time"))
}

/// `2h`, `1h 30m`, `1m 30s` or `0s`: whole seconds in the units that they fill.
pub fn text(seconds: u64) -> String {
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let parts: Vec<_> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_the_units_that_they_fill() {
        let texts = [0, 59, 60, 90, 7200, 5400, 3601].map(text);
        assert_eq!(texts, ["0s", "59s", "1m", "1m 30s", "2h", "1h 30m", "1h 1s"]);
    }

    #[test]
    fn times_have_units() {
        assert_eq!(parse("20s"), Ok(Duration::from_secs(20)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse("7"), Ok(Duration::from_secs(7)));
        for bad in ["", "s", "-1s", "1d", "1.2.3s", "nan", "1e400h"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
