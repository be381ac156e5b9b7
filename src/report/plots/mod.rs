//! plots/*.svg and plots/*.png: the report's plots as files, for papers and slides.
//!
//! They are the page's plots, laid out on sheets of fixed size on white. A plot's bytes follow from the results folder
//! alone; no font or program of the system has a part in them.

mod font;
mod layout;
mod png;
mod sheet;
mod svg;

use rayon::prelude::*;

use super::analysis::Analysis;
use super::html::{Drawn, Looks, Plot};
use crate::plan::Plan;
use crate::store::{Loaded, StoreError, View};

/// Beginnings of the names of plots, by kind.
const KINDS: [&str; 6] = ["effect-", "learning-", "axis-", "paired-", "health-", "timeline-"];

/// A file's name and bytes.
type File = (String, Vec<u8>);

/// Writes plots/, a file at a time whole or not at all, and removes from it plots that the sweep has no more. Gives
/// back how many plots there are.
///
/// # Errors
/// A log or an events file cannot be read, or a plot cannot be written.
pub fn write_plots(view: &View, plan: &Plan, loaded: &Loaded, analysis: &Analysis) -> Result<usize, StoreError> {
    let drawn = Drawn::gather(view, plan, loaded, analysis, None)?;
    let (plots, looks) = (drawn.plots(), Looks::of(plan));
    let files: Result<Vec<_>, StoreError> = plots.par_iter().map(|plot| files(view, plot, &looks)).collect();
    let files: Vec<File> = files?.into_iter().flatten().collect();
    let ours = |name: &str| KINDS.iter().any(|kind| name.starts_with(kind)) && !files.iter().any(|f| f.0 == name);
    view.write_plots(&files, ours)?;
    Ok(plots.len())
}

/// The files of a plot with their names.
fn files(view: &View, plot: &Plot, looks: &Looks) -> Result<[File; 2], StoreError> {
    let sheet = layout::sheet(plot, looks);
    let (svg_name, png_name) = (format!("{}.svg", plot.id), format!("{}.png", plot.id));
    let png = png::png(&sheet).map_err(|why| StoreError::Io {
        action: "draw".to_owned(),
        path: view.layout().plots().join(&png_name),
        source: std::io::Error::other(why),
    })?;
    Ok([(svg_name, svg::svg(&sheet).into_bytes()), (png_name, png)])
}

#[cfg(test)]
mod tests;
