//! How a CSV file is written: its characters and what stands between its cells.

/// What may stand between cells.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Records that the delimiter is judged by.
const JUDGED: usize = 50;

/// The text of a file: UTF-8 with or without its mark, UTF-16 with its mark, else one byte a character (Latin-1).
pub(super) fn decode(bytes: Vec<u8>) -> String {
    let utf16 = |order: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|pair| order([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes.as_slice() {
        [0xEF, 0xBB, 0xBF, ..] => decode(bytes[3..].to_vec()),
        [0xFF, 0xFE, ..] => utf16(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => utf16(u16::from_be_bytes),
        _ => String::from_utf8(bytes)
            .unwrap_or_else(|error| error.into_bytes().iter().map(|byte| char::from(*byte)).collect()),
    }
}

/// The delimiter in words.
pub(super) fn name(delimiter: u8) -> &'static str {
    match delimiter {
        b',' => "commas",
        b';' => "semicolons",
        b'\t' => "tabs",
        _ => "bars",
    }
}

/// What stands between the cells: that by which the header has the most of the wanted columns; of equal ones, that by which the most
/// records are as wide as the header, then the widest. A first line `sep=;`, as spreadsheets write, says it outright; the text is given
/// back without it.
pub(super) fn sniff<'t>(text: &'t str, wanted: &[&str]) -> (u8, &'t str) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if let Some([delimiter]) = first.trim_end().strip_prefix("sep=").map(str::as_bytes)
        && DELIMITERS.contains(delimiter)
    {
        return (*delimiter, rest);
    }
    let score = |delimiter: u8| {
        let reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(text.as_bytes());
        let mut records = reader.into_records().take(JUDGED).map_while(Result::ok);
        let header: Vec<String> =
            records.next().map(|r| r.iter().map(|c| c.trim().to_owned()).collect()).unwrap_or_default();
        let found = wanted.iter().filter(|name| header.iter().any(|column| column == *name)).count();
        let as_wide = records.filter(|record| record.len() == header.len() && header.len() > 1).count();
        (found, as_wide, header.len())
    };
    // The first of equal ones: commas before the others.
    let best = DELIMITERS.into_iter().rev().max_by_key(|delimiter| score(*delimiter));
    (best.unwrap_or(b','), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_any_encoding() {
        assert_eq!(decode(b"a\xC3\xA4".to_vec()), "aä");
        assert_eq!(decode(b"\xEF\xBB\xBFarm".to_vec()), "arm");
        assert_eq!(decode(b"\xFF\xFEa\0,\0".to_vec()), "a,");
        assert_eq!(decode(b"\xFE\xFF\0a\0,".to_vec()), "a,");
        assert_eq!(decode(b"na\xEFve".to_vec()), "naïve");
        assert_eq!(decode(Vec::new()), "");
    }

    #[test]
    fn the_delimiter_is_the_one_that_shows_the_columns() {
        let wanted = ["arm", "seed", "bpb"];
        for (delimiter, other) in [(',', ';'), (';', ','), ('\t', ','), ('|', ';')] {
            let text = format!("arm{delimiter}seed{delimiter}bpb\na{other}b{delimiter}1{delimiter}2{other}5\n");
            assert_eq!(sniff(&text, &wanted), (delimiter as u8, text.as_str()), "{text}");
        }
        assert_eq!(sniff("sep=|\narm|seed\n", &wanted), (b'|', "arm|seed\n"));
        // With other columns than asked for it still tells.
        assert_eq!(sniff("name;n;x\na;1;2,5\nb;2;3,5\n", &wanted).0, b';');
        assert_eq!(sniff("", &wanted).0, b',');
    }
}
