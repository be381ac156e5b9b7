//! NVRTC, the run-time compiler, opened by path.
//!
//! A binding of its own, since others open the library by fixed names, and a host may have only `libnvrtc.so.13` or a
//! Python package's folder.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;

use libloading::os::unix::Library;

use super::library::{self, Host, NotFound, Wanted};

/// A chip's architecture: compute capability 3.7 is 37.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch(pub u32);

/// What a program is compiled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Machine code for one architecture.
    Cubin(Arch),
    /// Portable code of an architecture's level, which the driver compiles for the chip.
    Ptx(Arch),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cubin(arch) => write!(f, "sm_{}", arch.0),
            Self::Ptx(arch) => write!(f, "compute_{}", arch.0),
        }
    }
}

/// Version of an NVRTC, e.g. 11.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Before the dot.
    pub major: i32,
    /// After it.
    pub minor: i32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Options of every compilation: what the one arithmetic asks for.
pub const OPTIONS: &[&str] = &[
    "--std=c++14",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--extra-device-vectorization",
];

/// Code that the driver can load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// A cubin, or PTX text ended by a zero.
    pub image: Vec<u8>,
    /// What the compiler said, warnings and reports.
    pub log: String,
}

/// Compiling failed, or no compiler is at hand.
#[derive(Debug, thiserror::Error)]
pub enum NvrtcError {
    /// No library.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// Libraries were found, and none of them compiles for the chip.
    #[error("no NVRTC at hand compiles for {wanted}; seen:{seen}\n  a Tesla K80 (sm_37) needs NVRTC 11.4 to 11.8")]
    NoneCompiles {
        /// Target asked for.
        wanted: String,
        /// Each library with what it compiles for.
        seen: String,
    },
    /// The source is wrong: the compiler's own words, with file and line.
    #[error("the kernels do not compile for {target} with NVRTC {version}:\n{log}")]
    Compile {
        /// Target.
        target: Target,
        /// Compiler.
        version: Version,
        /// What it said.
        log: String,
    },
    /// A call failed for another reason.
    #[error("{call} failed: {reason}")]
    Call {
        /// Function.
        call: &'static str,
        /// The library's text.
        reason: String,
    },
}

type Program = *mut c_void;

/// The functions, with the types of nvrtc.h.
struct Api {
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    log: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ptx_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    ptx: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    error_text: unsafe extern "C" fn(c_int) -> *const c_char,
}

/// An open NVRTC.
pub struct Nvrtc {
    api: Api,
    version: Version,
    archs: Vec<Arch>,
    from: String,
    // Last, so that it is closed after what points into it.
    _library: Library,
}

/// A program that is destroyed when dropped.
struct Owned<'a> {
    api: &'a Api,
    program: Program,
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: `program` came from `create`, and is destroyed here only. Nothing can be done about a failure.
        let _ = unsafe { (self.api.destroy)(&mut self.program) };
    }
}

const COMPILATION_FAILED: c_int = 6;

impl Nvrtc {
    /// Opens the first library that compiles machine code for `arch`; failing that, for a chip newer than every
    /// library, the newest one, whose portable code the driver takes.
    ///
    /// # Errors
    /// No library is found, or none compiles for `arch`.
    pub fn for_arch(host: &Host<'_>, arch: Arch) -> Result<(Self, Target), NvrtcError> {
        let mut seen = String::new();
        let mut newest: Option<Self> = None;
        for nvrtc in Self::all(host)? {
            if nvrtc.archs.contains(&arch) {
                return Ok((nvrtc, Target::Cubin(arch)));
            }
            seen += &format!("\n  {}", nvrtc.describe());
            let better = |best: &Self| nvrtc.archs.last() > best.archs.last();
            if newest.as_ref().is_none_or(better) {
                newest = Some(nvrtc);
            }
        }
        match newest.and_then(|n| n.archs.last().copied().map(|last| (n, last))) {
            Some((nvrtc, last)) if last < arch => Ok((nvrtc, Target::Ptx(last))),
            _ => Err(NvrtcError::NoneCompiles { wanted: Target::Cubin(arch).to_string(), seen }),
        }
    }

