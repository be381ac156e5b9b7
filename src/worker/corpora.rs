//! Corpora that outlive a run.

use std::collections::HashMap;

use crate::data::Corpus;
use crate::event::{Cause, Failure};
use crate::protocol::Assignment;
use crate::settings::Data;

/// The corpora that a worker has open.
#[derive(Default)]
pub(super) struct Corpora(HashMap<Data, Corpus>);

impl Corpora {
    /// An attempt's corpus, which must be the one that was planned with: another would give a run another's numbers.
    pub(super) fn open(&mut self, assignment: &Assignment) -> Result<Corpus, Failure> {
        let data = &assignment.settings.data;
        if let Some(corpus) = self.0.get(data) {
            return Ok(corpus.clone());
        }
        let corpus = Corpus::open(data).map_err(|error| failure(&error))?;
        let found = corpus.digest().to_string();
        if found != assignment.corpus.digest {
            let text = "the corpus is not the one that was planned with: its bytes have changed since";
            return Err(Failure::new(Cause::Corpus, text));
        }
        self.0.insert(data.clone(), corpus.clone());
        Ok(corpus)
    }
}

/// A run's numbers are not of the planned corpus where its file changed meanwhile.
pub(super) fn unchanged(corpus: &Corpus) -> Result<(), Failure> {
    corpus.check_unchanged().map_err(|error| failure(&error))
}

pub(super) fn failure(error: &crate::data::DataError) -> Failure {
    Failure::new(Cause::Corpus, error.to_string())
}
