//! Colours: a hue for each arm, from light to dark over its configurations.
//!
//! The hues are those of Okabe and Ito, which people of every kind of colour vision tell apart
//! (<https://jfly.uni-koeln.de/color/>), varied in lightness alone. Configurations of an arm also differ in their
//! dashes, so that no colour is needed to tell them apart.

use std::fmt::Write;

use crate::plan::Plan;

type Rgb = [u8; 3];

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
const DASHES: [&str; 4] = ["none", "7 3", "2 3", "9 3 2 3"];

/// The style rules of the classes `k<configuration>`.
pub(super) fn rules(plan: &Plan) -> String {
    let arms = super::super::verdict::arms_of(plan);
    let (mut light, mut dark) = (String::new(), String::new());
    for (arm_number, arm) in arms.iter().enumerate() {
        let of_arm: Vec<usize> =
            (0..plan.configurations.len()).filter(|c| plan.configurations[*c].arm == *arm).collect();
        for (i, configuration) in of_arm.iter().enumerate() {
            let share = if of_arm.len() == 1 { 0.4 } else { i as f64 / (of_arm.len() - 1) as f64 };
            let hue = arm_number % LIGHT.len();
            let dash = DASHES[i % DASHES.len()];
            let _ = write!(light, ".k{configuration}{{--k:{};--dash:{dash}}}", mix(LIGHT[hue], share));
            let _ = write!(dark, ".k{configuration}{{--k:{}}}", mix(DARK[hue], share));
        }
    }
    format!("{light}@media screen and (prefers-color-scheme:dark){{{dark}}}")
}

fn mix([from, to]: [Rgb; 2], share: f64) -> String {
    let part = |i: usize| (f64::from(from[i]) + share * (f64::from(to[i]) - f64::from(from[i]))).round() as u8;
    format!("#{:02x}{:02x}{:02x}", part(0), part(1), part(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_configuration_has_its_own_colour() {
        let plan = crate::testing::plan(&[("a", &["1", "2", "3"]), ("b", &[])], &[1]);
        let rules = rules(&plan);
        assert!(rules.starts_with(".k0{--k:#3f93d6;--dash:none}.k1{"), "{rules}");
        let light = rules.split("@media").next().unwrap();
        let colours: std::collections::BTreeSet<&str> = light.split("--k:").skip(1).map(|rule| &rule[..7]).collect();
        assert_eq!(colours.len(), 4);
        assert!(rules.contains("@media screen and (prefers-color-scheme:dark){.k0{--k:#3d8fd6}"));
    }
}
