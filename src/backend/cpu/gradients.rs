//! Gradients of weights, once a block's backward pass has left their two sides: matrices as products over rows, vectors as folded sums.

use super::context::{ColumnSums, Context};
use super::product::{Left, PANEL, Packed, product};
use super::rows::fold_chunks;
use super::team::Parts;
use crate::model::ParamId;

/// Rows of a matrix gradient that one task forms.
const BLOCK: usize = 2 * PANEL;

/// A matrix gradient `xᵀ@dy`: x [R, in], dy [R, out].
#[derive(Clone, Copy)]
pub struct MatrixGrad<'a> {
    /// The matrix [in, out].
    pub id: ParamId,
    /// Its input.
    pub x: &'a [f32],
    /// The gradient of its output.
    pub dy: &'a [f32],
}

/// Packed right sides, kept from block to block.
#[derive(Default)]
pub struct Packs(Vec<Packed>);

/// Writes the gradients of matrices and vectors to their places in `grads`.
pub fn write(
    ctx: &Context<'_>,
    packs: &mut Packs,
    matrices: &[MatrixGrad<'_>],
    sums: &[&ColumnSums],
    grads: &mut [f32],
) {
    let rows = ctx.rows();
    packs.0.resize_with(packs.0.len().max(matrices.len()), Packed::default);
    {
        let parts = Parts::new(&mut packs.0, 1);
        ctx.team.each(matrices.len(), |i| {
            let grad = &matrices[i];
            parts.take(i)[0].repack(grad.dy, rows, grad.id.cols());
        });
    }
    let mut places = Vec::new();
    for (i, grad) in matrices.iter().enumerate() {
        places.push((grad.id, Task::Matrix(i)));
    }
    for (id, chunks) in sums.iter().flat_map(|s| s.chunks(rows)) {
        places.push((id, Task::Vector(chunks)));
    }
    places.sort_by_key(|(id, _)| id.range().start);

    let mut tasks = Vec::new();
    let mut rest = grads;
    let mut at = 0;
    for (id, task) in places {
        let range = id.range();
        let (_, tail) = rest.split_at_mut(range.start - at);
        let (out, tail) = tail.split_at_mut(range.len());
        (rest, at) = (tail, range.end);
        match task {
            Task::Vector(_) => tasks.push((task, 0, out)),
            Task::Matrix(_) => {
                let blocks = out.chunks_mut(BLOCK * id.cols()).enumerate();
                tasks.extend(blocks.map(|(block, out)| (task, block * BLOCK, out)));
            }
        }
    }
    let packs = &packs.0;
    let tasks = Parts::new(&mut tasks, 1);
    ctx.team.each(tasks.count(), |i| {
        let (task, first, out) = &mut tasks.take(i)[0];
        match *task {
            Task::Vector(chunks) => fold_chunks(ctx.level(), chunks, out),
            Task::Matrix(i) => {
                let MatrixGrad { id, x, .. } = matrices[i];
                let left = Left::columns(&x[..rows * id.rows()], *first, out.len() / id.cols(), id.rows());
                product(ctx.level(), left, &packs[i], out);
            }
        }
    });
}

#[derive(Clone, Copy)]
enum Task<'a> {
    Matrix(usize),
    Vector(&'a [f32]),
}
