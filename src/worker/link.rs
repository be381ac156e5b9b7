//! The worker's end of the pipes.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stderr, stdin, stdout};

use super::vigil::Vigil;
use crate::fault::{self, FileKind};
use crate::protocol::{FromWorker, ORPHANED, encode};

/// Lowest number of a duplicated descriptor: above the standard ones, whatever was closed at the start.
const LOWEST: i32 = 3;

/// Sends messages to the controller, whole lines at a time, from any thread.
#[derive(Debug)]
pub struct Link {
    out: Mutex<File>,
    vigil: Arc<Vigil>,
}

/// What a pipe that is ready takes without waiting: `PIPE_BUF` of Linux. Nearly every line is shorter, and is then written in one
/// piece or not at all.
const READY: usize = 4096;

/// Time between two looks whether the controller is still to be waited for.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Where standard output and standard error go.
#[derive(Debug)]
pub(super) struct Errors {
    own: OwnedFd,
}

/// Moves the protocol from the standard descriptors to duplicates that no library and no child can reach. From
/// then on standard output goes where standard error goes, and standard input is empty.
pub(super) fn take_over(vigil: Arc<Vigil>) -> io::Result<(Link, File, Errors)> {
    let input = File::from(fcntl_dupfd_cloexec(stdin(), LOWEST)?);
    let out = File::from(fcntl_dupfd_cloexec(stdout(), LOWEST)?);
    let own = fcntl_dupfd_cloexec(stderr(), LOWEST)?;
    dup2_stdin(File::open("/dev/null")?)?;
    dup2_stdout(&own)?;
    Ok((Link { out: Mutex::new(out), vigil }, input, Errors { own }))
}

impl Link {
    /// Sends a message. A worker that cannot reach its controller has no use: the process ends.
    pub fn tell(&self, message: &FromWorker) {
        match encode(message) {
            Ok(line) => self.put(&line),
            Err(error) => {
                say!("diesweep worker: {error}");
                std::process::exit(1);
            }
        }
    }

    /// Writes bytes that are a whole line. What a controller that stands still does not take is dropped once this worker leaves
    /// because of that: it must not be held up in saving its run.
    pub(super) fn put(&self, line: &[u8]) {
        // A thread that panicked while it held the lock wrote a whole line or ended the process.
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        for part in line.chunks(READY) {
            if !self.wait_for_room(&out) {
                return;
            }
            if fault::write_all(&mut *out, FileKind::Protocol, part).is_err() {
                std::process::exit(ORPHANED.into());
            }
        }
    }

    /// Waits until the pipe takes bytes; whether it does.
    fn wait_for_room(&self, out: &File) -> bool {
        while !self.vigil.is_alone() {
            let mut fds = [PollFd::new(out, PollFlags::OUT)];
            match poll(&mut fds, Some(&PAUSE)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                // An error shows in the write.
                Ok(_) | Err(_) => return true,
            }
        }
        false
    }
}

impl Errors {
    /// Sends standard output and standard error to a file.
    pub(super) fn to(&self, file: impl AsFd) -> io::Result<()> {
        dup2_stderr(&file)?;
        dup2_stdout(&file)?;
        Ok(())
    }

    /// Sends them where standard error went at the start.
    pub(super) fn back(&self) -> io::Result<()> {
        self.to(&self.own)
    }
}
