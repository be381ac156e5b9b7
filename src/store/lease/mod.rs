//! Who works on a run.
//!
//! A controller claims a run by making `lease.<n+1>` in the run's folder, n being the highest number there: exclusively, and with
//! its content already in it. The highest number holds the run. A lease never changes, but that it is marked when it is given back;
//! its number is not used again before the run has a result, and with the result the leases go.
//!
//! A controller proves that it lives by counting in one file of its own, `controllers/<name>.beat`, which its leases name.

mod claims;
mod file;
mod rules;
#[cfg(test)]
mod tests;
mod view;

pub use claims::{Claim, Look, Lost};
pub(super) use claims::{Claims, remove_dead_leases};
pub use rules::LeaseTerms;
pub use view::{ControllerView, LeaseState, LeaseView};
