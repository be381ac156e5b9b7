//! Registers of floats, for kernels whose sums must stay in registers: what the compiler makes of plain loops is not sure to.
//!
//! A kernel is written once over [`Vector`] and built for each SIMD level by `by_vector`. Every lane does what a scalar would do, so
//! that the bytes do not depend on the width.

/// A register of floats.
///
/// Implementations use instructions that not every processor has: only functions that `by_vector` builds may name one, and it calls them
/// on processors that have them.
pub trait Vector: Copy {
    /// Floats in it.
    const WIDTH: usize;
    /// All lanes one value.
    fn splat(value: f32) -> Self;
    /// The first floats of a slice.
    ///
    /// # Panics
    /// The slice is shorter.
    fn load(from: &[f32]) -> Self;
    /// Overwrites the first floats of a slice.
    ///
    /// # Panics
    /// The slice is shorter.
    fn store(self, to: &mut [f32]);
    /// Fused `a·b + c`.
    fn fma(a: Self, b: Self, c: Self) -> Self;
    /// `a·b`.
    fn mul(a: Self, b: Self) -> Self;
    /// `a + b`.
    fn add(a: Self, b: Self) -> Self;
}

/// One float: the rest of a row.
impl Vector for f32 {
    const WIDTH: usize = 1;
    #[inline(always)]
    fn splat(value: f32) -> Self {
        value
    }
    #[inline(always)]
    fn load(from: &[f32]) -> Self {
        from[0]
    }
    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        to[0] = self;
    }
    #[inline(always)]
    fn fma(a: Self, b: Self, c: Self) -> Self {
        a.mul_add(b, c)
    }
    #[inline(always)]
    fn mul(a: Self, b: Self) -> Self {
        a * b
    }
    #[inline(always)]
    fn add(a: Self, b: Self) -> Self {
        a + b
    }
}

/// Eight floats without vector instructions of their own.
impl Vector for [f32; 8] {
    const WIDTH: usize = 8;
    #[inline(always)]
    fn splat(value: f32) -> Self {
        [value; 8]
    }
    #[inline(always)]
    fn load(from: &[f32]) -> Self {
        *from.first_chunk().expect("a whole register")
    }
    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        *to.first_chunk_mut().expect("a whole register") = self;
    }
    #[inline(always)]
    fn fma(a: Self, b: Self, c: Self) -> Self {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }
    #[inline(always)]
    fn mul(a: Self, b: Self) -> Self {
        std::array::from_fn(|i| a[i] * b[i])
    }
    #[inline(always)]
    fn add(a: Self, b: Self) -> Self {
        std::array::from_fn(|i| a[i] + b[i])
    }
}

#[cfg(target_arch = "x86_64")]
pub use std::arch::x86_64::{__m256 as Avx2, __m512 as Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256, __m512, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_mul_ps, _mm256_set1_ps,
        _mm256_storeu_ps, _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_mul_ps, _mm512_set1_ps,
        _mm512_storeu_ps,
    };

    use super::Vector;

    macro_rules! vector {
        ($type:ty, $width:literal, $splat:ident, $load:ident, $store:ident, $fma:ident, $mul:ident, $add:ident) => {
            // SAFETY, in each function: the trait's rule, that only functions for processors with the instructions name the type;
            // lengths are checked before a pointer is used.
            impl Vector for $type {
                const WIDTH: usize = $width;
                #[inline(always)]
                fn splat(value: f32) -> Self {
                    unsafe { $splat(value) }
                }
                #[inline(always)]
                fn load(from: &[f32]) -> Self {
                    unsafe { $load(from[..$width].as_ptr()) }
                }
                #[inline(always)]
                fn store(self, to: &mut [f32]) {
                    unsafe { $store(to[..$width].as_mut_ptr(), self) }
                }
                #[inline(always)]
                fn fma(a: Self, b: Self, c: Self) -> Self {
                    unsafe { $fma(a, b, c) }
                }
                #[inline(always)]
                fn mul(a: Self, b: Self) -> Self {
                    unsafe { $mul(a, b) }
                }
                #[inline(always)]
                fn add(a: Self, b: Self) -> Self {
                    unsafe { $add(a, b) }
                }
            }
        };
    }
    vector!(
        __m512,
        16,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_fmadd_ps,
        _mm512_mul_ps,
        _mm512_add_ps
    );
    vector!(
        __m256,
        8,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_fmadd_ps,
        _mm256_mul_ps,
        _mm256_add_ps
    );
}

/// Builds `fn name(level, …)` from a generic `fn inner<V: Vector>(…)` that is `#[inline(always)]`.
macro_rules! by_vector {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) = $inner:ident) => {
        $(#[$meta])*
        // The arguments of a kernel are its operands: as many as the operation has.
        #[allow(clippy::too_many_arguments)]
        $vis fn $name(level: $crate::backend::cpu::simd::Level, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f")]
                fn avx512($($arg: $ty),*) { $inner::<$crate::backend::cpu::vector::Avx512>($($arg),*) }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) { $inner::<$crate::backend::cpu::vector::Avx2>($($arg),*) }
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
            $inner::<[f32; 8]>($($arg),*)
        }
    };
}
pub(crate) use by_vector;
