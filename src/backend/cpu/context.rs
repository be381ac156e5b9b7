//! What every block's pass reads, and the pieces that blocks share.

use super::buffer::Buffer;
use super::product::{Left, Packed, product};
use super::rows::{self, Window};
use super::simd::Level;
use super::team::{Parts, TILE, Team};
use crate::arith::sums::COLUMN_CHUNK;
use crate::model::{ModelConfig, ModelParams, ParamId};

/// Every matrix, packed for products with it and, where gradients are wanted, with its transpose.
pub struct PackedWeights {
    straight: Vec<Packed>,
    transposed: Vec<Packed>,
}

impl PackedWeights {
    /// Room for the matrices of a model.
    pub fn new(params: &ModelParams) -> Self {
        let shaped = |flip: bool| {
            params
                .table
                .iter()
                .map(|p| match p.is_matrix() && p.id != params.emb {
                    true if flip => Packed::new(p.id.cols(), p.id.rows()),
                    true => Packed::new(p.id.rows(), p.id.cols()),
                    false => Packed::default(),
                })
                .collect()
        };
        Self { straight: shaped(false), transposed: shaped(true) }
    }

    /// Packs the weights in `arena`, transposes included where `gradients` asks.
    pub fn pack(&mut self, team: &Team, params: &ModelParams, arena: &[f32], gradients: bool) {
        let matrices: Vec<_> = params.table.iter().filter(|p| p.is_matrix() && p.id != params.emb).collect();
        let straight = Parts::new(&mut self.straight, 1);
        let transposed = Parts::new(&mut self.transposed, 1);
        let passes = if gradients { 2 } else { 1 };
        team.each(matrices.len() * passes, |i| {
            let id = matrices[i % matrices.len()].id;
            if i < matrices.len() {
                straight.take(id.index())[0].pack(id.of(arena), id.cols());
            } else {
                transposed.take(id.index())[0].pack_transposed(id.of(arena));
            }
        });
    }

    /// The matrix, for `x@W`.
    pub fn matrix(&self, id: ParamId) -> &Packed {
        &self.straight[id.index()]
    }

    /// Its transpose, for `dy@Wᵀ`.
    pub fn transpose(&self, id: ParamId) -> &Packed {
        &self.transposed[id.index()]
    }
}

/// What every block's pass reads.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Threads and instructions.
    pub team: &'a Team,
    /// Sizes.
    pub config: &'a ModelConfig,
    /// Weights, packed.
    pub packed: &'a PackedWeights,
    /// Weights as they lie.
    pub weights: &'a [f32],
    /// Windows of this pass B.
    pub windows: usize,
}

impl Context<'_> {
    /// Rows R of this pass.
    pub const fn rows(&self) -> usize {
        self.windows * self.config.seq_len
    }

    /// Tiles of this pass.
    pub const fn tiles(&self) -> usize {
        self.rows().div_ceil(TILE)
    }

    /// Vector instructions.
    pub const fn level(&self) -> Level {
        self.team.level()
    }

    /// Rows of a tile.
    pub fn tile_rows(&self, tile: usize) -> std::ops::Range<usize> {
        tile * TILE..((tile + 1) * TILE).min(self.rows())
    }

    /// The tile's rows of [rows, C], and their neighbours in time.
    pub fn window(&self, tile: usize) -> Window {
        Window { first: tile * TILE, tokens: self.config.seq_len, width: self.config.c }
    }

    /// `out = x@W` for the rows of a tile.
    pub fn project(&self, x: &[f32], id: ParamId, out: &mut [f32]) {
        let packed = self.packed.matrix(id);
        let (k, n) = packed.shape();
        product(self.level(), Left::rows(x, out.len() / n, k), packed, out);
    }

    /// `out = dy@Wᵀ` for the rows of a tile.
    pub fn project_back(&self, dy: &[f32], id: ParamId, out: &mut [f32]) {
        let packed = self.packed.transpose(id);
        let (k, n) = packed.shape();
        product(self.level(), Left::rows(dy, out.len() / n, k), packed, out);
    }
}

/// A layer norm: its vectors, and what it keeps.
pub struct Norm {
    /// Weight.
    pub w: ParamId,
    /// Bias.
    pub b: ParamId,
    /// Normalised input [R, C].
    pub xhat: Buffer,
    /// Output [R, C].
    pub y: Buffer,
    /// 1/deviation `[R]`.
    pub rs: Buffer,
    sums: ColumnSums,
}

impl Norm {
    /// A layer norm over at most `rows` rows.
    pub fn new(w: ParamId, b: ParamId, rows: usize) -> Self {
        let len = rows * w.cols();
        Self {
            w,
            b,
            xhat: Buffer::zeros(len),
            y: Buffer::zeros(len),
            rs: Buffer::zeros(rows),
            sums: ColumnSums::new(&[w, b], rows),
        }
    }

