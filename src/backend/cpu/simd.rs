//! Picks the vector instructions to run with, and builds one function body for each of them.
//!
//! Rust neither contracts nor reorders floating-point operations, so a body compiled for AVX-512, for AVX2 and for plain
//! x86-64 gives the same bytes; only its speed differs.

use std::fmt;
use std::sync::OnceLock;

/// Environment variable that forces a level (`avx512`, `avx2`, `portable`).
pub const FORCE_VARIABLE: &str = "DIESWEEP_SIMD";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Avx512,
    Avx2,
    Portable,
}

/// A set of vector instructions that this processor has. Only detection makes one, so that holding it proves
/// that functions compiled for it may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(Kind);

/// A forced level that this processor or build cannot run.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum LevelError {
    /// Not a level's name.
    #[error("`{0}` is not a SIMD level: use avx512, avx2 or portable")]
    Unknown(String),
    /// The processor lacks it.
    #[error("this processor has no {0}")]
    Missing(&'static str),
}

impl Level {
    /// No vector instructions beyond the build's own.
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// Every level that this processor has, best first.
    pub fn available() -> Vec<Self> {
        let mut levels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("fma")
            {
                levels.push(Self(Kind::Avx512));
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                levels.push(Self(Kind::Avx2));
            }
        }
        levels.push(Self::PORTABLE);
        levels
    }

    /// The level named, or the best where `name` is `auto`.
    ///
    /// # Errors
    /// The name is unknown, or the processor lacks the level.
    pub fn named(name: &str) -> Result<Self, LevelError> {
        let wanted = match name {
            "auto" => return Ok(Self::available()[0]),
            "avx512" => Self(Kind::Avx512),
            "avx2" => Self(Kind::Avx2),
            "portable" => Self(Kind::Portable),
            other => return Err(LevelError::Unknown(other.to_owned())),
        };
        if Self::available().contains(&wanted) { Ok(wanted) } else { Err(LevelError::Missing(wanted.name())) }
    }

    /// The level that [`FORCE_VARIABLE`] names, or the best; read once.
    ///
    /// # Errors
    /// As [`Level::named`].
    pub fn current() -> Result<Self, LevelError> {
        static LEVEL: OnceLock<Result<Level, LevelError>> = OnceLock::new();
        LEVEL
            .get_or_init(|| match std::env::var(FORCE_VARIABLE) {
                // As with other such variables, an empty one is one that is not set.
                Ok(name) if !name.is_empty() => Self::named(&name),
                Ok(_) | Err(_) => Self::named("auto"),
            })
            .clone()
    }

    /// Name, as [`Level::named`] takes it.
    pub const fn name(self) -> &'static str {
        match self.0 {
            Kind::Avx512 => "avx512",
            Kind::Avx2 => "avx2",
            Kind::Portable => "portable",
        }
    }

    /// Most single-precision operations of a core in a cycle: two fused multiply-adds of a register's width.
    pub const fn flops_per_cycle(self) -> u32 {
        match self.0 {
            Kind::Avx512 => 64,
            Kind::Avx2 => 32,
            Kind::Portable => 16,
        }
    }

    /// Whether functions compiled for AVX-512 may be called.
    pub const fn is_avx512(self) -> bool {
        matches!(self.0, Kind::Avx512)
    }

    /// Whether functions compiled for AVX2 and FMA may be called, and AVX-512 is not the choice.
    pub const fn is_avx2(self) -> bool {
        matches!(self.0, Kind::Avx2)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Builds a function for every level from one body, and picks at the call by a first argument `level`.
///
/// The body must call only functions that are inlined (`#[inline(always)]`): what is not inlined is compiled without
/// the level's instructions, which is right but slow.
macro_rules! simd {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block)*) => {$(
        $(#[$meta])*
        // The arguments of a kernel are its operands: as many as the operation has.
        #[allow(clippy::too_many_arguments)]
        $vis fn $name(level: $crate::backend::cpu::simd::Level, $($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
            fn avx512($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }

            #[cfg(target_arch = "x86_64")]
            {
                if level.is_avx512() {
                    // SAFETY: a `Level` of AVX-512 is only made where the processor has it.
                    return unsafe { avx512($($arg),*) };
                }
                if level.is_avx2() {
                    // SAFETY: a `Level` of AVX2 is only made where the processor has AVX2 and FMA.
                    return unsafe { avx2($($arg),*) };
                }
            }
            let _ = level;
            body($($arg),*)
        }
    )*};
}
pub(crate) use simd;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_rubbish_is_refused() {
        for level in Level::available() {
            assert_eq!(Level::named(level.name()), Ok(level));
        }
        assert_eq!(Level::named("sse9"), Err(LevelError::Unknown("sse9".to_owned())));
    }
}
