//! `events/<controller>.jsonl`: what happened when.

use super::Sink;
use crate::event::{Event, Stamped};
use crate::store::{Journal, Layout};

/// Keeps events in the results folder. Rows and beats are left out: logs hold those.
pub struct EventsFile {
    journal: Journal,
    told: bool,
}

impl EventsFile {
    /// Events of this process in a results folder.
    pub fn new(layout: &Layout) -> Self {
        Self { journal: Journal::of_this_process(layout), told: false }
    }
}

impl Sink for EventsFile {
    fn take(&mut self, event: &Event) {
        if matches!(event, Event::Logged { .. } | Event::Beat { .. }) {
            return;
        }
        match self.journal.append(&Stamped::now(event)) {
            Ok(()) => self.told = false,
            // Results do not depend on this file: a sweep goes on, and the events are written when there is room.
            Err(error) if !std::mem::replace(&mut self.told, true) => {
                say!("warning: events are kept in memory for now: {}", error.full_text());
            }
            Err(_) if matches!(event, Event::SweepEnded { .. }) => {
                say!("warning: the last events are not in {}", self.journal.path().display());
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Halt;
    use crate::store::read_journals;

    #[test]
    fn events_of_the_sweep_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        let mut sink = EventsFile::new(&layout);
        sink.take(&Event::Stopping { halt: Halt::NoDies });
        sink.take(&Event::Beat {
            at: crate::event::At { run: crate::run::RunId::from_bits(1), attempt: 1, die: 0, label: String::new() },
            phase: crate::event::Phase::Training,
            step: None,
        });
        sink.take(&Event::DiskFree { waited: 1 });
        let journals = read_journals(&layout).unwrap();
        let [journal] = journals.as_slice() else { panic!("one file") };
        let events: Vec<_> = journal.records.iter().map(|record| &record.event).collect();
        assert_eq!(events, [&Event::Stopping { halt: Halt::NoDies }, &Event::DiskFree { waited: 1 }]);
    }
}
