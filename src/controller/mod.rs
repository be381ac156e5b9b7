//! The controller: claims runs, feeds workers, publishes results, and decides what a failure means.
//!
//! `State` has one owner and changes in one place, `handle`, which takes one `Input` at a time and acts through
//! `Effects`. Threads that wait for pipes, processes, disks and signals only send inputs.

mod clerk;
mod dies;
mod effects;
mod halt;
mod handle;
mod live;
mod memory;
mod others;
mod pause;
mod process;
mod signals;
mod state;
mod stopping;
#[cfg(test)]
mod tests;
mod work;
mod workers;

pub use clerk::{Claim, Claimed, Ledger, LedgerError, Publication, Published, Seen, Tended};
pub use dies::{CpuDies, DieSpec, DiesError, GpuPin};
pub use halt::{Conclusion, Summary};
pub use live::{ControllerError, Options, run};
pub use process::{Exit, Launch};
pub use signals::{StopSignals, stop_signals};
pub use state::{Limits, TimeLimit};
