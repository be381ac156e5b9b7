//! Rows of `kernels/product.cu`: batches of products.

use std::ffi::c_void;
use std::sync::Arc;

use crate::arith::sums::PRODUCT_CHUNK;
use crate::backend::cuda::kernel::{Declared, In, Kernel, Launch, LaunchError, Out, Parameter, Row, in_range, size};
use crate::backend::cuda::memory::Block;

/// Products of a launch, further terms included.
pub const MEMBERS: usize = 16;

/// How the operands of a product of `[M, K]` and `[K, N]` lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// a `[M, K]`, b `[K, N]`.
    Rows,
    /// a `[M, K]`, b `[N, K]`.
    Transposed,
    /// a `[K, M]`, b `[K, N]`.
    Columns,
}

/// What happens to a finished sum; h is what lies in `with` at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Finish {
    /// out = sum.
    Set = 0,
    /// out = h + sum.
    Add = 1,
    /// out = max(sum, 0), and its square in `with`.
    ReluSquared = 3,
    /// out = sum (h + h).
    ReluSlope = 4,
    /// out = sum (1 - h h).
    TanhSlope = 5,
    /// out = sum (h (1 - h)).
    SigmoidSlope = 6,
    /// out = tanh(sum).
    Tanh = 7,
    /// out = sigmoid(sum).
    Sigmoid = 8,
}

/// A product of every lane, or a further term of the one before it.
#[derive(Clone, Debug)]
pub struct Member {
    /// How a and b lie.
    pub kind: Kind,
    /// What becomes of the sum.
    pub finish: Finish,
    /// Whether its result is added to the out of the member before it, which is this one's out too.
    pub further: bool,
    /// First operand, and floats from lane to lane.
    pub a: (In<f32>, u64),
    /// Second operand, likewise.
    pub b: (In<f32>, u64),
    /// The finish's other array, which lies as `out` does; not used by all of them.
    pub with: Out<f32>,
    /// Result, likewise.
    pub out: (Out<f32>, u64),
    /// M, N, K.
    pub shape: [u32; 3],
}

/// Sizes of tiles. They change no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiles {
    /// 32 x 32, chunks of k shared by groups of threads; any shape.
    Odd,
    /// The same; operands in fours.
    Small,
    /// 64 x 64, and 32 where a side is no longer; operands in fours.
    Medium,
    /// 128 x 64, 128 x 32, 32 x 128; operands in fours.
    Wide,
}

/// A member as the kernel reads it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct RawMember {
    a: u64,
    b: u64,
    with: u64,
    out: u64,
    a_lane: u64,
    b_lane: u64,
    out_lane: u64,
    m: u32,
    n: u32,
    k: u32,
    first: u32,
    across: u32,
    kind: u8,
    finish: u8,
    more: u8,
    shape: u8,
}

#[derive(Clone)]
#[repr(C)]
struct RawBatch {
    count: u32,
    unused: u32,
    members: [RawMember; MEMBERS],
}

const _: () = assert!(size_of::<RawMember>() == 80 && size_of::<RawBatch>() == 8 + 80 * MEMBERS, "as in product.cu");

