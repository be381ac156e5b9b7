//! Colours: a hue for each arm, from light to dark over its configurations.
//!
//! The hues are those of Okabe and Ito, which people of every kind of colour vision tell apart
//! (<https://jfly.uni-koeln.de/color/>), varied in lightness alone. Configurations of an arm also differ in their
//! dashes, so that no colour is needed to tell them apart.

use std::fmt::Write;

use crate::plan::Plan;

/// Red, green and blue.
pub(in crate::report) type Rgb = [u8; 3];

/// On white: from the first configuration of an arm to its last.
const LIGHT: [[Rgb; 2]; 6] = [
    [[0x3f, 0x93, 0xd6], [0x05, 0x3f, 0x7c]],
    [[0xe0, 0x7b, 0x2a], [0x93, 0x33, 0x00]],
    [[0x22, 0xa0, 0x78], [0x00, 0x52, 0x3b]],
    [[0xc8, 0x79, 0xae], [0x74, 0x1f, 0x5e]],
    [[0xa8, 0x90, 0x18], [0x5e, 0x4e, 0x00]],
    [[0x85, 0x8c, 0x93], [0x33, 0x39, 0x40]],
];
/// On black.
const DARK: [[Rgb; 2]; 6] = [
    [[0x3d, 0x8f, 0xd6], [0xb4, 0xdb, 0xff]],
    [[0xe0, 0x80, 0x35], [0xff, 0xd6, 0xad]],
    [[0x27, 0xab, 0x7f], [0xa6, 0xf2, 0xd6]],
    [[0xc9, 0x6f, 0xad], [0xf8, 0xcd, 0xec]],
    [[0xb0, 0x9b, 0x2a], [0xf2, 0xe6, 0x9b]],
    [[0x8b, 0x93, 0x9a], [0xdc, 0xe0, 0xe4]],
];
/// Dashes of an arm's configurations, in pixels.
const DASHES: [&[f32]; 4] = [&[], &[7.0, 3.0], &[2.0, 3.0], &[9.0, 3.0, 2.0, 3.0]];
/// What is of no configuration.
const NEUTRAL: Rgb = [0x5a, 0x63, 0x6d];

/// The looks of a plan's configurations.
pub(in crate::report) struct Looks(Vec<Look>);

/// How a configuration looks.
struct Look {
    hue: usize,
    /// Place between the hue's two ends.
    share: f64,
    /// Place among [`DASHES`].
    dash: usize,
}

impl Looks {
    /// Gives each arm a hue, and each of its configurations a lightness and dashes.
    pub(in crate::report) fn of(plan: &Plan) -> Self {
        let arms = super::super::verdict::arms_of(plan);
        let place = |arm: &str| arms.iter().position(|a| a == arm).unwrap_or(0);
        let places: Vec<usize> = plan.configurations.iter().map(|c| place(&c.arm)).collect();
        let mut sizes = vec![0_usize; arms.len()];
        places.iter().for_each(|arm| sizes[*arm] += 1);
        let mut seen = vec![0_usize; arms.len()];
        let look = |arm: usize| {
            let i = seen[arm];
            seen[arm] += 1;
            let share = if sizes[arm] == 1 { 0.4 } else { i as f64 / (sizes[arm] - 1) as f64 };
            Look { hue: arm % LIGHT.len(), share, dash: i % DASHES.len() }
        };
        Self(places.into_iter().map(look).collect())
    }

    /// A configuration's colour on white.
    pub(in crate::report) fn colour(&self, configuration: usize) -> Rgb {
        self.0.get(configuration).map_or(NEUTRAL, |look| mix(LIGHT[look.hue], look.share))
    }

    /// A configuration's dashes: lengths of strokes and gaps, none for a whole line.
    pub(in crate::report) fn dashes(&self, configuration: usize) -> &'static [f32] {
        self.0.get(configuration).map_or(&[], |look| DASHES[look.dash])
    }

    /// The style rules of the classes `k<configuration>` for those that `used` names.
    pub(in crate::report) fn rules(&self, used: &[usize]) -> String {
        let (mut light, mut dark) = (String::new(), String::new());
        for configuration in used {
            let Some(look) = self.0.get(*configuration) else { continue };
            let dash = match DASHES[look.dash] {
                [] => "none".to_owned(),
                lengths => lengths.iter().map(f32::to_string).collect::<Vec<_>>().join(" "),
            };
            let (on_white, on_black) = (mix(LIGHT[look.hue], look.share), mix(DARK[look.hue], look.share));
            let _ = write!(light, ".k{configuration}{{--k:{};--dash:{dash}}}", hex(on_white));
            let _ = write!(dark, ".k{configuration}{{--k:{}}}", hex(on_black));
        }
        format!("{light}@media screen and (prefers-color-scheme:dark){{{dark}}}")
    }
}

fn mix([from, to]: [Rgb; 2], share: f64) -> Rgb {
    let part = |i: usize| (f64::from(from[i]) + share * (f64::from(to[i]) - f64::from(from[i]))).round() as u8;
    [part(0), part(1), part(2)]
}

/// A colour as CSS and SVG write it.
pub(in crate::report) fn hex([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_configuration_has_its_own_colour() {
        let plan = crate::testing::plan(&[("a", &["1", "2", "3"]), ("b", &[])], &[1]);
        let rules = Looks::of(&plan).rules(&[0, 1, 2, 3]);
        assert!(rules.starts_with(".k0{--k:#3f93d6;--dash:none}.k1{"), "{rules}");
        let light = rules.split("@media").next().unwrap();
        let colours: std::collections::BTreeSet<&str> = light.split("--k:").skip(1).map(|rule| &rule[..7]).collect();
        assert_eq!(colours.len(), 4);
        assert!(rules.contains("@media screen and (prefers-color-scheme:dark){.k0{--k:#3d8fd6}"));
    }
}
