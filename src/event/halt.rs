//! Why a sweep stops before its end.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Failure;
use crate::duration;

/// Why a sweep stops before its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "why")]
pub enum Halt {
    /// A signal asked for it.
    Signal {
        /// Its number.
        signal: i32,
    },
    /// The first three runs failed with one and the same message.
    FailedAlike {
        /// The failure.
        failure: Failure,
    },
    /// A results file could not be written.
    Disk {
        /// What could not be written, and why.
        message: String,
    },
    /// No die is left.
    NoDies,
    /// The time that the sweep was given is nearly over.
    TimeLimit {
        /// Seconds that it was given.
        seconds: u64,
    },
    /// A run failed for good, and the sweep was to stop at the first that does.
    FailFast {
        /// The run in words.
        label: String,
        /// Its last failure.
        failure: Failure,
    },
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal { signal } => write!(f, "{}", signal_name(*signal)),
            Self::FailedAlike { failure } => {
                write!(f, "the first three runs failed alike: {failure}")
            }
            Self::Disk { message } => f.write_str(message),
            Self::NoDies => f.write_str("every die was set aside"),
            Self::TimeLimit { seconds } => write!(f, "the time limit of {} is near", duration::text(*seconds)),
            Self::FailFast { label, failure } => write!(f, "{label} failed for good: {failure}"),
        }
    }
}

/// `SIGINT` for 2, and so on; `signal 40` for one without a common name.
pub fn signal_name(signal: i32) -> String {
    signal_hook::low_level::signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}
