//! Matrix products of shape S1: vectorised over outputs, k ascending with fused multiply-adds, in chunks of 128.
//!
//! The right-hand matrix is packed into panels of [`PANEL`] columns; the left-hand one is read where it lies, by rows or by columns.
//! Every path (AVX-512, AVX2, portable) forms each output by the same operations in the same order.

use super::buffer::Buffer;
use super::simd::Level;
use super::vector::Vector;
use crate::arith::sums::PRODUCT_CHUNK;

/// Columns of a panel of a packed matrix.
pub const PANEL: usize = 32;

/// A right-hand matrix [k, n] in panels of [`PANEL`] columns: panel p holds, for each k, columns p·32 to p·32+31 (0 beyond n).
#[derive(Clone, Debug, Default)]
pub struct Packed {
    panels: Buffer,
    k: usize,
    n: usize,
}

impl Packed {
    /// Room for a matrix [k, n].
    pub fn new(k: usize, n: usize) -> Self {
        Self { panels: Buffer::zeros(n.div_ceil(PANEL) * PANEL * k), k, n }
    }

    /// Packs `b` [k, n], row-major with `stride` floats from row to row.
    pub fn pack(&mut self, b: &[f32], stride: usize) {
        for (p, panel) in self.panels.chunks_exact_mut(PANEL * self.k).enumerate() {
            let first = p * PANEL;
            let width = PANEL.min(self.n - first);
            for (row, out) in panel.chunks_exact_mut(PANEL).enumerate() {
                let from = row * stride + first;
                if width == PANEL {
                    out.copy_from_slice(&b[from..from + PANEL]);
                } else {
                    out[..width].copy_from_slice(&b[from..from + width]);
                    out[width..].fill(0.0);
                }
            }
        }
    }

    /// Takes the shape [k, n] and packs `b`, row-major; the room is kept from call to call.
    pub fn repack(&mut self, b: &[f32], k: usize, n: usize) {
        (self.k, self.n) = (k, n);
        self.panels.set_len(n.div_ceil(PANEL) * PANEL * k);
        self.pack(b, n);
    }

    /// Packs the transpose of `b` [n, k], row-major.
    pub fn pack_transposed(&mut self, b: &[f32]) {
        const BLOCK: usize = 16;
        let (k, n) = (self.k, self.n);
        for (p, panel) in self.panels.chunks_exact_mut(PANEL * k).enumerate() {
            let first = p * PANEL;
            let width = PANEL.min(n - first);
            for k0 in (0..k).step_by(BLOCK) {
                let k1 = (k0 + BLOCK).min(k);
                for column in 0..width {
                    let row = &b[(first + column) * k..(first + column + 1) * k];
                    for (kk, &value) in row[k0..k1].iter().enumerate() {
                        panel[(k0 + kk) * PANEL + column] = value;
                    }
                }
            }
        }
    }

    /// (k, n).
    pub const fn shape(&self) -> (usize, usize) {
        (self.k, self.n)
    }
}

/// A left-hand matrix: element (m, k) lies at `m·row + k·step`.
#[derive(Clone, Copy, Debug)]
pub struct Left<'a> {
    data: &'a [f32],
    rows: usize,
    row: usize,
    step: usize,
}

impl<'a> Left<'a> {
    /// A row-major matrix [rows, width].
    pub const fn rows(data: &'a [f32], rows: usize, width: usize) -> Self {
        Self { data, rows, row: width, step: 1 }
    }

    /// The transpose of columns `first..first+rows` of a row-major matrix [_, width]: its columns are the rows here.
    pub fn columns(data: &'a [f32], first: usize, rows: usize, width: usize) -> Self {
        Self { data: &data[first..], rows, row: 1, step: width }
    }
}

/// Which part of a product is wanted: terms `from..to` of each sum, and columns `0..columns`.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// First term, a multiple of the chunk of S1; element k of the left side's row lies at `(k - from)·step`.
    pub from: usize,
    /// One past the last term.
    pub to: usize,
    /// Columns of the result.
    pub columns: usize,
    /// Floats from row to row of the result.
    pub out_row: usize,
}

/// `out[m, n] = Σ_k a[m, k]·b[k, n]` (S1); `out` is row-major [rows, n] and overwritten.
///
/// # Panics
/// A matrix is smaller than its shape says.
pub fn product(level: Level, a: Left<'_>, b: &Packed, out: &mut [f32]) {
    assert_eq!(out.len(), a.rows * b.n, "output of a product");
    product_part(level, a, b, Part { from: 0, to: b.k, columns: b.n, out_row: b.n }, out);
}

