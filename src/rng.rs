//! Random numbers from counters: Philox4x32-10.
//!
//! Every random number of a run is a function of a seed and a counter, so that nothing depends on the
//! order in which threads, dies or lanes ask. Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3"
//! (2011). The counter's words for each use:
//!
//! | use              | seed        | c0, c1              | c2              | c3              |
//! |------------------|-------------|---------------------|-----------------|-----------------|
//! | initial weights  | run's seed  | index in the tensor | parameter index | [`domain::INIT`]|
//! | data windows     | run's seed  | window number       | split           | [`domain::DATA`]|
//! | SR4's dither     | dither seed | index of the weight | low of step     | high of step    |
//! | SR4's start      | dither seed | index of the weight | 0xFFFF_FFFF     | 0xFFFF_FFFF     |
//! | built-in corpus  | fixed       | number of the draw  | 0               | [`domain::TEXT`]|

/// Words that keep the uses of one seed apart.
pub mod domain {
    /// Initial weights ("INIT").
    pub const INIT: u32 = 0x494E_4954;
    /// Data windows ("DATA").
    pub const DATA: u32 = 0x4441_5441;
    /// Draws of the built-in corpus ("TEXT").
    pub const TEXT: u32 = 0x5445_5854;
    /// The step number that stands for the start of SR4's accumulators.
    pub const START: u64 = u64::MAX;
}

const MULTIPLIER: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const KEY_STEP: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const LOW: u64 = 0xFFFF_FFFF;

/// The four output words for a counter and a seed.
///
/// Words are carried in the low halves of 64-bit lanes and the upper halves may hold rubbish, which the
/// multiplications mask away: in a loop over counters this becomes one widening multiplication, one shift and
/// one three-way exclusive or for each half round, whatever the vector width.
#[inline(always)]
pub fn philox(counter: [u32; 4], seed: u64) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter.map(u64::from);
    let (mut k0, mut k1) = (seed as u32, (seed >> 32) as u32);
    for round in 0..10 {
        if round > 0 {
            k0 = k0.wrapping_add(KEY_STEP[0]);
            k1 = k1.wrapping_add(KEY_STEP[1]);
        }
        let p0 = MULTIPLIER[0] * (c0 & LOW);
        let p1 = MULTIPLIER[1] * (c2 & LOW);
        c0 = (p1 >> 32) ^ c1 ^ u64::from(k0);
        c2 = (p0 >> 32) ^ c3 ^ u64::from(k1);
        c1 = p1;
        c3 = p0;
    }
    [c0, c1, c2, c3].map(|c| c as u32)
}

/// The first output word for a 64-bit index in c0, c1 and a 64-bit pair in c2, c3.
#[inline(always)]
pub fn first_word(seed: u64, index: u64, pair: u64) -> u32 {
    philox([index as u32, (index >> 32) as u32, pair as u32, (pair >> 32) as u32], seed)[0]
}

/// A pair of counter words c2, c3 as one number, for [`first_word`].
#[inline(always)]
pub const fn pair(c2: u32, c3: u32) -> u64 {
    c2 as u64 | (c3 as u64) << 32
}

/// A word as a number in `[0, 1)`: its upper 24 bits, exact in binary32.
#[inline(always)]
pub fn unit24(word: u32) -> f32 {
    const ULP: f32 = 1.0 / (1 << 24) as f32;
    // Through a signed integer: the conversion that every vector unit has. 24 bits are never negative.
    (word >> 8) as i32 as f32 * ULP
}

/// Start of window number `i` in a split of `len` bytes, for windows of `seq_len` inputs and one more target:
/// in `[0, len - seq_len - 1]`.
///
/// # Panics
/// When the split is not longer than `seq_len`.
pub fn window_offset(seed: u64, split: u32, i: u64, len: u64, seq_len: u64) -> u64 {
    assert!(len > seq_len, "a split of {len} bytes has no window of {seq_len} inputs and a target");
    let [o0, o1, ..] = philox([i as u32, (i >> 32) as u32, split, domain::DATA], seed);
    let x = pair(o0, o1);
    // Below len - seq_len, hence in 64 bits.
    ((u128::from(x) * u128::from(len - seq_len)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the Random123 distribution.
    #[test]
    fn philox_known_answers() {
        let cases: [([u32; 4], u64, [u32; 4]); 3] = [
            ([0; 4], 0, [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8]),
            ([u32::MAX; 4], u64::MAX, [0x408F_276D, 0x41C8_3B0E, 0xA20B_C7C6, 0x6D54_51FD]),
            (
                [0x243F_6A88, 0x85A3_08D3, 0x1319_8A2E, 0x0370_7344],
                0x299F_31D0_A409_3822,
                [0xD16C_FE09, 0x94FD_CCEB, 0x5001_E420, 0x2412_6EA1],
            ),
        ];
        for (counter, seed, out) in cases {
            assert_eq!(philox(counter, seed), out);
        }
    }

    #[test]
    fn unit24_is_exact_and_below_one() {
        assert_eq!(unit24(0), 0.0);
        assert_eq!(unit24(0xFF), 0.0);
        assert_eq!(unit24(0x100), 2f32.powi(-24));
        assert_eq!(unit24(u32::MAX), 1.0 - 2f32.powi(-24));
    }

    #[test]
    fn first_word_takes_the_whole_index_and_pair() {
        let (index, step) = ((5 << 32) | 3, (7 << 32) | 2);
        assert_eq!(first_word(9, index, step), philox([3, 5, 2, 7], 9)[0]);
        assert_eq!(pair(2, 7), step);
    }

    #[test]
    fn window_offsets_cover_the_split_and_no_more() {
        let mut seen = [false; 4];
        for i in 0..200 {
            seen[window_offset(1, 0, i, 12, 8) as usize] = true;
        }
        assert_eq!(seen, [true; 4]);
        assert_eq!(window_offset(1, 0, 0, 9, 8), 0);
    }

    #[test]
    #[should_panic(expected = "has no window")]
    fn a_split_without_room_for_the_target_is_refused() {
        window_offset(1, 0, 0, 8, 8);
    }
}
