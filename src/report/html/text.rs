//! Text and numbers as they may stand in HTML.

/// Text as it may stand in an element or in a quoted attribute. Control characters but for line ends and tabs, which
/// HTML does not know, become `�`.
pub(in crate::report) fn esc(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The same for a sentence in which names may stand between backticks, which become code.
pub(super) fn with_code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return esc(text);
    }
    let part = |(i, part): (usize, &&str)| if i % 2 == 1 { format!("<code>{}</code>", esc(part)) } else { esc(part) };
    parts.iter().enumerate().map(part).collect()
}

/// Text as it may stand in an id and in the name of a file.
pub(super) fn slug(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || "-_+.".contains(c) { c } else { '_' }).collect()
}

/// JSON as it may stand in a `script` element: no `<` can end it.
pub(super) fn json_for_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// A number of at most five significant digits as JSON; `null` if it is not finite.
pub(super) fn short_json(x: f64) -> String {
    if !x.is_finite() {
        return "null".to_owned();
    }
    // Printing and reading back rounds in decimal, as a reader would.
    let rounded: f64 = format!("{x:.4e}").parse().unwrap_or(x);
    format!("{rounded}")
}

/// A coordinate: a thousandth of the plot's width or height, with one digit after the point.
pub(super) fn coordinate(x: f64) -> String {
    let text = format!("{x:.1}");
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// `1 run`, `2 runs`.
pub(super) fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// A duration in the unit that suits it.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 60.0 => format!("{s:.1} s"),
        s if s < 3600.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_a_file_is_markup() {
        assert_eq!(esc("<b a='1'>\"&\u{1b}[m\n"), "&lt;b a=&#39;1&#39;&gt;&quot;&amp;\u{fffd}[m\n");
        assert_eq!(json_for_script(r#"["</script>"]"#), r#"["\u003c/script>"]"#);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([1.234_567, 0.000_123_456_7, 400.0].map(short_json), ["1.2346", "0.00012346", "400"]);
        assert_eq!([f64::NAN, f64::INFINITY].map(short_json), ["null", "null"]);
        assert_eq!([0.0, 12.34, 1000.0].map(coordinate), ["0", "12.3", "1000"]);
        assert_eq!([0.5, 90.0, 7200.0].map(duration), ["0.5 s", "1.5 min", "2.0 h"]);
    }
}
