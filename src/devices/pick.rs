//! Which GPU dies a sweep uses.

use super::{Devices, GpuDie, Known, visible};

/// What the user asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pick<'a> {
    /// `CUDA_VISIBLE_DEVICES`.
    pub mask: Option<&'a str>,
    /// Indexes or UUIDs, with commas; absent: all that the mask lets through.
    pub listed: Option<&'a str>,
    /// Dies that other processes use are used all the same.
    pub share: bool,
}

/// Dies to use, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picked {
    /// The dies, each with the UUID that selects it: its own, or that of an instance.
    pub dies: Vec<(GpuDie, String)>,
    /// Dies that are left out, with the reason, in words.
    pub skipped: Vec<String>,
}

/// No die can be used as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PickError {
    /// There is no GPU.
    #[error("no CUDA GPU: {0}")]
    NoGpu(String),
    /// The mask lets none through.
    #[error("CUDA_VISIBLE_DEVICES lets no die through")]
    Masked,
    /// The list names what there is not, or what is hidden.
    #[error("--dies: `{name}` {why}")]
    Listed {
        /// Entry.
        name: String,
        /// What is the matter with it.
        why: &'static str,
    },
    /// There are dies, and none can be used.
    #[error("no die can be used: {}", .0.join("; "))]
    Unusable(Vec<String>),
}

/// Picks dies: those that the mask lets through, in its order; of those the ones listed, in the list's order; of those the usable.
///
/// # Errors
/// None is left, or the list is wrong.
pub fn pick(devices: &Devices, pick: Pick<'_>) -> Result<Picked, PickError> {
    if devices.dies.is_empty() {
        return Err(PickError::NoGpu(devices.no_gpu.clone().unwrap_or_default()));
    }
    let known: Vec<Known> =
        devices.dies.iter().map(|die| Known { uuid: die.uuid.clone(), mig: die.mig.clone() }).collect();
    let seen = visible(pick.mask, &known).chosen;
    if seen.is_empty() {
        return Err(PickError::Masked);
    }
    let chosen = match pick.listed {
        None => seen,
        Some(list) => {
            let selection = visible(Some(list), &known);
            if let Some(name) = selection.stopped_at {
                return Err(PickError::Listed { name, why: "names no die" });
            }
            if selection.chosen.is_empty() {
                return Err(PickError::Listed { name: list.to_owned(), why: "names no die" });
            }
            // An instance may be listed where the mask lets its whole die through.
            let hidden = selection
                .chosen
                .iter()
                .find(|c| !seen.iter().any(|s| s.die == c.die && (s.mig.is_none() || s.mig == c.mig)));
            if let Some(hidden) = hidden {
                let name = hidden.mig.clone().unwrap_or_else(|| devices.dies[hidden.die].index.to_string());
                return Err(PickError::Listed { name, why: "is hidden by CUDA_VISIBLE_DEVICES" });
            }
            selection.chosen
        }
    };
    let mut picked = Picked::default();
    for chosen in chosen {
        let die = &devices.dies[chosen.die];
        match die.unusable.as_ref().filter(|_| !(pick.share && is_only_busy(die))) {
            Some(why) => picked.skipped.push(format!("die {} ({}) is {why}", die.index, die.uuid)),
            None => picked.dies.push((die.clone(), chosen.mig.unwrap_or_else(|| die.uuid.clone()))),
        }
    }
    if picked.dies.is_empty() { Err(PickError::Unusable(picked.skipped)) } else { Ok(picked) }
}

/// Whether nothing but other processes stands against a die.
fn is_only_busy(die: &GpuDie) -> bool {
    die.unusable.as_ref().is_some_and(|why| why.starts_with(super::IN_USE))
}

#[cfg(test)]
mod tests {
    use super::super::tests::k80;
    use super::super::{CpuDie, GpuProcess};
    use super::*;

