//! Choices between strings, and the exact probability of each byte that they write.
//!
//! A choice takes one of a table's strings with a probability proportional to its weight. Of the bytes
//! written, the first n tell which strings are still possible; the next byte's probability is the weight of those that go on with it, over the
//! weight of all of them. Where one string begins another ("in", "inner"), that the shorter one ended shows in the byte
//! after it, which belongs to the next choice and must be one with which no longer string goes on: its probability
//! takes the factor.
//!
//! Weights sum to a power of two, so that a draw of as many random bits is exact.

use crate::rng::{domain, philox};

/// Seed of the text.
const SEED: u64 = 1;

/// Strings with weights.
#[derive(Debug)]
pub(super) struct Table {
    /// Sorted by the strings' bytes.
    entries: Vec<Entry>,
    /// Weight of the entries before each, and at last of all.
    weight_before: Vec<u32>,
}

#[derive(Debug)]
struct Entry {
    text: &'static str,
    /// Place in the list that the table was made from.
    tag: usize,
}

impl Table {
    /// A table of strings and weights. Weights must sum to a power of two.
    pub(super) fn new(choices: &[(&'static str, u32)]) -> Self {
        let mut sorted: Vec<_> = choices.iter().enumerate().collect();
        sorted.sort_by_key(|(_, (text, _))| *text);
        let mut sum = 0;
        let mut weight_before = vec![0];
        for (_, (_, weight)) in &sorted {
            sum += weight;
            weight_before.push(sum);
        }
        assert!(sum.is_power_of_two(), "weights sum to {sum}");
        let entries = sorted.into_iter().map(|(tag, &(text, _))| Entry { text, tag }).collect();
        Self { entries, weight_before }
    }

    fn total(&self) -> u32 {
        self.weight_before[self.entries.len()]
    }

    fn entry_at(&self, x: u32) -> usize {
        self.weight_before.partition_point(|&before| before <= x) - 1
    }
}

/// A string of a table that is preferred: a quarter of all draws take it, whatever the weights say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Favourite(pub(super) usize);

/// One table, with its favourite by place in the sorted order.
struct Choice<'a> {
    table: &'a Table,
    favourite: Option<usize>,
}

impl Choice<'_> {
    fn total(&self) -> u32 {
        self.weight(0, self.table.entries.len())
    }

    /// Weight of the entries `lo..hi`.
    fn weight(&self, lo: usize, hi: usize) -> u32 {
        let own = self.table.weight_before[hi] - self.table.weight_before[lo];
        match self.favourite {
            Some(f) if (lo..hi).contains(&f) => 3 * own + self.table.total(),
            Some(_) => 3 * own,
            None => own,
        }
    }

    /// The entry of a number below `total`.
    fn pick(&self, x: u32) -> usize {
        match self.favourite {
            Some(f) if x / 3 >= self.table.total() => f,
            Some(_) => self.table.entry_at(x / 3),
            None => self.table.entry_at(x),
        }
    }
}

/// Writes text, and keeps the bits that each byte costs.
#[derive(Debug)]
pub(super) struct Writer {
    text: Vec<u8>,
    bits: Vec<f64>,
    draws: u32,
    /// Bits of a string's end, owed by the next byte.
    owed: f64,
}

