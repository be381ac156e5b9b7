//! The CPU backend: the reference of the one arithmetic, and the default where there is no GPU.

pub mod product;
pub mod simd;
pub mod team;
