//! Names of run folders.

use super::AxisValue;
use crate::run::RunId;

/// Longest name of a run's folder, in bytes.
pub const LONGEST: usize = 64;

/// `<arm>_<axis values>_s<seed>-<id>`, in `[A-Za-z0-9._+-]` and at most [`LONGEST`] bytes: where that is too little, the
/// part before the seed is cut. The id alone tells runs apart.
pub fn folder(arm: &str, axes: &[AxisValue], seed: u64, id: RunId) -> String {
    let tail = format!("_s{seed}-{id}");
    let mut name = plain(arm);
    for value in axes {
        name.push('_');
        name.push_str(&plain(&value.value));
    }
    // All of it is ASCII, so that any byte is a place to cut at.
    name.truncate(LONGEST - tail.len());
    name + &tail
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if is_plain(c) { c } else { '-' }).collect()
}

/// Whether the character may stand in a name on any file system and shell.
pub fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(value: &str) -> AxisValue {
        AxisValue { axis: "data".to_owned(), value: value.to_owned() }
    }

    #[test]
    fn names_are_short_and_plain() {
        let id = RunId::from_bits(0xab);
        assert_eq!(folder("sr4", &[axis("0.001"), axis("1e-8")], 7, id), "sr4_0.001_1e-8_s7-00000000000000ab");
        assert_eq!(folder("sr4", &[axis("data/Ä b")], 7, id), "sr4_data---b_s7-00000000000000ab");
        let long = folder(&"a".repeat(32), &[axis(&"ü/".repeat(50))], u64::MAX, id);
        assert_eq!(long.len(), LONGEST);
        assert!(long.ends_with("_s18446744073709551615-00000000000000ab"));
        assert!(long.chars().all(is_plain));
    }
}
