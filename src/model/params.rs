//! The one table of parameters.
//!
//! Each line of the `tensors!` tables below names a tensor, its shape, whether SR4 holds it as ternary weights,
//! and how it starts. Everything else follows: its place in the canonical order, its offset in the arenas, a
//! typed handle, its name in checkpoints. A new parameter is a new line.
//!
//! Weights, gradients and AdamW's moments are flat arenas of `f32` of the same layout: tensors in canonical
//! order, each starting at a multiple of [`ALIGN`] floats (a 64-byte line), the gaps zero. SR4's accumulators
//! form an arena of `i8` and its scales one of `f32`, both without gaps.

use std::fmt;
use std::ops::Range;

use super::config::{BlockRef, ModelConfig, VOCAB};

/// Floats at whose multiples tensors start.
const ALIGN: usize = 16;

/// Whether SR4 holds a tensor as ternary weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A matrix that SR4 holds as accumulators and scales. (AdamW's arm trains it as any other.)
    Ternary,
    /// Trained by AdamW in both arms.
    Continuous,
}

/// How a tensor starts; `init.rs` has the formulas. C is the number of channels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// All zero.
    Zero,
    /// All one value.
    Fill(f64),
    /// Uniform in `±bound`.
    Uniform(f64),
    /// Uniform in `±x/sqrt(C)`.
    Projection(f64),
    /// Uniform in `±x*sqrt(3/C)`: the element variance of an orthogonal matrix of gain x.
    Orthogonal(f64),
    /// Token-shift mix `1 - (n/C)^(x * r10)`, r10 falling from 1 at the first block.
    Mix(f64),
    /// Token-shift mix of the channel mix, `1 - (n/C)^(r10^4)`.
    ChannelMix,
    /// Bias of the decay.
    Decay,
    /// `base + zigzag*zz + slope*lin`: a line over the channels and a curve over each head's.
    Line {
        /// Constant part.
        base: f64,
        /// Factor of the zigzag.
        zigzag: f64,
        /// Factor of the line.
        slope: f64,
    },
    /// `((1 + depth) / blocks)^0.7`.
    Depth,
}

/// A tensor's handle: where it lies in an arena, and its shape. Vectors have one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamId {
    index: usize,
    start: usize,
    rows: usize,
    cols: usize,
}

impl ParamId {
    /// Place in the canonical order, and in [`ModelParams::table`].
    pub fn index(self) -> usize {
        self.index
    }

    /// Rows; 1 for a vector.
    pub fn rows(self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn cols(self) -> usize {
        self.cols
    }

    /// Elements.
    #[allow(clippy::len_without_is_empty)] // no tensor is empty
    pub fn len(self) -> usize {
        self.rows * self.cols
    }

    /// Where it lies in an arena.
    pub fn range(self) -> Range<usize> {
        self.start..self.start + self.len()
    }

    /// Its part of an arena.
    pub fn of<T>(self, arena: &[T]) -> &[T] {
        &arena[self.range()]
    }

    /// Its part of an arena, to be written.
    pub fn of_mut<T>(self, arena: &mut [T]) -> &mut [T] {
        &mut arena[self.range()]
    }
}

/// Where a ternary tensor's accumulators and scales lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ternary {
    /// First accumulator; also the counter of its first random number.
    pub base: usize,
    /// First scale; there is one a column.
    pub scale: usize,
}

/// A line of the table.
#[derive(Clone, Debug)]
pub struct Param {
    /// `block.tensor`, or `tensor` outside the blocks.
    pub name: String,
    /// Shape as files show it.
    pub shape: Vec<usize>,
    /// Handle.
    pub id: ParamId,
    /// Class.
    pub class: Class,
    /// Place among the ternary tensors; present just where `class` is ternary.
    pub ternary: Option<Ternary>,
    /// How it starts.
    pub init: Init,
    /// Its block's place in the execution order; 0 outside the blocks.
    pub depth: usize,
    matrix: bool,
}

impl Param {
    /// Whether it is a matrix, as weight decay on matrices only asks. (`r_k`, H by N, is a vector of channels; a matrix may have one row.)
    pub fn is_matrix(&self) -> bool {
        self.matrix
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.shape)
    }
}

/// Lays tensors out one after the other.
struct Layout<'a> {
    config: &'a ModelConfig,
    block: Option<(BlockRef, usize)>,
    table: Vec<Param>,
    end: usize,
    ternary_end: Ternary,
}

