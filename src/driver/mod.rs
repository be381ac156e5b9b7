//! The role of the reference driver: one run, its flags and its log to the character.
//!
//! docs/reference-driver.md says where diesweep's numbers differ from that program's, and why.

mod flags;
mod log;
mod machine;
mod output;
mod sample;
mod train;

pub use flags::SettingFlags;
pub use log::{Device, Heading, best, diverged, finals, graph_note, heading, row, summary};
pub use machine::Machine;
pub use sample::{Draw, Sampler};
pub use train::{DriverError, Stopped, Training, evaluate, train};
