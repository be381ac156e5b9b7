//! The built-in corpus: a megabyte of markup-like text whose entropy is known.
//!
//! A newcomer needs no download, and a model's bits per byte can be held against the best that any model can
//! reach. The text is drawn from a grammar (docs/builtin-corpus.md) in which every choice is one of a table of strings, and
//! in which the bytes so far always tell which choices were made. The probability of a byte given all bytes
//! before it is therefore a quotient of two sums of weights, and known exactly.

mod grammar;
mod table;
mod words;

use std::ops::Range;

use grammar::Grammar;
use table::Writer;

/// Bytes of the text.
const SIZE: usize = 1 << 20;

/// The text and what the generator knows about it.
#[derive(Debug)]
pub struct Builtin {
    text: Vec<u8>,
    /// Σ -log2 p over the bytes before each position, and at last over all.
    bits_before: Vec<f64>,
}

impl Builtin {
    /// Draws the text; always the same.
    pub fn generate() -> Self {
        let mut writer = Writer::with_capacity(SIZE);
        let grammar = Grammar::new();
        while writer.len() < SIZE {
            grammar.page(&mut writer);
        }
        let (mut text, bits) = writer.finish();
        text.truncate(SIZE);
        let mut sum = 0.0;
        let mut bits_before = Vec::with_capacity(SIZE + 1);
        bits_before.push(sum);
        for b in &bits[..SIZE] {
            sum += b;
            bits_before.push(sum);
        }
        Self { text, bits_before }
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        &self.text
    }

    /// log2 of the probability of the bytes in a range, each given all bytes of the text before it.
    ///
    /// A model that sees a window knows less than the generator, which knows what stands before it, so that in
    /// expectation no model's log2 p of a window's targets is larger.
    ///
    /// # Panics
    /// When the range reaches beyond the text.
    pub fn log2_p(&self, range: Range<usize>) -> f64 {
        self.bits_before[range.start] - self.bits_before[range.end]
    }

    /// The generator's own mean -log2 p over all bytes of the text.
    pub fn entropy_bits_per_byte(&self) -> f64 {
        -self.log2_p(0..self.text.len()) / self.text.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::Split;
    use super::*;

    #[test]
    fn the_text_never_changes() {
        let text = Builtin::generate();
        assert_eq!(text.bytes().len(), SIZE);
        assert_eq!(
            blake3::hash(text.bytes()).to_hex().as_str(),
            "f98b8354d5722d8d94f52e442ee81551853784e736312ada2d19211d70827c99"
        );
        assert_eq!(format!("{:.6}", text.entropy_bits_per_byte()), "0.599770");
    }

    /// What the generator claims agrees with what a count of the text finds.
    #[test]
    fn claimed_probabilities_are_the_observed_frequencies() {
        let text = Builtin::generate();
        let bytes = text.bytes();
        // A page's kind is one of four, with the weights 6, 4, 4, 2 of 16.
        let mut count = [0u32; 256];
        for at in ends_of(bytes, b" kind=\"") {
            count[usize::from(bytes[at])] += 1;
        }
        let pages = count.iter().sum::<u32>();
        for (first, weight) in [(b'r', 6), (b'e', 4), (b'g', 4), (b'm', 2)] {
            let p = f64::from(weight) / 16.0;
            let n = f64::from(pages);
            let sigma = (n * p * (1.0 - p)).sqrt();
            let seen = f64::from(count[usize::from(first)]);
            assert!((seen - n * p).abs() < 4.0 * sigma, "{}: {seen} of {n}", first as char);
        }
        for at in ends_of(bytes, b" kind=\"") {
            let p = match bytes[at] {
                b'r' => 6.0,
                b'm' => 2.0,
                _ => 4.0,
            } / 16.0;
            assert!((text.log2_p(at..at + 1) - f64::log2(p)).abs() < 1e-6);
        }
    }

    /// Places right after a pattern.
    fn ends_of<'a>(bytes: &'a [u8], pattern: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        let ends = bytes.windows(pattern.len()).enumerate().filter(move |(_, w)| *w == pattern);
        ends.map(|(i, w)| i + w.len()).filter(|&i| i < bytes.len())
    }

    #[test]
    fn a_reference_repeats_its_pages_id_for_nothing() {
        let text = Builtin::generate();
        let after = ends_of(text.bytes(), b"<ref id=\"").filter(|&at| at + 4 <= SIZE);
        let mut seen = 0;
        for at in after {
            assert_eq!(text.log2_p(at..at + 4), 0.0);
            seen += 1;
        }
        assert!(seen > 100, "{seen} references");
    }

    #[test]
    fn splits_are_alike() {
        let text = Builtin::generate();
        let whole = text.entropy_bits_per_byte();
        for split in Split::ALL {
            let range = split.range(SIZE);
            let n = range.len() as f64;
            let own = -text.log2_p(range) / n;
            assert!((own - whole).abs() < 0.05 * whole, "{split}: {own} against {whole}");
        }
    }
}
