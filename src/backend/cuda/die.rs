//! An open die: its context, its stream, the kernels' code, and launches.

use std::collections::HashMap;
use std::ffi::CString;
use std::fmt;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaGraph, CudaStream, DriverError, result, sys};

use super::code::{self, CodeError, Image};
use super::kernel::{Kernel, LaunchError};
use super::library::{self, Host, NotFound};
use super::memory::{Block, Memory, Plain};
use super::nvrtc::Arch;
use super::ops;

/// A die cannot be used, or a call to it failed.
#[derive(Debug, thiserror::Error)]
pub enum DieError {
    /// No driver.
    #[error("no CUDA driver: {0}")]
    NoDriver(#[from] NotFound),
    /// No code for it.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// Too little memory.
    #[error("out of device memory: {bytes} bytes were asked for")]
    OutOfMemory {
        /// Bytes of the allocation.
        bytes: usize,
    },
    /// A launch was refused.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The driver's error.
    #[error("{what}: {}", describe(.error))]
    Driver {
        /// What was being done.
        what: &'static str,
        /// The error.
        error: DriverError,
    },
}

fn describe(error: &DriverError) -> String {
    let name = error.error_name().map(|n| n.to_string_lossy().into_owned());
    let text = error.error_string().map(|n| n.to_string_lossy().into_owned());
    match (name, text) {
        (Ok(name), Ok(text)) => format!("{text} ({name})"),
        _ => format!("driver error {:?}", error.0),
    }
}

impl DieError {
    pub(super) fn allocation(bytes: usize, error: DriverError) -> Self {
        match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Self::OutOfMemory { bytes },
            _ => Self::Driver { what: "allocating memory", error },
        }
    }
}

impl DieError {
    /// Whether the driver says that the die itself is gone or broken, so that no process can use it.
    pub fn is_loss(&self) -> bool {
        use sys::CUresult as Is;
        matches!(
            self,
            Self::Driver {
                error: DriverError(
                    Is::CUDA_ERROR_ECC_UNCORRECTABLE
                        | Is::CUDA_ERROR_NVLINK_UNCORRECTABLE
                        | Is::CUDA_ERROR_NO_DEVICE
                        | Is::CUDA_ERROR_HARDWARE_STACK_ERROR
                        | Is::CUDA_ERROR_SYSTEM_NOT_READY
                ),
                ..
            }
        )
    }
}

/// Names what was being done when a driver call failed.
pub(super) fn call<T>(what: &'static str, done: Result<T, DriverError>) -> Result<T, DieError> {
    done.map_err(|error| DieError::Driver { what, error })
}

/// Code loaded in a context.
struct Module {
    handle: sys::CUmodule,
    context: Arc<CudaContext>,
}

impl Drop for Module {
    fn drop(&mut self) {
        self.context.record_err(self.context.bind_to_thread());
        // SAFETY: the handle came from `load_data` and is unloaded here only; launches of it were awaited by the die's drop.
        self.context.record_err(unsafe { result::module::unload(self.handle) });
    }
}

/// An open die.
pub struct Die {
    functions: HashMap<&'static str, sys::CUfunction>,
    // Dropped after what lives in it.
    _module: Module,
    stream: Arc<CudaStream>,
    image: Image,
    arch: Arch,
}

impl fmt::Debug for Die {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Die({}, code {})", self.arch.0, self.image.target)
    }
}

impl Drop for Die {
    fn drop(&mut self) {
        self.stream.context().record_err(self.stream.synchronize());
    }
}

/// Launches that were recorded once and are replayed at once.
pub struct Graph {
    graph: CudaGraph,
    // What the recorded kernels use.
    _blocks: Vec<Arc<Block>>,
    nodes: usize,
}

impl Graph {
    /// Kernels in it.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Puts all of it on the die's stream.
    ///
    /// # Errors
    /// The driver's.
    pub fn replay(&self) -> Result<(), DieError> {
        call("replaying a graph", self.graph.launch())
    }
}

/// Something that takes launches: a die, or a recording on it.
pub trait Launcher {
    /// Checks the arguments and launches the kernel.
    ///
    /// # Errors
    /// Arguments that do not fit together, or the driver's error.
    fn launch(&mut self, kernel: &impl Kernel) -> Result<(), DieError>;
}

/// A graph in the making.
pub struct Recording<'a> {
    die: &'a Die,
    blocks: Vec<Arc<Block>>,
    nodes: usize,
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({} kernels)", self.nodes)
    }
}

impl Launcher for Recording<'_> {
    fn launch(&mut self, kernel: &impl Kernel) -> Result<(), DieError> {
        self.die.start(kernel)?;
        self.blocks.extend(kernel.blocks());
        self.nodes += 1;
        Ok(())
    }
}

impl<L: Launcher> Launcher for &mut L {
    fn launch(&mut self, kernel: &impl Kernel) -> Result<(), DieError> {
        (**self).launch(kernel)
    }
}

impl Launcher for &Die {
    fn launch(&mut self, kernel: &impl Kernel) -> Result<(), DieError> {
        self.start(kernel)
    }
}