/// The wanted part of a product; nothing else of `out` is touched.
///
/// # Panics
/// A matrix is smaller than its shape says, or `part` is not a part of the product.
pub fn product_part(level: Level, a: Left<'_>, b: &Packed, part: Part, out: &mut [f32]) {
    assert!(part.from.is_multiple_of(PRODUCT_CHUNK) && part.from <= part.to && part.to <= b.k, "terms of a product");
    assert!(part.columns <= b.n && part.columns <= part.out_row, "columns of a product");
    if a.rows == 0 || part.columns == 0 {
        return;
    }
    assert!((a.rows - 1) * part.out_row + part.columns <= out.len(), "output of a product");
    let terms = part.to - part.from;
    if terms == 0 {
        out.chunks_mut(part.out_row).take(a.rows).for_each(|row| row[..part.columns].fill(0.0));
        return;
    }
    assert!((a.rows - 1) * a.row + (terms - 1) * a.step < a.data.len(), "left side of a product");
    #[cfg(target_arch = "x86_64")]
    {
        if level.is_avx512() {
            // SAFETY: a `Level` of AVX-512 is only made where the processor has it; shapes are checked above.
            return unsafe { x86::avx512(a, b, part, out) };
        }
        if level.is_avx2() {
            // SAFETY: a `Level` of AVX2 is only made where the processor has AVX2 and FMA; shapes are checked above.
            return unsafe { x86::avx2(a, b, part, out) };
        }
    }
    let _ = level;
    // SAFETY: shapes are checked above.
    unsafe { drive::<[f32; 8], 2, 4>(a, b, part, out) }
}

/// Walks chunks of k, panels and blocks of `MR` rows; `NV` vectors stand side by side in a block.
///
/// # Safety
/// `part` is a part of the product, `a` holds its rows, `out` has room for it, and the processor has `V`'s instructions.
#[inline(always)]
unsafe fn drive<V: Vector, const NV: usize, const MR: usize>(a: Left<'_>, b: &Packed, part: Part, out: &mut [f32]) {
    let width = NV * V::WIDTH;
    for k0 in (part.from..part.to).step_by(PRODUCT_CHUNK) {
        for first in (0..part.columns).step_by(width) {
            let panel = &b.panels[(first / PANEL) * PANEL * b.k..];
            let block = Block {
                // SAFETY: k0 < k, and the panel holds PANEL floats for each k.
                b: unsafe { panel.as_ptr().add(k0 * PANEL + first % PANEL) },
                depth: PRODUCT_CHUNK.min(part.to - k0),
                step: a.step,
                row: a.row,
                columns: width.min(part.columns - first),
                out_row: part.out_row,
                add: k0 > part.from,
            };
            // SAFETY: (0, k0) lies in `a`, and (0, first) in `out`.
            let (left, to) = unsafe { (a.data.as_ptr().add((k0 - part.from) * a.step), out.as_mut_ptr().add(first)) };
            let mut m = 0;
            while m < a.rows {
                let rows = a.rows - m;
                // SAFETY: at least as many rows are left as the block takes.
                unsafe {
                    let (left, to) = (left.add(m * a.row), to.add(m * part.out_row));
                    if rows >= MR {
                        block.run::<V, NV, MR>(left, to);
                        m += MR;
                    } else if rows >= 4 && MR > 4 {
                        block.run::<V, NV, 4>(left, to);
                        m += 4;
                    } else {
                        block.run::<V, NV, 1>(left, to);
                        m += 1;
                    }
                }
            }
        }
    }
}

/// What the blocks of one panel and one chunk have in common.
struct Block {
    b: *const f32,
    depth: usize,
    step: usize,
    row: usize,
    columns: usize,
    out_row: usize,
    add: bool,
}

impl Block {
    /// A block of R rows by NV vectors of outputs.
    ///
    /// # Safety
    /// R rows of `depth` elements lie at `left`, and R rows of `columns` outputs at `to`.
    #[inline(always)]
    unsafe fn run<V: Vector, const NV: usize, const R: usize>(&self, left: *const f32, to: *mut f32) {
        // SAFETY: the caller's promise; the panel holds PANEL floats for each of `depth` steps.
        unsafe {
            let mut acc = [[V::splat(0.0); NV]; R];
            let mut thirds: [*const f32; 4] = std::array::from_fn(|third| left.wrapping_add(3 * third * self.row));
            for k in 0..self.depth {
                let from = self.b.add(k * PANEL);
                let mut right = [V::splat(0.0); NV];
                for (v, right) in right.iter_mut().enumerate() {
                    *right = load(from.add(v * V::WIDTH));
                }
                for (r, acc) in acc.iter_mut().enumerate() {
                    // Three rows share a pointer, the most that addresses of one stride reach without arithmetic.
                    let value = V::splat(*thirds[r / 3].add(r % 3 * self.row));
                    for (acc, right) in acc.iter_mut().zip(right) {
                        *acc = V::fma(value, right, *acc);
                    }
                }
                thirds = thirds.map(|third| third.wrapping_add(self.step));
            }
            for (r, acc) in acc.iter().enumerate() {
                let to = to.add(r * self.out_row);
                if self.columns == NV * V::WIDTH {
                    for (v, &acc) in acc.iter().enumerate() {
                        let to = to.add(v * V::WIDTH);
                        let total = if self.add { V::add(load(to), acc) } else { acc };
                        store(total, to);
                    }
                } else {
                    self.store_part::<V, NV>(acc, to);
                }
            }
        }
    }

