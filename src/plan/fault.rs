//! What is wrong with a request, and where it says so.

/// A piece of the sweep file's text, in bytes.
pub type Span = std::ops::Range<usize>;

/// One thing that is wrong with a sweep file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The text at fault; absent where the fault is the whole file's.
    pub span: Option<Span>,
    /// What is wrong.
    pub message: String,
    /// What is said beside the marked text.
    pub label: String,
    /// What is allowed, what may have been meant.
    pub help: Vec<String>,
}

impl Fault {
    /// A fault of the marked text.
    pub fn at(span: Span, message: impl Into<String>) -> Self {
        Self { span: Some(span), message: message.into(), label: String::new(), help: Vec::new() }
    }

    /// A fault of the whole file.
    pub fn of_file(message: impl Into<String>) -> Self {
        Self { span: None, message: message.into(), label: String::new(), help: Vec::new() }
    }

    /// Says something beside the marked text.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a line of help.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }
}