impl Die {
    /// Opens die `ordinal` of those that this process may see, and loads the kernels.
    ///
    /// # Errors
    /// No driver or no such die, no compiler, or the driver's error.
    pub fn open(host: &Host<'_>, ordinal: usize) -> Result<Self, DieError> {
        library::load_driver(host)?;
        let context = call("opening the die", CudaContext::new(ordinal))?;
        // SAFETY: all work goes through one stream, in order, so that no event need guard a buffer.
        unsafe { context.disable_event_tracking() };
        let (major, minor) = call("reading the compute capability", context.compute_capability())?;
        let arch = Arch(u32::try_from(major * 10 + minor).unwrap_or_default());
        let image = code::for_die(host, arch)?;
        let stream = call("making a stream", context.new_stream())?;
        // SAFETY: the image is a whole cubin, or PTX that ends in a zero, as the compiler made it and the digest holds.
        let handle = unsafe { result::module::load_data(image.bytes.as_ptr().cast()) };
        let handle = call("loading the kernels", handle)?;
        let module = Module { handle, context };
        let mut functions = HashMap::new();
        for row in ops::ROWS {
            let name = CString::new(row.entry).unwrap_or_default();
            // SAFETY: the module is loaded.
            let function = unsafe { result::module::get_function(module.handle, name) };
            functions.insert(row.entry, call("finding a kernel", function)?);
        }
        Ok(Self { functions, _module: module, stream, image, arch })
    }

    /// Compute capability, e.g. 90.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The code that it runs.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// The driver's name of the die.
    ///
    /// # Errors
    /// The driver's.
    pub fn name(&self) -> Result<String, DieError> {
        call("reading the die's name", self.stream.context().name())
    }

    /// UUID as `nvidia-smi` writes it.
    ///
    /// # Errors
    /// The driver's.
    pub fn uuid(&self) -> Result<String, DieError> {
        let uuid = call("reading the die's UUID", self.stream.context().uuid())?;
        let bytes = uuid.bytes.map(|b| b.cast_unsigned());
        let hex =
            |range: std::ops::Range<usize>| -> String { bytes[range].iter().map(|b| format!("{b:02x}")).collect() };
        let parts = [hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16)];
        Ok(format!("GPU-{}", parts.join("-")))
    }

    /// PCI bus as the management library writes it, `00000000:04:00.0`.
    ///
    /// # Errors
    /// The driver's.
    pub fn pci(&self) -> Result<String, DieError> {
        use sys::CUdevice_attribute as A;
        let read = |attribute| call("reading the die's bus", self.stream.context().attribute(attribute));
        let domain = read(A::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?;
        let bus = read(A::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?;
        let device = read(A::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?;
        Ok(format!("{domain:08X}:{bus:02X}:{device:02X}.0"))
    }

    /// Free and total memory in bytes.
    ///
    /// # Errors
    /// The driver's.
    pub fn memory_info(&self) -> Result<(usize, usize), DieError> {
        call("reading free memory", self.stream.context().mem_get_info())
    }

    /// Allocates `len` elements, all zero.
    ///
    /// # Errors
    /// The die has too little memory left.
    pub fn zeroed<T: Plain>(&self, len: usize) -> Result<Memory<T>, DieError> {
        Memory::zeroed(&self.stream, len)
    }

    /// Allocates a copy of `values`.
    ///
    /// # Errors
    /// The die has too little memory left, or the driver's error.
    pub fn copied<T: Plain>(&self, values: &[T]) -> Result<Memory<T>, DieError> {
        let memory = self.zeroed(values.len())?;
        memory.upload(0, values)?;
        Ok(memory)
    }

    fn start<K: Kernel>(&self, kernel: &K) -> Result<(), DieError> {
        let launch = kernel.check()?;
        let [x, y, z] = launch.grid;
        let function = self.functions[K::ROW.entry];
        call("binding the context", self.stream.context().bind_to_thread())?;
        let mut places = kernel.places();
        // SAFETY: the function belongs to the loaded module. Each place holds a value of the type of the parameter in its
        // position: a test holds the row against the kernel's source. The driver copies the values before it returns. The
        // memory behind each pointer is as large as the shapes ask for (`check`), and is freed only after the stream's
        // work is done (`Block`), or with the graph that holds it.
        let started = unsafe {
            result::launch_kernel(function, (x, y, z), (launch.block, 1, 1), 0, self.stream.cu_stream(), &mut places)
        };
        call("launching a kernel", started)
    }

    /// Waits until all that was launched is done.
    ///
    /// # Errors
    /// A fault of any kernel since the last wait.
    pub fn wait(&self) -> Result<(), DieError> {
        call("waiting for the die", self.stream.synchronize())
    }

    /// Records what `launches` launches as a graph; nothing of it runs.
    ///
    /// # Errors
    /// Those of `launches`, or the driver's.
    pub fn record(&self, launches: impl FnOnce(&mut Recording<'_>) -> Result<(), DieError>) -> Result<Graph, DieError> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        call("recording a graph", self.stream.begin_capture(mode))?;
        let mut recording = Recording { die: self, blocks: Vec::new(), nodes: 0 };
        let recorded = launches(&mut recording);
        // Ended also after an error, so that the stream is fit for use again.
        let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        let graph = call("recording a graph", self.stream.end_capture(flags));
        recorded?;
        let graph = graph?.ok_or(DieError::Driver {
            what: "recording a graph",
            error: DriverError(sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED),
        })?;
        Ok(Graph { graph, _blocks: recording.blocks, nodes: recording.nodes })
    }
}
