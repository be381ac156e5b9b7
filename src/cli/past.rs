//! What the runs of a sweep had come to before, and what that means for this call.

use std::collections::HashMap;

use super::run::runs;
use crate::event::{Cause, Failure, Past};
use crate::plan::Plan;
use crate::run::RunId;
use crate::store::{AttemptFailure, Loaded, RunState};

/// The last attempts of the runs that had failed.
pub(super) fn attempts(plan: &Plan, loaded: &Loaded) -> HashMap<RunId, u32> {
    let failed = plan.runs.iter().zip(&loaded.states).filter_map(|(run, state)| match state {
        RunState::Failed { attempt, .. } => Some((run.id, *attempt)),
        RunState::Ended(_) | RunState::Unfinished => None,
    });
    failed.collect()
}

/// What is to be done about each run. A run that was given up stays so unless failed ones are tried again.
pub(super) fn of(loaded: &Loaded, retry_failed: bool) -> Vec<Past> {
    let one = |state: &RunState| match state {
        RunState::Ended(_) => Past::Finished,
        RunState::Failed { failure, .. } if failure.for_good && !retry_failed => Past::Failed(recorded(failure)),
        RunState::Failed { .. } | RunState::Unfinished => Past::Open,
    };
    loaded.states.iter().map(one).collect()
}

/// The failure as it was recorded; a cause that another version knew is shown with the message.
pub(super) fn recorded(failure: &AttemptFailure) -> Failure {
    match Cause::named(&failure.cause) {
        Some(cause) => Failure::new(cause, failure.message.clone()),
        None => Failure::new(Cause::Bug, format!("{}: {}", failure.cause, failure.message)),
    }
}

/// The runs that stay given up.
pub(super) fn failed(past: &[Past]) -> Vec<(usize, Failure)> {
    let failed = past.iter().enumerate().filter_map(|(run, past)| match past {
        Past::Failed(failure) => Some((run, failure.clone())),
        Past::Open | Past::Finished => None,
    });
    failed.collect()
}

/// Says what becomes of runs that were given up earlier.
pub(super) fn say(past: &[Past], loaded: &Loaded, retry_failed: bool) {
    if let Some(text) = text(past, loaded, retry_failed) {
        say!("{text}");
    }
}

fn text(past: &[Past], loaded: &Loaded, retry_failed: bool) -> Option<String> {
    if retry_failed {
        let given_up = |state: &&RunState| matches!(state, RunState::Failed { failure, .. } if failure.for_good);
        let again = loaded.states.iter().filter(given_up).count();
        return Some(match again {
            0 => "no run is given up: there is nothing to try again".to_owned(),
            _ => format!("{} given up earlier: trying again", runs(again)),
        });
    }
    let failed = failed(past);
    let (_, last) = failed.last()?;
    Some(format!("{} given up earlier, the last one because of {last}; --retry-failed tries again", runs(failed.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded() -> Loaded {
        let failure = |for_good| AttemptFailure {
            cause: "bad settings".to_owned(),
            message: "no such precision".to_owned(),
            ended: String::new(),
            for_good,
        };
        let failed = |for_good| RunState::Failed { attempt: 1, failure: failure(for_good) };
        Loaded { states: vec![failed(true), RunState::Unfinished, failed(false)], ..Loaded::default() }
    }

    #[test]
    fn a_run_that_was_given_up_stays_so_until_it_is_asked_for() {
        let failure = Failure::new(Cause::BadSettings, "no such precision");
        assert_eq!(of(&loaded(), false), [Past::Failed(failure), Past::Open, Past::Open]);
        assert_eq!(of(&loaded(), true), [Past::Open, Past::Open, Past::Open]);
    }

    #[test]
    fn what_becomes_of_them_is_said() {
        let say = |loaded: &Loaded, retry| text(&of(loaded, retry), loaded, retry);
        assert_eq!(say(&loaded(), true).as_deref(), Some("1 run given up earlier: trying again"));
        assert_eq!(
            say(&loaded(), false).as_deref(),
            Some(
                "1 run given up earlier, the last one because of bad settings: no such precision; --retry-failed tries again"
            )
        );
        assert_eq!(say(&Loaded::default(), false), None);
        let nothing = "no run is given up: there is nothing to try again";
        assert_eq!(say(&Loaded::default(), true).as_deref(), Some(nothing));
    }
}