    /// Stores a row of a block that is cut off at the matrix's right edge.
    ///
    /// # Safety
    /// `columns` floats may be written at `to`.
    #[inline(always)]
    unsafe fn store_part<V: Vector, const NV: usize>(&self, acc: &[V; NV], to: *mut f32) {
        let mut row = [0.0f32; PANEL];
        // SAFETY: NV vectors are at most PANEL floats, and `columns` is smaller still.
        unsafe {
            for (v, acc) in acc.iter().enumerate() {
                store(*acc, row.as_mut_ptr().add(v * V::WIDTH));
            }
            for (c, &value) in row.iter().enumerate().take(self.columns) {
                let to = to.add(c);
                *to = if self.add { *to + value } else { value };
            }
        }
    }
}

/// The register's floats at a pointer.
///
/// # Safety
/// So many floats may be read there.
#[inline(always)]
unsafe fn load<V: Vector>(from: *const f32) -> V {
    // SAFETY: the caller's promise.
    V::load(unsafe { std::slice::from_raw_parts(from, V::WIDTH) })
}

/// Writes the register's floats at a pointer.
///
/// # Safety
/// So many floats may be written there.
#[inline(always)]
unsafe fn store<V: Vector>(value: V, to: *mut f32) {
    // SAFETY: the caller's promise.
    value.store(unsafe { std::slice::from_raw_parts_mut(to, V::WIDTH) });
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::vector::{Avx2, Avx512};
    use super::{Left, Packed, Part, drive};

    /// # Safety
    /// As [`drive`], on a processor with AVX-512.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn avx512(a: Left<'_>, b: &Packed, part: Part, out: &mut [f32]) {
        // 12 rows by 2 vectors: 24 of the 32 registers hold sums.
        unsafe { drive::<Avx512, 2, 12>(a, b, part, out) }
    }

    /// # Safety
    /// As [`drive`], on a processor with AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn avx2(a: Left<'_>, b: &Packed, part: Part, out: &mut [f32]) {
        // 6 rows by 2 vectors: 12 of the 16 registers hold sums.
        unsafe { drive::<Avx2, 2, 6>(a, b, part, out) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(n: usize, salt: u32) -> Vec<f32> {
        (0..n as u32).map(|i| ((i.wrapping_mul(2_654_435_761) ^ salt) as f32 / 4e9 - 0.5) * 3.0).collect()
    }

    /// S1, word for word.
    fn by_definition(
        a: impl Fn(usize, usize) -> f32,
        b: impl Fn(usize, usize) -> f32,
        (m, k, n): (usize, usize, usize),
    ) -> Vec<f32> {
        let mut out = Vec::new();
        for m in 0..m {
            for n in 0..n {
                let mut total = 0.0;
                for k0 in (0..k).step_by(128) {
                    let mut acc = 0.0f32;
                    for k in k0..(k0 + 128).min(k) {
                        acc = a(m, k).mul_add(b(k, n), acc);
                    }
                    total = if k0 == 0 { acc } else { total + acc };
                }
                out.push(total);
            }
        }
        out
    }

    #[test]
    fn products_equal_their_definition_at_every_level() {
        for (m, k, n) in
            [(1, 1, 1), (3, 5, 7), (12, 128, 32), (13, 129, 33), (64, 256, 40), (17, 300, 70), (8, 32, 16), (5, 512, 8)]
        {
            let (a, b) = (noise(m * k, 1), noise(k * n, 2));
            let want = by_definition(|m, i| a[m * k + i], |i, j| b[i * n + j], (m, k, n));
            let transposed: Vec<f32> = (0..k * m).map(|i| a[(i % m) * k + i / m]).collect();
            let mut packed = Packed::new(k, n);
            packed.pack(&b, n);
            let flipped: Vec<f32> = (0..n * k).map(|i| b[(i % k) * n + i / k]).collect();
            let mut packed_flipped = Packed::new(k, n);
            packed_flipped.pack_transposed(&flipped);
            for level in Level::available() {
                let mut out = vec![f32::NAN; m * n];
                product(level, Left::rows(&a, m, k), &packed, &mut out);
                assert_eq!(out, want, "{level} {m}x{k}x{n}");
                out.fill(f32::NAN);
                product(level, Left::columns(&transposed, 0, m, m), &packed_flipped, &mut out);
                assert_eq!(out, want, "{level} {m}x{k}x{n}, both transposed");
            }
        }
    }
}
