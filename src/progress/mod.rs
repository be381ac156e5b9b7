//! What a user sees of a sweep at work, and what is kept of it: consumers of events.

mod bars;
mod board;
mod events_file;
mod json;
mod out;
mod plain;
#[cfg(test)]
mod tests;
mod text;

pub use bars::Bars;
pub use events_file::EventsFile;
pub use json::JsonLines;
pub use plain::Plain;

use crate::event::Event;

/// Takes events.
pub trait Sink {
    /// Something happened.
    fn take(&mut self, event: &Event);

    /// Called several times a second, so that what changes with time alone can be brought up to date.
    fn idle(&mut self) {}

    /// Whether something could not be shown although somebody meant to read it.
    fn lost_something(&self) -> bool {
        false
    }
}

/// Passes events on to several takers.
#[derive(Default)]
pub struct Sinks(pub Vec<Box<dyn Sink>>);

impl Sink for Sinks {
    fn take(&mut self, event: &Event) {
        self.0.iter_mut().for_each(|sink| sink.take(event));
    }

    fn idle(&mut self) {
        self.0.iter_mut().for_each(|sink| sink.idle());
    }

    fn lost_something(&self) -> bool {
        self.0.iter().any(|sink| sink.lost_something())
    }
}
