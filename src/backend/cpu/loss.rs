//! Cross entropy over the bytes, its gradient, and hits.

use super::simd::simd;
use crate::arith::functions::{exp, log};
use crate::arith::sums::{ROW_PARTIALS, row_sum};
use crate::model::VOCAB;

simd! {
    /// Loss in nats and hit of each row of logits [rows, V] against its target; where `scale` is given, the logits become
    /// their gradient times it.
    pub fn cross_entropy(logits: &mut [f32], targets: &[u8], nll: &mut [f32], hits: &mut [u8], scale: Option<f32>) {
        let rows = logits.chunks_exact_mut(VOCAB).zip(targets).zip(nll.iter_mut().zip(hits));
        for ((logits, &target), (nll, hit)) in rows {
            let target = usize::from(target);
            let mut max = [f32::NEG_INFINITY; ROW_PARTIALS];
            for chunk in logits.chunks_exact(ROW_PARTIALS) {
                for (x, max) in chunk.iter().zip(&mut max) {
                    *max = if *x > *max { *x } else { *max };
                }
            }
            let max = max.iter().fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a });
            // The first of the largest is the prediction.
            let own = logits[target];
            *hit = u8::from(own == max && logits[..target].iter().all(|&x| x != max));
            let mut e = [0.0f32; VOCAB];
            for (e, x) in e.iter_mut().zip(logits.iter()) {
                *e = exp(x - max);
            }
            let sum = row_sum(VOCAB, |i| e[i]);
            *nll = (log(sum) + max) - own;
            if let Some(scale) = scale {
                let inverse = 1.0 / sum;
                for (x, e) in logits.iter_mut().zip(e) {
                    *x = (e * inverse) * scale;
                }
                logits[target] = (e[target] * inverse - 1.0) * scale;
            }
        }
    }
}
