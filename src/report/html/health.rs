//! What goes on inside the runs that train ternary weights.

use super::curves::{Curve, Quantity};
use super::frames::{self, Along, Frame, Range};
use super::learning::{describe, draw, legend, names};
use super::page::Source;
use super::plot::{Plot, Size};
use super::scale::Kind;
use super::{drawing, text::esc};

/// The section; nothing for a sweep without any ternary weights.
pub(super) fn section(source: &Source, curves: &[Curve]) -> String {
    let with_panel = with_panel(curves);
    if with_panel.is_empty() {
        return String::new();
    }
    let figures = plots(source, curves).into_iter().zip(Quantity::HEALTH).map(|(mut plot, quantity)| {
        let (lo, hi) = (plot.x.scale.lo, plot.x.scale.hi);
        plot.attributes =
            format!(" data-hover data-metric=\"{}\" data-x0=\"{lo}\" data-x1=\"{hi}\"", esc(quantity.column()));
        drawing::figure(&plot)
    });
    format!(
        "<section id=\"health\"><h2>Ternary weights</h2>\
         <p class=\"sub\">What goes on inside the runs that train ternary weights: means over the finished runs with 95% \
         t intervals. Weights that change without end (churn) or hardly at all, accumulators at their rails or dead, and \
         scales that run away are signs of ill health.</p>{}<div class=\"grid3\">{}</div></section>",
        legend(source, &with_panel, false),
        figures.collect::<String>()
    )
}

/// A plot for each quantity; none where no run has ternary weights.
pub(in crate::report) fn plots(source: &Source, curves: &[Curve]) -> Vec<Plot> {
    let with_panel = with_panel(curves);
    if with_panel.is_empty() {
        return Vec::new();
    }
    let plot = |quantity: Quantity| {
        let Frame { x, y } = frames::frame(&with_panel, quantity, Along::Step, Kind::Linear, Range::All);
        let mut plot = Plot::new(format!("health-{}", quantity.column()), quantity.column(), x, y, Size::Small);
        plot.description = describe(source, &with_panel, quantity);
        plot.legend = names(source, &with_panel);
        draw(&mut plot, source, &with_panel, quantity);
        plot
    };
    Quantity::HEALTH.map(plot).into()
}

fn with_panel(curves: &[Curve]) -> Vec<Curve> {
    curves.iter().filter(|curve| curve.has_panel()).cloned().collect()
}
