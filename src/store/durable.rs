//! Files that are whole or not there.
//!
//! A file is written as a temporary one in the same folder, flushed to disk, and then renamed (the last wins) or
//! linked (the first wins) to its name; then the folder is flushed. A reader never sees half a file, whenever the
//! power goes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::{Context, StoreError};
use super::holder;
use crate::fault::{self, FileKind, Moment};

/// Ending of a temporary file's name, which is `.<name>.<process's nonce>-<number>.tmp`.
const TEMPORARY: &str = ".tmp";

/// A temporary file that another process took for a dead one's, and cleared away, is written again so many times.
const TRIES: u32 = 8;

/// Writes a file in place of the one that may be there.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    unless_cleared_away(path, || Temporary::write(path, bytes)?.rename(path))
}

/// Writes a file unless there is one; whether it was written.
pub(crate) fn create_first(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    unless_cleared_away(path, || {
        let temporary = Temporary::write(path, bytes)?;
        link_first(&temporary.path, path)
    })
}

/// Makes a file, again if its temporary one has vanished under way.
fn unless_cleared_away<T>(path: &Path, make: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match make() {
            Err(StoreError::Io { source, .. })
                if source.kind() == io::ErrorKind::NotFound
                    && tries < TRIES
                    && path.parent().is_some_and(Path::is_dir) => {}
            made => return made,
        }
    }
}

/// Gives a file, already flushed, a second name unless that is taken; whether it was given.
///
/// Where the file system has no hard links, the file is copied and the copy renamed without replacing.
pub(crate) fn link_first(file: &Path, name: &Path) -> Result<bool, StoreError> {
    match fault::before(Moment::Name, name).and_then(|()| fs::hard_link(file, name)) {
        Ok(()) => settle(name).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) if no_links(&error) => copy_first(file, name),
        Err(error) => Err(error).context("link", name),
    }
}

fn no_links(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errnos = [Errno::PERM, Errno::OPNOTSUPP, Errno::NOSYS, Errno::MLINK];
    errnos.iter().any(|e| error.raw_os_error() == Some(e.raw_os_error()))
}

fn copy_first(file: &Path, name: &Path) -> Result<bool, StoreError> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let bytes = fs::read(file).context("read", file)?;
    let temporary = Temporary::write(name, &bytes)?;
    match renameat_with(CWD, &temporary.path, CWD, name, RenameFlags::NOREPLACE) {
        Ok(()) => settle(name).map(|()| true),
        Err(rustix::io::Errno::EXIST) => Ok(false),
        Err(error) => Err(io::Error::from(error)).context("rename a file to", name),
    }
}

/// Flushes to disk what any process has written to a file, or the names in a folder.
pub(crate) fn sync(path: &Path) -> Result<(), StoreError> {
    let file = File::open(path).context("open", path)?;
    fault::before(Moment::Flush, path).and_then(|()| file.sync_all()).context("flush", path)
}

/// Flushes the folder of a file that has just got its name.
fn settle(path: &Path) -> Result<(), StoreError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = File::open(folder).context("open", folder)?;
    fault::before(Moment::Sync, path).and_then(|()| file.sync_all()).context("flush", folder)?;
    fault::before(Moment::Done, path).context("flush", folder)
}

/// Reads a file, `None` if there is none.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context("read", path),
    }
}

/// Removes the temporary files that a killed process left in a folder: all but those of the processes that `lives`, by
/// their nonces.
pub(crate) fn remove_stale(folder: &Path, lives: &dyn Fn(&str) -> bool) -> Result<(), StoreError> {
    for entry in fs::read_dir(folder).context("read", folder)? {
        let entry = entry.context("read", folder)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_temporary(&name) && !owner(&name).is_some_and(lives) {
            remove_if_there(&entry.path())?;
        }
    }
    Ok(())
}

/// The nonce of the process that made a temporary file.
fn owner(name: &str) -> Option<&str> {
    let (rest, _) = name.strip_suffix(TEMPORARY)?.rsplit_once('-')?;
    Some(rest.rsplit_once('.')?.1)
}

/// Removes a file; none is fine too.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), StoreError> {
    match fault::before(Moment::Remove, path).and_then(|()| fs::remove_file(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context("remove", path),
        _ => Ok(()),
    }
}

/// Finds out whether there is room for so many bytes in a folder, by writing them.
pub(crate) fn room_for(folder: &Path, bytes: u64) -> Result<(), StoreError> {
    let target = folder.join("room");
    let mut file = NewFile::create(&target)?;
    // A file system that compresses must not take them for nothing.
    let mut noise = blake3::Hasher::new().finalize_xof();
    let mut chunk = vec![0; 1 << 16];
    let mut left = bytes;
    while left > 0 {
        noise.fill(&mut chunk);
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
        file.write(&chunk[..length])?;
        left -= length as u64;
    }
    file.flush()
}

/// Whether a name is that of a temporary file.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(TEMPORARY)
}

/// A large file in the making: takes its place when finished, and is gone if it never is.
pub(crate) struct NewFile {
    temporary: Temporary,
    target: PathBuf,
    file: BufWriter<Written>,
}

/// For writers of formats, which take any file.
impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A file whose writes pass their point.
struct Written {
    file: File,
    target: PathBuf,
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        fault::write_all(&mut self.file, FileKind::of(&self.target), bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl NewFile {
    pub(crate) fn create(target: &Path) -> Result<Self, StoreError> {
        let (temporary, file) = Temporary::create(target)?;
        let file = Written { file, target: target.to_owned() };
        Ok(Self { temporary, target: target.to_owned(), file: BufWriter::with_capacity(1 << 16, file) })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.file.write_all(bytes).context(&writing(bytes.len()), &self.target)
    }

    /// Has all that was written so far on disk.
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        let written = self.file.flush().and_then(|()| self.file.get_ref().file.sync_all());
        written.context("flush", &self.target)
    }

    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error);
        let Written { file, .. } = file.context("write", &self.target)?;
        flush(&file, &self.target)?;
        self.temporary.rename(&self.target)
    }
}

