//! Checks of settings against each other, and of what this program can do.

use super::{Precision, Settings};

/// Settings that do not go together, or that ask for what is not built yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Conflict {
    /// The settings at fault, the likeliest first.
    pub keys: &'static [&'static str],
    /// What is wrong.
    pub message: String,
    /// What is allowed.
    pub allowed: String,
}

/// Every conflict in the settings.
pub fn conflicts(s: &Settings) -> Vec<Conflict> {
    let mut found = Vec::new();
    let mut refuse = |keys, message, allowed: &str| {
        found.push(Conflict { keys, message, allowed: allowed.to_owned() });
    };
    if s.eps > 0.0 && s.eps as f32 == 0.0 {
        refuse(&["eps"], format!("`eps` = {} is zero in 32 bits", s.eps), "at least 1e-45");
    }
    if s.n_head * s.head_size != s.c {
        let (n, size, c) = (s.n_head, s.head_size, s.c);
        refuse(
            &["C", "head_size", "n_head"],
            format!("the heads do not fit: n_head * head_size = {n} * {size} = {}, but C = {c}", n * size),
            "`n_head * head_size` must equal `C`",
        );
    }
    if s.n_rwkv + s.n_attn == 0 {
        refuse(&["n_rwkv", "n_attn"], "a model without blocks".to_owned(), "`n_rwkv + n_attn` must be at least 1");
    }
    if s.theta > s.q_clamp {
        refuse(
            &["theta", "q_clamp"],
            format!("no weight could leave zero: theta = {}, but q_clamp = {}", s.theta, s.q_clamp),
            "`theta` must be at most `q_clamp`",
        );
    }
    if s.precision != Precision::Fp32 {
        refuse(&["precision"], "this precision is not built yet".to_owned(), "only \"fp32\" can be trained so far");
    }
    if s.dies_per_run > 1 {
        refuse(
            &["dies_per_run"],
            "runs over several dies are not built yet".to_owned(),
            "only 1 can be trained so far",
        );
    }
    if s.recompute > 0 {
        refuse(&["recompute"], "recomputing activations is not built yet".to_owned(), "only 0 can be trained so far");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_have_no_conflict() {
        assert_eq!(conflicts(&Settings::default()), []);
    }

    #[test]
    fn each_conflict_names_its_settings() {
        let base = Settings::default;
        let cases = [
            (Settings { n_head: 3, ..base() }, "C"),
            (Settings { n_rwkv: 0, n_attn: 0, ..base() }, "n_rwkv"),
            (Settings { theta: 8, ..base() }, "theta"),
            (Settings { precision: Precision::Bf16, ..base() }, "precision"),
            (Settings { dies_per_run: 2, ..base() }, "dies_per_run"),
            (Settings { recompute: 1, ..base() }, "recompute"),
        ];
        for (settings, key) in cases {
            let found = conflicts(&settings);
            assert_eq!(found.len(), 1, "{key}");
            assert_eq!(found[0].keys[0], key);
        }
    }
}
