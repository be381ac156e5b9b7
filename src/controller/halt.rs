//! How a controller ends, and with which exit code.

use crate::event::{Failure, Halt};

/// How a controller ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Every run has a result.
    Complete,
    /// Every run was attempted, and some failed for good.
    SomeFailed,
    /// What is left belongs to other controllers.
    Elsewhere,
    /// The sweep stopped before its end.
    Halted(Halt),
}

impl Conclusion {
    /// Exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::SomeFailed => 1,
            Self::Elsewhere => 75,
            Self::Halted(Halt::Signal { signal }) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            Self::Halted(Halt::TimeLimit { .. }) => 75,
            Self::Halted(Halt::FailedAlike { .. } | Halt::FailFast { .. } | Halt::Disk { .. } | Halt::NoDies) => 1,
        }
    }
}

/// What a controller did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How it ended.
    pub conclusion: Conclusion,
    /// Runs with a result, earlier ones included.
    pub finished: usize,
    /// Runs that failed for good, as indexes into the plan, with the last failure of each.
    pub failed: Vec<(usize, Failure)>,
    /// Runs without a result that were not given up.
    pub left: usize,
    /// Runs that were stopped early.
    pub stopped: usize,
    /// Runs whose result this controller published.
    pub here: usize,
    /// Runs whose result other controllers published meanwhile.
    pub elsewhere: usize,
    /// A second signal asked to end at once.
    pub at_once: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Cause;

    #[test]
    fn exit_codes_are_those_of_the_contract() {
        let halted = |halt| Conclusion::Halted(halt).exit_code();
        assert_eq!(Conclusion::Complete.exit_code(), 0);
        assert_eq!(Conclusion::SomeFailed.exit_code(), 1);
        assert_eq!(Conclusion::Elsewhere.exit_code(), 75);
        assert_eq!(halted(Halt::Signal { signal: 2 }), 130);
        assert_eq!(halted(Halt::Signal { signal: 15 }), 143);
        assert_eq!(halted(Halt::NoDies), 1);
        assert_eq!(halted(Halt::TimeLimit { seconds: 60 }), 75);
        let failure = Failure::new(Cause::Bug, "");
        assert_eq!(halted(Halt::FailFast { label: String::new(), failure }), 1);
        assert_eq!(halted(Halt::Disk { message: String::new() }), 1);
        assert_eq!(halted(Halt::FailedAlike { failure: Failure::new(Cause::Bug, "") }), 1);
    }
}
