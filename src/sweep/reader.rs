//! Walks a parsed TOML document, gathering faults.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) use crate::near::nearest;
use crate::plan::{Fault, Span};

/// A key with its place.
pub(super) type Key<'i> = Spanned<Cow<'i, str>>;
/// A value with its place.
pub(super) type Item<'i> = Spanned<DeValue<'i>>;

/// The text of a sweep file and what is wrong with it so far.
pub(super) struct Reader<'i> {
    /// The whole file.
    pub text: &'i str,
    /// Faults found.
    pub faults: Vec<Fault>,
    /// Whether the text is no TOML: then what is absent may stand in the part that could not be read.
    pub broken: bool,
    /// Settings of which a value is at fault.
    pub doubtful: Vec<&'static str>,
    /// Other keys that were meant by unknown ones.
    pub meant: Vec<&'static str>,
}

impl<'i> Reader<'i> {
    /// Line of a place, from 1.
    pub fn line(&self, at: usize) -> usize {
        self.text.as_bytes()[..at.min(self.text.len())].iter().filter(|b| **b == b'\n').count() + 1
    }

    /// The text as written, on one line.
    pub fn written(&self, span: &Span) -> String {
        let text = self.text.get(span.clone()).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Notes a fault.
    pub fn fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Notes that something is absent, unless it may have been lost to a fault of the syntax.
    pub fn absent(&mut self, fault: Fault) {
        if !self.broken {
            self.faults.push(fault);
        }
    }

    /// A value of the wrong type.
    pub fn wrong_type(&mut self, what: &str, item: &Item<'_>, allowed: &str) {
        let found = item.get_ref().type_str();
        let article = if found.starts_with(['a', 'i']) { "an" } else { "a" };
        let message = format!("{what} cannot be {article} {found}");
        self.fault(Fault::at(item.span(), message).label(format!("must be {allowed}")));
    }

    /// The value as a table.
    pub fn table<'t>(&mut self, what: &str, item: &'t Item<'i>) -> Option<&'t DeTable<'i>> {
        let table = item.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(what, item, "a table");
        }
        table
    }

    /// The value as a string.
    pub fn string(&mut self, what: &str, item: &Item<'_>) -> Option<String> {
        let string = item.get_ref().as_str().map(str::to_owned);
        if string.is_none() {
            self.wrong_type(what, item, "a string");
        }
        string
    }

    /// The value as a list.
    pub fn list<'t>(&mut self, what: &str, item: &'t Item<'i>, allowed: &str) -> Option<&'t [Item<'i>]> {
        match item.get_ref().as_array() {
            Some(list) => Some(list),
            None => {
                self.wrong_type(what, item, allowed);
                None
            }
        }
    }

    /// A whole number in a range, which is described by `allowed`.
    pub fn whole(
        &mut self,
        what: &str,
        item: &Item<'_>,
        range: std::ops::RangeInclusive<u64>,
        allowed: &str,
    ) -> Option<u64> {
        let value = match super::convert::whole(item.get_ref()) {
            Some(value) => value,
            None => {
                match super::convert::number(item.get_ref()) {
                    Some(_) => {
                        let message = format!("{what} must be a whole number");
                        self.fault(Fault::at(item.span(), message).label(format!("must be {allowed}")));
                    }
                    None => self.wrong_type(what, item, allowed),
                }
                return None;
            }
        };
        let inside = u64::try_from(value).ok().filter(|v| range.contains(v));
        if inside.is_none() {
            let message = format!("{what} is out of range");
            self.fault(Fault::at(item.span(), message).label(format!("must be {allowed}")));
        }
        inside
    }

    /// A key that no one knows. `place` says where it stands, as `in [run]`.
    pub fn unknown_key(&mut self, key: &Key<'_>, place: &str, known: &[&'static str]) {
        let name = key.get_ref();
        self.meant.extend(nearest(name, known));
        let fault = Fault::at(key.span(), format!("unknown key `{name}` {place}")).label("not known here");
        self.fault(suggest(fault, name, known));
    }

    /// Whether the name fits a folder's; a fault where it does not.
    pub fn name_fits(&mut self, what: &str, name: &str, span: Span) -> bool {
        use crate::plan::is_plain;
        const LONGEST: usize = 32;
        let head = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let problem = if name.is_empty() {
            "empty"
        } else if name.len() > LONGEST {
            "too long"
        } else if !name.chars().all(is_plain) || !name.starts_with(head) {
            "not fit for the name of a folder"
        } else {
            return true;
        };
        let mut fault = Fault::at(span, format!("{what} is {problem}"))
            .label(format!("1 to {LONGEST} of the characters A-Z a-z 0-9 . _ + -, the first a letter, a digit or `_`"));
        let plain: String = name.trim().chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
        let plain = plain.trim_start_matches(|c| !head(c));
        if problem.starts_with("not") && !plain.is_empty() {
            fault = fault.help(format!("for example `{plain}`"));
        }
        self.fault(fault);
        false
    }
}

/// A table's entries in the order of the file.
pub(super) fn entries<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Key<'i>, &'t Item<'i>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// Adds what may have been meant, or else all that is known.
pub(super) fn suggest(fault: Fault, name: &str, known: &[&str]) -> Fault {
    match nearest(name, known) {
        Some(near) => fault.help(format!("did you mean `{near}`?")),
        None => fault.help(format!("known are {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let known = ["target_step", "steps", "lr", "lr_min", "C", "eval_every"];
        for (name, meant) in [
            ("taget_step", Some("target_step")),
            ("target-step", Some("target_step")),
            ("eval-every", Some("eval_every")),
            ("step", Some("steps")),
            ("LR", Some("lr")),
            ("c", Some("C")),
            ("learning_rate", None),
            ("", None),
            ("momentum", None),
        ] {
            assert_eq!(nearest(name, &known), meant, "{name}");
        }
    }
}
