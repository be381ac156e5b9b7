//! diesweep: sweeps of small training runs over the dies of a machine, gathered into one comparison.
//!
//! docs/architecture.md shows how the modules lean on each other.

pub mod arith;
pub mod backend;
pub mod cli;
pub mod data;
pub mod devices;
pub mod golden;
pub mod model;
pub mod optim;
pub mod plan;
pub mod rng;
pub mod run;
pub mod settings;
pub mod sweep;
pub mod trainer;
