//! What stands in a lease and in a controller's beat.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::event::rfc3339;
use crate::fault::{self, FileKind};
use crate::store::durable;
use crate::store::error::{Context, StoreError};
use crate::store::holder::Holder;
use crate::store::layout::{RunPaths, lease_number};

/// Version of these files.
const FORMAT: u32 = 1;

/// Digits of the counter at the beginning of a beat file: any `u64` fits, and writing it never changes the file's length.
const DIGITS: usize = 20;

/// A folder whose entries come and go while it is read is read again so many times.
const TRIES: u32 = 16;

/// A lease: never changed but by its release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LeaseFile {
    pub(super) format: u32,
    /// Name of the controller that made it, which names its beat.
    pub(super) controller: String,
    /// The controller's process.
    pub(super) process: Holder,
    /// The controller's beat when it made the lease.
    pub(super) beat: u64,
    /// For eyes alone: no clock is compared.
    pub(super) since: String,
    /// Whether the run was given back without a result. The file stays, so that no number is used twice.
    pub(super) released: bool,
}

impl LeaseFile {
    /// A lease of a controller whose beat is at `beat`.
    pub(super) fn new(controller: &str, process: Holder, beat: u64) -> Self {
        Self {
            format: FORMAT,
            controller: controller.to_owned(),
            process,
            beat,
            since: rfc3339(crate::clock::now()),
            released: false,
        }
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec(self).unwrap_or_default(); // strings and integers: cannot fail
        json.push(b'\n');
        json
    }
}

/// The content of a lease's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A lease.
    Lease(LeaseFile),
    /// Something else, by its digest: written by another version or another hand, since a lease is never half written. A power
    /// cut may leave an empty file.
    Unreadable(String),
}

/// The highest lease of a run, `None` if it has none.
///
/// # Errors
/// It cannot be read, for instance since it is a folder.
pub(super) fn highest(paths: &RunPaths) -> Result<Option<(u64, Content)>, StoreError> {
    for _ in 0..TRIES {
        let Some(number) = numbers(paths)?.pop() else { return Ok(None) };
        // It may have been removed since: its run is finished.
        if let Some(bytes) = durable::read_if_there(&paths.lease(number))? {
            return Ok(Some((number, content(&bytes))));
        }
    }
    Ok(None)
}

fn content(bytes: &[u8]) -> Content {
    match serde_json::from_slice::<LeaseFile>(bytes) {
        Ok(lease) if lease.format == FORMAT => Content::Lease(lease),
        Ok(_) | Err(_) => Content::Unreadable(blake3::hash(bytes).to_string()),
    }
}

/// The numbers of a run's leases, ascending.
pub(super) fn numbers(paths: &RunPaths) -> Result<Vec<u64>, StoreError> {
    let dir = paths.dir();
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context("read", dir),
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry.context("read", dir)?.file_name();
        numbers.extend(lease_number(&name.to_string_lossy()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// A controller's beat as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beat {
    pub(super) count: u64,
    /// The process, unless the file is damaged.
    pub(super) process: Option<Holder>,
    pub(super) since: String,
}

#[derive(Serialize, Deserialize)]
struct BeatFile {
    format: u32,
    process: Holder,
    since: String,
}

/// Makes the beat file of this process, with a count of `count`.
pub(super) fn begin_beat(path: &Path, count: u64) -> Result<(), StoreError> {
    let file = BeatFile { format: FORMAT, process: Holder::this_process(), since: rfc3339(crate::clock::now()) };
    let json = serde_json::to_string(&file).unwrap_or_default(); // strings and integers: cannot fail
    durable::replace(path, format!("{}\n{json}\n", digits(count)).as_bytes())
}

/// Writes the count over the one before, in place: that needs no space on the disk, so that a full one costs no lease. Opened and
/// closed each time, since that is what makes a network file system hand the bytes on.
pub(super) fn write_beat(path: &Path, count: u64) -> Result<(), StoreError> {
    match OpenOptions::new().write(true).open(path) {
        Ok(mut file) => {
            fault::write_all(&mut file, FileKind::Lock, digits(count).as_bytes()).context("write a beat to", path)
        }
        // Somebody took this controller for dead and cleared its file away.
        Err(error) if error.kind() == io::ErrorKind::NotFound => begin_beat(path, count),
        Err(error) => Err(error).context("write a beat to", path),
    }
}

/// Reads a controller's beat; `None` if it has none, or none that can be understood.
pub(super) fn read_beat(path: &Path) -> Result<Option<Beat>, StoreError> {
    let Some(bytes) = durable::read_if_there(path)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    let (count, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let Ok(count) = count.parse() else { return Ok(None) };
    let file: Option<BeatFile> = serde_json::from_str(rest).ok();
    let (process, since) = file.map_or((None, String::new()), |file| (Some(file.process), file.since));
    Ok(Some(Beat { count, process, since }))
}

fn digits(count: u64) -> String {
    format!("{count:0DIGITS$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_number_is_the_lease() {
        let folder = tempfile::tempdir().unwrap();
        let paths = RunPaths::new(folder.path());
        assert_eq!(highest(&paths).unwrap(), None);
        assert_eq!(highest(&RunPaths::new(folder.path().join("missing"))).unwrap(), None);
        let lease = |beat| LeaseFile::new("c", Holder::this_process(), beat);
        for number in [2, 9, 10] {
            fs::write(paths.lease(number), lease(number).to_json()).unwrap();
        }
        for other in ["lease.011", "lease.x", "lease.", ".lease.12.abc-0.tmp", "lease.13.old"] {
            fs::write(folder.path().join(other), "").unwrap();
        }
        let Some((10, Content::Lease(found))) = highest(&paths).unwrap() else { panic!("not the tenth") };
        assert_eq!((found.beat, found.process), (10, Holder::this_process()));
        fs::write(paths.lease(11), "").unwrap();
        assert!(matches!(highest(&paths).unwrap(), Some((11, Content::Unreadable(_)))));
        fs::create_dir(paths.lease(12)).unwrap();
        let error = highest(&paths).unwrap_err().full_text();
        assert!(error.starts_with("cannot read ") && error.contains("lease.12: Is a directory"), "{error}");
    }

    #[test]
    fn a_beat_is_written_in_place() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.beat");
        assert_eq!(read_beat(&path).unwrap(), None);
        begin_beat(&path, 1).unwrap();
        let before = fs::metadata(&path).unwrap();
        write_beat(&path, u64::MAX).unwrap();
        let beat = read_beat(&path).unwrap().unwrap();
        assert_eq!((beat.count, beat.process), (u64::MAX, Some(Holder::this_process())));
        let after = fs::metadata(&path).unwrap();
        assert_eq!((after.ino(), after.len()), (before.ino(), before.len()));
        fs::remove_file(&path).unwrap();
        write_beat(&path, 7).unwrap();
        assert_eq!(read_beat(&path).unwrap().unwrap().count, 7);
        for rubbish in ["", "x\n{}\n", "-1\n"] {
            fs::write(&path, rubbish).unwrap();
            assert_eq!(read_beat(&path).unwrap(), None, "{rubbish:?}");
        }
    }
}
