//! How many runs a worker trains at once.

use serde::{Deserialize, Serialize};

/// Most lanes that can be asked for.
pub const MOST_LANES: u32 = 4096;

/// Lanes of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LanesAsked {
    /// What measuring a few counts at the start says.
    #[default]
    Auto,
    /// So many.
    Count(u32),
}

/// A text is no number of lanes.
#[derive(Debug, thiserror::Error)]
#[error("write `auto` or a whole number from 1 to {MOST_LANES}")]
pub struct BadLanes;

impl std::str::FromStr for LanesAsked {
    type Err = BadLanes;

    fn from_str(text: &str) -> Result<Self, BadLanes> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => match text.parse() {
                Ok(count @ 1..=MOST_LANES) => Ok(Self::Count(count)),
                _ => Err(BadLanes),
            },
        }
    }
}

impl std::fmt::Display for LanesAsked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Count(count) => count.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_auto_or_a_number() {
        for (text, lanes) in
            [("auto", LanesAsked::Auto), ("1", LanesAsked::Count(1)), ("4096", LanesAsked::Count(4096))]
        {
            assert_eq!(text.parse::<LanesAsked>().unwrap(), lanes);
            assert_eq!(lanes.to_string(), text);
        }
        for bad in ["", "0", "4097", "-1", "Auto", "1.5", "99999999999"] {
            let error = bad.parse::<LanesAsked>().unwrap_err().to_string();
            assert_eq!(error, "write `auto` or a whole number from 1 to 4096", "{bad}");
        }
    }
}
