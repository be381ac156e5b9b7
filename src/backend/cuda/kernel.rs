//! What a kernel is to the host: a typed row with its entry, its file, its arguments and its launch rule.
//!
//! A row's arguments are a struct; its fields are the kernel's parameters, in order, by name and type. A test reads the
//! `.cu` files and holds every row against the parameters that stand there.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::Arc;

use super::memory::Block;

macro_rules! pointers {
    ($($(#[$meta:meta])* $name:ident),*) => {$(
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $name<T> {
            address: u64,
            len: usize,
            block: Arc<Block>,
            kind: PhantomData<T>,
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                let block = Arc::clone(&self.block);
                Self { address: self.address, len: self.len, block, kind: PhantomData }
            }
        }

        impl<T> $name<T> {
            /// All of a block's memory.
            pub(super) fn new(block: &Arc<Block>) -> Self {
                let len = block.bytes() / size_of::<T>();
                Self { address: block.address(), len, block: Arc::clone(block), kind: PhantomData }
            }

            /// Where it begins.
            pub(super) fn address(&self) -> u64 {
                self.address
            }

            /// Elements.
            pub(super) fn len(&self) -> usize {
                self.len
            }

            /// The same memory from `offset` elements on. Past the end it is empty, and no launch takes it.
            pub fn at(&self, offset: usize) -> Self {
                let offset = offset.min(self.len);
                let mut part = self.clone();
                part.address += (offset * size_of::<T>()) as u64;
                part.len -= offset;
                part
            }
        }
    )*};
}

pointers![
    /// Device memory that a kernel reads: an address and the elements that may be read from it. Keeps the memory alive.
    In,
    /// Device memory that a kernel writes or adds to. Keeps the memory alive.
    Out
];

impl<T> Out<T> {
    /// The same memory, to read.
    pub fn input(&self) -> In<T> {
        In { address: self.address, len: self.len, block: Arc::clone(&self.block), kind: PhantomData }
    }
}

impl In<i32> {
    /// Entries of a list of lanes.
    pub fn lanes(&self) -> usize {
        self.len
    }
}

/// A scalar or pointer as a kernel's parameter.
pub trait Parameter {
    /// Its type in CUDA.
    const TYPE: &'static str;
    /// Elements that the memory behind it holds; `None` for a scalar.
    fn holds(&self) -> Option<usize> {
        None
    }
    /// The memory behind it, which must outlive the kernel's run.
    fn block(&self) -> Option<&Arc<Block>> {
        None
    }
    /// Where the value lies that the launch copies.
    fn place(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }
}

macro_rules! scalars {
    ($($rust:ty = $cuda:literal),* $(,)?) => {$(
        impl Parameter for $rust { const TYPE: &'static str = $cuda; }
        impl Parameter for In<$rust> {
            const TYPE: &'static str = concat!("const ", $cuda, "*");
            fn holds(&self) -> Option<usize> { Some(self.len) }
            fn block(&self) -> Option<&Arc<Block>> { Some(&self.block) }
            fn place(&self) -> *mut c_void { std::ptr::from_ref(&self.address).cast_mut().cast() }
        }
        impl Parameter for Out<$rust> {
            const TYPE: &'static str = concat!($cuda, "*");
            fn holds(&self) -> Option<usize> { Some(self.len) }
            fn block(&self) -> Option<&Arc<Block>> { Some(&self.block) }
            fn place(&self) -> *mut c_void { std::ptr::from_ref(&self.address).cast_mut().cast() }
        }
    )*};
}

scalars![f32 = "float", f64 = "double", u32 = "unsigned", i32 = "int", u64 = "u64", i8 = "i8", u8 = "u8",];

/// How a kernel is spread over the die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: u32,
}

/// A launch that was refused before it reached the die.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LaunchError {
    /// Memory is smaller than the shapes say.
    #[error("kernel {entry}: {name} holds {has} elements, {needs} are needed")]
    Short {
        /// Kernel.
        entry: &'static str,
        /// Parameter.
        name: &'static str,
        /// Elements there.
        has: usize,
        /// Elements that the shapes ask for.
        needs: usize,
    },
    /// A grid that no die takes.
    #[error("kernel {entry}: a grid of {grid:?} blocks of {block} threads is out of range")]
    Grid {
        /// Kernel.
        entry: &'static str,
        /// Blocks.
        grid: [u32; 3],
        /// Threads.
        block: u32,
    },
}

/// A parameter of a row: its name, its CUDA type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Name.
    pub name: &'static str,
    /// Type in CUDA.
    pub kind: &'static str,
}

