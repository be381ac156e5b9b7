//! diesweep: sweeps of small training runs over the dies of a machine, gathered into one comparison.
//!
//! docs/architecture.md shows how the modules lean on each other.

#![cfg_attr(not(test), deny(clippy::print_stderr))]

#[macro_use]
mod stderr;

pub mod arith;
pub mod backend;
pub mod bench;
pub mod cfmt;
pub mod checkpoint;
pub mod cli;
pub mod clock;
pub mod controller;
pub mod data;
pub mod devices;
pub mod driver;
pub mod duration;
pub mod event;
pub mod exact;
pub mod fault;
pub mod golden;
pub mod model;
pub mod near;
pub mod num;
pub mod optim;
pub mod plan;
pub mod progress;
pub mod protocol;
pub mod report;
pub mod resources;
pub mod rng;
pub mod run;
pub mod samples;
pub mod settings;
pub mod stats;
pub mod status;
pub mod store;
pub mod sweep;
pub mod torture;
pub mod trainer;
pub mod worker;

#[cfg(test)]
mod testing;
