//! The kernels as code for the die at hand: from the cache, or compiled.

use super::cache::{Cache, Found, Key};
use super::library::Host;
use super::nvrtc::{Arch, Nvrtc, NvrtcError, OPTIONS, Target};
use super::source;

/// Environment variable that forces the target, e.g. `compute_37` to run a K80's code on a newer chip.
pub const FORCE_VARIABLE: &str = "DIESWEEP_FORCE_ARCH";

/// Code of all kernels.
#[derive(Clone, Debug)]
pub struct Image {
    /// A cubin, or PTX text ended by a zero.
    pub bytes: Vec<u8>,
    /// What it was compiled for.
    pub target: Target,
    /// The compiler, its version and place.
    pub compiler: String,
    /// Whether it came from the cache.
    pub cached: bool,
}

/// No code for the die.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// The forced target is not one.
    #[error("{FORCE_VARIABLE}: `{0}` is not a target; write compute_37 or sm_90")]
    BadTarget(String),
    /// Compiling failed.
    #[error(transparent)]
    Nvrtc(#[from] NvrtcError),
}

/// Reads a target as the compiler names it.
///
/// # Errors
/// The text is neither `sm_` nor `compute_` with a number of two or three digits.
pub fn parse_target(text: &str) -> Result<Target, CodeError> {
    let bad = || CodeError::BadTarget(text.to_owned());
    let number = |digits: &str| match digits.len() {
        2 | 3 if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().map_err(|_| bad()),
        _ => Err(bad()),
    };
    if let Some(digits) = text.strip_prefix("compute_") {
        Ok(Target::Ptx(Arch(number(digits)?)))
    } else if let Some(digits) = text.strip_prefix("sm_") {
        Ok(Target::Cubin(Arch(number(digits)?)))
    } else {
        Err(bad())
    }
}

/// The kernels for a chip of architecture `arch`, or for the target that [`FORCE_VARIABLE`] names.
///
/// # Errors
/// No compiler is at hand, or it refuses the source.
pub fn for_die(host: &Host<'_>, arch: Arch) -> Result<Image, CodeError> {
    let forced = (host.env)(FORCE_VARIABLE).map(|text| parse_target(&text.to_string_lossy())).transpose()?;
    let (nvrtc, target) = match forced {
        Some(target) => (Nvrtc::for_target(host, target)?, target),
        None => Nvrtc::for_arch(host, arch)?,
    };
    let source = source::joined();
    let compiler = format!("NVRTC {}", nvrtc.version());
    let key = Key { source: &source, options: OPTIONS, target: &target.to_string(), compiler: &compiler };
    let compile = || -> Result<Vec<u8>, CodeError> { Ok(nvrtc.compile(&source, target, &[])?.image) };
    let found = match Cache::of_user(host.env) {
        Some(cache) => cache.get_or_make(&key, compile)?,
        None => Found { code: compile()?, cached: false, not_kept: None },
    };
    if let Some(error) = &found.not_kept {
        tracing::warn!("compiled kernels are not kept for next time: {error}");
    }
    let compiler = format!("{compiler} at {}", nvrtc.from());
    Ok(Image { bytes: found.code, target, compiler, cached: found.cached })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_rubbish_is_refused() {
        assert_eq!(parse_target("compute_37").unwrap(), Target::Ptx(Arch(37)));
        assert_eq!(parse_target("sm_90").unwrap(), Target::Cubin(Arch(90)));
        assert_eq!(parse_target("sm_120").unwrap(), Target::Cubin(Arch(120)));
        for bad in ["", "37", "sm_", "sm_3", "sm_3.7", "compute_-7", "SM_37", "sm_1000"] {
            let error = parse_target(bad).unwrap_err().to_string();
            assert!(error.contains("is not a target; write compute_37 or sm_90"), "{error}");
        }
    }

    #[test]
    fn without_a_compiler_the_error_lists_where_it_was_looked_for() {
        let root = tempfile::tempdir().unwrap();
        // An empty root, and the loader may still know one: then this machine compiles, which is right too.
        let host = Host { env: &|_| None, root: root.path().to_path_buf() };
        if let Err(error) = for_die(&host, Arch(37)) {
            let text = error.to_string();
            assert!(text.contains("libnvrtc.so") || text.contains("sm_37"), "{text}");
        }
    }
}
