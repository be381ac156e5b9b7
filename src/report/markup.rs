//! The summary table for papers and pages.

use super::analysis::Analysis;
use super::closing::{best_first, difference, mean_text};
use super::metric::{metric_name, test_name};
use super::wording::{direction, label, value_text};
use crate::plan::Plan;

/// A language of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markup {
    /// Pipes and dashes, as GitHub reads them.
    Markdown,
    /// A `tabular` with the rules of booktabs.
    Latex,
}

impl Markup {
    /// Text that shows as it is.
    fn escaped(self, text: &str) -> String {
        let special = match self {
            Self::Markdown => "\\`*_[]<>|#",
            Self::Latex => "&%$#_{}",
        };
        let mut out = String::new();
        let mut before = ' ';
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let negative = c == '-' && !before.is_alphanumeric() && chars.peek().is_some_and(char::is_ascii_digit);
            match (self, c) {
                (Self::Latex, '-') if negative => out.push_str("$-$"),
                (Self::Latex, '\\') => out.push_str("\\textbackslash{}"),
                (Self::Latex, '~') => out.push_str("\\textasciitilde{}"),
                (Self::Latex, '^') => out.push_str("\\textasciicircum{}"),
                (Self::Latex, '<') => out.push_str("\\textless{}"),
                (Self::Latex, '>') => out.push_str("\\textgreater{}"),
                (Self::Latex, '|') => out.push_str("\\textbar{}"),
                (Self::Latex, '±') => out.push_str("$\\pm$"),
                (_, '\n' | '\r') => out.push(' '),
                (_, c) if special.contains(c) => out.extend(['\\', c]),
                (_, c) => out.push(c),
            }
            before = c;
        }
        out
    }

    /// A table with its first column to the left and the others to the right, the columns aligned in the text too.
    fn table(self, rows: &[Vec<String>]) -> String {
        let escaped: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| self.escaped(cell)).collect()).collect();
        let columns = rows[0].len();
        let width = |column: usize| escaped.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>, between: &str| {
            let cells = row.iter().zip(&widths).enumerate().map(|(i, (cell, width))| match i {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            cells.collect::<Vec<_>>().join(between)
        };
        let mut text = String::new();
        match self {
            Self::Markdown => {
                for (i, row) in escaped.iter().enumerate() {
                    text += &format!("| {} |\n", line(row, " | "));
                    if i == 0 {
                        let rule = |(i, width): (usize, &usize)| match i {
                            0 => format!("{}|", "-".repeat(width + 2)),
                            _ => format!("{}:|", "-".repeat(width + 1)),
                        };
                        text += &format!("|{}\n", widths.iter().enumerate().map(rule).collect::<String>());
                    }
                }
            }
            Self::Latex => {
                text += &format!("\\begin{{tabular}}{{l{}}}\n\\toprule\n", "r".repeat(columns - 1));
                for (i, row) in escaped.iter().enumerate() {
                    text += &format!("{} \\\\\n", line(row, " & "));
                    if i == 0 {
                        text += "\\midrule\n";
                    }
                }
                text += "\\bottomrule\n\\end{tabular}\n";
            }
        }
        text
    }
}

/// The table of the configurations, best first, and the verdict as a sentence below it.
pub fn summary_text(plan: &Plan, analysis: &Analysis, markup: Markup) -> String {
    let metric = plan.compare.metric;
    let header =
        ["configuration", "n", "diverged", "failed", metric_name(metric), "difference [95%]", "p", test_name(metric)];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for index in best_first(plan, analysis) {
        let results = &analysis.configurations[index];
        let [difference, p] = difference(analysis, index);
        rows.push(vec![
            label(&plan.configurations[index]),
            format!("{}/{}", results.finished(), results.seeds.len()),
            results.diverged().to_string(),
            results.failed().to_string(),
            mean_text(results.summary()),
            difference,
            p,
            results.test_summary().map_or_else(|| "-".to_owned(), |s| value_text(s.mean)),
        ]);
    }
    let mut text = markup.table(&rows);
    let legend = format!(
        "{}: mean over the seeds that finished ± half of its 95% t interval, {}; n: seeds finished of planned; difference: \
         from the baseline's best, paired by seed; p: sign-flip, not corrected.",
        metric_name(metric),
        direction(plan)
    );
    text += &format!("\n{}\n", markup.escaped(&legend));
    text += &format!("\n{}\n", markup.escaped(&analysis.verdict.sentence));
    for note in &analysis.verdict.notes {
        text += &format!("\n{}\n", markup.escaped(&format!("Note: {note}.")));
    }
    text
}