/// A kernel that can be loaded.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name of the `extern "C"` function.
    pub entry: &'static str,
    /// File that holds it.
    pub file: &'static str,
    /// Parameters in order.
    pub parameters: &'static [Declared],
}

/// A kernel's arguments.
pub trait Kernel {
    /// The row.
    const ROW: Row;
    /// How it is spread for these shapes.
    fn launch(&self) -> Launch;
    /// For each parameter in order: elements there, elements needed.
    fn sizes(&self) -> Vec<(Option<usize>, usize)>;
    /// Where each argument lies, in order.
    fn places(&self) -> Vec<*mut c_void>;
    /// The memory behind all pointers.
    fn blocks(&self) -> Vec<Arc<Block>>;

    /// Checks memory against shapes, and the grid against what every die takes.
    ///
    /// # Errors
    /// The first parameter that is too short, or the grid.
    fn check(&self) -> Result<Launch, LaunchError> {
        let entry = Self::ROW.entry;
        for (declared, (has, needs)) in Self::ROW.parameters.iter().zip(self.sizes()) {
            if let Some(has) = has.filter(|&has| has < needs) {
                return Err(LaunchError::Short { entry, name: declared.name, has, needs });
            }
        }
        in_range(entry, self.launch())
    }
}

/// A launch that every die takes.
///
/// # Errors
/// It is not.
pub(super) fn in_range(entry: &'static str, launch: Launch) -> Result<Launch, LaunchError> {
    let Launch { grid, block } = launch;
    let small = grid[1] <= 65_535 && grid[2] <= 65_535 && grid[0] < (1 << 31);
    if !small || grid.contains(&0) || block == 0 || block > 1024 {
        return Err(LaunchError::Grid { entry, grid, block });
    }
    Ok(launch)
}

/// Elements of an array of these dimensions.
pub(super) fn size<const N: usize>(dimensions: [u32; N]) -> usize {
    dimensions.into_iter().map(|d| d as usize).product()
}

/// Declares a kernel. Every kernel takes the list of lanes first; the launch rule gives blocks across and down, and threads.
/// Each pointer says how many elements it must hold: `[n]` for each lane, `= n` for each lane in the arena, `{n}` in all.
macro_rules! kernel {
    (
        $(#[$meta:meta])*
        $name:ident = $entry:literal in $file:literal, |$s:ident| $grid:expr, $block:expr;
        $($field:ident: $ty:ty $([$lane:expr])? $({$shared:expr})? $(= $arena:expr)?),* $(,)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        #[allow(missing_docs)] // the kernel's source says what each parameter is
        pub struct $name {
            pub lanes: $crate::backend::cuda::kernel::In<i32>,
            $(pub $field: $ty,)*
        }

        impl $crate::backend::cuda::kernel::Kernel for $name {
            const ROW: $crate::backend::cuda::kernel::Row = $crate::backend::cuda::kernel::Row {
                entry: $entry,
                file: concat!("kernels/", $file),
                parameters: &[
                    $crate::backend::cuda::kernel::Declared { name: "lanes", kind: "const int*" },
                    $($crate::backend::cuda::kernel::Declared {
                        name: stringify!($field),
                        kind: <$ty as $crate::backend::cuda::kernel::Parameter>::TYPE,
                    }),*
                ],
            };

            fn launch(&self) -> $crate::backend::cuda::kernel::Launch {
                let $s = self;
                let [x, y]: [u32; 2] = $grid;
                let z = u32::try_from(self.lanes.lanes()).unwrap_or(u32::MAX);
                $crate::backend::cuda::kernel::Launch { grid: [x, y, z], block: $block }
            }

            fn sizes(&self) -> Vec<(Option<usize>, usize)> {
                use $crate::backend::cuda::kernel::Parameter;
                #[allow(unused_variables)]
                let ($s, lanes) = (self, self.lanes.lanes());
                vec![
                    (None, 0),
                    $((
                        self.$field.holds(),
                        0 $(+ lanes * $lane)? $(+ $shared)? $(+ lanes.saturating_sub(1) * $s.arena as usize + $arena)?,
                    )),*
                ]
            }

            fn places(&self) -> Vec<*mut std::ffi::c_void> {
                use $crate::backend::cuda::kernel::Parameter;
                vec![self.lanes.place(), $(self.$field.place()),*]
            }

            fn blocks(&self) -> Vec<std::sync::Arc<$crate::backend::cuda::memory::Block>> {
                use $crate::backend::cuda::kernel::Parameter;
                [self.lanes.block(), $(self.$field.block()),*].into_iter().flatten().map(std::sync::Arc::clone).collect()
            }
        }
    };
}
pub(crate) use kernel;
