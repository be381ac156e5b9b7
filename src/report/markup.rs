//! The summary table for papers and pages.

use super::analysis::Analysis;
use super::closing::{best_first, difference, mean_text};
use super::metric::{metric_name, test_name};
use super::wording::{label, value_text};
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
        for c in text.chars() {
            match (self, c) {
                (Self::Latex, '\\') => out.push_str("\\textbackslash{}"),
                (Self::Latex, '~') => out.push_str("\\textasciitilde{}"),
                (Self::Latex, '^') => out.push_str("\\textasciicircum{}"),
                (Self::Latex, '<') => out.push_str("\\textless{}"),
                (Self::Latex, '>') => out.push_str("\\textgreater{}"),
                (Self::Latex, '±') => out.push_str("$\\pm$"),
                (_, '\n' | '\r') => out.push(' '),
                (_, c) if special.contains(c) => out.extend(['\\', c]),
                (_, c) => out.push(c),
            }
        }
        out
    }

    fn table(self, rows: &[Vec<String>]) -> String {
        let columns = rows[0].len();
        let line = |row: &Vec<String>| row.iter().map(|cell| self.escaped(cell)).collect::<Vec<_>>();
        let mut text = String::new();
        match self {
            Self::Markdown => {
                for (i, row) in rows.iter().enumerate() {
                    text += &format!("| {} |\n", line(row).join(" | "));
                    if i == 0 {
                        text += &format!("|---|{}\n", "--:|".repeat(columns - 1));
                    }
                }
            }
            Self::Latex => {
                text += &format!("\\begin{{tabular}}{{l{}}}\n\\toprule\n", "r".repeat(columns - 1));
                for (i, row) in rows.iter().enumerate() {
                    text += &format!("{} \\\\\n", line(row).join(" & "));
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
    text += &format!("\n{}\n", markup.escaped(&analysis.verdict.sentence));
    for note in &analysis.verdict.notes {
        text += &format!("\n{}\n", markup.escaped(&format!("Note: {note}.")));
    }
    text
}
