//! What a controller and its workers say to each other: JSON lines over the worker's standard descriptors.
//!
//! A worker begins with [`Hello`]; the controller then assigns attempts to its lanes. Every message about an
//! attempt carries its [`Place`]. Each assigned attempt is answered by exactly one `ended`. Once a second the
//! worker sends `beat`. End of input tells a worker that its controller is gone.
//!
//! Numbers round-trip exactly; non-finite ones travel as strings, since JSON has none.

mod message;
mod wire;

pub use message::{Assignment, DIE_LOST, End, FromWorker, Hello, ORPHANED, Place, Pulse, ToWorker, VERSION};
pub use wire::{Lines, MAX_LINE, WireError, encode};
