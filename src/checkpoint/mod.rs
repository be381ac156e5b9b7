//! Runs between two steps, as files.
//!
//! A checkpoint holds everything that a run's future depends on ([`crate::trainer::Snapshot`]) and how long its log was;
//! a file of final weights holds the weights alone. Both are safetensors: each tensor of the parameter table is an array
//! of its name and shape, and what else a run has of it stands beside it, `<name>.m` and so on (docs/results.md lists them). The
//! metadata has one entry, `diesweep`: JSON that says what the file is ([`Label`]) and holds the blake3 digest of all its
//! bytes, so that no byte can change unseen.
//!
//! A [`Saver`] writes on a thread of its own while training goes on, and keeps the last two; [`newest`] finds what an
//! attempt can go on from.

mod error;
mod file;
mod resume;
mod saver;
mod single;
mod tensors;

pub use error::CheckpointError;
pub use file::{Holds, Identity, Label, Opened, open};
pub use resume::{Found, Search, newest};
pub use saver::{Saver, save_final};
pub use single::save;

#[cfg(test)]
mod tests;
