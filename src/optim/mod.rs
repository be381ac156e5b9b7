//! The optimizers: AdamW, and SR4 for ternary weights.
//!
//! [`Optimizer`] holds what a run's settings say and how the work is cut up; [`State`] holds everything that a step
//! changes. docs/arithmetic.md fixes every sum; the kernels in [`adamw`] and [`sr4`] are its definition for the updates.

pub mod adamw;
pub mod lr;
pub mod norm;
mod panel;
pub mod sr4;
mod step;

pub use panel::PanelState;
pub use step::{Optimizer, Sr4State, State, StepReport};