/// What a tensor's line says.
struct Line<'a> {
    name: &'a str,
    shape: &'a [usize],
    class: Class,
    init: Init,
}

impl Layout<'_> {
    fn push(&mut self, line: Line) -> ParamId {
        let (rows, cols, matrix) = match line.shape {
            &[n] => (1, n, false),
            // A head's vector of every head, side by side: one row of channels.
            &[heads, n] if line.name == "r_k" => (1, heads * n, false),
            &[rows, cols] => (rows, cols, true),
            shape => unreachable!("tensors have one or two dimensions, not {shape:?}"),
        };
        let id = ParamId { index: self.table.len(), start: self.end.next_multiple_of(ALIGN), rows, cols };
        self.end = id.range().end;
        let ternary = (line.class == Class::Ternary).then(|| {
            let place = self.ternary_end;
            self.ternary_end = Ternary { base: place.base + id.len(), scale: place.scale + cols };
            place
        });
        let name = match self.block {
            Some((block, _)) => format!("{block}.{}", line.name),
            None => line.name.to_owned(),
        };
        let depth = self.block.map_or(0, |(_, depth)| depth);
        let shape = line.shape.to_vec();
        self.table.push(Param { name, shape, id, class: line.class, ternary, init: line.init, depth, matrix });
        id
    }
}

