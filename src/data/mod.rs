//! The corpus: bytes, their splits and the windows that training and evaluation see.
//!
//! Bytes are tokens. A corpus is a file (mapped), a folder (its files joined in memory) or the built-in
//! generator's text. Which window a step sees is a function of the seed and the window's number alone.

pub mod builtin;
mod corpus;
mod error;
mod source;

pub use corpus::{Corpus, Split};
pub use error::DataError;
