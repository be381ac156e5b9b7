//! `events/<controller>.jsonl`: what happened when.
//!
//! Each controller appends to a file of its own, a line of JSON for each event, and nobody else ever writes there. A line
//! ends with `,"sum":"<16 hexadecimal digits>"}`: the first 64 bits of blake3 over all that stands before it. A controller
//! that is killed, or a full disk, can leave half a line at the end: the file's owner cuts it off before it writes on; readers leave it out and
//! say so.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::error::{Context, StoreError};
use super::holder::controller_name;
use super::layout::Layout;
use crate::event::Event;
use crate::fault::{self, FileKind, Moment};

/// What stands before a line's sum.
const SUM: &str = ",\"sum\":\"";
/// Digits of a sum.
const DIGITS: usize = 16;

fn sum(body: &[u8]) -> String {
    blake3::hash(body).to_hex()[..DIGITS].to_owned()
}

/// This process's file of events.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Option<File>,
    /// Lines that are not written yet.
    waiting: VecDeque<Vec<u8>>,
}

impl Journal {
    /// The file of this process as a controller on the folder; it is made with the first event.
    pub fn of_this_process(layout: &Layout) -> Self {
        Self::named(layout, controller_name())
    }

    fn named(layout: &Layout, controller: &str) -> Self {
        Self { path: layout.journal(controller), file: None, waiting: VecDeque::new() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether all lines are in the file.
    pub fn is_written(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Appends an event, after those that could not be written before.
    ///
    /// # Errors
    /// The file cannot be written. The event is kept, and written with the next call that finds room.
    pub fn append<T: Serialize>(&mut self, event: &T) -> Result<(), StoreError> {
        let mut line = serde_json::to_vec(event).map_err(io::Error::from).context("write", &self.path)?;
        line.pop(); // the closing bracket
        let sum = sum(&line);
        line.extend_from_slice(format!("{SUM}{sum}\"}}\n").as_bytes());
        self.waiting.push_back(line);
        self.flush()
    }

    /// Writes what could not be written before.
    ///
    /// # Errors
    /// It still cannot be.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        while let Some(line) = self.waiting.front() {
            let action = format!("write {} bytes to", line.len());
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(open(&self.path)?),
            };
            if let Err(error) = fault::write_all(file, FileKind::Events, line) {
                // A part of the line may be there. Opened anew, the file is cut before the next one.
                self.file = None;
                return Err(error).context(&action, &self.path);
            }
            self.waiting.pop_front();
        }
        Ok(())
    }
}

/// Opens one's own file to append to it: half a line at its end is cut off.
fn open(path: &Path) -> Result<File, StoreError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).context("create the folder", folder)?;
    }
    fault::before(Moment::Create, path).context("open", path)?;
    let file = OpenOptions::new().read(true).append(true).create(true).open(path);
    let mut file = file.context("open", path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).context("read", path)?;
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1) as u64;
    if whole < bytes.len() as u64 {
        file.set_len(whole).context("cut", path)?;
    }
    Ok(file)
}

/// An event and when its controller took it in.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Record {
    /// UTC, RFC 3339.
    pub time: String,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What one controller wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadJournal {
    /// Name of the controller.
    pub controller: String,
    /// Its events, in their order.
    pub records: Vec<Record>,
    /// Lines that had to be left out, in words.
    pub warnings: Vec<String>,
}

/// Reads what all controllers of a folder wrote, by the controllers' names. Lines that are cut off or damaged are left out with a
/// warning; so are events that this version does not know.
///
/// # Errors
/// A file cannot be read.
pub fn read_journals(layout: &Layout) -> Result<Vec<ReadJournal>, StoreError> {
    let folder = layout.events();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context("read", &folder),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.context("read", &folder)?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            files.push(path);
        }
    }
    files.sort();
    files.par_iter().map(|path| Ok(parse(path, &fs::read(path).context("read", path)?))).collect()
}

fn parse(path: &Path, bytes: &[u8]) -> ReadJournal {
    let controller = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (mut records, mut damaged, mut unknown) = (Vec::new(), Vec::new(), 0);
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let lines = bytes[..whole].split_inclusive(|&byte| byte == b'\n');
    for (number, line) in (1..).zip(lines) {
        match verified(line) {
            Some(line) => match serde_json::from_slice(line) {
                Ok(record) => records.push(record),
                Err(_) => unknown += 1,
            },
            None => damaged.push(number),
        }
    }
    let mut warnings = Vec::new();
    let path = path.display();
    if let Some(first) = damaged.first() {
        let count = damaged.len();
        let lines = if count == 1 { "1 line is".to_owned() } else { format!("{count} lines are") };
        warnings.push(format!("{path}:{first}: {lines} damaged and left out"));
    }
    if unknown > 0 {
        warnings.push(format!("{path}: {unknown} events are of another version and left out"));
    }
    if whole < bytes.len() {
        let number = bytes[..whole].iter().filter(|&&byte| byte == b'\n').count() + 1;
        warnings.push(format!("{path}:{number}: the last line is cut off and left out"));
    }
    ReadJournal { controller, records, warnings }
}

