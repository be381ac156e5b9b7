use super::*;
use crate::backend::cpu::simd::Level;

const SR4: Sr4 = Sr4 { target_step: 0.3, clamp: 7, theta: 2, dither: true, seed: 42 };
const ROWS: usize = 37;
const COLS: usize = 45;

fn wave(n: usize, k: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * k) as f32).sin()).collect()
}

fn started(level: Level, base: u64) -> Vec<i8> {
    let mut q = vec![99; ROWS * COLS];
    start(level, &mut q, base, &SR4);
    q
}

#[test]
fn the_start_is_uniform_and_the_same_from_any_cut() {
    let q = started(Level::PORTABLE, u64::from(u32::MAX) - 100);
    assert!(q.iter().all(|q| (-3..=3).contains(q)));
    for level in Level::available() {
        let mut cut = vec![99; q.len()];
        let (a, b) = cut.split_at_mut(33);
        start(level, a, u64::from(u32::MAX) - 100, &SR4);
        start(level, b, u64::from(u32::MAX) - 67, &SR4);
        assert_eq!(cut, q, "{level}");
    }
}

#[test]
fn thresholds_are_where_they_should_be() {
    let t = |theta| [-7, -2, -1, 0, 1, 2, 7].map(|q| ternary(q, theta));
    assert_eq!(t(2), [-1, -1, 0, 0, 0, 1, 1]);
    assert_eq!(t(1), [-1, -1, -1, 0, 1, 1, 1]);
    assert_eq!(t(0), [-1, -1, -1, 0, 1, 1, 1]);
    assert_eq!(t(7), [-1, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn floor_is_floor() {
    for x in [-14.0, -13.5, -1.0, -0.5, -0.0, 0.0, 0.25, 0.999_999_94, 1.0, 13.999_999, 14.0] {
        assert_eq!(floor(x), x.floor() as i32, "{x}");
    }
}

#[test]
fn a_step_is_the_same_at_every_level_and_from_any_cut() {
    let grad = wave(ROWS * COLS, 7);
    let scale = wave(COLS, 3);
    let to = Move { rate: 3.7, step: (5 << 32) | 9, base: 1 << 33 };
    // One weight at a time, word for word.
    let mut expected = started(Level::PORTABLE, 0);
    for (i, q) in expected.iter_mut().enumerate() {
        let gq = grad[i] * scale[i % COLS];
        let x = (-to.rate * f64::from(gq)) as f32;
        let u = unit24(first_word(SR4.seed, to.base + i as u64, to.step));
        let moved = (x + u).floor().clamp(-14.0, 14.0) as i32;
        *q = (i32::from(*q) + moved).clamp(-7, 7) as i8;
    }
    for level in Level::available() {
        let mut q = started(level, 0);
        let cut = 5 * COLS;
        let (a, b) = q.split_at_mut(cut);
        accumulate(level, a, &grad[..cut], &scale, &to, &SR4);
        let rest = Move { base: to.base + cut as u64, ..to };
        accumulate(level, b, &grad[cut..], &scale, &rest, &SR4);
        assert_eq!(q, expected, "{level}");
    }
}

#[test]
fn gradients_are_the_same_at_every_level() {
    let grad = wave(ROWS * COLS, 7);
    let scale = wave(COLS, 3);
    let q = started(Level::PORTABLE, 0);
    let sum = crate::arith::sums::scalar_sum(grad.len(), |i| f64::from((grad[i] * scale[i % COLS]).abs()));
    let column = |c: usize| -> f64 {
        let terms = (0..ROWS).map(|r| r * COLS + c);
        terms.fold(0.0, |sum, i| sum + f64::from(grad[i]) * f64::from(ternary(q[i], SR4.theta)))
    };
    for level in Level::available() {
        let mut columns = vec![0.0; COLS];
        let got = gradients(level, &grad, &q, &scale, SR4.theta, &mut columns);
        assert_eq!(got.to_bits(), sum.to_bits(), "{level}");
        assert!((0..COLS).all(|c| columns[c] == column(c)), "{level}");
        let mut w = vec![9.0; q.len()];
        weights(level, &q, &scale, SR4.theta, &mut w);
        assert!((0..q.len()).all(|i| w[i] == scale[i % COLS] * ternary(q[i], SR4.theta) as f32), "{level}");
    }
}

#[test]
fn a_tensor_without_a_usable_gradient_stays() {
    assert_eq!(SR4.rate(20.0, 10), Some(0.15));
    for sum in [0.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE * 1e-10] {
        assert_eq!(SR4.rate(sum, 10), None, "{sum}");
    }
    assert_eq!(Sr4 { target_step: 0.0, ..SR4 }.rate(20.0, 10), None);
}

#[test]
fn without_dither_halves_round_up() {
    let by = Sr4 { dither: false, ..SR4 };
    let mut q = [0i8; 4];
    let to = Move { rate: 1.0, step: 0, base: 0 };
    accumulate(Level::PORTABLE, &mut q, &[0.5, -0.5, 1.6, -1e30], &[1.0; 4], &to, &by);
    assert_eq!(q, [0, 1, -2, 7]);
}

#[test]
fn initial_scales_make_the_variance_one() {
    assert_eq!(initial_scale(ScaleInit::Unit, 128), 1.0);
    assert_eq!(initial_scale(ScaleInit::FanIn, 7), 0.5);
}
