//! The wall clock, for stamps alone: nothing is decided by it.

use std::time::{Duration, SystemTime};

/// The time of day. The one place that reads it.
pub fn now() -> SystemTime {
    let time = SystemTime::now();
    let offset = crate::fault::clock_offset();
    let by = Duration::from_secs(offset.unsigned_abs());
    let moved = if offset < 0 { time.checked_sub(by) } else { time.checked_add(by) };
    moved.unwrap_or(time)
}
