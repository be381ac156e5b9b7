//! What every block's launches share: the sizes and the arenas.

use crate::backend::cuda::die::{Die, DieError, Launcher};
use crate::backend::cuda::kernel::{In, Out};
use crate::backend::cuda::memory::Memory;
use crate::model::{ModelConfig, ParamId};

/// Sizes that all launches go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // docs/arithmetic.md names them
pub struct Sizes {
    pub lanes: u32,
    pub windows: u32,
    pub tokens: u32,
    pub c: u32,
    pub heads: u32,
    pub n: u32,
    pub ffn: u32,
    pub lora: u32,
    pub chunk_size: u32,
    pub top_k: u32,
}

/// A model is too large for this backend's counters.
#[derive(Debug, thiserror::Error)]
#[error("{what} = {value} is more than the cuda backend takes ({limit})")]
pub struct TooLarge {
    /// Which size.
    pub what: &'static str,
    /// Its value.
    pub value: usize,
    /// The largest.
    pub limit: u32,
}

impl Sizes {
    /// Sizes of a model, for `windows` windows at once in each of `lanes` lanes.
    ///
    /// # Errors
    /// A size that kernels cannot count, or a head that they cannot hold.
    pub fn new(config: &ModelConfig, windows: usize, lanes: usize) -> Result<Self, TooLarge> {
        let within = |what, value: usize, limit: u32| match u32::try_from(value) {
            Ok(small) if small <= limit => Ok(small),
            _ => Err(TooLarge { what, value, limit }),
        };
        within("batch * seq_len", windows.saturating_mul(config.seq_len), 65_535)?;
        Ok(Self {
            lanes: within("lanes", lanes, 65_535)?,
            windows: within("batch", windows, 65_535)?,
            tokens: within("seq_len", config.seq_len, 65_535)?,
            c: within("C", config.c, 1 << 20)?,
            heads: within("n_head", config.n_head, 65_535)?,
            n: within("head_size", config.head_size, crate::backend::cuda::ops::recurrence::MAX_HEAD)?,
            ffn: within("ffn", config.ffn, 1 << 20)?,
            lora: within("lora", config.lora, 1 << 20)?,
            chunk_size: within("chunk_size", config.chunk_size, 65_535)?,
            top_k: within("moba_top_k", config.top_k, 65_535)?,
        })
    }

    /// Rows of a lane.
    pub const fn rows(&self) -> u32 {
        self.windows * self.tokens
    }

    /// Chunks of rows whose columns are summed at a time.
    pub const fn row_chunks(&self) -> u32 {
        self.rows().div_ceil(32)
    }

    /// Floats of a lane's [rows, width].
    pub const fn floats(&self, width: u32) -> usize {
        self.rows() as usize * width as usize
    }

    /// Allocates [L, R, width].
    ///
    /// # Errors
    /// The die has too little memory left.
    pub fn rows_of(&self, die: &Die, width: u32) -> Result<Memory<f32>, DieError> {
        die.zeroed(self.lanes as usize * self.floats(width))
    }

    /// A whole buffer [L, R, width] as an operand.
    pub fn whole(&self, memory: &Memory<f32>, width: u32) -> View {
        View { memory: memory.write(), lane: self.floats(width) as u64 }
    }
}

/// An operand of a product: where it begins in the first lane, and floats from lane to lane.
#[derive(Clone, Debug)]
pub struct View {
    pub(super) memory: Out<f32>,
    pub(super) lane: u64,
}

impl View {
    /// The operand that begins `floats` later in each lane.
    pub fn at(&self, floats: usize) -> Self {
        Self { memory: self.memory.at(floats), lane: self.lane }
    }

    /// Part `i` of [L, parts, R, width].
    pub fn part(memory: &Memory<f32>, sizes: &Sizes, parts: u32, width: u32, i: u32) -> Self {
        let each = sizes.floats(width);
        Self { memory: memory.write().at(i as usize * each), lane: (parts as usize * each) as u64 }
    }
}

/// Arenas of weights and gradients.
#[derive(Debug)]
pub struct Arenas {
    /// Weights [L, arena].
    pub weights: Memory<f32>,
    /// Gradients [L, arena].
    pub grads: Memory<f32>,
    /// Floats of a lane's arena.
    pub len: u64,
}

/// A pass in the making: where launches go, and what they share.
pub struct Pass<'a, L> {
    /// Takes the launches.
    pub to: L,
    /// Lanes that take part.
    pub lanes: In<i32>,
    /// Sizes.
    pub sizes: Sizes,
    /// Weights and gradients.
    pub arenas: &'a Arenas,
    /// Whether gradients are added to those of an earlier batch.
    pub accumulate: bool,
    /// Whether a forward pass keeps what only a backward pass needs.
    pub keep: bool,
}

impl<L: Launcher> Pass<'_, L> {
    /// A tensor of the weights, to read.
    pub fn weight(&self, id: ParamId) -> In<f32> {
        self.arenas.weights.read().at(id.range().start)
    }

    /// A tensor of the gradients, to write.
    pub fn grad(&self, id: ParamId) -> Out<f32> {
        self.arenas.grads.write().at(id.range().start)
    }
}

/// Floats from one vector of `width` channels to the next in an arena.
pub fn vector_step(width: u32) -> u32 {
    width.next_multiple_of(16)
}
