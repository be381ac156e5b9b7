//! Gradients of the vectors of channels: sums down columns (S3), first over chunks of rows by the kernels that have the rows at hand,
//! then over the chunks, for all vectors at once.

use super::pass::{Pass, Sizes};
use crate::backend::cuda::die::{Die, DieError, Launcher};
use crate::backend::cuda::memory::Memory;
use crate::backend::cuda::ops::norm::ColumnTotals;
use crate::model::{ModelParams, ParamId};

/// Sums over chunks of rows of every vector's gradient. A vector's slot is its place among all of them, in the arena's order.
pub struct Columns {
    starts: Vec<u32>,
    table: Memory<u32>,
    /// [L, chunks, vectors, C].
    pub chunks: Memory<f32>,
}

impl Columns {
    /// Room for all vectors of a model's parameters. Those that no kernel writes stay 0.
    pub fn new(die: &Die, sizes: &Sizes, params: &ModelParams) -> Result<Self, DieError> {
        let vectors = params.table.iter().filter(|p| p.id.rows() == 1);
        let starts: Vec<u32> = vectors.map(|p| u32::try_from(p.id.range().start).unwrap_or(u32::MAX)).collect();
        let floats = sizes.row_chunks() as usize * starts.len() * sizes.c as usize;
        let chunks = die.zeroed(sizes.lanes as usize * floats)?;
        Ok(Self { table: die.copied(&starts)?, starts, chunks })
    }

    /// Vectors.
    pub fn vectors(&self) -> u32 {
        u32::try_from(self.starts.len()).unwrap_or(u32::MAX)
    }

    /// A vector's slot; those of vectors that follow one another in the arena do so too.
    ///
    /// # Panics
    /// The tensor is no vector.
    pub fn slot(&self, id: ParamId) -> u32 {
        let start = u32::try_from(id.range().start).unwrap_or(u32::MAX);
        let place = self.starts.binary_search(&start).expect("a vector of channels");
        u32::try_from(place).unwrap_or(u32::MAX)
    }

    /// Writes the gradients of all vectors, or adds to them, from their sums over chunks.
    pub fn totals<L: Launcher>(&self, pass: &mut Pass<'_, L>) -> Result<(), DieError> {
        pass.to.launch(&ColumnTotals {
            lanes: pass.lanes.clone(),
            chunks: self.chunks.read(),
            starts: self.table.read(),
            gradients: pass.arenas.grads.write(),
            arena: pass.arenas.len,
            chunk_count: pass.sizes.row_chunks(),
            vectors: self.vectors(),
            c: pass.sizes.c,
            add: u32::from(pass.accumulate),
        })
    }
}
