//! report.html: the whole answer in one file, for the browser.
//!
//! Drawn from the results folder alone. The page is complete without its script, which adds what a page on paper
//! cannot do: choosing a metric, hiding configurations, sorting, values under the pointer. It asks no network for
//! anything, and a policy in its head forbids that it could.

mod axes;
mod colours;
mod curves;
mod events;
mod hero;
mod learning;
mod page;
mod paired;
mod plot;
mod reproduce;
mod scale;
mod table;
mod text;
mod timeline;
mod troubles;

#[cfg(test)]
mod tests;

pub(super) use events::milliseconds;

use std::fs;

use super::analysis::Analysis;
use crate::plan::Plan;
use crate::store::{Loaded, StoreError, View};

/// Writes report.html into the folder, whole or not at all.
///
/// # Errors
/// A log or an events file cannot be read, or the report cannot be written.
pub fn write_report(view: &View, plan: &Plan, loaded: &Loaded, analysis: &Analysis) -> Result<(), StoreError> {
    view.write_report(html(view, plan, loaded, analysis)?.as_bytes())
}

fn html(view: &View, plan: &Plan, loaded: &Loaded, analysis: &Analysis) -> Result<String, StoreError> {
    let curves = curves::gather(view, plan, loaded, &page::shown(plan, analysis))?;
    let path = view.layout().sweep_toml();
    let sweep_toml = fs::read(&path).map_err(|source| StoreError::Io { action: "read".to_owned(), path, source })?;
    let source = page::Source {
        plan,
        loaded,
        analysis,
        sessions: events::sessions(view, plan, loaded)?,
        sweep_toml: String::from_utf8_lossy(&sweep_toml).into_owned(),
    };
    Ok(page::page(&source, &curves))
}
