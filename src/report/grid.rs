//! Aligned columns of plain text, within a width.

/// Columns of text that a terminal has at least.
pub(super) const WIDTH: usize = 100;

/// Spaces between columns.
const GAP: usize = 2;
/// The first column is never narrower.
const LEAST: usize = 16;

/// Which side a column's text keeps to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of cells. The first column takes what the others leave of [`WIDTH`], and wraps.
pub(crate) struct Grid {
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
    whole: bool,
}

impl Grid {
    /// A grid with a header.
    pub(crate) fn new(header: &[(&str, Align)]) -> Self {
        Self {
            align: header.iter().map(|(_, align)| *align).collect(),
            rows: vec![header.iter().map(|(name, _)| (*name).to_owned()).collect()],
            whole: false,
        }
    }

    /// Keeps the first column on one line, however wide the rows become: for names that are copied.
    pub(crate) fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Appends a row of as many cells as the header has.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.align.len());
        self.rows.push(cells);
    }

    /// The text, each line ended, with no blanks before line ends.
    pub(crate) fn text(&self) -> String {
        let width_of = |column: usize| self.rows.iter().map(|row| chars(&row[column])).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.align.len()).map(width_of).collect();
        let others: usize = widths[1..].iter().map(|width| width + GAP).sum();
        let room = WIDTH.saturating_sub(others).max(LEAST);
        let first = if self.whole { widths[0] } else { widths[0].min(room) };
        let mut text = String::new();
        for row in &self.rows {
            let label = wrap(&row[0], first, "  ");
            let mut line = pad(&label[0], first, Align::Left);
            for column in 1..row.len() {
                line += &" ".repeat(GAP);
                line += &pad(&row[column], widths[column], self.align[column]);
            }
            text += line.trim_end();
            text.push('\n');
            for rest in &label[1..] {
                text += rest;
                text.push('\n');
            }
        }
        text
    }
}

fn pad(cell: &str, width: usize, align: Align) -> String {
    let blanks = " ".repeat(width.saturating_sub(chars(cell)));
    match align {
        Align::Left => format!("{cell}{blanks}"),
        Align::Right => format!("{blanks}{cell}"),
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// Breaks a text at its blanks into lines of at most `width` characters, all but the first indented. A longer word is
/// cut. There is at least one line.
pub(super) fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut empty = true;
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        if !empty && chars(&line) + 1 + word.len() > width {
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
            empty = true;
        }
        while empty && chars(&line) + word.len() > width {
            let room = width.saturating_sub(chars(&line)).max(1);
            let rest = word.split_off(room.min(word.len()));
            line.extend(word);
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
            word = rest;
        }
        if !empty {
            line.push(' ');
        }
        line.extend(word);
        empty = false;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wrap_and_long_ones_are_cut() {
        assert_eq!(wrap("a bc def", 4, ""), ["a bc", "def"]);
        assert_eq!(wrap("abcdefghij k", 6, "  "), ["abcdef", "  ghij", "  k"]);
        assert_eq!(wrap("", 6, "  "), [""]);
        assert_eq!(wrap("abc", 3, "  "), ["abc"]);
    }

    #[test]
    fn columns_align_and_the_first_one_gives_way() {
        let mut grid = Grid::new(&[("name", Align::Left), ("n", Align::Right), ("what", Align::Left)]);
        grid.row(vec!["a".into(), "100".into(), "2 ± 1".into()]);
        grid.row(vec!["b=1 c=2".into(), "7".into(), String::new()]);
        assert_eq!(grid.text(), "name       n  what\na        100  2 ± 1\nb=1 c=2    7\n");

        let mut grid = Grid::new(&[("name", Align::Left), ("n", Align::Right)]);
        grid.row(vec!["long ".repeat(30).trim_end().to_owned(), "x".repeat(60)]);
        let text = grid.text();
        assert!(text.lines().all(|line| chars(line) <= WIDTH), "{text}");
        assert_eq!(text.matches("long").count(), 30);
    }

    #[test]
    fn a_whole_first_column_is_never_cut() {
        let id = "0123456789abcdef".repeat(2);
        let mut grid = Grid::new(&[("run", Align::Left), ("value", Align::Left)]).whole();
        grid.row(vec![id.clone(), "x".repeat(90)]);
        assert!(grid.text().lines().any(|line| line.starts_with(&id)), "{}", grid.text());
    }
}
