//! Where the arithmetic runs.

pub mod cpu;