/// Defines a struct of handles and the function that lays its tensors out, from one line a tensor.
macro_rules! tensors {
    ($(#[$doc:meta])* $name:ident($sizes:pat) {
        $($field:ident: [$($dim:expr),+], $class:ident, $init:expr;)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[allow(missing_docs)] // the names are the formulas' own
        pub struct $name { $(pub $field: ParamId,)+ }

        impl $name {
            fn lay_out(layout: &mut Layout) -> Self {
                let $sizes = sizes(layout.config);
                // Fields are evaluated in the order in which they stand: the canonical one.
                Self { $($field: layout.push(Line {
                    name: stringify!($field),
                    shape: &[$($dim),+],
                    class: Class::$class,
                    init: $init,
                }),)+ }
            }
        }
    };
}

/// C, F, D, H, N.
fn sizes(config: &ModelConfig) -> [usize; 5] {
    [config.c, config.ffn, config.lora, config.n_head, config.head_size]
}

const fn line(base: f64, zigzag: f64, slope: f64) -> Init {
    Init::Line { base, zigzag, slope }
}

tensors! {
    /// Before the blocks.
    Head([c, ..]) {
        emb: [VOCAB, c], Continuous, Init::Uniform(0.05);
    }
}

tensors! {
    /// An RWKV-7 block. `v0`, `v1`, `v2` exist in the first block as well, which does not read them.
    RwkvParams([c, f, d, h, n]) {
        ln1_w: [c], Continuous, Init::Fill(1.0);
        ln1_b: [c], Continuous, Init::Zero;
        x_r: [c], Continuous, Init::Mix(0.2);
        x_k: [c], Continuous, Init::Mix(0.7);
        x_v: [c], Continuous, Init::Mix(0.7);
        x_w: [c], Continuous, Init::Mix(0.9);
        x_a: [c], Continuous, Init::Mix(0.9);
        x_g: [c], Continuous, Init::Mix(0.2);
        receptance_w: [c, c], Ternary, Init::Projection(0.5);
        key_w: [c, c], Ternary, Init::Projection(0.05);
        value_w: [c, c], Ternary, Init::Projection(0.5);
        output_w: [c, c], Ternary, Init::Zero;
        w0: [c], Continuous, Init::Decay;
        w1: [c, d], Continuous, Init::Zero;
        w2: [d, c], Continuous, Init::Orthogonal(0.1);
        a0: [c], Continuous, line(-0.19, 0.3, 0.4);
        a1: [c, d], Continuous, Init::Zero;
        a2: [d, c], Continuous, Init::Orthogonal(0.1);
        g1: [c, d], Continuous, Init::Zero;
        g2: [d, c], Continuous, Init::Orthogonal(0.1);
        v0: [c], Continuous, line(0.73, 0.0, -0.4);
        v1: [c, d], Continuous, Init::Zero;
        v2: [d, c], Continuous, Init::Orthogonal(0.1);
        k_k: [c], Continuous, line(0.71, 0.0, -0.1);
        k_a: [c], Continuous, Init::Fill(1.02);
        r_k: [h, n], Continuous, Init::Fill(-0.04);
        ln_x_w: [c], Continuous, Init::Depth;
        ln_x_b: [c], Continuous, Init::Zero;
        ln2_w: [c], Continuous, Init::Fill(1.0);
        ln2_b: [c], Continuous, Init::Zero;
        ffn_x_k: [c], Continuous, Init::ChannelMix;
        ffn_key_w: [c, f], Ternary, Init::Projection(0.5);
        ffn_value_w: [f, c], Ternary, Init::Zero;
    }
}

tensors! {
    /// An attention block.
    AttnParams([c, f, ..]) {
        ln1_w: [c], Continuous, Init::Fill(1.0);
        ln1_b: [c], Continuous, Init::Zero;
        receptance_w: [c, c], Ternary, Init::Projection(0.5);
        key_w: [c, c], Ternary, Init::Projection(0.05);
        value_w: [c, c], Ternary, Init::Projection(0.5);
        output_w: [c, c], Ternary, Init::Zero;
        ln2_w: [c], Continuous, Init::Fill(1.0);
        ln2_b: [c], Continuous, Init::Zero;
        ffn_x_k: [c], Continuous, Init::ChannelMix;
        ffn_key_w: [c, f], Ternary, Init::Projection(0.5);
        ffn_value_w: [f, c], Ternary, Init::Zero;
    }
}

tensors! {
    /// After the blocks.
    Tail([c, ..]) {
        ln_out_w: [c], Continuous, Init::Fill(1.0);
        ln_out_b: [c], Continuous, Init::Zero;
        head: [c, VOCAB], Continuous, Init::Orthogonal(0.5);
    }
}

/// All tensors of a model: typed handles, and the table behind them.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // the names are the formulas' own
pub struct ModelParams {
    pub emb: ParamId,
    pub rwkv: Vec<RwkvParams>,
    pub attn: Vec<AttnParams>,
    pub ln_out_w: ParamId,
    pub ln_out_b: ParamId,
    pub head: ParamId,
    /// Blocks in the order in which they run.
    pub order: Vec<BlockRef>,
    /// Every tensor in canonical order.
    pub table: Vec<Param>,
    /// Floats of an arena of weights, gradients or moments.
    pub arena_len: usize,
    /// Weights of ternary tensors: the length of the arena of accumulators.
    pub ternary_len: usize,
    /// Scales of ternary tensors: the length of the arena of scales.
    pub scale_len: usize,
}

impl ModelParams {
    /// Lays out the tensors of a model.
    pub fn new(config: &ModelConfig) -> Self {
        let order = config.execution_order();
        let mut layout =
            Layout { config, block: None, table: Vec::new(), end: 0, ternary_end: Ternary { base: 0, scale: 0 } };
        let place = |block| order.iter().position(|&b| b == block).map(|depth| (block, depth));
        let before = Head::lay_out(&mut layout);
        let mut rwkv = Vec::with_capacity(config.n_rwkv);
        for i in 0..config.n_rwkv {
            layout.block = place(BlockRef::Rwkv(i));
            rwkv.push(RwkvParams::lay_out(&mut layout));
        }
        let mut attn = Vec::with_capacity(config.n_attn);
        for j in 0..config.n_attn {
            layout.block = place(BlockRef::Attn(j));
            attn.push(AttnParams::lay_out(&mut layout));
        }
        layout.block = None;
        let after = Tail::lay_out(&mut layout);
        Self {
            emb: before.emb,
            rwkv,
            attn,
            ln_out_w: after.ln_out_w,
            ln_out_b: after.ln_out_b,
            head: after.head,
            order,
            arena_len: layout.end.next_multiple_of(ALIGN),
            ternary_len: layout.ternary_end.base,
            scale_len: layout.ternary_end.scale,
            table: layout.table,
        }
    }

    /// Number of weights of all tensors.
    pub fn total(&self) -> usize {
        self.table.iter().map(|p| p.id.len()).sum()
    }

    /// The ternary tensors, in canonical order.
    pub fn ternary(&self) -> impl Iterator<Item = (&Param, Ternary)> {
        self.table.iter().filter_map(|p| Some((p, p.ternary?)))
    }

    /// The tensor of a name. For files and messages: kernels use the handles.
    pub fn by_name(&self, name: &str) -> Option<&Param> {
        self.table.iter().find(|p| p.name == name)
    }
}

#[cfg(test)]
#[path = "params_tests.rs"]
mod tests;