impl Writer {
    pub(super) fn with_capacity(size: usize) -> Self {
        Self { text: Vec::with_capacity(size), bits: Vec::with_capacity(size), draws: 0, owed: 0.0 }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// The text, and -log2 p of each byte.
    pub(super) fn finish(self) -> (Vec<u8>, Vec<f64>) {
        (self.text, self.bits)
    }

    fn push(&mut self, byte: u8, bits: f64) {
        self.text.push(byte);
        self.bits.push(std::mem::take(&mut self.owed) + bits);
    }

    /// Writes what can only come here.
    pub(super) fn put(&mut self, text: &str) {
        for &byte in text.as_bytes() {
            self.push(byte, 0.0);
        }
    }

    /// Writes a string of the table; returns its place in the list that the table was made from.
    pub(super) fn choose(&mut self, table: &Table) -> usize {
        self.choose_of(Choice { table, favourite: None })
    }

    /// The same with a favourite, given by its place in that list.
    pub(super) fn choose_with(&mut self, table: &Table, Favourite(tag): Favourite) -> usize {
        let favourite = table.entries.iter().position(|e| e.tag == tag);
        self.choose_of(Choice { table, favourite })
    }

    fn choose_of(&mut self, choice: Choice) -> usize {
        let total = choice.total();
        let word = philox([self.draws, 0, 0, domain::TEXT], SEED)[0];
        self.draws += 1;
        // The upper bits of the word, as many as the total needs: exact, since the total is a power of two.
        let picked = choice.pick(((u64::from(word) * u64::from(total)) >> 32) as u32);

        let entries = &choice.table.entries;
        let (mut lo, mut hi, mut weight) = (0, entries.len(), total);
        for (k, &byte) in entries[picked].text.as_bytes().iter().enumerate() {
            let at = |e: &Entry| e.text.as_bytes().get(k).copied();
            let same = &entries[lo..hi];
            (lo, hi) =
                (lo + same.partition_point(|e| at(e) < Some(byte)), lo + same.partition_point(|e| at(e) <= Some(byte)));
            let rest = choice.weight(lo, hi);
            self.push(byte, bits(weight, rest));
            weight = rest;
        }
        self.owed = bits(weight, choice.weight(picked, picked + 1));
        entries[picked].tag
    }
}

/// -log2 of `part / whole`.
fn bits(whole: u32, part: u32) -> f64 {
    if part == whole { 0.0 } else { libm::log2(f64::from(whole) / f64::from(part)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &Table, favourite: Option<Favourite>) -> (String, Vec<f64>) {
        let mut w = Writer::with_capacity(8);
        match favourite {
            Some(f) => w.choose_with(table, f),
            None => w.choose(table),
        };
        w.put(".");
        let (text, bits) = w.finish();
        (String::from_utf8(text).expect("ASCII"), bits)
    }

    /// The first draw of the seed is one of these; whichever it is, its bytes' bits are worked out by hand.
    #[test]
    fn bits_of_a_byte_are_those_of_the_strings_that_it_excludes() {
        let table = Table::new(&[("inner", 1), ("in", 1), ("on", 2)]);
        let by_hand = |text: &str| match text {
            "inner." => vec![1.0, 0.0, 1.0, 0.0, 0.0, 0.0],
            "in." => vec![1.0, 0.0, 1.0],
            _ => vec![1.0, 0.0, 0.0],
        };
        let (text, bits) = written(&table, None);
        assert_eq!(bits, by_hand(&text), "{text}");

        let favoured = Table::new(&[("inner", 1), ("in", 1), ("on", 1), ("at", 1)]);
        let (text, bits) = written(&favoured, Some(Favourite(1)));
        let log = |a: f64, b: f64| (a / b).log2();
        let by_hand = match text.as_str() {
            "inner." => vec![log(16.0, 10.0), 0.0, log(10.0, 3.0), 0.0, 0.0, 0.0],
            "in." => vec![log(16.0, 10.0), 0.0, log(10.0, 7.0)],
            _ => vec![log(16.0, 3.0), 0.0, 0.0],
        };
        assert!(bits.iter().zip(&by_hand).all(|(a, b)| (a - b).abs() < 1e-15), "{text} {bits:?} {by_hand:?}");
    }

    /// Over many draws, each string comes as often as its probability says, and costs -log2 of it in all.
    #[test]
    fn draws_follow_the_weights() {
        const DRAWS: u32 = 40_000;
        let table = Table::new(&[("a", 5), ("ab", 3), ("abc", 7), ("b", 1)]);
        let plain = [5.0, 3.0, 7.0, 1.0].map(|w| w / 16.0);
        let with_ab = [15.0, 9.0 + 16.0, 21.0, 3.0].map(|w| w / 64.0);
        for (favourite, probabilities) in [(None, plain), (Some(Favourite(1)), with_ab)] {
            let mut writer = Writer::with_capacity(DRAWS as usize * 4);
            let mut count = [0u32; 4];
            for _ in 0..DRAWS {
                let start = writer.len();
                let tag = match favourite {
                    Some(f) => writer.choose_with(&table, f),
                    None => writer.choose(&table),
                };
                writer.put(" ");
                count[tag] += 1;
                let cost: f64 = writer.bits[start..].iter().sum();
                assert!((cost + f64::log2(probabilities[tag])).abs() < 1e-12);
            }
            for (n, p) in count.into_iter().zip(probabilities) {
                let all = f64::from(DRAWS);
                let sigma = (all * p * (1.0 - p)).sqrt();
                assert!((f64::from(n) - all * p).abs() < 4.0 * sigma, "{n} draws of {p}");
            }
        }
    }
}
