//! The shapes of sums S2, S4 and S5 of docs/arithmetic.md. (S1 and S3 are loops of their operations.)

/// Partial sums of S2.
pub const ROW_PARTIALS: usize = 32;
/// Terms of a chunk of S1.
pub const PRODUCT_CHUNK: usize = 128;
/// Rows of a chunk of S3.
pub const COLUMN_CHUNK: usize = 32;
/// Partial sums of S5.
pub const SCALAR_PARTIALS: usize = 1024;

/// Folds the partial sums of S2.
#[inline(always)]
pub fn fold_row(mut p: [f32; ROW_PARTIALS]) -> f32 {
    for j in 0..16 {
        p[j] += p[j + 16];
    }
    for j in 0..8 {
        p[j] += p[j + 8];
    }
    for j in 0..4 {
        p[j] += p[j + 4];
    }
    (p[0] + p[2]) + (p[1] + p[3])
}

/// S2 of `term(i)` for i in 0..n.
#[inline(always)]
pub fn row_sum(n: usize, term: impl Fn(usize) -> f32) -> f32 {
    accumulate(n, |i, p| p + term(i))
}

/// S2 of a·b, where `pair(i)` gives (a, b).
#[inline(always)]
pub fn row_dot(n: usize, pair: impl Fn(usize) -> (f32, f32)) -> f32 {
    accumulate(n, |i, p| {
        let (a, b) = pair(i);
        a.mul_add(b, p)
    })
}

#[inline(always)]
fn accumulate(n: usize, take: impl Fn(usize, f32) -> f32) -> f32 {
    let mut p = [0.0f32; ROW_PARTIALS];
    let whole = n - n % ROW_PARTIALS;
    let mut base = 0;
    while base < whole {
        for (j, p) in p.iter_mut().enumerate() {
            *p = take(base + j, *p);
        }
        base += ROW_PARTIALS;
    }
    for (j, p) in p.iter_mut().enumerate().take(n - whole) {
        *p = take(base + j, *p);
    }
    fold_row(p)
}

/// S5 of `term(i)` for i in 0..n, in f64.
#[inline(always)]
pub fn scalar_sum(n: usize, term: impl Fn(usize) -> f64) -> f64 {
    let mut p = [0.0f64; SCALAR_PARTIALS];
    let mut base = 0;
    while base < n {
        let take = (n - base).min(SCALAR_PARTIALS);
        for (j, p) in p.iter_mut().enumerate().take(take) {
            *p += term(base + j);
        }
        base += SCALAR_PARTIALS;
    }
    fold_scalar(p)
}

/// Folds the partial sums of S5.
#[inline(always)]
pub fn fold_scalar(mut p: [f64; SCALAR_PARTIALS]) -> f64 {
    let mut h = SCALAR_PARTIALS / 2;
    while h > 0 {
        let (low, high) = p.split_at_mut(h);
        for (low, high) in low.iter_mut().zip(high) {
            *low += *high;
        }
        h /= 2;
    }
    p[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, word for word.
    fn by_definition(x: &[f32]) -> f32 {
        let mut p = [0.0f32; 32];
        for (i, x) in x.iter().enumerate() {
            p[i % 32] += x;
        }
        for h in [16, 8, 4, 2, 1] {
            for j in 0..h {
                p[j] += p[j + h];
            }
        }
        p[0]
    }

    #[test]
    fn row_sum_keeps_its_shape_at_awkward_lengths() {
        let x: Vec<f32> = (0..300).map(|i| ((i * 7919) as f32).sin() * 1e3).collect();
        for n in [0, 1, 3, 16, 31, 32, 33, 63, 64, 100, 256, 300] {
            assert_eq!(row_sum(n, |i| x[i]).to_bits(), by_definition(&x[..n]).to_bits(), "n = {n}");
        }
    }

    #[test]
    fn scalar_sum_keeps_its_shape() {
        let x: Vec<f64> = (0..5000).map(|i| f64::from(i * 7919).sin()).collect();
        for n in [0, 1, 1023, 1024, 1025, 5000] {
            let mut p = vec![0.0f64; 1024];
            for (i, x) in x[..n].iter().enumerate() {
                p[i % 1024] += x;
            }
            for h in [512, 256, 128, 64, 32, 16, 8, 4, 2, 1] {
                for j in 0..h {
                    p[j] += p[j + h];
                }
            }
            assert_eq!(scalar_sum(n, |i| x[i]).to_bits(), p[0].to_bits(), "n = {n}");
        }
    }
}
