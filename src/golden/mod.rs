//! Golden cases.

pub mod settings;
