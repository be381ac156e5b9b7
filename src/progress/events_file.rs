//! `events/<controller>.jsonl`: what happened when.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::Sink;
use crate::event::{Event, Stamped};
use crate::fault::{self, FileKind, Moment};

/// Appends events to a file that this controller alone writes. Rows and beats are left out: logs hold those.
pub struct EventsFile {
    folder: PathBuf,
    name: String,
    file: Option<File>,
    told: bool,
}

impl EventsFile {
    /// Events of this process in `folder`, in a file that is created with the first of them.
    pub fn new(folder: &Path) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }
        };
        let host: String = host.chars().map(plain).take(32).collect();
        // The pid is used again one day; the start time tells its users apart.
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let started = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)).unwrap_or("0");
        let name = format!("{host}-{}-{started}.jsonl", std::process::id());
        Self { folder: folder.to_owned(), name, file: None, told: false }
    }

    fn append(&mut self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Stamped::now(event))?;
        line.push(b'\n');
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                std::fs::create_dir_all(&self.folder)?;
                let path = self.folder.join(&self.name);
                fault::before(Moment::Create, &path)?;
                none.insert(OpenOptions::new().append(true).create(true).open(path)?)
            }
        };
        fault::write_all(file, FileKind::Events, &line)
    }
}

impl Sink for EventsFile {
    fn take(&mut self, event: &Event) {
        if matches!(event, Event::Logged { .. } | Event::Beat { .. }) {
            return;
        }
        if let Err(error) = self.append(event)
            && !std::mem::replace(&mut self.told, true)
        {
            // Results do not depend on this file: a sweep goes on without it.
            eprintln!("warning: {} cannot be written: {error}", self.folder.join(&self.name).display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Halt;

    #[test]
    fn each_event_is_a_line_with_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = EventsFile::new(&folder.path().join("events"));
        sink.take(&Event::Stopping { halt: Halt::NoDies });
        sink.take(&Event::SweepEnded { finished: 1, failed: 0, left: 0, wall_sec: 0.5 });
        let files: Vec<_> = std::fs::read_dir(folder.path().join("events")).unwrap().collect();
        assert_eq!(files.len(), 1);
        let name = files[0].as_ref().unwrap().file_name().into_string().unwrap();
        assert!(name.len() <= 64 && name.ends_with(".jsonl"), "{name}");
        let text = std::fs::read_to_string(files[0].as_ref().unwrap().path()).unwrap();
        let events: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events[0]["event"], "stopping");
        assert_eq!(events[1]["finished"], 1);
        assert!(events.iter().all(|event| { event["time"].as_str().is_some_and(|time| time.ends_with('Z')) }));
    }
}