    /// Four dies, the third in use, the fourth with two instances.
    fn devices(mask: Option<&str>) -> Devices {
        let mut dies: Vec<GpuDie> = (0..4).map(|i| k80(i, i / 2)).collect();
        dies[2].processes = vec![GpuProcess { pid: 12, name: Some("python3".into()), memory: None }];
        dies[3].mig = vec!["MIG-aaaa".into(), "MIG-bbbb".into()];
        let cpu = CpuDie { model: None, cores: 2, numa_nodes: 1 };
        let mut devices = Devices { driver: None, no_gpu: None, mask_stops_at: None, dies, cpu };
        devices.judge(mask, 77);
        devices
    }

    /// Indexes of the dies that are picked (an instance's UUID in its die's place), or the error's text.
    fn picked(mask: Option<&str>, listed: Option<&str>, share: bool) -> String {
        match pick(&devices(mask), Pick { mask, listed, share }) {
            Ok(picked) => {
                let name = |(die, uuid): &(GpuDie, String)| match uuid.starts_with("MIG") {
                    true => uuid.clone(),
                    false => die.index.to_string(),
                };
                picked.dies.iter().map(name).collect::<Vec<_>>().join(" ")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn dies_are_picked_under_the_mask_and_in_the_order_asked() {
        for (mask, listed, share, expected) in [
            (None, None, false, "0 1 3"),
            (None, None, true, "0 1 2 3"),
            (Some("3,0"), None, false, "3 0"),
            (Some("GPU-00000001"), None, false, "1"),
            (Some("MIG-bbbb,0"), None, false, "MIG-bbbb 0"),
            (None, Some("3,1"), false, "3 1"),
            (None, Some("GPU-00000003,0"), false, "3 0"),
            (None, Some("MIG-aaaa"), false, "MIG-aaaa"),
            (Some("1,0"), Some("0,1"), false, "0 1"),
            (Some(""), None, false, "CUDA_VISIBLE_DEVICES lets no die through"),
            (Some("-1"), None, true, "CUDA_VISIBLE_DEVICES lets no die through"),
            (Some("NoDevFiles"), Some("0"), true, "CUDA_VISIBLE_DEVICES lets no die through"),
            (Some("0"), Some("1"), false, "--dies: `1` is hidden by CUDA_VISIBLE_DEVICES"),
            (Some("0"), Some("1"), true, "--dies: `1` is hidden by CUDA_VISIBLE_DEVICES"),
            (Some("MIG-aaaa"), Some("MIG-bbbb"), false, "--dies: `MIG-bbbb` is hidden by CUDA_VISIBLE_DEVICES"),
            (None, Some("0,9"), false, "--dies: `9` names no die"),
            (None, Some("GPU-0"), false, "--dies: `GPU-0` names no die"),
            (None, Some(""), false, "--dies: `` names no die"),
            (None, Some("-1"), false, "--dies: `-1` names no die"),
        ] {
            assert_eq!(picked(mask, listed, share), expected, "mask {mask:?}, listed {listed:?}, share {share}");
        }
    }

    #[test]
    fn what_is_left_out_is_named() {
        let why = "die 2 (GPU-00000002-1111-2222-3333-444444444444) is in use by 12 (python3)";
        let all = pick(&devices(None), Pick::default()).unwrap();
        assert_eq!(all.skipped, [why]);
        assert_eq!(picked(None, Some("2"), false), format!("no die can be used: {why}"));
        assert_eq!(picked(None, Some("2"), true), "2");
    }

    #[test]
    fn a_machine_without_a_gpu_says_why() {
        let cpu = CpuDie { model: None, cores: 2, numa_nodes: 1 };
        let why = Some("no driver is loaded".to_owned());
        let bare = Devices { driver: None, no_gpu: why, mask_stops_at: None, dies: vec![], cpu };
        let error = pick(&bare, Pick::default()).unwrap_err();
        assert_eq!(error.to_string(), "no CUDA GPU: no driver is loaded");
    }
}
