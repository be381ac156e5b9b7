//! report.html: the whole answer in one file, for the browser.
//!
//! Drawn from the results folder alone. The page is complete without its script, which adds what a page on paper
//! cannot do: choosing a metric, hiding configurations, sorting, values under the pointer. It asks no network for
//! anything, and a policy in its head forbids that it could.

mod axes;
mod colours;
mod curves;
mod drawing;
mod events;
mod frames;
mod health;
mod hero;
mod learning;
mod page;
mod paired;
mod plot;
mod reproduce;
mod scale;
mod stops;
mod table;
mod text;
mod timeline;
mod troubles;

#[cfg(test)]
pub(super) mod tests;

pub(super) use events::milliseconds;

use std::fs;

pub use page::Running;

// What plots in files are made of.
pub(super) use colours::{Looks, Rgb, hex};
pub(super) use plot::{Ended, Group, Mark, Place, Plot, Rule, Size, Span, Style};
pub(super) use scale::SIDE;
pub(super) use text::esc;

use super::analysis::Analysis;
use crate::plan::Plan;
use crate::store::{Loaded, StoreError, View, read_journals};

/// Writes report.html into the folder, whole or not at all. Of a sweep at work, the page says so.
///
/// # Errors
/// A log or an events file cannot be read, or the report cannot be written.
pub fn write_report(
    view: &View,
    plan: &Plan,
    loaded: &Loaded,
    analysis: &Analysis,
    running: Option<Running>,
) -> Result<(), StoreError> {
    let drawn = Drawn::gather(view, plan, loaded, analysis, running)?;
    view.write_report(page::page(&drawn.source, &drawn.curves).as_bytes())
}

/// What a page, or plots in files, are drawn from.
pub(super) struct Drawn<'a> {
    source: page::Source<'a>,
    curves: Vec<curves::Curve>,
}

impl<'a> Drawn<'a> {
    /// Reads what the tables do not hold: logs and events.
    pub(super) fn gather(
        view: &'a View,
        plan: &'a Plan,
        loaded: &'a Loaded,
        analysis: &'a Analysis,
        running: Option<Running>,
    ) -> Result<Self, StoreError> {
        let curves = curves::gather(view, plan, loaded, &page::shown(plan, analysis))?;
        let path = view.layout().sweep_toml();
        let sweep_toml =
            fs::read(&path).map_err(|source| StoreError::Io { action: "read".to_owned(), path, source })?;
        let journals = read_journals(view.layout())?;
        let source = page::Source {
            view,
            plan,
            loaded,
            analysis,
            running,
            controllers: events::controllers(plan, loaded, &journals),
            left_out: journals.into_iter().flat_map(|journal| journal.warnings).collect(),
            sweep_toml: String::from_utf8_lossy(&sweep_toml).into_owned(),
        };
        Ok(Self { source, curves })
    }

    /// Every plot.
    pub(super) fn plots(&self) -> Vec<Plot> {
        let (source, curves) = (&self.source, &self.curves);
        let mut plots = hero::plots(source);
        plots.extend(learning::plots(source, curves));
        plots.extend(axes::plots(source).plots);
        plots.extend(paired::plots(source));
        plots.extend(health::plots(source, curves));
        plots.extend(timeline::plots(source));
        plots
    }
}
