//! What learning curves are drawn in, and what the script needs to draw them anew.
//!
//! The script places values and nothing else: ranges, marks and texts of every choice are worked out here.

use serde_json::{Value, json};

use super::curves::{Curve, Quantity};
use super::drawing::x_texts;
use super::page::Source;
use super::plot::Axis;
use super::scale::{Kind, SIDE, Scale};
use super::text::{json_for_script, short_json};
use crate::report::wording::label;

/// What a curve runs along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Along {
    /// Training steps.
    Step,
    /// Tokens that were trained on.
    Tokens,
    /// Seconds that a run has trained and evaluated.
    Seconds,
}

impl Along {
    /// Every one.
    pub(super) const ALL: [Self; 3] = [Self::Step, Self::Tokens, Self::Seconds];

    /// Its name in the page.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Tokens => "tokens",
            Self::Seconds => "seconds",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Step => "training step",
            Self::Tokens => "tokens trained on",
            Self::Seconds => "seconds of training and evaluation, mean over seeds",
        }
    }

    /// Where the values of a curve and of its runs that diverged are.
    fn places(self, curve: &Curve) -> (Vec<f64>, Vec<Vec<f64>>) {
        let steps = || curve.points(Quantity::ValBpb).iter().map(|p| p.step);
        let traces = &curve.diverged;
        // A step's row is logged after its update.
        let tokens = |step: f64| (step + 1.0) * curve.tokens as f64;
        match self {
            Self::Step => (steps().collect(), traces.iter().map(|t| t.steps().collect()).collect()),
            Self::Tokens => {
                (steps().map(tokens).collect(), traces.iter().map(|t| t.steps().map(tokens).collect()).collect())
            }
            Self::Seconds => (curve.seconds.clone(), traces.iter().map(|t| t.seconds().collect()).collect()),
        }
    }
}

/// How much of training is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// All of it.
    All,
    /// The second half, in which configurations are told apart.
    Half,
}

impl Range {
    /// Its name in the page.
    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Half => "half",
        }
    }
}

/// The axes of a plot of curves.
pub(super) struct Frame {
    /// Horizontal.
    pub(super) x: Axis,
    /// Vertical.
    pub(super) y: Axis,
}

/// The axes in which a quantity of all curves has its place.
pub(super) fn frame(curves: &[Curve], quantity: Quantity, along: Along, kind: Kind, range: Range) -> Frame {
    let places: Vec<(Vec<f64>, Vec<Vec<f64>>)> = curves.iter().map(|curve| along.places(curve)).collect();
    let everywhere = || places.iter().flat_map(|(own, traces)| own.iter().chain(traces.iter().flatten())).copied();
    let last = everywhere().filter(|x| x.is_finite()).fold(0.0, f64::max);
    let hi = match along {
        Along::Step => last.max(2.0),
        _ if last > 0.0 => last,
        _ => 1.0,
    };
    let first = everywhere().filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min);
    let lo = match (range, kind) {
        (Range::Half, _) => hi / 2.0,
        (Range::All, Kind::Linear) => 0.0,
        (Range::All, Kind::Log) if first < hi => first,
        (Range::All, Kind::Log) => hi / 10.0,
    };
    let shown = |x: &f64| range == Range::All || *x >= lo;
    let mut means = Vec::new();
    for (curve, (own, _)) in curves.iter().zip(&places) {
        let points = curve.points(quantity).iter().zip(own).filter(|(_, x)| shown(x));
        means.extend(points.flat_map(|(p, _)| [p.mean, p.lo, p.hi]).filter(|y| y.is_finite()));
    }
    // A run on its way to infinity must not flatten the others: its trace may leave the plot.
    if means.is_empty() {
        let traces = curves.iter().flat_map(|c| &c.diverged);
        means.extend(traces.flat_map(|trace| trace.points(quantity)).map(|(_, y)| y));
    }
    let logarithmic = |text: &str| if kind == Kind::Log { format!("{text} (logarithmic)") } else { text.to_owned() };
    let x_title = match (along, kind) {
        (Along::Step, Kind::Log) => format!("{} (logarithmic; step 0 left out)", along.title()),
        _ => logarithmic(along.title()),
    };
    Frame {
        x: Axis::new(x_title, Scale { kind, lo, hi }, 6),
        y: Axis::new(logarithmic(quantity.words()), Scale::over(kind, means, 0.04), 6),
    }
}

