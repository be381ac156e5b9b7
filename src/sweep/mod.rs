//! The sweep file: reads its TOML, keeps every position, and shows every fault of it at once.
//!
//! [`load`] is the way in. docs/sweep-file.md describes the format.

mod arms;
mod convert;
mod diagnostics;
mod load;
mod points;
mod reader;
mod stop;
mod top;

pub use diagnostics::{Diagnostics, stderr_takes_colour};
pub use load::{Sweep, load, plan};
