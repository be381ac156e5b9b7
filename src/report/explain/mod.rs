//! What stands behind a number: runs, rows, digests, attempts, hosts and dies.
//!
//! [`Target::find`] understands what is asked for, [`Explainer`] gathers the facts, [`text`] prints them; as JSON they are what they are.

mod facts;
mod rows;
mod target;
mod text;

pub use facts::{ComparisonFacts, ConfigurationFacts, Explainer, Explanation, RunFacts};
pub use target::{NotFound, Target};
pub use text::text;
