//! The one arithmetic: elementary functions and shapes of sums that every backend keeps (docs/arithmetic.md).

pub mod functions;
pub mod sums;