/// The curves' values and the frames of every choice, for the script.
pub(super) fn data(source: &Source, curves: &[Curve]) -> String {
    let mut frames = serde_json::Map::new();
    for quantity in Quantity::LEARNING {
        for along in Along::ALL {
            for kind in [Kind::Linear, Kind::Log] {
                for range in [Range::All, Range::Half] {
                    let key = [quantity.column(), along.name(), kind.name(), range.name()].join(" ");
                    frames.insert(key, frame_json(&frame(curves, quantity, along, kind, range)));
                }
            }
        }
    }
    let curves: Vec<String> = curves.iter().map(|curve| curve_json(source, curve)).collect();
    let json = format!("{{\"frames\":{},\"curves\":[{}]}}", Value::Object(frames), curves.join(","));
    format!("<script type=\"application/json\" id=\"curves\">{}</script>", json_for_script(&json))
}

fn frame_json(frame: &Frame) -> Value {
    let tenth = |x: f64| (x * 10.0).round() / 100.0;
    let x_texts: Vec<Value> =
        x_texts(&frame.x).into_iter().map(|(x, text, crowded)| json!([tenth(x), text, u8::from(crowded)])).collect();
    let y_place = |y: f64| tenth(SIDE - frame.y.scale.at(y));
    let y_texts: Vec<Value> = frame.y.ticks.iter().map(|(y, text)| json!([y_place(*y), text])).collect();
    let (x, y) = (frame.x.scale, frame.y.scale);
    json!({
        "x": [x.lo, x.hi], "y": [y.lo, y.hi], "xt": x_texts, "yt": y_texts,
        "xtitle": frame.x.title, "ytitle": frame.y.title,
    })
}

fn curve_json(source: &Source, curve: &Curve) -> String {
    let configuration = curve.configuration;
    let name = Value::from(label(&source.plan.configurations[configuration]));
    let places = |number: Option<usize>| {
        let of = |along: Along| {
            let (own, traces) = along.places(curve);
            number.map_or(own, |trace| traces[trace].clone())
        };
        // Steps and tokens are whole, and exact.
        let whole = |along| of(along).iter().map(|x| (*x as u64).to_string()).collect::<Vec<_>>().join(",");
        let seconds = list(of(Along::Seconds).into_iter());
        format!("{{\"step\":[{}],\"tokens\":[{}],\"seconds\":{seconds}}}", whole(Along::Step), whole(Along::Tokens))
    };
    let traces = curve.diverged.iter().enumerate().map(|(i, trace)| {
        let values = Quantity::LEARNING.map(|q| format!("\"{}\":{}", q.column(), list(trace.points(q).map(|p| p.1))));
        format!("{{\"seed\":{},\"x\":{},\"q\":{{{}}}}}", trace.seed, places(Some(i)), values.join(","))
    });
    format!(
        "{{\"c\":{configuration},\"name\":{name},\"n\":{},\"best\":{},\"x\":{},\"q\":{{{}}},\"diverged\":[{}]}}",
        curve.runs,
        source.is_best(configuration),
        places(None),
        quantities(curve),
        traces.collect::<Vec<_>>().join(",")
    )
}

/// The means of each quantity, and half of their intervals for those that are drawn anew.
fn quantities(curve: &Curve) -> String {
    let logged = Quantity::LEARNING.into_iter().chain(Quantity::HEALTH).filter(|q| !curve.points(*q).is_empty());
    let values = logged.map(|quantity| {
        let points = curve.points(quantity);
        let half = match Quantity::LEARNING.contains(&quantity) && curve.runs > 1 {
            true => format!(",{}", list(points.iter().map(|p| (p.hi - p.lo) / 2.0))),
            false => String::new(),
        };
        format!("\"{}\":[{}{half}]", quantity.column(), list(points.iter().map(|p| p.mean)))
    });
    values.collect::<Vec<_>>().join(",")
}

fn list(values: impl Iterator<Item = f64>) -> String {
    let values: Vec<String> = values.map(short_json).collect();
    format!("[{}]", values.join(","))
}
