//! A small disk: a file system in memory that can be filled.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Room for a sweep several times over.
const SIZE: &str = "size=16m";

/// A small disk, gone when it is dropped.
#[derive(Debug)]
pub(super) struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    /// Puts one at a folder that exists.
    pub(super) fn mount(at: &Path) -> io::Result<Self> {
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", SIZE, "tmpfs"]).arg(at).status()?;
        if status.success() {
            Ok(Self { at: at.to_owned() })
        } else {
            Err(io::Error::other(format!("mount: {status}")))
        }
    }

    fn ballast(&self) -> PathBuf {
        self.at.join("ballast")
    }

    /// Fills it to the last byte.
    pub(super) fn fill(&self) -> io::Result<()> {
        let mut file = File::create(self.ballast())?;
        for size in [1 << 20, 1 << 12, 1] {
            let block = vec![0; size];
            while file.write_all(&block).is_ok() {}
        }
        Ok(())
    }

    /// Makes room again.
    pub(super) fn free(&self) {
        // It may be that nothing was filled.
        let _ = fs::remove_file(self.ballast());
    }

    /// Copies what is on it beside it, since it will be gone.
    pub(super) fn keep(&self) -> io::Result<()> {
        let kept = self.at.with_extension("kept");
        Command::new("cp").arg("-a").arg(&self.at).arg(kept).status().map(drop)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What is mounted goes with the process, whose name space it is in.
        let _ = Command::new("umount").arg("--lazy").arg(&self.at).status();
    }
}

/// Environment variable that says that the process has a name space for mounts of its own.
const OWN: &str = "DIESWEEP_TORTURE_MOUNTS";

/// Starts this program anew in a name space for mounts of its own, where a small disk is nobody else's and goes with the process;
/// its exit status. `None` if this is that program, or the system does not permit it.
pub(super) fn in_own_mounts() -> Option<i32> {
    if std::env::var_os(OWN).is_some() {
        return None;
    }
    let program = std::env::current_exe().ok()?;
    // Users other than root need a name space for users besides.
    for options in [&["--mount"][..], &["--mount", "--map-root-user"]] {
        let unshare = || {
            let mut command = Command::new("unshare");
            command.args(options).arg("--").env(OWN, "1");
            command
        };
        let permitted = unshare().arg("true").output().is_ok_and(|output| output.status.success());
        if permitted {
            let status = unshare().arg(program).args(std::env::args_os().skip(1)).status().ok()?;
            return Some(status.code().unwrap_or(1));
        }
    }
    None
}

/// Whether this process may mount what nobody else sees.
pub(super) fn is_permitted() -> bool {
    std::env::var_os(OWN).is_some()
}