    /// Opens the first library that knows the architecture of a forced target.
    ///
    /// # Errors
    /// No library is found, or none knows it.
    pub fn for_target(host: &Host<'_>, target: Target) -> Result<Self, NvrtcError> {
        let (Target::Cubin(arch) | Target::Ptx(arch)) = target;
        let mut seen = String::new();
        for nvrtc in Self::all(host)? {
            if nvrtc.archs.contains(&arch) {
                return Ok(nvrtc);
            }
            seen += &format!("\n  {}", nvrtc.describe());
        }
        Err(NvrtcError::NoneCompiles { wanted: target.to_string(), seen })
    }

    /// Every library at hand that opens, each version once, opened as the iterator goes on.
    fn all<'h>(host: &'h Host<'_>) -> Result<impl Iterator<Item = Self> + use<'h>, NotFound> {
        let (candidates, looked) = library::search(host, Wanted::Nvrtc);
        let mut opened = candidates.into_iter().filter_map(|candidate| Self::open(&candidate)).peekable();
        if opened.peek().is_none() {
            return Err(NotFound::new(Wanted::Nvrtc, looked));
        }
        Ok(opened)
    }

    /// Opens one library. `None` where it does not load or lacks a function (older than 11.2).
    fn open(candidate: &library::Candidate) -> Option<Self> {
        let library = library::open(candidate, "libnvrtc-builtins.so").ok()?;
        // SAFETY: each symbol is read as the function type that nvrtc.h gives it, the same from 11.2 to 13.
        let (api, version, archs) = unsafe {
            let api = Api {
                create: *library.get(b"nvrtcCreateProgram\0").ok()?,
                destroy: *library.get(b"nvrtcDestroyProgram\0").ok()?,
                compile: *library.get(b"nvrtcCompileProgram\0").ok()?,
                log_size: *library.get(b"nvrtcGetProgramLogSize\0").ok()?,
                log: *library.get(b"nvrtcGetProgramLog\0").ok()?,
                cubin_size: *library.get(b"nvrtcGetCUBINSize\0").ok()?,
                cubin: *library.get(b"nvrtcGetCUBIN\0").ok()?,
                ptx_size: *library.get(b"nvrtcGetPTXSize\0").ok()?,
                ptx: *library.get(b"nvrtcGetPTX\0").ok()?,
                error_text: *library.get(b"nvrtcGetErrorString\0").ok()?,
            };
            (api, version_of(&library)?, archs_of(&library)?)
        };
        Some(Self { api, version, archs, from: candidate.to_string(), _library: library })
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Where it was found.
    pub fn from(&self) -> &str {
        &self.from
    }

    fn describe(&self) -> String {
        let (first, last) = (self.archs.first(), self.archs.last());
        let arch = |a: Option<&Arch>| a.map_or(0, |a| a.0);
        format!("NVRTC {} at {}: sm_{} to sm_{}", self.version, self.from, arch(first), arch(last))
    }

    /// Compiles `source` with [`OPTIONS`] and `extra` options.
    ///
    /// # Errors
    /// The source does not compile, or the library fails.
    pub fn compile(&self, source: &str, target: Target, extra: &[&str]) -> Result<Code, NvrtcError> {
        let source = text(source);
        let arch = text(&format!("--gpu-architecture={target}"));
        let options: Vec<CString> = OPTIONS.iter().chain(extra).map(|o| text(o)).collect();
        let mut pointers: Vec<*const c_char> = vec![arch.as_ptr()];
        pointers.extend(options.iter().map(|o| o.as_ptr()));
        let mut program: Program = std::ptr::null_mut();
        // SAFETY: `source` and the name are zero-ended and outlive the program; no headers are given.
        self.check("nvrtcCreateProgram", unsafe {
            (self.api.create)(&mut program, source.as_ptr(), c"kernels".as_ptr(), 0, std::ptr::null(), std::ptr::null())
        })?;
        let owned = Owned { api: &self.api, program };
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        // SAFETY: the program lives, and `pointers` holds `count` zero-ended options that live until the return.
        let status = unsafe { (self.api.compile)(owned.program, count, pointers.as_ptr()) };
        let log = self.log_of(&owned)?;
        if status == COMPILATION_FAILED {
            let version = self.version;
            return Err(NvrtcError::Compile { target, version, log });
        }
        if status != 0 && !log.trim().is_empty() {
            return Err(NvrtcError::Call { call: "nvrtcCompileProgram", reason: log });
        }
        self.check("nvrtcCompileProgram", status)?;
        let image = match target {
            Target::Cubin(_) => self.bytes("nvrtcGetCUBIN", &owned, self.api.cubin_size, self.api.cubin)?,
            Target::Ptx(_) => self.bytes("nvrtcGetPTX", &owned, self.api.ptx_size, self.api.ptx)?,
        };
        Ok(Code { image, log })
    }

    fn log_of(&self, owned: &Owned<'_>) -> Result<String, NvrtcError> {
        let bytes = self.bytes("nvrtcGetProgramLog", owned, self.api.log_size, self.api.log)?;
        let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
        Ok(text.to_string_lossy().into_owned())
    }

    /// Reads what a pair of size and content functions gives.
    fn bytes(
        &self,
        call: &'static str,
        owned: &Owned<'_>,
        size_of: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        content: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> Result<Vec<u8>, NvrtcError> {
        let mut size = 0;
        // SAFETY: the program lives; `size` is written.
        self.check(call, unsafe { size_of(owned.program, &mut size) })?;
        let mut bytes = vec![0u8; size];
        // SAFETY: the library writes `size` bytes, as it just said.
        self.check(call, unsafe { content(owned.program, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }

    fn check(&self, call: &'static str, status: c_int) -> Result<(), NvrtcError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the library returns a zero-ended text of its own for every number.
        let reason = unsafe { CStr::from_ptr((self.api.error_text)(status)) };
        let reason = reason.to_string_lossy().into_owned();
        Err(NvrtcError::Call { call, reason })
    }
}

/// # Safety
/// `library` is an NVRTC.
unsafe fn version_of(library: &Library) -> Option<Version> {
    // SAFETY: nvrtc.h gives the symbol this type.
    let version =
        unsafe { library.get::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int>(b"nvrtcVersion\0") }.ok()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are written.
    let status = unsafe { version(&mut major, &mut minor) };
    (status == 0).then_some(Version { major, minor })
}

/// Architectures that it makes machine code for, ascending.
///
/// # Safety
/// `library` is an NVRTC.
unsafe fn archs_of(library: &Library) -> Option<Vec<Arch>> {
    type Read = unsafe extern "C" fn(*mut c_int) -> c_int;
    // SAFETY: nvrtc.h gives the symbols this type.
    let (count, read) = unsafe {
        (
            library.get::<Read>(b"nvrtcGetNumSupportedArchs\0").ok()?,
            library.get::<Read>(b"nvrtcGetSupportedArchs\0").ok()?,
        )
    };
    let mut n = 0;
    // SAFETY: the number is written.
    if unsafe { count(&mut n) } != 0 {
        return None;
    }
    let mut archs = vec![0; usize::try_from(n).ok()?];
    // SAFETY: the library writes as many numbers as it just said.
    if unsafe { read(archs.as_mut_ptr()) } != 0 {
        return None;
    }
    let mut archs: Vec<Arch> = archs.into_iter().filter_map(|a| u32::try_from(a).ok().map(Arch)).collect();
    archs.sort_unstable();
    Some(archs)
}

/// A zero-ended copy. Sources and options hold no zero bytes; one that did would be cut there.
fn text(s: &str) -> CString {
    let end = s.find('\0').unwrap_or(s.len());
    CString::new(&s[..end]).unwrap_or_default()
}
