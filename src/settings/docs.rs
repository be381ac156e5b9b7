//! The settings' page of the documentation, made from the table.

use std::fmt::Write as _;

use super::setting::{Group, Initial};
use super::table::TABLE;

const HEAD: &str = "\
# Settings

Every setting can stand in a sweep file's `[base]`, in an arm, or be an axis (a list). `preset` chooses the defaults: `standard` (the default), or `reference`, which
reproduces the reference driver's quirks. A setting that is given wins over its preset.

This page is made from the program's table of settings; a test holds the two equal.
";

const TAIL: &str = "
## What makes a run

A run's id is the first 64 bits, as 16 hexadecimal digits, of blake3 over these lines, each ended by a line feed:
`diesweep run`; `key=value` for every setting that changes numbers, by key in byte order; `corpus=` and the blake3 digest
of the corpus's bytes; `numerics=` and an integer that is raised only when a result's bytes change. Values are written in
their shortest form. Settings that a run does not read (SR4's in an AdamW run, `moba_top_k` under dense attention) stand
there with their standard default, so that they make no difference.
";

/// The page, as Markdown.
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    for group in [Group::Model, Group::Schedule, Group::Optimizer, Group::Sr4, Group::Neutral] {
        let _ = writeln!(page, "\n## {}\n", title(group));
        page.push_str("| key | value | standard | reference | meaning |\n|---|---|---|---|---|\n");
        for row in TABLE.iter().filter(|row| row.group == group) {
            let reference = row.reference.map_or(String::new(), initial);
            let (key, standard) = (row.key, initial(row.standard));
            let _ = writeln!(page, "| `{key}` | {} | {standard} | {reference} | {} |", row.kind.describe(), row.help);
        }
    }
    page + TAIL
}

fn title(group: Group) -> &'static str {
    match group {
        Group::Model => "Model",
        Group::Schedule => "Data, schedule and evaluation",
        Group::Optimizer => "Optimizer",
        Group::Sr4 => "SR4 (read by `opt = \"sr4\"` alone)",
        Group::Neutral => "What changes no number",
    }
}

fn initial(value: Initial) -> String {
    use super::Value;
    match value {
        Initial::Int(v) => format!("`{v}`"),
        Initial::Float(v) => format!("`{}`", Value::Float(v)),
        Initial::Bool(v) => format!("`{v}`"),
        Initial::Text(v) => format!("`{v}`"),
        Initial::Same(key) => format!("the run's `{key}`"),
    }
}

#[cfg(test)]
mod tests {
    /// Run with `SNAPSHOTS=overwrite` after a change of the table.
    #[test]
    fn the_page_is_the_table() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/settings.md");
        let expected = snapbox::Data::read_from(&path, None).raw();
        snapbox::assert_data_eq!(super::markdown(), expected);
    }
}
