//! Events as lines of JSON.

use std::io::Write;

use super::Sink;
use super::out::Out;
use crate::event::{Event, Stamped};

/// Writes every event as a line of JSON, with its UTC time.
pub struct JsonLines<W> {
    out: Out<W>,
}

impl<W: Write> JsonLines<W> {
    /// Lines on `out`.
    pub const fn new(out: W) -> Self {
        Self { out: Out::new(out) }
    }
}

impl<W: Write> Sink for JsonLines<W> {
    fn take(&mut self, event: &Event) {
        let line = serde_json::to_vec(&Stamped::now(event)).map_err(std::io::Error::from);
        let written = line.and_then(|mut line| {
            line.push(b'\n');
            self.out.write(&line)
        });
        if let Err(error) = written {
            say!("error: events cannot be printed any more, and the sweep goes on without: {error}");
        }
    }

    fn lost_something(&self) -> bool {
        self.out.failed()
    }
}
