//! The model's shape: sizes, the one table of parameters, and initial weights.
//!
//! An RWKV-x byte model is an embedding, RWKV-7 blocks with attention blocks between them, a final layer norm
//! and a projection to the 256 bytes. What a block computes is written in docs/arithmetic.md; this module
//! says which tensors there are, where they lie and how they start. Backends, checkpoints and optimizers all go by it.

mod config;
mod init;
mod params;

pub use config::{BlockRef, ModelConfig, VOCAB};
pub use init::init_params;
pub use params::{AttnParams, Class, Init, ModelParams, Param, ParamId, RwkvParams, Ternary};
