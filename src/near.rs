//! What a mistyped name may have been meant as.

/// The known word that the name is a slip of, if any.
pub fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let slips = |word: &&&str| strsim::damerau_levenshtein(&name.to_lowercase(), &word.to_lowercase());
    let best = known.iter().min_by_key(slips)?;
    let allowed = (name.chars().count().max(best.chars().count()) / 3).max(1);
    (slips(&best) <= allowed && !name.is_empty()).then_some(*best)
}

/// The end of a message on an unknown name: what may have been meant, or else all that is known (the first few of many).
pub fn hint(name: &str, known: &[&str]) -> String {
    const LISTED: usize = 12;
    match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "there is none".to_owned(),
        None if known.len() > LISTED => {
            format!("there are {} and {} more", known[..LISTED].join(", "), known.len() - LISTED)
        }
        None => format!("there is {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_the_near_one_or_all() {
        assert_eq!(hint("val_bbp", &["seed", "val_bpb"]), "did you mean `val_bpb`?");
        assert_eq!(hint("loss", &["seed", "val_bpb"]), "there is seed, val_bpb");
        assert_eq!(hint("loss", &[]), "there is none");
        let many: Vec<String> = (0..30).map(|i| format!("column{i}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(hint("x", &many).ends_with("column11 and 18 more"));
    }
}
