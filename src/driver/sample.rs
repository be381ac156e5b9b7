//! Text from a trained model, a byte at a time.

use std::sync::Arc;

use crate::backend::cpu::engine::Engine;
use crate::backend::cpu::team::Team;
use crate::model::{ModelConfig, VOCAB};
use crate::rng;
use crate::settings::Settings;

/// Domain of the draws in the counter of the generator ("SAMP"), apart from those of training.
const DOMAIN: u32 = 0x5341_4D50;

/// How the next byte is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// Divides the logits; 0 takes the likeliest byte.
    pub temperature: f64,
    /// Only so many of the likeliest bytes are drawn; 0 for all.
    pub top_k: usize,
    /// Seed.
    pub seed: u64,
}

/// A model that goes on with a text.
pub struct Sampler {
    engine: Engine,
    weights: Vec<f32>,
    window: usize,
    draw: Draw,
    drawn: u64,
}

impl Sampler {
    /// A model of these settings. It sees the last `seq_len` bytes, as in training, or fewer where no more than `longest` come together.
    pub fn new(settings: &Settings, weights: Vec<f32>, team: Arc<Team>, draw: Draw, longest: usize) -> Self {
        let window = settings.seq_len.min(longest.max(1));
        let settings = Settings { seq_len: window, batch: 1, ..settings.clone() };
        let mut engine = Engine::new(&ModelConfig::from(&settings), 1, team);
        engine.load(&weights, false);
        Self { engine, weights, window, draw, drawn: 0 }
    }

    /// The next byte of a text that is not empty.
    pub fn next(&mut self, text: &[u8]) -> u8 {
        let seen = &text[text.len().saturating_sub(self.window)..];
        // What follows the text changes nothing before it.
        let mut inputs = seen.to_vec();
        inputs.resize(self.window, 0);
        self.engine.score(&self.weights, &inputs, &inputs);
        let logits = &self.engine.logits()[(seen.len() - 1) * VOCAB..][..VOCAB];
        let words = rng::philox([self.drawn as u32, (self.drawn >> 32) as u32, 0, DOMAIN], self.draw.seed);
        self.drawn += 1;
        choose(logits, self.draw, uniform(words))
    }
}

/// A number in [0, 1) with 53 random bits.
fn uniform(words: [u32; 4]) -> f64 {
    let bits = u64::from(words[0]) << 21 | u64::from(words[1]) >> 11;
    bits as f64 / (1u64 << 53) as f64
}

/// The byte at which the cumulated probability passes `u`, the likeliest bytes first; of equal ones the smaller byte.
fn choose(logits: &[f32], draw: Draw, u: f64) -> u8 {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    if draw.top_k > 0 {
        order.truncate(draw.top_k);
    }
    let best = order[0];
    if draw.temperature == 0.0 {
        return best as u8;
    }
    let weight = |i: usize| ((f64::from(logits[i]) - f64::from(logits[best])) / draw.temperature).exp();
    let total: f64 = order.iter().map(|&i| weight(i)).sum();
    let mut passed = 0.0;
    for &i in &order {
        passed += weight(i) / total;
        if u < passed {
            return i as u8;
        }
    }
    // Rounding may leave the sum a little below 1.
    order[order.len() - 1] as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::simd::Level;
    use crate::model::ModelParams;

    const PLAIN: Draw = Draw { temperature: 1.0, top_k: 0, seed: 1 };

    #[test]
    fn bytes_are_drawn_by_their_probabilities() {
        // Probabilities 1/2, 1/4, 1/4 of bytes 1, 0, 2.
        let logits = [0.0, std::f32::consts::LN_2, 0.0];
        let at = |draw, u| choose(&logits, draw, u);
        assert_eq!([0.0, 0.49, 0.51, 0.74, 0.76, 0.9999].map(|u| at(PLAIN, u)), [1, 1, 0, 0, 2, 2]);
        let cold = Draw { temperature: 0.0, ..PLAIN };
        assert_eq!([0.0, 0.9999].map(|u| at(cold, u)), [1, 1]);
        let two = Draw { top_k: 2, ..PLAIN };
        assert_eq!([0.65, 0.68, 0.9999].map(|u| at(two, u)), [1, 0, 0]);
        let hot = Draw { temperature: 1e9, ..PLAIN };
        assert_eq!([0.33, 0.34, 0.67].map(|u| at(hot, u)), [1, 0, 2]);
    }

    #[test]
    fn draws_are_uniform_and_below_one() {
        assert_eq!(uniform([0; 4]), 0.0);
        assert!(uniform([u32::MAX; 4]) < 1.0);
    }

    /// A text of the window's length is scored as in training: what the padded passes say is what one pass over all says.
    #[test]
    fn padding_changes_nothing() {
        let settings = Settings {
            c: 16,
            n_head: 2,
            head_size: 8,
            n_rwkv: 1,
            n_attn: 1,
            ffn: 16,
            lora: 4,
            seq_len: 12,
            chunk_size: 4,
            moba_top_k: 1,
            ..Settings::default()
        };
        let team = Arc::new(Team::new(1, Level::available()[0]).unwrap());
        let config = ModelConfig::from(&settings);
        let params = ModelParams::new(&config);
        let weights: Vec<f32> = (0..params.arena_len).map(|i| ((i * 37 % 101) as f32 - 50.0) / 100.0).collect();
        let text: Vec<u8> = (0..12).map(|i| (i * 31 % 256) as u8).collect();
        let mut whole = Engine::new(&config, 1, Arc::clone(&team));
        whole.load(&weights, false);
        whole.score(&weights, &text, &text);
        let logits = whole.logits().to_vec();
        let cold = Draw { temperature: 0.0, ..PLAIN };
        let mut sampler = Sampler::new(&settings, weights, team, cold, 100);
        for length in 1..=text.len() {
            let expected = choose(&logits[(length - 1) * VOCAB..][..VOCAB], cold, 0.0);
            assert_eq!(sampler.next(&text[..length]), expected, "after {length} bytes");
        }
    }
}
