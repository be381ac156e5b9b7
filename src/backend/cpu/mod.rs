//! The CPU backend: the reference of the one arithmetic, and the default where there is no GPU.

pub mod attention;
pub mod attn_block;
pub mod buffer;
pub mod channel_mix;
pub mod context;
pub mod engine;
pub mod gradients;
pub mod loss;
pub mod memory;
pub mod product;
pub mod recurrence;
pub mod rows;
pub mod rwkv_block;
pub mod simd;
pub mod team;
pub mod time_mix;
pub mod vector;
