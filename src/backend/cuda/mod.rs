//! The CUDA backend: kernels of the one arithmetic, compiled at run time for the die at hand.
//!
//! All of the crate's calls into CUDA are in this folder. Libraries are found and loaded at run time ([`library`]), so that
//! one binary builds and starts on a machine with no CUDA at all.

pub mod cache;
pub mod code;
pub mod die;
pub mod engine;
pub mod kernel;
pub mod lanes;
pub mod library;
pub mod memory;
pub mod nvml;
pub mod nvrtc;
pub mod ops;
pub mod report;
pub mod source;
