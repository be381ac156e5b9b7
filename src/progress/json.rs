//! Events as lines of JSON.

use std::io::Write;

use super::Sink;
use crate::event::{Event, Stamped};

/// Writes every event as a line of JSON, with its UTC time.
pub struct JsonLines<W> {
    out: W,
}

impl<W: Write> JsonLines<W> {
    /// Lines on `out`.
    pub const fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write> Sink for JsonLines<W> {
    fn take(&mut self, event: &Event) {
        // A reader that is gone must not end a sweep.
        if let Ok(mut line) = serde_json::to_vec(&Stamped::now(event)) {
            line.push(b'\n');
            let _ = self.out.write_all(&line).and_then(|()| self.out.flush());
        }
    }
}
