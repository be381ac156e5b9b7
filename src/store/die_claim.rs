//! Dies of this host, one controller each.
//!
//! A GPU's memory is not shared as runs are: two controllers of one user on one die would take each other's. So a controller claims
//! each die by name (a GPU's UUID), in a folder of its user on this host that every process of the user finds, whatever its
//! environment. The kernel gives a claim back when its process ends, in whatever way.
//!
//! This is the one place where a lock of the file system is used: the folder is in memory, and so never on a network.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::error::{Context, StoreError};
use super::holder::Holder;

/// Folders that are this host's alone, the first that is there counts.
const ROOTS: [&str; 2] = ["/dev/shm", "/tmp"];

/// A die is this process's until this is dropped or the process ends.
#[derive(Debug)]
pub struct DieClaim {
    _file: File,
}

/// Answer to a claim.
#[derive(Debug)]
pub enum DieClaimed {
    /// The die is this process's.
    Ours(DieClaim),
    /// The die is another process's of this user.
    Taken {
        /// Whose, in words.
        holder: String,
    },
}

impl DieClaim {
    /// Claims a die of this host by its name; `what` says to others what it is used for.
    ///
    /// # Errors
    /// The user's folder cannot be used.
    pub fn take(name: &str, what: &str) -> Result<DieClaimed, StoreError> {
        let root = ROOTS.iter().map(Path::new).find(|root| root.is_dir()).unwrap_or(Path::new("/tmp"));
        Self::take_in(&users_folder(root)?, name, what)
    }

    /// Claims a die in a folder that this user alone can write to.
    pub(crate) fn take_in(folder: &Path, name: &str, what: &str) -> Result<DieClaimed, StoreError> {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let path = folder.join(format!("die-{}", name.chars().map(plain).take(64).collect::<String>()));
        // Closed when this process starts another program: a worker that lives on for a moment does not hold it.
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = file.context("open", &path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                // Who took it this very moment may not have said so yet.
                let known = file.read_to_string(&mut holder).is_ok() && !holder.is_empty();
                let holder = if known { holder.trim_end().to_owned() } else { "another process".to_owned() };
                return Ok(DieClaimed::Taken { holder });
            }
            Err(error) => return Err(error.into()).context("lock", &path),
        }
        let text = format!("{}, for {what}\n", Holder::this_process());
        let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
        written.context("write to", &path)?;
        Ok(DieClaimed::Ours(Self { _file: file }))
    }
}

/// The folder of this user, which nobody else can write to.
fn users_folder(root: &Path) -> Result<PathBuf, StoreError> {
    let user = rustix::process::geteuid().as_raw();
    let folder = root.join(format!("diesweep-{user}"));
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(error).context("create the folder", &folder);
        }
        _ => {}
    }
    let found = fs::symlink_metadata(&folder).context("look at", &folder)?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o022 != 0 {
        return Err(StoreError::NotOurs(folder));
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_die_is_one_process_s_until_it_is_dropped() {
        let root = tempfile::tempdir().unwrap();
        let folder = users_folder(root.path()).unwrap();
        let take = |name| DieClaim::take_in(&folder, name, "results/a").unwrap();
        let DieClaimed::Ours(claim) = take("GPU-1234/../x") else { panic!("taken") };
        // Two open files of one process exclude each other as those of two processes do.
        let DieClaimed::Taken { holder } = take("GPU-1234/../x") else { panic!("taken twice") };
        assert_eq!(holder, format!("{}, for results/a", Holder::this_process()));
        assert!(matches!(take("GPU-5678"), DieClaimed::Ours(_)));
        drop(claim);
        assert!(matches!(take("GPU-1234/../x"), DieClaimed::Ours(_)));
    }

    #[test]
    fn a_claim_ends_with_its_process() {
        let root = tempfile::tempdir().unwrap();
        let folder = users_folder(root.path()).unwrap();
        let DieClaimed::Ours(claim) = DieClaim::take_in(&folder, "d", "x").unwrap() else { panic!("taken") };
        // A child that outlives the claim does not hold it.
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        drop(claim);
        assert!(matches!(DieClaim::take_in(&folder, "d", "x").unwrap(), DieClaimed::Ours(_)));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let folder = users_folder(root.path()).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(users_folder(root.path()), Err(StoreError::NotOurs(_))));
        fs::remove_dir(&folder).unwrap();
        fs::write(&folder, "").unwrap();
        assert!(matches!(users_folder(root.path()), Err(StoreError::NotOurs(_))));
    }
}
