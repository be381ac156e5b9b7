//! Points at which a fault harness may strike.
//!
//! Right before each system call that changes a results folder, and in a few other places, the program passes a [`Point`]. In a
//! process that a harness started, told by the environment variable [`VARIABLE`], it asks there through a socket what shall
//! happen, and waits for the answer: the harness can kill or stop it, or any other process, while it waits, or have the call fail.
//! In any other process a point costs the reading of one flag.

mod line;
mod point;

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

pub use line::{Answer, VARIABLE};
pub use point::{FileKind, Moment, Point, TABLE};

/// Passes the point before the system call that `moment` names, on the file `path`.
///
/// # Errors
/// The harness has the call fail.
pub(crate) fn before(moment: Moment, path: &Path) -> io::Result<()> {
    if !line::is_there() {
        return Ok(());
    }
    match line::ask(Point { file: FileKind::of(path), moment }) {
        Answer::Full => Err(full()),
        _ => Ok(()),
    }
}

/// Writes bytes to a file of this kind, or as a line of the protocol; the harness may have half of them written, or garbage.
///
/// # Errors
/// They cannot be written, or the harness has it so.
pub(crate) fn write_all(file: &mut impl Write, kind: FileKind, bytes: &[u8]) -> io::Result<()> {
    if !line::is_there() {
        return file.write_all(bytes);
    }
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    match line::ask(Point { file: kind, moment: Moment::Write }) {
        Answer::Full => {
            file.write_all(first)?;
            Err(full())
        }
        Answer::Half => {
            file.write_all(first)?;
            line::ask(Point { file: kind, moment: Moment::Torn });
            file.write_all(rest)
        }
        Answer::Garbage => file.write_all(b"\xff garbage\n"),
        Answer::Go | Answer::Jump(_) => file.write_all(bytes),
    }
}

/// Seconds by which the wall clock is off, as the harness has it.
pub(crate) fn clock_offset() -> i64 {
    static OFFSET: AtomicI64 = AtomicI64::new(0);
    if !line::is_there() {
        return 0;
    }
    match line::ask(Point { file: FileKind::Clock, moment: Moment::Read }) {
        Answer::Jump(seconds) => OFFSET.fetch_add(seconds, Ordering::Relaxed) + seconds,
        _ => OFFSET.load(Ordering::Relaxed),
    }
}

fn full() -> io::Error {
    rustix::io::Errno::NOSPC.into()
}

#[cfg(test)]
pub(crate) use line::answering;

#[cfg(test)]
mod tests;