    /// The norm as tiles can take it for the forward pass.
    pub fn tiles<'a>(&'a mut self, ctx: &Context<'a>) -> NormTiles<'a> {
        let (w, b, c) = (self.w.of(ctx.weights), self.b.of(ctx.weights), self.w.cols());
        NormTiles {
            w,
            b,
            xhat: Parts::tiles(&mut self.xhat, c),
            y: Parts::tiles(&mut self.y, c),
            rs: Parts::tiles(&mut self.rs, 1),
            level: ctx.level(),
        }
    }

    /// The norm as tiles can take it for the backward pass.
    pub fn backward_tiles<'a>(&'a mut self, ctx: &Context<'a>) -> NormBackward<'a> {
        NormBackward {
            w: self.w.of(ctx.weights),
            xhat: &self.xhat,
            y: &self.y,
            rs: &self.rs,
            sums: self.sums.tiles(),
            level: ctx.level(),
        }
    }

    /// The sums of its vectors' gradients.
    pub fn sums(&self) -> &ColumnSums {
        &self.sums
    }
}

/// See [`Norm::tiles`].
pub struct NormTiles<'a> {
    w: &'a [f32],
    b: &'a [f32],
    xhat: Parts<'a, f32>,
    y: Parts<'a, f32>,
    rs: Parts<'a, f32>,
    level: Level,
}

impl NormTiles<'_> {
    /// Normalises a tile's rows x.
    pub fn run(&self, tile: usize, x: &[f32]) {
        let rows = x.len() / self.w.len();
        let (xhat, y, rs) = (self.xhat.take(tile), self.y.take(tile), self.rs.take(tile));
        rows::layer_norm(self.level, x, self.w, self.b, &mut xhat[..x.len()], &mut y[..x.len()], &mut rs[..rows]);
    }
}

/// See [`Norm::backward_tiles`].
pub struct NormBackward<'a> {
    /// Output of the forward pass, all rows.
    pub y: &'a [f32],
    w: &'a [f32],
    xhat: &'a [f32],
    rs: &'a [f32],
    sums: SumTiles<'a>,
    level: Level,
}

impl NormBackward<'_> {
    /// Adds the gradient of a tile's input to dx, from that of its output dy.
    pub fn run(&self, tile: usize, dy: &[f32], dx: &mut [f32]) {
        let c = self.w.len();
        let xhat = &self.xhat[tile * TILE * c..][..dy.len()];
        let rs = &self.rs[tile * TILE..][..dy.len() / c];
        rows::column_dots(self.level, dy, xhat, c, self.sums.take(0, tile, dy.len() / c));
        rows::column_sums(self.level, dy, c, self.sums.take(1, tile, dy.len() / c));
        rows::layer_norm_backward(self.level, dy, xhat, self.w, rs, dx);
    }
}

/// Column sums of vectors' gradients, by chunks of rows (S3), until they are folded.
pub struct ColumnSums {
    ids: Vec<ParamId>,
    buffers: Vec<Buffer>,
}

impl ColumnSums {
    /// Sums for the vectors `ids` over at most `rows` rows.
    pub fn new(ids: &[ParamId], rows: usize) -> Self {
        let buffers = ids.iter().map(|id| Buffer::zeros(rows.div_ceil(COLUMN_CHUNK) * id.cols())).collect();
        Self { ids: ids.to_vec(), buffers }
    }

    /// The sums as tiles can take them.
    pub fn tiles(&mut self) -> SumTiles<'_> {
        let parts = self.ids.iter().zip(&mut self.buffers);
        SumTiles(parts.map(|(id, b)| (id.cols(), Parts::new(b, TILE / COLUMN_CHUNK * id.cols()))).collect())
    }

    /// Each vector and its chunks' sums over `rows` rows.
    pub fn chunks(&self, rows: usize) -> impl Iterator<Item = (ParamId, &[f32])> {
        let chunks = rows.div_ceil(COLUMN_CHUNK);
        self.ids.iter().zip(&self.buffers).map(move |(id, b)| (*id, &b[..chunks * id.cols()]))
    }
}

/// See [`ColumnSums::tiles`].
pub struct SumTiles<'a>(Vec<(usize, Parts<'a, f32>)>);

impl SumTiles<'_> {
    /// Vector number i's chunks for a tile of `rows` rows.
    pub fn take(&self, i: usize, tile: usize, rows: usize) -> &mut [f32] {
        let (c, parts) = &self.0[i];
        &mut parts.take(tile)[..rows.div_ceil(COLUMN_CHUNK) * c]
    }
}
