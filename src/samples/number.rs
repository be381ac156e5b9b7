//! What a cell says.

/// A metric's cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell {
    /// A finite number.
    Value(f64),
    /// NaN or an infinity: the run diverged.
    Diverged,
    /// Nothing, or a word for nothing (`NA`, `null`, `-`).
    Blank,
    /// Something else.
    NotANumber,
}

/// Words for an absent value, in small letters.
const ABSENT: [&str; 7] = ["", "-", "na", "n/a", "#n/a", "null", "none"];

/// Reads a cell. `decimal_comma` takes `2,5` for 2.5.
pub(super) fn cell(text: &str, decimal_comma: bool) -> Cell {
    let text = text.trim();
    if ABSENT.contains(&text.to_lowercase().as_str()) {
        return Cell::Blank;
    }
    let number =
        if decimal_comma && is_comma_number(text) { text.replace(',', ".").parse() } else { text.parse::<f64>() };
    match number {
        Ok(x) if x.is_finite() => Cell::Value(x),
        Ok(_) => Cell::Diverged,
        Err(_) => Cell::NotANumber,
    }
}

/// Whether a text is a number with one comma where a point would be.
pub(super) fn is_comma_number(text: &str) -> bool {
    text.matches(',').count() == 1 && !text.contains('.') && text.replace(',', ".").parse::<f64>().is_ok()
}

/// A seed's text in one form: `7`, `07` and `7.0`, as a table with gaps is written by some programs, are one seed.
pub(super) fn seed(text: &str) -> String {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i128>() {
        return whole.to_string();
    }
    match text.parse::<f64>() {
        // Above 2^53 not every whole number has a double of its own.
        Ok(x) if x.fract() == 0.0 && x.abs() < 9_007_199_254_740_992.0 => (x as i64).to_string(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_every_kind() {
        for text in ["", "  ", "NA", "n/a", "None", "-", "#N/A", "null"] {
            assert_eq!(cell(text, false), Cell::Blank, "{text}");
        }
        for text in ["nan", "NaN", "inf", "-inf", "Infinity", "-Infinity", "1e999"] {
            assert_eq!(cell(text, false), Cell::Diverged, "{text}");
        }
        for text in ["abc", "2,5", "1.2.3", "0x10", "1 2", "12%"] {
            assert_eq!(cell(text, false), Cell::NotANumber, "{text}");
        }
        for (text, value) in [(" 2.5 ", 2.5), ("-1e-3", -1e-3), ("+4", 4.0), (".5", 0.5)] {
            assert_eq!(cell(text, false), Cell::Value(value), "{text}");
        }
        assert_eq!(cell("2,5", true), Cell::Value(2.5));
        assert_eq!(cell("-2,5e-3", true), Cell::Value(-2.5e-3));
        assert_eq!(cell("2.5", true), Cell::Value(2.5));
        assert_eq!(cell("1.234,5", true), Cell::NotANumber);
    }

    #[test]
    fn a_seed_has_one_form() {
        for text in ["7", "07", " 7 ", "7.0", "7e0"] {
            assert_eq!(seed(text), "7");
        }
        assert_eq!(seed("18446744073709551615"), "18446744073709551615");
        assert_eq!(seed("fold-3"), "fold-3");
        assert_eq!(seed("0.5"), "0.5");
    }
}
