//! One controller on a folder at a time.
//!
//! A controller holds a folder by the file `controller.<n>`, made exclusively, which says who it is; the highest
//! number holds. A lock whose process is provably dead is taken over by making the next number, so that of two that
//! try only one succeeds; the loser finds a living holder. A process is provably dead if it would be visible here
//! (same boot and same pid namespace) and is gone or is another one by its start time, or if this same machine has
//! been booted since.

use std::fs;
use std::path::{Path, PathBuf};

use super::durable;
use super::error::{Context, StoreError};
use super::holder::Holder;
use super::layout::LOCK_PREFIX;

/// More takeovers than this in a row mean that something else is wrong.
const TRIES: u32 = 16;

/// The folder is this controller's until this is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
}

impl Lock {
    /// Takes the folder, or says who has it.
    pub(crate) fn take(dir: &Path) -> Result<Self, StoreError> {
        let here = Holder::this_process();
        for _ in 0..TRIES {
            let found = locks(dir)?;
            let mut next = 1;
            if let Some((number, path)) = found.last() {
                match read(path)? {
                    Some(holder) if !holder.is_provably_dead(&here) => {
                        return Err(held(dir, &holder, path));
                    }
                    Some(_) => next = number + 1,
                    None => continue, // given back since it was listed
                }
            }
            let path = dir.join(format!("{LOCK_PREFIX}{next}"));
            match durable::create_first(&path, &to_json(&here)) {
                Ok(true) => return Self { path }.settle(dir, &here),
                Ok(false) => {}
                // The one that holds the folder by now may have cleared this temporary file away.
                Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound && dir.is_dir() => {
                }
                Err(error) => return Err(error),
            }
        }
        let path = dir.join(format!("{LOCK_PREFIX}1"));
        Err(StoreError::Held { dir: dir.to_owned(), holder: "controllers that come and go".to_owned(), lock: path })
    }

    /// Looks again: a lock that was given back and taken anew under a lower number in between wins.
    fn settle(self, dir: &Path, here: &Holder) -> Result<Self, StoreError> {
        for (_, path) in locks(dir)? {
            if path == self.path {
                continue;
            }
            match read(&path)? {
                Some(holder) if !holder.is_provably_dead(here) => {
                    return Err(held(dir, &holder, &path));
                }
                Some(_) => durable::remove_if_there(&path)?,
                None => {}
            }
        }
        Ok(self)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // What cannot be removed is seen as dead as soon as this process is.
        let _ = durable::remove_if_there(&self.path);
    }
}

fn held(dir: &Path, holder: &Holder, lock: &Path) -> StoreError {
    StoreError::Held { dir: dir.to_owned(), holder: holder.to_string(), lock: lock.to_owned() }
}

/// The locks of a folder by ascending number.
fn locks(dir: &Path) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    let mut locks = Vec::new();
    for entry in fs::read_dir(dir).context("read", dir)? {
        let entry = entry.context("read", dir)?;
        if let Some(number) = lock_number(&entry.file_name().to_string_lossy()) {
            locks.push((number, entry.path()));
        }
    }
    locks.sort();
    Ok(locks)
}

/// The number of a lock's file, if the name is one's.
pub(super) fn lock_number(name: &str) -> Option<u64> {
    name.strip_prefix(LOCK_PREFIX)?.parse().ok()
}

fn read(path: &Path) -> Result<Option<Holder>, StoreError> {
    let Some(bytes) = durable::read_if_there(path)? else {
        return Ok(None);
    };
    match serde_json::from_slice(&bytes) {
        Ok(holder) => Ok(Some(holder)),
        // Never half written, so written by something else: nobody can be proven dead.
        Err(_) => Err(StoreError::Held {
            dir: path.parent().unwrap_or(path).to_owned(),
            holder: "an unknown process".to_owned(),
            lock: path.to_owned(),
        }),
    }
}

fn to_json(holder: &Holder) -> Vec<u8> {
    serde_json::to_vec(holder).unwrap_or_default() // strings and integers: cannot fail
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, number: u32, holder: &Holder) {
        fs::write(dir.join(format!("controller.{number}")), to_json(holder)).unwrap();
    }

    #[test]
    fn the_second_is_told_who_has_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::take(folder.path()).unwrap();
        let error = Lock::take(folder.path()).unwrap_err().to_string();
        let dir = folder.path().display();
        let want = format!(
            "{dir} is in use by process {} on {}; wait for it to end or, if you know that it is gone, remove {dir}/controller.1",
            std::process::id(),
            crate::store::host_name()
        );
        assert_eq!(error, want);
        drop(lock);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        Lock::take(folder.path()).unwrap();
    }

    #[test]
    fn a_dead_holder_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 3, &Holder::dead());
        let lock = Lock::take(folder.path()).unwrap();
        assert_eq!(lock.path, folder.path().join("controller.4"));
        assert!(!folder.path().join("controller.3").exists());
    }

    #[test]
    fn of_many_that_find_a_dead_holder_one_gets_the_folder() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            write(folder.path(), 1, &Holder::dead());
            let barrier = std::sync::Barrier::new(8);
            let locks: Vec<_> = std::thread::scope(|scope| {
                let take = || {
                    barrier.wait();
                    Lock::take(folder.path())
                };
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
                threads.into_iter().map(|t| t.join().unwrap()).collect()
            });
            assert_eq!(locks.iter().filter(|l| l.is_ok()).count(), 1);
        }
    }

    #[test]
    fn a_lock_that_is_none_is_not_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("controller.1"), "").unwrap();
        let error = Lock::take(folder.path()).unwrap_err().to_string();
        assert!(error.contains("in use by an unknown process"), "{error}");
    }
}
