//! From a file to a plan.

use std::path::Path;

use toml::de::DeTable;

use super::Diagnostics;
use super::reader::Reader;
use crate::plan::{self, Fault, Plan, Resolver};

/// A sweep file that holds.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The file, verbatim.
    pub text: String,
    /// What it comes to.
    pub plan: Plan,
}

/// Reads and plans a sweep file. `resolver` finds each corpus, relative paths from the working directory.
///
/// # Errors
/// Every fault of the file at once, or why it cannot be read.
pub fn load(path: &Path, resolver: &mut Resolver<'_>) -> Result<Sweep, Diagnostics> {
    let shown = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| {
        Diagnostics::new(&shown, "", vec![Fault::of_file(format!("the sweep file cannot be read: {error}"))])
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..valid];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let message = format!("the sweep file is not UTF-8 text: see line {line}, byte {valid} of the file");
        Diagnostics::new(&shown, "", vec![Fault::of_file(message)])
    })?;
    let plan = plan(&text, &shown, resolver)?;
    Ok(Sweep { text, plan })
}

/// Plans the text of a sweep file; `path` is what messages call it.
///
/// # Errors
/// Every fault of the text at once.
pub fn plan(text: &str, path: &str, resolver: &mut Resolver<'_>) -> Result<Plan, Diagnostics> {
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut reader =
        Reader { text, faults: Vec::new(), broken: !errors.is_empty(), doubtful: Vec::new(), meant: Vec::new() };
    let request = reader.request(root.get_ref());
    if reader.broken {
        return Err(Diagnostics::new(path, text, broken(&reader, &errors)));
    }
    if !reader.faults.is_empty() {
        let more = plan::faults(&request, resolver);
        let faults = reader.faults.into_iter().chain(more).collect();
        return Err(Diagnostics::new(path, text, faults));
    }
    plan::build(&request, resolver).map_err(|faults| Diagnostics::new(path, text, faults))
}

/// The faults of the syntax, and of what could be read in spite of them: those of other lines.
fn broken(reader: &Reader<'_>, errors: &[toml::de::Error]) -> Vec<Fault> {
    let place = |error: &toml::de::Error| error.span().unwrap_or(0..0);
    // Where a bracket stays open the rest of the file is read as something else than it is.
    let open =
        |error: &&toml::de::Error| ["array", "inline table", "unclosed"].iter().any(|w| error.message().contains(w));
    let end = errors.iter().filter(open).map(|e| place(e).start).min().unwrap_or(usize::MAX);
    let lines: Vec<usize> = errors.iter().map(|e| reader.line(place(e).start)).collect();
    let mut faults: Vec<Fault> = Vec::new();
    for (i, error) in errors.iter().enumerate() {
        // What stands behind the first fault of a line mostly follows from it.
        if place(error).start > end || lines[..i].contains(&lines[i]) {
            continue;
        }
        let fault = Fault::at(place(error), format!("not TOML: {}", error.message())).label("here");
        let fault = if open(&error) { fault.help("is a bracket above or in this line left open?") } else { fault };
        faults.push(fault);
    }
    let sound = |f: &&Fault| f.span.as_ref().is_some_and(|s| s.start < end && !lines.contains(&reader.line(s.start)));
    let others: Vec<Fault> = reader.faults.iter().filter(sound).cloned().collect();
    faults.extend(others);
    faults
}
