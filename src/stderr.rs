//! Standard error, whose reader may be gone and whose disk may be full: neither may end a sweep.

use std::fmt;
use std::io::Write;

/// Writes a line on standard error, as `eprintln!` does, but does not panic where that cannot be done.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::stderr::line(format_args!($($text)*))
    };
}

/// Writes a line on standard error in one piece where it can.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    // There is no other place to say it.
    let _ = std::io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}