impl Member {
    /// Elements that an operand with a lane stride must hold, for each of a, b, with, out: name, there, needed.
    fn sizes(&self, lanes: usize) -> [(&'static str, usize, usize); 4] {
        let [m, n, k] = self.shape;
        let strided = |stride: u64, each: [u32; 2]| lanes.saturating_sub(1) * stride as usize + size(each);
        let with = if matches!(self.finish, Finish::Set | Finish::Tanh | Finish::Sigmoid) { 0 } else { size([m, n]) };
        let behind = lanes.saturating_sub(1) * self.out.1 as usize;
        [
            ("a", self.a.0.len(), strided(self.a.1, [m, k])),
            ("b", self.b.0.len(), strided(self.b.1, [k, n])),
            ("with", self.with.len(), if with == 0 { 0 } else { behind + with }),
            ("out", self.out.0.len(), strided(self.out.1, [m, n])),
        ]
    }

    /// Whether rows of all operands begin at multiples of 16 bytes.
    fn in_fours(&self) -> bool {
        let [m, n, k] = self.shape;
        let a_row = if self.kind == Kind::Columns { m } else { k };
        let b_row = if self.kind == Kind::Transposed { k } else { n };
        let addresses = [self.a.0.address(), self.b.0.address(), self.with.address(), self.out.0.address()];
        [a_row, b_row, n].iter().all(|row| row % 4 == 0)
            && [self.a.1, self.b.1, self.out.1].iter().all(|stride| stride % 4 == 0)
            && addresses.iter().all(|address| address % 16 == 0)
    }

    /// Rows and columns of its tiles, and their number in the kernel's list.
    fn tile(&self, tiles: Tiles) -> ([u32; 2], u8) {
        let [m, n, _] = self.shape;
        let shape = if n <= 32 { 1 } else { 2 * u8::from(m <= 32) };
        match (tiles, shape) {
            (Tiles::Odd | Tiles::Small, _) => ([32, 32], 0),
            (Tiles::Medium, 0) => ([64, 64], 0),
            (Tiles::Medium, 1) => ([64, 32], 1),
            (Tiles::Medium, _) => ([32, 64], 2),
            (Tiles::Wide, 0) => ([128, 64], 0),
            (Tiles::Wide, 1) => ([128, 32], 1),
            (Tiles::Wide, _) => ([32, 128], 2),
        }
    }

    fn blocks_of(&self, tiles: Tiles) -> u32 {
        let ([rows, columns], _) = self.tile(tiles);
        self.shape[0].div_ceil(rows) * self.shape[1].div_ceil(columns)
    }
}

/// Products that do not depend on each other, in one launch.
#[derive(Clone)]
pub struct Batch {
    lanes: In<i32>,
    members: Vec<Member>,
    raw: Box<RawBatch>,
    blocks: u32,
}

/// Blocks of middling tiles that keep a die busy, where all sums are of one chunk, and where some are longer: those are few blocks' work
/// for a long time, which small tiles share out. Measured on an H200 (`speed_of_products`).
const BUSY_SHORT: u32 = 150;
const BUSY_LONG: u32 = 450;
/// Blocks of large tiles that do; they gain only where all sums are of one length.
const BUSY_WIDE: u32 = 500;

/// The tiles that are the fastest for these products.
pub fn tiles_for(lanes: usize, members: &[Member]) -> Tiles {
    if !members.iter().all(Member::in_fours) {
        return Tiles::Odd;
    }
    let lanes = u32::try_from(lanes).unwrap_or(u32::MAX);
    let blocks = |tiles| -> u32 {
        members.iter().filter(|p| !p.further).map(|p| p.blocks_of(tiles)).sum::<u32>().saturating_mul(lanes)
    };
    let sums = || members.iter().map(|p| p.shape[2]);
    let longest = sums().max().unwrap_or(0);
    let busy = if longest > PRODUCT_CHUNK as u32 { BUSY_LONG } else { BUSY_SHORT };
    if sums().all(|k| k == longest) && blocks(Tiles::Wide) >= BUSY_WIDE {
        Tiles::Wide
    } else if blocks(Tiles::Medium) >= busy {
        Tiles::Medium
    } else {
        Tiles::Small
    }
}

impl Batch {
    /// A launch of these products, cut into such tiles. Those with the longest sums begin first.
    ///
    /// # Panics
    /// There are none, or more than [`MEMBERS`], or the first is a further term.
    pub fn new(lanes: In<i32>, members: Vec<Member>, tiles: Tiles) -> Self {
        assert!(!members.is_empty() && members.len() <= MEMBERS && !members[0].further, "products of one launch");
        let mut chains: Vec<Vec<Member>> = Vec::new();
        for member in members {
            match chains.last_mut() {
                Some(chain) if member.further => chain.push(member),
                _ => chains.push(vec![member]),
            }
        }
        chains.sort_by_key(|chain| std::cmp::Reverse(chain.iter().map(|p| p.shape[2]).sum::<u32>()));
        let members: Vec<Member> = chains.into_iter().flatten().collect();
        let count = members.len();
        let mut raw = Box::new(RawBatch { count: count as u32, unused: 0, members: [RawMember::default(); MEMBERS] });
        let mut blocks = 0;
        for (i, p) in members.iter().enumerate() {
            let ([_, columns], shape) = p.tile(tiles);
            let [m, n, k] = p.shape;
            raw.members[i] = RawMember {
                a: p.a.0.address(),
                b: p.b.0.address(),
                with: p.with.address(),
                out: p.out.0.address(),
                a_lane: p.a.1,
                b_lane: p.b.1,
                out_lane: p.out.1,
                m,
                n,
                k,
                first: if p.further { u32::MAX } else { blocks },
                across: n.div_ceil(columns),
                kind: p.kind as u8,
                finish: p.finish as u8,
                more: u8::from(members.get(i + 1).is_some_and(|next| next.further)),
                shape,
            };
            if !p.further {
                blocks += p.blocks_of(tiles);
            }
        }
        Self { lanes, members, raw, blocks }
    }

