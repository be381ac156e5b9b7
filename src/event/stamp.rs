//! Events with the time at which they happened.

use std::time::SystemTime;

use serde::Serialize;

use super::Event;

/// An event and when it happened, as written to a line of JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Stamped<'a> {
    /// UTC, RFC 3339 with milliseconds.
    pub time: String,
    /// What happened.
    #[serde(flatten)]
    pub event: &'a Event,
}

impl<'a> Stamped<'a> {
    /// The event, now.
    pub fn now(event: &'a Event) -> Self {
        Self { time: rfc3339(crate::clock::now()), event }
    }
}

/// A point in time in UTC as RFC 3339 with milliseconds: `2026-11-30T19:48:14.250Z`.
///
/// Days become a date by Howard Hinnant's `civil_from_days`
/// (<https://howardhinnant.github.io/date_algorithms.html>). Times before 1970 read as its start.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Halt;
    use super::*;

    #[test]
    fn stamps_are_utc_and_know_leap_years() {
        let at = |secs, ms| rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(secs) + Duration::from_millis(ms));
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399, 999), "2000-02-28T23:59:59.999Z");
        assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_796_068_094, 250), "2026-11-30T19:48:14.250Z");
        assert_eq!(at(4_107_542_399, 0), "2100-02-28T23:59:59.000Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn an_event_is_one_line_with_its_time_first() {
        let event = Event::Stopping { halt: Halt::Signal { signal: 2 } };
        let line = serde_json::to_string(&Stamped { time: "T".into(), event: &event }).unwrap();
        assert_eq!(line, r#"{"time":"T","event":"stopping","halt":{"why":"signal","signal":2}}"#);
    }
}
