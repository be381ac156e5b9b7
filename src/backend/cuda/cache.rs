//! Compiled kernels on disk, found by what they were compiled from.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A folder of compiled kernels.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// What compiled code depends on: the digest of it all names the file.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The whole source.
    pub source: &'a str,
    /// Compiler options, in order.
    pub options: &'a [&'a str],
    /// Target as the compiler names it.
    pub target: &'a str,
    /// The compiler and its version.
    pub compiler: &'a str,
}

impl Key<'_> {
    fn digest(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        let parts = [self.target, self.compiler, self.source];
        for part in parts.iter().chain(self.options) {
            // Lengths keep neighbouring parts apart.
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize()
    }
}

/// Code for a key.
#[derive(Debug)]
pub struct Found {
    /// The code.
    pub code: Vec<u8>,
    /// Whether it was there already.
    pub cached: bool,
    /// Why it is not kept for next time, where it is not.
    pub not_kept: Option<io::Error>,
}

/// Length of the digest that stands before a file's content.
const HEAD: usize = blake3::OUT_LEN;

impl Cache {
    /// A cache in a folder of its own.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The user's: `$XDG_CACHE_HOME/diesweep/kernels`, or `~/.cache/diesweep/kernels`. `None` where the environment names
    /// no home.
    pub fn of_user(env: &dyn Fn(&str) -> Option<OsString>) -> Option<Self> {
        let set = |name: &str| env(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        // A relative XDG folder is invalid by its specification, and ignored.
        let base = set("XDG_CACHE_HOME")
            .filter(|path| path.is_absolute())
            .or_else(|| set("HOME").map(|home| home.join(".cache")))?;
        Some(Self::at(base.join("diesweep").join("kernels")))
    }

    fn file(&self, key: &Key<'_>) -> PathBuf {
        self.folder.join(format!("{}-{}.bin", key.target, key.digest().to_hex()))
    }

    /// The code stored for `key`. A file that is torn or damaged counts as absent.
    pub fn get(&self, key: &Key<'_>) -> Option<Vec<u8>> {
        let bytes = std::fs::read(self.file(key)).ok()?;
        let (head, content) = bytes.split_at_checked(HEAD)?;
        (blake3::hash(content).as_bytes() == head).then(|| content.to_vec())
    }

    /// The code stored for `key`, or else what `make` gives, which is stored. Processes that want the same code wait for the one that
    /// makes it, and get it too; the system ends the wait when that one dies. Where files cannot be locked nobody waits.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get_or_make<E>(&self, key: &Key<'_>, make: impl FnOnce() -> Result<Vec<u8>, E>) -> Result<Found, E> {
        let there = || self.get(key).map(|code| Found { code, cached: true, not_kept: None });
        if let Some(found) = there() {
            return Ok(found);
        }
        let turn = self.turn(key);
        if let Some(found) = turn.as_ref().ok().and_then(|_| there()) {
            return Ok(found);
        }
        let code = make()?;
        let not_kept = self.put(key, &code).err();
        Ok(Found { code, cached: false, not_kept })
    }

    /// Waits for the right to make the code of `key`, which goes with the file.
    fn turn(&self, key: &Key<'_>) -> io::Result<File> {
        std::fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(format!(".{}-{}.lock", key.target, key.digest().to_hex()));
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        file.lock()?;
        Ok(file)
    }

    /// Stores `code` for `key`: a temporary file, then renamed, so that a reader sees all or nothing.
    ///
    /// # Errors
    /// The folder cannot be made or written.
    pub fn put(&self, key: &Key<'_>, code: &[u8]) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let path = self.file(key);
        let temporary = self.folder.join(format!(".{}-{}.tmp", key.target, std::process::id()));
        let written = write(&temporary, code).and_then(|()| std::fs::rename(&temporary, &path));
        if written.is_err() {
            // What is left of a failed write is of no use; the first error is the one to report.
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }
}

fn write(path: &Path, code: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(blake3::hash(code).as_bytes())?;
    file.write_all(code)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    const KEY: Key<'_> = Key { source: "source", options: &["--a", "--b"], target: "sm_37", compiler: "NVRTC 11.8" };

    #[test]
    fn what_was_put_is_got_and_every_part_of_the_key_counts() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().join("deep/er"));
        assert_eq!(cache.get(&KEY), None);
        cache.put(&KEY, b"code").unwrap();
        assert_eq!(cache.get(&KEY).as_deref(), Some(&b"code"[..]));
        for other in [
            Key { source: "sourc", ..KEY },
            Key { options: &["--a--b"], ..KEY },
            Key { target: "sm_90", ..KEY },
            Key { compiler: "NVRTC 13.0", ..KEY },
        ] {
            assert_eq!(cache.get(&other), None, "{other:?}");
        }
        assert_eq!(std::fs::read_dir(&cache.folder).unwrap().count(), 1, "no temporary is left");
    }

    #[test]
    fn of_many_that_want_the_same_code_one_makes_it() {
        const MANY: usize = 6;
        let folder = tempfile::tempdir().unwrap();
        let (cache, made, wanted) = (Cache::at(folder.path()), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..MANY {
                scope.spawn(|| {
                    wanted.fetch_add(1, SeqCst);
                    let found = cache.get_or_make(&KEY, || {
                        made.fetch_add(1, SeqCst);
                        // Not before all others are about to look.
                        while wanted.load(SeqCst) < MANY {
                            std::thread::yield_now();
                        }
                        Ok::<_, ()>(b"code".to_vec())
                    });
                    assert_eq!(found.unwrap().code, b"code");
                });
            }
        });
        assert_eq!(made.load(SeqCst), 1);
        assert!(cache.get_or_make(&KEY, || Err("not asked")).unwrap().cached);
        let other = Key { target: "sm_90", ..KEY };
        assert_eq!(cache.get_or_make(&other, || Err("no compiler")).unwrap_err(), "no compiler");
        assert!(
            !cache.get_or_make(&other, || Ok::<_, ()>(b"later".to_vec())).unwrap().cached,
            "a failure locks nobody out"
        );
    }

    #[test]
    fn where_nothing_can_be_stored_the_code_is_made_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "no folder").unwrap();
        let found = Cache::at(file.join("kernels")).get_or_make(&KEY, || Ok::<_, ()>(b"code".to_vec())).unwrap();
        assert!(found.code == b"code" && !found.cached && found.not_kept.is_some());
    }

    #[test]
    fn a_torn_or_damaged_file_counts_as_absent() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        cache.put(&KEY, b"some code").unwrap();
        let whole = std::fs::read(cache.file(&KEY)).unwrap();
        for length in 0..whole.len() {
            std::fs::write(cache.file(&KEY), &whole[..length]).unwrap();
            assert_eq!(cache.get(&KEY), None, "{length} bytes");
        }
        let mut flipped = whole.clone();
        flipped[HEAD + 2] ^= 1;
        std::fs::write(cache.file(&KEY), &flipped).unwrap();
        assert_eq!(cache.get(&KEY), None);
    }

    #[test]
    fn the_users_folder_follows_the_xdg_rules() {
        let folder = |pairs: &'static [(&str, &str)]| {
            Cache::of_user(&move |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)))
                .map(|cache| cache.folder.display().to_string())
        };
        assert_eq!(folder(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]).as_deref(), Some("/x/diesweep/kernels"));
        assert_eq!(folder(&[("XDG_CACHE_HOME", "rel"), ("HOME", "/h")]).as_deref(), Some("/h/.cache/diesweep/kernels"));
        assert_eq!(folder(&[("XDG_CACHE_HOME", "")]), None);
    }
}
