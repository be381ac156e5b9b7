//! Sizes of a model and the order of its blocks.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::settings::Settings;

/// Tokens are bytes.
pub const VOCAB: usize = 256;

/// Everything that the shape of a model depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Channels C; equals `n_head * head_size`.
    #[serde(rename = "C")]
    pub c: usize,
    /// Heads H.
    pub n_head: usize,
    /// Channels of a head N.
    pub head_size: usize,
    /// RWKV-7 blocks.
    pub n_rwkv: usize,
    /// Attention blocks.
    pub n_attn: usize,
    /// Width of the channel mix F.
    pub ffn: usize,
    /// Rank of the low-rank projections D.
    pub lora: usize,
    /// Tokens of a window T.
    pub seq_len: usize,
    /// Positions of an attention chunk; `seq_len` is dense attention.
    pub chunk_size: usize,
    /// Earlier chunks that a query sees.
    pub top_k: usize,
}

impl From<&Settings> for ModelConfig {
    fn from(s: &Settings) -> Self {
        Self {
            c: s.c,
            n_head: s.n_head,
            head_size: s.head_size,
            n_rwkv: s.n_rwkv,
            n_attn: s.n_attn,
            ffn: s.ffn,
            lora: s.lora,
            seq_len: s.seq_len,
            chunk_size: s.chunk_size,
            top_k: s.moba_top_k,
        }
    }
}

/// A block of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockRef {
    /// RWKV-7 block number i.
    Rwkv(usize),
    /// Attention block number j.
    Attn(usize),
}

impl fmt::Display for BlockRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rwkv(i) => write!(f, "rwkv{i}"),
            Self::Attn(j) => write!(f, "attn{j}"),
        }
    }
}

impl ModelConfig {
    /// Blocks of both kinds.
    pub fn blocks(&self) -> usize {
        self.n_rwkv + self.n_attn
    }

    /// The order in which blocks run: attention block j after `floor((j+1) * n_rwkv / n_attn)` RWKV blocks,
    /// which spreads the attention blocks evenly and ends on one.
    pub fn execution_order(&self) -> Vec<BlockRef> {
        let mut order = Vec::with_capacity(self.blocks());
        let mut placed = 0;
        for j in 0..self.n_attn {
            let upto = (j + 1) * self.n_rwkv / self.n_attn;
            order.extend((placed..upto).map(BlockRef::Rwkv));
            order.push(BlockRef::Attn(j));
            placed = upto;
        }
        order.extend((placed..self.n_rwkv).map(BlockRef::Rwkv));
        order
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The reference driver's sizes.
    pub(crate) fn default_config() -> ModelConfig {
        ModelConfig {
            c: 128,
            n_head: 4,
            head_size: 32,
            n_rwkv: 3,
            n_attn: 1,
            ffn: 512,
            lora: 32,
            seq_len: 512,
            chunk_size: 512,
            top_k: 0,
        }
    }

    fn order(n_rwkv: usize, n_attn: usize) -> String {
        let config = ModelConfig { n_rwkv, n_attn, ..default_config() };
        let names: Vec<_> = config.execution_order().iter().map(BlockRef::to_string).collect();
        names.join(" ")
    }

    #[test]
    fn attention_blocks_are_spread_evenly() {
        assert_eq!(order(3, 1), "rwkv0 rwkv1 rwkv2 attn0");
        assert_eq!(order(3, 2), "rwkv0 attn0 rwkv1 rwkv2 attn1");
        assert_eq!(order(2, 0), "rwkv0 rwkv1");
        assert_eq!(order(0, 2), "attn0 attn1");
        assert_eq!(order(1, 3), "attn0 attn1 rwkv0 attn2");
        assert_eq!(order(12, 4).matches("attn").count(), 4);
    }
}