/// A temporary file; its name is removed when it is dropped, its other names stay.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn create(target: &Path) -> Result<(Self, File), StoreError> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let process = holder::nonce();
        let path = target.with_file_name(format!(".{name}.{process}-{count}{TEMPORARY}"));
        fault::before(Moment::Create, target).context("create", target)?;
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path);
        let file = file.context("create", target)?;
        Ok((Self { path }, file))
    }

    fn write(target: &Path, bytes: &[u8]) -> Result<Self, StoreError> {
        let (temporary, mut file) = Self::create(target)?;
        fault::write_all(&mut file, FileKind::of(target), bytes).context(&writing(bytes.len()), target)?;
        flush(&file, target)?;
        Ok(temporary)
    }

    fn rename(self, target: &Path) -> Result<(), StoreError> {
        let renamed = fault::before(Moment::Name, target).and_then(|()| fs::rename(&self.path, target));
        renamed.context("rename a file to", target)?;
        settle(target)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is nothing to remove; what cannot be removed now is removed at the next start.
        let _ = fs::remove_file(&self.path);
    }
}

fn flush(file: &File, target: &Path) -> Result<(), StoreError> {
    fault::before(Moment::Flush, target).and_then(|()| file.sync_all()).context("flush", target)
}

fn writing(bytes: usize) -> String {
    format!("write {bytes} bytes to")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Answer, Point, answering};

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_last_replaces_and_the_first_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        replace(&a, b"one").unwrap();
        replace(&a, b"two").unwrap();
        assert_eq!(fs::read(&a).unwrap(), b"two");
        assert!(create_first(&b, b"one").unwrap());
        assert!(!create_first(&b, b"two").unwrap());
        assert!(!link_first(&a, &b).unwrap());
        assert!(!copy_first(&a, &b).unwrap());
        assert_eq!(fs::read(&b).unwrap(), b"one");
        let c = folder.path().join("c");
        assert!(copy_first(&a, &c).unwrap());
        assert_eq!(names(folder.path()), ["a", "b", "c"]);
    }

    #[test]
    fn a_file_that_is_never_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let mut file = NewFile::create(&path).unwrap();
        file.write(b"half").unwrap();
        assert!(is_temporary(&names(folder.path())[0]));
        drop(file);
        assert!(names(folder.path()).is_empty());
        let mut file = NewFile::create(&path).unwrap();
        file.write(b"whole").unwrap();
        file.finish().unwrap();
        assert_eq!(names(folder.path()), ["table"]);
    }

    #[test]
    fn stale_temporaries_go_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".log.csv.12-0.tmp", ".hidden", "mine.tmp"] {
            fs::write(folder.path().join(name), b"").unwrap();
        }
        let ours = Temporary::write(&folder.path().join("log.csv"), b"").unwrap();
        assert_eq!(owner(ours.path.file_name().unwrap().to_str().unwrap()), Some(holder::nonce()));
        remove_stale(folder.path(), &|nonce| nonce == holder::nonce()).unwrap();
        assert!(ours.path.exists());
        remove_stale(folder.path(), &|_| false).unwrap();
        assert_eq!(names(folder.path()), [".hidden", "mine.tmp"]);
        assert!(matches!(ours.rename(&folder.path().join("log.csv")), Err(StoreError::Io { .. })));
    }

    #[test]
    fn a_full_disk_is_named_with_path_and_bytes() {
        let Ok(mut full) = OpenOptions::new().write(true).open("/dev/full") else {
            eprintln!("SKIPPED a_full_disk_is_named_with_path_and_bytes: no /dev/full");
            return;
        };
        let error = full.write_all(b"12345").context(&writing(5), Path::new("/r/x")).unwrap_err();
        assert_eq!(error.full_text(), "cannot write 5 bytes to /r/x: No space left on device (os error 28)");
        assert!(error.is_disk_full());
    }

    #[test]
    fn a_call_that_fails_half_way_leaves_the_old_file_and_no_other() {
        for moment in [Moment::Create, Moment::Write, Moment::Flush, Moment::Name, Moment::Sync, Moment::Done] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("plan.json");
            replace(&path, b"old").unwrap();
            let full = move |point: Point| if point.moment == moment { Answer::Full } else { Answer::Go };
            let error = answering(full, || replace(&path, b"a new one").unwrap_err());
            assert!(error.is_disk_full(), "{moment:?}: {error}");
            // Once it has its name it stays, flushed or not.
            let named = matches!(moment, Moment::Sync | Moment::Done);
            assert_eq!(fs::read(&path).unwrap() == b"a new one", named, "{moment:?}");
            assert_eq!(names(folder.path()), ["plan.json"], "{moment:?}");
            replace(&path, b"a new one").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"a new one");
        }
    }

    #[test]
    fn a_file_passes_its_points_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        let (seen, passed) = std::sync::mpsc::channel();
        let note = move |point: Point| {
            seen.send(point.to_string()).unwrap();
            Answer::Half
        };
        answering(note, || assert!(create_first(&path, b"1234").unwrap()));
        let points = ["create", "write", "torn", "flush", "name", "sync", "done"];
        assert_eq!(passed.iter().collect::<Vec<_>>(), points.map(|moment| format!("result.{moment}")));
        assert_eq!(fs::read(&path).unwrap(), b"1234");
    }
}
