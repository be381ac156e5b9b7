//! Crosses the axes of an arm.

use super::request::{Arm, Assignment, Given, Request, Zip};
use super::{Fault, Span};
use crate::settings::{Setting, Value};

/// More runs than this is taken for a mistake.
const MOST_RUNS: u128 = 100_000;

/// An arm with what it takes from `[base]`.
pub(super) struct ArmAxes<'a> {
    /// The arm.
    pub arm: &'a Arm,
    /// Its settings: those of the base that it does not override, then its own; each key once.
    pub settings: Vec<&'a Assignment>,
    /// Indexes into `settings`: each group is walked side by side, the groups are crossed.
    groups: Vec<Vec<usize>>,
    /// [`Request::doubtful`].
    doubted: &'a [&'static str],
}

/// One value of each of an arm's settings.
#[derive(Clone)]
pub(super) struct Point<'a> {
    /// Number of the arm.
    pub arm: usize,
    /// In the order of [`ArmAxes::settings`].
    pub values: Vec<&'a Given>,
}

impl<'a> ArmAxes<'a> {
    /// Gathers an arm's settings and axes. Faults of its zips are added to `faults`.
    fn new(request: &'a Request, arm: &'a Arm, faults: &mut Vec<Fault>) -> Self {
        let overridden = |a: &&Assignment| arm.settings.iter().any(|own| own.setting.key == a.setting.key);
        let settings: Vec<_> = request.base.iter().filter(|a| !overridden(a)).chain(&arm.settings).collect();
        let mut axes = Self { arm, settings, groups: Vec::new(), doubted: &request.doubtful };
        axes.groups = axes.zipped(&request.zip, false, faults);
        let own = axes.zipped(&arm.zip, true, faults);
        for group in own {
            let taken = |i: &usize| axes.groups.iter().any(|g| g.contains(i));
            match group.iter().find(|i| taken(i)) {
                Some(&i) => {
                    let (key, span) = (axes.settings[i].setting.key, span_in(&arm.zip, axes.settings[i].setting));
                    faults.push(Fault::at(span, format!("`{key}` is zipped twice")).label("zipped at the top already"));
                }
                None => axes.groups.push(group),
            }
        }
        for i in 0..axes.settings.len() {
            if axes.settings[i].is_axis && !axes.groups.iter().any(|g| g.contains(&i)) {
                axes.groups.push(vec![i]);
            }
        }
        // The first mentioned axis is the slowest.
        axes.groups.sort_by_key(|group| group.iter().min().copied());
        axes
    }

    /// The groups of these zips. A zip at the top holds for those of its keys that are lists in this arm.
    fn zipped(&self, zips: &[Zip], own: bool, faults: &mut Vec<Fault>) -> Vec<Vec<usize>> {
        let mut groups = Vec::new();
        for zip in zips {
            let mut group = Vec::new();
            for (setting, span) in &zip.keys {
                match self.settings.iter().position(|a| a.is_axis && a.setting.key == setting.key) {
                    Some(i) => group.push((i, span)),
                    None if own && !self.doubted.contains(&setting.key) => {
                        faults.push(not_a_list(setting, span.clone(), &self.arm.name))
                    }
                    None => {}
                }
            }
            let length = |i: usize| self.settings[i].values.len();
            if let Some(&(first, _)) = group.first()
                && let Some(&(other, span)) = group.iter().find(|(i, _)| length(*i) != length(first))
            {
                let fault = unequal(self.settings[first], self.settings[other], span.clone(), self.arm);
                if !faults.contains(&fault) {
                    faults.push(fault);
                }
                continue;
            }
            if group.len() > 1 {
                groups.push(group.into_iter().map(|(i, _)| i).collect());
            }
        }
        groups
    }

    /// How many points the arm has.
    fn size(&self) -> u128 {
        self.groups.iter().map(|g| self.settings[g[0]].values.len() as u128).product()
    }

