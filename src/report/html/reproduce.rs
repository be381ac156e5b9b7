//! How to get the same numbers again.

use std::fmt::Write;

use super::page::Source;
use super::text::{count, esc};
use crate::run::NUMERICS;

/// The section.
pub(super) fn section(source: &Source) -> String {
    let plan = source.plan;
    let mut html = format!(
        "<section id=\"reproduce\"><h2>How to reproduce</h2>\
         <p>Save the sweep file below as <code>sweep.toml</code> (it also lies in the results folder) and run</p>\
         <pre>diesweep run sweep.toml</pre>\
         <p>A run’s numbers depend on its settings, the corpus and the version of the arithmetic alone, not on dies, \
         threads, order or interruptions: <code>diesweep diff</code> of two results folders finds no difference.</p>\
         <dl class=\"facts\"><div><dt>diesweep</dt><dd>{}</dd></div><div><dt>numerics</dt><dd>{NUMERICS}</dd></div>",
        env!("CARGO_PKG_VERSION")
    );
    let hosts: std::collections::BTreeSet<String> = source
        .loaded
        .states
        .iter()
        .filter_map(|state| state.result())
        .map(|result| format!("{} ({})", result.execution.host, result.execution.device))
        .collect();
    if !hosts.is_empty() {
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let _ = write!(html, "<div><dt>trained on</dt><dd>{}</dd></div>", esc(&hosts.join(", ")));
    }
    html += "</dl><div class=\"scroll\"><table><thead><tr><th scope=\"col\">corpus</th><th scope=\"col\" class=\"num\">bytes</th>\
        <th scope=\"col\">blake3</th></tr></thead><tbody>";
    for corpus in &plan.corpora {
        let path = corpus.path.as_ref().map_or_else(|| "built in".to_owned(), |path| path.display().to_string());
        let _ = write!(
            html,
            "<tr><td>{}</td><td class=\"num\">{}</td><td><code>{}</code></td></tr>",
            esc(&path),
            corpus.bytes,
            esc(&corpus.digest)
        );
    }
    html += "</tbody></table></div>";
    let _ = write!(
        html,
        "<details><summary>The sweep file: {} of {}</summary><pre>{}</pre></details>",
        count(plan.runs.len(), "run"),
        count(plan.configurations.len(), "configuration"),
        esc(&source.sweep_toml)
    );
    html += "<p class=\"sub\">Numbers behind this page: comparison.csv (runs), summary.csv (configurations), comparisons.csv \
        (tests) and curves.csv (every logged step), beside it in the results folder.</p></section>";
    html
}
