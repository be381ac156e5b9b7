//! Where lines go that somebody may or may not read to the end.

use std::io::{ErrorKind, Write};

/// A writer that is given up at its first error: a sweep goes on without it.
pub(super) struct Out<W> {
    out: W,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The reader has seen enough, as `head` does: no fault.
    Closed,
    /// Something was lost.
    Failed,
}

impl<W: Write> Out<W> {
    pub(super) const fn new(out: W) -> Self {
        Self { out, state: State::Open }
    }

    /// Writes whole lines. The error that ends it is given once; a reader that is gone is none.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), std::io::Error> {
        if self.state != State::Open {
            return Ok(());
        }
        match self.out.write_all(bytes).and_then(|()| self.out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.state = State::Closed;
                Ok(())
            }
            Err(error) => {
                self.state = State::Failed;
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    /// Whether something was lost.
    pub(super) fn failed(&self) -> bool {
        self.state == State::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails with this after some bytes.
    struct Narrow(usize, ErrorKind);

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0 == 0 {
                return Err(self.1.into());
            }
            let written = bytes.len().min(self.0);
            self.0 -= written;
            Ok(written)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_device_is_told_once_and_a_closed_pipe_never() {
        let mut out = Out::new(Narrow(4, ErrorKind::StorageFull));
        assert!(out.write(b"ab\n").is_ok() && !out.failed());
        assert!(out.write(b"cd\n").is_err() && out.failed());
        assert!(out.write(b"ef\n").is_ok() && out.failed());
        let mut out = Out::new(Narrow(4, ErrorKind::BrokenPipe));
        assert!(out.write(b"abcdef\n").is_ok() && out.write(b"gh\n").is_ok());
        assert!(!out.failed());
    }
}