    /// The arm's points, the last axis fastest.
    fn points(&self, arm: usize) -> impl Iterator<Item = Point<'a>> {
        (0..self.size()).map(move |number| {
            let mut values: Vec<&Given> = self.settings.iter().map(|a| &a.values[0]).collect();
            let mut rest = number;
            for group in self.groups.iter().rev() {
                let length = self.settings[group[0]].values.len() as u128;
                let at = (rest % length) as usize;
                rest /= length;
                for &i in group {
                    values[i] = &self.settings[i].values[at];
                }
            }
            Point { arm, values }
        })
    }

    /// The settings that the point gives, in the form that `resolve` takes.
    pub(super) fn given(&self, point: &Point<'_>) -> Vec<(&'static Setting, Value)> {
        self.settings.iter().zip(&point.values).map(|(a, given)| (a.setting, given.value.clone())).collect()
    }

    /// The place of the text that gives the first of the keys that is given at all, axes before others.
    pub(super) fn place_of(&self, point: &Point<'_>, keys: &[&str]) -> Option<Span> {
        let given = |axis: bool| {
            keys.iter().find_map(|key| self.settings.iter().position(|a| a.is_axis == axis && a.setting.key == *key))
        };
        given(true).or_else(|| given(false)).map(|i| point.values[i].span.clone())
    }
}

fn span_in(zips: &[Zip], setting: &Setting) -> Span {
    let spans = zips.iter().flat_map(|zip| &zip.keys);
    spans.filter(|(s, _)| s.key == setting.key).map(|(_, span)| span.clone()).next().unwrap_or_default()
}

fn not_a_list(setting: &Setting, span: Span, arm: &str) -> Fault {
    let key = setting.key;
    Fault::at(span, format!("`{key}` cannot be zipped"))
        .label(format!("`{key}` is not a list in arm `{arm}`"))
        .help("a zip names settings that are given as lists of the same length")
}

fn unequal(first: &Assignment, other: &Assignment, span: Span, arm: &Arm) -> Fault {
    let (a, b) = (first.setting.key, other.setting.key);
    let own = |a: &Assignment| arm.settings.iter().any(|own| own.span == a.span);
    let place = if own(first) || own(other) { format!(" in arm `{}`", arm.name) } else { String::new() };
    Fault::at(span, format!("zipped lists have different lengths{place}"))
        .label(format!("`{a}` has {}, `{b}` has {}", values(first), values(other)))
        .help("a zip walks its lists side by side: give them the same number of values")
}

fn values(a: &Assignment) -> String {
    match a.values.len() {
        1 => "1 value".to_owned(),
        n => format!("{n} values"),
    }
}

/// The arms with their axes, and all their points in the order of the file.
///
/// # Errors
/// Zips that name no list or lists of different lengths; more runs than a sweep can have.
pub(super) fn expand(request: &Request) -> Result<(Vec<ArmAxes<'_>>, Vec<Point<'_>>), Vec<Fault>> {
    let mut faults = Vec::new();
    let arms: Vec<_> = request.arms.iter().map(|arm| ArmAxes::new(request, arm, &mut faults)).collect();
    for (setting, span) in request.zip.iter().flat_map(|zip| &zip.keys) {
        let is_axis = |axes: &ArmAxes<'_>| axes.settings.iter().any(|a| a.is_axis && a.setting.key == setting.key);
        if !arms.iter().any(is_axis) && !request.doubts(&[setting.key]) {
            let key = setting.key;
            faults.push(
                Fault::at(span.clone(), format!("`{key}` cannot be zipped"))
                    .label(format!("`{key}` is a list neither in [base] nor in an arm"))
                    .help("a zip names settings that are given as lists of the same length"),
            );
        }
    }
    let points = arms.iter().fold(0u128, |sum, axes| sum.saturating_add(axes.size()));
    let runs = points.saturating_mul(request.seeds.len() as u128);
    if runs > MOST_RUNS {
        let of = format!("{points} points x {} seeds", request.seeds.len());
        let fault = Fault::of_file(format!("the sweep has {runs} runs ({of}): more than {MOST_RUNS}"));
        faults.push(fault.help("shorten an axis, walk axes side by side with `zip`, or split the sweep"));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let points = arms.iter().enumerate().flat_map(|(i, axes)| axes.points(i)).collect();
    Ok((arms, points))
}
