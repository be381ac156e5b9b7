//! Finds the corpora of a plan on this machine.

use super::CorpusInfo;
use crate::data::Corpus;
use crate::data::builtin::Builtin;
use crate::settings::Data;

/// The [`Resolver`](super::Resolver) of everyday use: opens the corpus, relative paths from the working directory, and
/// reads it once for its digest.
///
/// # Errors
/// What is wrong with the corpus.
pub fn open(data: &Data) -> Result<CorpusInfo, String> {
    let path = match data {
        Data::Path(path) => Some(std::path::absolute(path).map_err(|error| format!("no working directory: {error}"))?),
        Data::Builtin => None,
    };
    let corpus = Corpus::open(data).map_err(|error| error.to_string())?;
    Ok(CorpusInfo {
        path,
        bytes: corpus.len() as u64,
        digest: corpus.digest().to_hex().to_string(),
        entropy: corpus.generator().map(Builtin::entropy_bits_per_byte),
    })
}
