//! The results folder: every path in it and every durable write to it.
//!
//! ```text
//! <results>/<sweep>/
//!   sweep.toml  plan.json            what was asked, verbatim and resolved
//!   controllers/<controller>.beat    who works on it, see `lease`
//!   runs/<name>-<id>/                found by the id alone
//!     run.json                       what the run is
//!     lease.<n>                      who works on the run
//!     attempt-<n>/                   log.csv, worker.log, failure.json, checkpoint-<steps>.safetensors
//!     log.csv  result.json           published once, the result last; final.safetensors where it is asked for
//!     damaged-<n>/                   files that did not hold together, put aside
//!   comparison.csv  summary.csv  comparisons.csv  curves.csv  report.html
//!   events/
//! ```
//!
//! A run is finished if its result.json can be read, is of that run, and holds the digest of the log.csv beside it.

mod attempt;
mod changes;
mod checkpoints;
mod die_claim;
mod durable;
mod error;
mod glance;
mod history;
mod holder;
mod journal;
mod layout;
mod lease;
mod load;
mod log;
mod marks;
mod record;
mod results;
mod view;

pub use attempt::{Attempt, Published};
pub use changes::PlanChange;
pub use checkpoints::{checkpoint_file, earlier_checkpoints, final_weights};
pub use die_claim::{DieClaim, DieClaimed};
pub use error::StoreError;
pub use history::measured_speed;
pub use holder::{Holder, controller_name, host_name};
pub use journal::{Journal, ReadJournal, Record, read_journals};
pub use layout::{Layout, RunPaths, TABLES, id_of_folder};
pub use lease::{Claim, ControllerView, LeaseState, LeaseTerms, LeaseView, Look, Lost};
pub use load::{Loaded, RunState};
pub use log::{LOG_HEADER, LogMark, LogWriter, ReadLog, format_row, read_log};
pub use marks::Stops;
pub use record::{AttemptFailure, Execution, GpuState, RunFile, StoredResult};
pub use results::{Opened, Results};
pub use view::View;

pub(crate) use durable::{NewFile, remove_if_there, replace, sync};
pub(crate) use error::Context;
pub(crate) use log::{rows_of, same_but_for_timing};

#[cfg(test)]
mod tests;