/// The line, if its sum is that of what stands before it.
fn verified(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\n")?;
    let end = line.strip_suffix(b"\"}")?;
    let (rest, digits) = end.split_at_checked(end.len().checked_sub(DIGITS)?)?;
    let body = rest.strip_suffix(SUM.as_bytes())?;
    (sum(body).as_bytes() == digits).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Halt, Stamped};

    fn events() -> [Event; 3] {
        [
            Event::DiskFree { waited: 7 },
            Event::Stopping { halt: Halt::NoDies },
            Event::SweepEnded { finished: 1, failed: 0, left: 2, stopped: 0, here: 1, elsewhere: 0, wall_sec: 0.5 },
        ]
    }

    fn read(layout: &Layout) -> (Vec<Event>, Vec<String>) {
        let journals = read_journals(layout).unwrap();
        let warnings = journals.iter().flat_map(|journal| journal.warnings.clone()).collect();
        (journals.into_iter().flat_map(|journal| journal.records).map(|record| record.event).collect(), warnings)
    }

    fn written(root: &Path) -> (Layout, PathBuf) {
        let layout = Layout::new(root);
        let mut journal = Journal::named(&layout, "host-1-a");
        events().iter().for_each(|event| journal.append(&Stamped::now(event)).unwrap());
        (layout, journal.path().to_owned())
    }

    #[test]
    fn what_is_written_is_read() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(read_journals(&Layout::new(root.path())).unwrap(), []);
        let (layout, path) = written(root.path());
        assert_eq!(read(&layout), (events().to_vec(), vec![]));
        assert_eq!(read_journals(&layout).unwrap()[0].controller, "host-1-a");
        for line in fs::read_to_string(path).unwrap().lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(value["time"].as_str().unwrap().ends_with('Z') && value["sum"].as_str().unwrap().len() == DIGITS);
        }
    }

    #[test]
    fn no_changed_byte_goes_unseen() {
        let root = tempfile::tempdir().unwrap();
        let (layout, path) = written(root.path());
        let good = fs::read(&path).unwrap();
        let ends: Vec<usize> = (0..good.len()).filter(|&i| good[i] == b'\n').collect();
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 4;
            fs::write(&path, &bad).unwrap();
            let (found, warnings) = read(&layout);
            assert!(!warnings.is_empty(), "byte {i}");
            // A line end that is gone joins two lines; the last one's cuts it off.
            let lost = if ends[..2].contains(&i) { 2 } else { 1 };
            assert_eq!(found.len(), 3 - lost, "byte {i}");
            assert!(found.iter().all(|event| events().contains(event)), "byte {i}");
        }
    }

    #[test]
    fn readers_leave_half_a_line_out_and_its_owner_cuts_it_off() {
        let root = tempfile::tempdir().unwrap();
        let (layout, path) = written(root.path());
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 10]).unwrap();
        let (found, warnings) = read(&layout);
        assert_eq!(found, events()[..2]);
        assert_eq!(warnings, [format!("{}:3: the last line is cut off and left out", path.display())]);
        let mut journal = Journal::named(&layout, "host-1-a");
        journal.append(&Stamped::now(&events()[2])).unwrap();
        assert_eq!(read(&layout), (events().to_vec(), vec![]));
    }

    #[test]
    fn damage_in_the_middle_is_counted() {
        let root = tempfile::tempdir().unwrap();
        let (layout, path) = written(root.path());
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{{\"no\":1}}\n{text}rubbish\n\n")).unwrap();
        let (found, warnings) = read(&layout);
        assert_eq!(found, events());
        assert_eq!(warnings, [format!("{}:1: 3 lines are damaged and left out", path.display())]);
    }

    #[test]
    fn what_cannot_be_written_is_kept_and_written_later() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::new(root.path());
        let mut journal = Journal::named(&layout, "host-1-a");
        fs::write(layout.events(), "not a folder").unwrap();
        assert!(journal.append(&Stamped::now(&events()[0])).is_err());
        assert!(!journal.is_written());
        fs::remove_file(layout.events()).unwrap();
        journal.append(&Stamped::now(&events()[1])).unwrap();
        assert!(journal.is_written());
        assert_eq!(read(&layout).0, events()[..2]);
    }
}