    fn check(&self, entry: &'static str, launch: Launch) -> Result<Launch, LaunchError> {
        for p in &self.members {
            for (name, has, needs) in p.sizes(self.lanes.lanes()) {
                // Kernels count an operand's elements in 32 bits.
                let [m, n, k] = p.shape.map(u64::from);
                if has < needs || m * k > u64::from(u32::MAX) || k * n > u64::from(u32::MAX) {
                    return Err(LaunchError::Short { entry, name, has, needs });
                }
            }
        }
        in_range(entry, launch)
    }

    fn held(&self) -> Vec<Arc<Block>> {
        let mut blocks: Vec<_> = self.lanes.block().cloned().into_iter().collect();
        for p in &self.members {
            let all = [p.a.0.block(), p.b.0.block(), p.with.block(), p.out.0.block()];
            blocks.extend(all.into_iter().flatten().cloned());
        }
        blocks
    }
}

macro_rules! products {
    ($($(#[$meta:meta])* $name:ident = $entry:literal, $threads:literal;)+) => {$(
        $(#[$meta])*
        #[derive(Clone)]
        pub struct $name(pub Batch);

        impl Kernel for $name {
            const ROW: Row = Row {
                entry: $entry,
                file: "kernels/product.cu",
                parameters: &[
                    Declared { name: "lanes", kind: "const int*" },
                    Declared { name: "batch", kind: "ProductBatch" },
                ],
            };
            fn launch(&self) -> Launch {
                let lanes = u32::try_from(self.0.lanes.lanes()).unwrap_or(u32::MAX);
                Launch { grid: [self.0.blocks, 1, lanes], block: $threads }
            }
            fn sizes(&self) -> Vec<(Option<usize>, usize)> {
                Vec::new()
            }
            fn check(&self) -> Result<Launch, LaunchError> {
                self.0.check($entry, self.launch())
            }
            fn places(&self) -> Vec<*mut c_void> {
                vec![self.0.lanes.place(), std::ptr::from_ref(&*self.0.raw).cast_mut().cast()]
            }
            fn blocks(&self) -> Vec<Arc<Block>> {
                self.0.held()
            }
        }
    )+};
}

products! {
    /// Small tiles, operands one by one.
    Odd = "product_odd", 256;
    /// Small tiles.
    Small = "product_small", 256;
    /// Middling tiles.
    Medium = "product_medium", 128;
    /// Large tiles.
    Wide = "product_wide", 128;
}
