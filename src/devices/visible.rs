//! `CUDA_VISIBLE_DEVICES` as a parent process set it: honoured in its order, never widened.

/// A die as a mask may name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// `GPU-…`.
    pub uuid: String,
    /// `MIG-…` of its instances.
    pub mig: Vec<String>,
}

/// A die, or an instance of one, that a mask lets through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Place among the known dies.
    pub die: usize,
    /// UUID of the instance, where the mask names one.
    pub mig: Option<String>,
}

/// What a mask lets through, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The dies.
    pub chosen: Vec<Chosen>,
    /// The first entry that names nothing. As in CUDA, it ends the list.
    pub stopped_at: Option<String>,
}

/// The dies that `mask` lets through, of those `known` in PCI order. No mask lets all through; an empty one, `-1` or
/// `NoDevFiles` none; else it lists indexes in PCI order, UUIDs of dies or of MIG instances, also abbreviated to a beginning that
/// only one has. A die named twice is taken once.
pub fn visible(mask: Option<&str>, known: &[Known]) -> Selection {
    let Some(mask) = mask else {
        let all = 0..known.len();
        return Selection { chosen: all.map(|die| Chosen { die, mig: None }).collect(), stopped_at: None };
    };
    let mut selection = Selection::default();
    if mask.trim().is_empty() {
        return selection;
    }
    for entry in mask.split(',').map(str::trim) {
        match find(entry, known) {
            Some(chosen) if selection.chosen.contains(&chosen) => {}
            Some(chosen) => selection.chosen.push(chosen),
            None => {
                let says_none = entry == "-1" || entry == "NoDevFiles";
                selection.stopped_at = (!says_none).then(|| entry.to_owned());
                break;
            }
        }
    }
    selection
}

fn find(entry: &str, known: &[Known]) -> Option<Chosen> {
    if !entry.is_empty() && entry.bytes().all(|b| b.is_ascii_digit()) {
        let die = entry.parse().ok().filter(|&die: &usize| die < known.len())?;
        return Some(Chosen { die, mig: None });
    }
    if !entry.starts_with("GPU-") && !entry.starts_with("MIG-") {
        return None;
    }
    let begins = |uuid: &str| uuid.get(..entry.len()).is_some_and(|start| start.eq_ignore_ascii_case(entry));
    let dies = known.iter().enumerate().filter(|(_, k)| begins(&k.uuid)).map(|(die, _)| Chosen { die, mig: None });
    let instances = known.iter().enumerate().flat_map(|(die, k)| {
        k.mig.iter().filter(|uuid| begins(uuid)).map(move |uuid| Chosen { die, mig: Some(uuid.clone()) })
    });
    let mut found = dies.chain(instances);
    // An abbreviation that fits two names neither.
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<Known> {
        let die = |uuid: &str, mig: &[&str]| Known {
            uuid: uuid.to_owned(),
            mig: mig.iter().map(|&m| m.to_owned()).collect(),
        };
        vec![
            die("GPU-aaaa1111-0000", &[]),
            die("GPU-aaaa2222-0000", &[]),
            die("GPU-bbbb3333-0000", &["MIG-cccc4444-0000", "MIG-cccc5555-0000"]),
        ]
    }

    /// Chosen dies as text, and where the mask stopped.
    fn under(mask: Option<&str>) -> (String, Option<String>) {
        let selection = visible(mask, &known());
        let names: Vec<String> = selection
            .chosen
            .iter()
            .map(|c| c.mig.clone().map_or(c.die.to_string(), |mig| format!("{}:{mig}", c.die)))
            .collect();
        (names.join(" "), selection.stopped_at)
    }

    fn clean(mask: &str) -> String {
        let (names, stopped) = under(Some(mask));
        assert_eq!(stopped, None, "{mask}");
        names
    }

    #[test]
    fn unset_is_all_and_empty_is_none() {
        assert_eq!(under(None), ("0 1 2".to_owned(), None));
        for none in ["", " ", "-1", "NoDevFiles"] {
            assert_eq!(clean(none), "", "{none:?}");
        }
    }

    #[test]
    fn indexes_keep_the_masks_order() {
        assert_eq!(clean("2,0"), "2 0");
        assert_eq!(clean(" 1 , 2 "), "1 2");
        assert_eq!(clean("1,-1,2"), "1", "-1 ends the list");
    }

    #[test]
    fn uuids_may_be_abbreviated_to_what_only_one_has() {
        assert_eq!(clean("GPU-bbbb3333-0000,GPU-aaaa1"), "2 0");
        assert_eq!(clean("GPU-B"), "2", "case does not matter");
        assert_eq!(under(Some("GPU-aaaa")), (String::new(), Some("GPU-aaaa".to_owned())), "two fit");
        assert_eq!(under(Some("GPU-")), (String::new(), Some("GPU-".to_owned())));
    }

    #[test]
    fn instances_are_named_by_their_own_uuids() {
        assert_eq!(clean("MIG-cccc5,MIG-cccc4444-0000"), "2:MIG-cccc5555-0000 2:MIG-cccc4444-0000");
        assert_eq!(under(Some("MIG-cccc")).1.as_deref(), Some("MIG-cccc"));
    }

    #[test]
    fn what_names_nothing_ends_the_list_and_is_said() {
        for (mask, names, stopped) in [
            ("0,9,1", "0", "9"),
            ("1,gpu0", "1", "gpu0"),
            ("0,GPU-ffff,2", "0", "GPU-ffff"),
            ("0,,2", "0", ""),
            ("all", "", "all"),
            ("1.5", "", "1.5"),
            ("99999999999999999999", "", "99999999999999999999"),
            ("GPU-aaaa1111-0000-longer", "", "GPU-aaaa1111-0000-longer"),
        ] {
            assert_eq!(under(Some(mask)), (names.to_owned(), Some(stopped.to_owned())), "{mask}");
        }
    }

    #[test]
    fn a_die_named_twice_is_taken_once() {
        assert_eq!(clean("0,GPU-aaaa1111,0,1"), "0 1");
    }

    #[test]
    fn no_die_makes_every_name_unknown() {
        let selection = visible(Some("0"), &[]);
        assert!(selection.chosen.is_empty());
        assert_eq!(selection.stopped_at.as_deref(), Some("0"));
        assert_eq!(visible(None, &[]), Selection::default());
    }
}
