//! The table for pages and papers, as text.

use super::closing::{analysis, mixed};
use super::{done, results};
use crate::report::{Markup, SeedState, summary_text};
use crate::testing::plan;

#[test]
fn a_sweep_with_all_kinds_of_endings() {
    let (plan, analysis) = mixed();
    assert_eq!(summary_text(&plan, &analysis, Markup::Markdown), include_str!("markup.md"));
    assert_eq!(summary_text(&plan, &analysis, Markup::Latex), include_str!("markup.tex"));
}

#[test]
fn names_show_as_they_are() {
    let mut plan = plan(&[("adamw", &[]), ("sr4", &[])], &[1, 2]);
    plan.configurations[1].arm = "a_b|c*d&e%f#g$h{i}~j^k\\l<m>n -1 1e-5".to_owned();
    let analysis = analysis(&plan, results(&plan, |_, seed| done(2.0 + seed as f64)));
    let row = |markup| {
        let text = summary_text(&plan, &analysis, markup);
        let line = text.lines().find(|line| line.contains("3.5000") && line.contains("1e-5")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{text}"))
    };
    let markdown = row(Markup::Markdown);
    assert!(markdown.starts_with("| a\\_b\\|c\\*d&e%f\\#g$h{i}~j^k\\\\l\\<m\\>n -1 1e-5 |"), "{markdown}");
    let latex = row(Markup::Latex);
    let name = "a\\_b\\textbar{}c*d\\&e\\%f\\#g\\$h\\{i\\}\\textasciitilde{}j\\textasciicircum{}k\\textbackslash{}l\\textless{}m\\textgreater{}n $-$1 1e-5 &";
    assert!(latex.starts_with(name), "{latex}");
}

#[test]
fn columns_of_markdown_are_aligned() {
    let (plan, analysis) = mixed();
    let text = summary_text(&plan, &analysis, Markup::Markdown);
    let table: Vec<&str> = text.lines().take_while(|line| line.starts_with('|')).collect();
    let bars = |line: &str| line.chars().enumerate().filter(|(_, c)| *c == '|').map(|(i, _)| i).collect::<Vec<_>>();
    assert_eq!(table.len(), 6);
    assert!(table.iter().all(|line| bars(line) == bars(table[0])), "{text}");
}

#[test]
fn a_sweep_without_results_says_so() {
    let plan = plan(&[("adamw", &[])], &[1]);
    let analysis = analysis(&plan, results(&plan, |_, _| SeedState::Unfinished));
    for markup in [Markup::Markdown, Markup::Latex] {
        let text = summary_text(&plan, &analysis, markup);
        assert!(text.contains("No verdict: none of the 1 run has finished."), "{text}");
    }
}
