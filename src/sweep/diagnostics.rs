//! Shows what is wrong with a sweep file: file, line and column, the line itself, what is allowed.

use std::fmt;
use std::io::IsTerminal;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::plan::Fault;

/// The faults of a sweep file, in the order of its text.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    path: String,
    text: String,
    faults: Vec<Fault>,
}

impl Diagnostics {
    /// The faults of the file of this path and text.
    pub(super) fn new(path: &str, text: &str, mut faults: Vec<Fault>) -> Self {
        faults.sort_by_key(|fault| fault.span.as_ref().map(|span| (span.start, span.end)));
        Self { path: path.to_owned(), text: text.to_owned(), faults }
    }

    /// What is wrong.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// All faults as text that ends in a line feed, coloured for a terminal where asked.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let mut text = String::new();
        for fault in &self.faults {
            text.push_str(&renderer.render(&[self.group(fault)]));
            text.push_str("\n\n");
        }
        let count = match self.faults.len() {
            1 => "1 error".to_owned(),
            n => format!("{n} errors"),
        };
        text + &format!("{count} in {}; nothing was started\n", self.path)
    }

    fn group<'a>(&'a self, fault: &'a Fault) -> Group<'a> {
        let group = Level::ERROR.primary_title(&fault.message);
        let group = match &fault.span {
            Some(span) => {
                let mark = AnnotationKind::Primary.span(self.inside(span.clone())).label(&fault.label);
                group.element(Snippet::source(&self.text).path(&self.path).annotation(mark))
            }
            None => group.element(Origin::path(&self.path)),
        };
        group.elements(fault.help.iter().map(|help| Level::HELP.message(help)))
    }

    /// The span, kept inside the text, on one line, and between whole characters.
    fn inside(&self, span: std::ops::Range<usize>) -> std::ops::Range<usize> {
        let whole = |mut at: usize| {
            while !self.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = whole(span.start.min(self.text.len()));
        let end = whole(span.end.clamp(start, self.text.len()));
        let line = self.text[start..end].find('\n').map_or(end, |at| start + at);
        start..line
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl std::error::Error for Diagnostics {}

/// Whether standard error is a terminal whose user did not ask for plain text by `NO_COLOR`.
pub fn stderr_takes_colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    std::io::stderr().is_terminal() && !refused
}
