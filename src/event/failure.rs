//! Why things failed, as far as a retry rule can use it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why an attempt, a worker or a die failed: what a retry rule can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The trainer refused the settings.
    BadSettings,
    /// The corpus could not be read, or is not the one that was planned.
    Corpus,
    /// The trainer broke a rule of its own (a caught panic).
    Bug,
    /// The host's memory ran out.
    OutOfMemory,
    /// The die's memory ran out.
    OutOfDeviceMemory,
    /// The driver lost the die.
    DeviceLost,
    /// A file of the results folder could not be written.
    Disk,
    /// There was no room for a file of the results folder.
    DiskFull,
    /// Something outside of the sweep told the worker's process to end.
    Preempted,
    /// The worker's process ended by itself.
    Crashed,
    /// The worker gave no sign of life, or its training stood still.
    Hung,
    /// The worker broke the protocol.
    Protocol,
    /// The worker's process could not be started, or left before it was ready.
    Start,
}

impl Cause {
    /// Whether the run is tried again: what another attempt would only repeat is not.
    pub const fn retried(self) -> bool {
        match self {
            Self::BadSettings | Self::Corpus | Self::Bug => false,
            Self::OutOfMemory
            | Self::OutOfDeviceMemory
            | Self::DeviceLost
            | Self::Disk
            | Self::DiskFull
            | Self::Preempted
            | Self::Crashed
            | Self::Hung
            | Self::Protocol
            | Self::Start => true,
        }
    }

    /// Whether the failure uses up one of the run's attempts: what is not the run's doing does not.
    pub const fn counts(self) -> bool {
        !matches!(self, Self::Disk | Self::DiskFull | Self::Preempted)
    }

    /// Whether the die is not used any more from the first such failure on.
    pub const fn ends_die(self) -> bool {
        matches!(self, Self::DeviceLost)
    }

    /// The cause of this name, as [`Display`](fmt::Display) writes it.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.to_string() == name)
    }

    const ALL: [Self; 13] = [
        Self::BadSettings,
        Self::Corpus,
        Self::Bug,
        Self::OutOfMemory,
        Self::OutOfDeviceMemory,
        Self::DeviceLost,
        Self::Disk,
        Self::DiskFull,
        Self::Preempted,
        Self::Crashed,
        Self::Hung,
        Self::Protocol,
        Self::Start,
    ];

    /// Whether the failure counts against the die that it happened on.
    pub const fn blames_die(self) -> bool {
        match self {
            Self::DeviceLost | Self::Crashed | Self::Hung | Self::Protocol | Self::Start => true,
            Self::BadSettings
            | Self::Corpus
            | Self::Bug
            | Self::OutOfMemory
            | Self::OutOfDeviceMemory
            | Self::Disk
            | Self::DiskFull
            | Self::Preempted => false,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadSettings => "bad settings",
            Self::Corpus => "corpus",
            Self::Bug => "bug",
            Self::OutOfMemory => "out of memory",
            Self::OutOfDeviceMemory => "out of device memory",
            Self::DeviceLost => "device lost",
            Self::Disk => "disk",
            Self::DiskFull => "disk full",
            Self::Preempted => "preempted",
            Self::Crashed => "crashed",
            Self::Hung => "hung",
            Self::Protocol => "protocol",
            Self::Start => "start",
        })
    }
}

/// A failure with its cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
#[error("{cause}: {message}")]
pub struct Failure {
    /// Its kind.
    pub cause: Cause,
    /// What happened: a lower-case fragment.
    pub message: String,
}

/// Bytes of a failure's message that are kept: a message must fit a line of the protocol.
const MESSAGE_BYTES: usize = 8 << 10;

impl Failure {
    /// A failure; a message beyond 8 KiB is cut.
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MESSAGE_BYTES {
            let end = (0..=MESSAGE_BYTES).rev().find(|&i| message.is_char_boundary(i));
            message.truncate(end.unwrap_or(0));
            message.push('…');
        }
        Self { cause, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_at_a_character() {
        let failure = Failure::new(Cause::Bug, "ü".repeat(MESSAGE_BYTES));
        assert!(failure.message.len() <= MESSAGE_BYTES + '…'.len_utf8());
        assert!(failure.message.ends_with("ü…"));
    }
}
