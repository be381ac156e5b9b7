//! Device memory: plain allocations, each owned by a block that is freed with its last user.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaStream, result};

use super::die::{DieError, call};
use super::kernel::{In, Out};

/// An allocation on a die.
#[derive(Debug)]
pub struct Block {
    address: u64,
    bytes: usize,
    stream: Arc<CudaStream>,
}

impl Block {
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let context = self.stream.context();
        // Whatever uses the memory was put on the stream before its last handle went.
        context.record_err(self.stream.synchronize());
        // SAFETY: the address came from `malloc_sync`, is freed here only, and no kernel uses it any more.
        context.record_err(unsafe { result::free_sync(self.address) });
    }
}

/// Types that may be copied to and from a die byte by byte.
///
/// # Safety
/// Every bit pattern is a value, and the type has no padding.
pub unsafe trait Plain: Copy + Default {}
macro_rules! plain {
    ($($ty:ty),*) => {$(
        // SAFETY: a primitive number.
        unsafe impl Plain for $ty {}
    )*};
}
plain![f32, f64, u32, i32, u64, i8, u8];

/// An array on a die.
#[derive(Debug)]
pub struct Memory<T> {
    block: Arc<Block>,
    len: usize,
    kind: PhantomData<T>,
}

impl<T: Plain> Memory<T> {
    /// Allocates `len` elements, all zero.
    ///
    /// # Errors
    /// The die has too little memory left.
    pub(super) fn zeroed(stream: &Arc<CudaStream>, len: usize) -> Result<Self, DieError> {
        let bytes = len * size_of::<T>();
        call("binding the context", stream.context().bind_to_thread())?;
        // SAFETY: the memory is unset until the next lines; a size of 0 is not allowed, hence at least one byte.
        let address = unsafe { result::malloc_sync(bytes.max(1)) };
        let address = address.map_err(|error| DieError::allocation(bytes, error))?;
        let block = Arc::new(Block { address, bytes, stream: Arc::clone(stream) });
        // SAFETY: `bytes` bytes were allocated at `address`.
        call("clearing memory", unsafe { result::memset_d8_async(address, 0, bytes, stream.cu_stream()) })?;
        Ok(Self { block, len, kind: PhantomData })
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// For a kernel to read.
    pub fn read(&self) -> In<T> {
        In::new(&self.block)
    }

    /// For a kernel to write.
    pub fn write(&self) -> Out<T> {
        Out::new(&self.block)
    }

    /// Copies `values` here from element `offset` on, after what is on the stream already, and waits.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Panics
    /// They do not fit.
    pub fn upload(&self, offset: usize, values: &[T]) -> Result<(), DieError> {
        assert!(offset + values.len() <= self.len, "upload past the end of a buffer");
        let stream = &self.block.stream;
        call("binding the context", stream.context().bind_to_thread())?;
        let to = self.block.address + (offset * size_of::<T>()) as u64;
        // SAFETY: the range lies in the block, as just checked; `values` outlive the copy, which is awaited.
        let copied = unsafe { result::memcpy_htod_async(to, values, stream.cu_stream()) };
        call("copying to the die", copied)?;
        call("copying to the die", stream.synchronize())
    }

    /// Copies `len` elements from `offset` on to the host, after what is on the stream already.
    ///
    /// # Errors
    /// The driver's; a fault of an earlier kernel shows here.
    ///
    /// # Panics
    /// The range does not lie in the array.
    pub fn download(&self, offset: usize, len: usize) -> Result<Vec<T>, DieError> {
        assert!(offset + len <= self.len, "download past the end of a buffer");
        let stream = &self.block.stream;
        call("binding the context", stream.context().bind_to_thread())?;
        let mut values = vec![T::default(); len];
        let from = self.block.address + (offset * size_of::<T>()) as u64;
        // SAFETY: the range lies in the block; `values` outlives the copy, which is awaited.
        let copied = unsafe { result::memcpy_dtoh_async(&mut values, from, stream.cu_stream()) };
        call("copying from the die", copied)?;
        call("copying from the die", stream.synchronize())?;
        Ok(values)
    }
}
