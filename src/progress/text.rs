//! Events and quantities in words.

use crate::duration;
use crate::event::{Cause, Event, Halt, signal_name};
use crate::run::{Ending, Outcome};

/// `2h 05m`, `4m 09s` or `12s`.
pub(super) fn span(seconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from f64 saturates")]
    let seconds = seconds.round() as u64;
    match seconds {
        3600.. => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
        60.. => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{seconds}s"),
    }
}

/// Tokens a second: `850 tok/s`, `51.2k tok/s` or `3.1M tok/s`.
pub(super) fn speed(tokens_per_second: f64) -> String {
    match tokens_per_second {
        x if x >= 1e6 => format!("{:.1}M tok/s", x / 1e6),
        x if x >= 1e3 => format!("{:.1}k tok/s", x / 1e3),
        x => format!("{x:.0} tok/s"),
    }
}

/// Bytes in the largest binary unit that they fill: `512 bytes`, `1.0 MiB`, `11.7 GiB`.
pub(super) fn bytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a display")]
    let float = bytes as f64;
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", float / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", float / 1_048_576.0),
        _ => format!("{:.1} GiB", float / 1_073_741_824.0),
    }
}

/// A result in a few words.
pub(super) fn outcome(outcome: &Outcome) -> String {
    match &outcome.ending {
        Ending::Finished(finals) => format!("val_bpb {:.4}", finals.val_bpb),
        Ending::Diverged { step, loss } => format!("diverged at step {step} (loss {loss})"),
    }
}

fn runs(count: usize) -> String {
    format!("{count} {}", if count == 1 { "run" } else { "runs" })
}

fn dies(count: usize) -> String {
    format!("{count} {}", if count == 1 { "die" } else { "dies" })
}

/// Where an attempt goes on, and which checkpoints were of no use.
fn resumed(label: &str, steps: Option<u64>, refused: &[String]) -> String {
    let from = steps.map_or_else(|| "starts over".to_owned(), |steps| format!("goes on after {steps} steps"));
    match refused {
        [] => format!("{label} {from}"),
        refused => format!("warning: {label} {from}, since {}", refused.join("; ")),
    }
}

/// The line that a user gets for an event; most have none. `done` of `total` runs have a result.
pub(super) fn line(event: &Event, done: usize, total: usize) -> Option<String> {
    Some(match event {
        Event::SweepStarted { sweep, results, runs: all, finished, failed, stopped, dies: count } => {
            let on = if *count > 0 { format!(", on {}", dies(*count)) } else { String::new() };
            let to_do = all - finished - failed - stopped;
            let early = if *stopped > 0 { format!(", {stopped} stopped early") } else { String::new() };
            let given_up = if *failed > 0 { format!(", {failed} given up") } else { String::new() };
            format!(
                "{sweep}: {}: {finished} finished{given_up}{early}, {to_do} to do{on}; results in {}",
                runs(*all),
                results.display()
            )
        }
        Event::RunFinished { at, outcome: result } => {
            format!("finished {done}/{total}  {}  {}", at.label, outcome(result))
        }
        Event::AttemptFailed { at, failure, again: true } => {
            format!(
                "attempt {} of {} on die {} failed, and will be made again: {failure}",
                at.attempt, at.label, at.die
            )
        }
        Event::RunFailed { label, attempts, failure, .. } => {
            if *attempts == 0 {
                return Some(format!("FAILED: {label}: {failure}"));
            }
            let attempts = if *attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
            format!("FAILED after {attempts}: {label}: {failure}")
        }
        // What it had in hand has a line of its own.
        Event::WorkerLost { die, attempts: 0, failure } => format!("worker of die {die} lost: {failure}"),
        Event::AttemptResumed { at, steps, refused } => resumed(&at.label, *steps, refused),
        Event::NotSaved { at, message } => {
            format!("warning: {} goes on without a checkpoint, for want of room: {message}", at.label)
        }
        Event::DiskFull { message, needed, patience } => format!(
            "the disk is full: {message}; waiting up to {} for {} of room, then the sweep stops",
            duration::text(*patience),
            bytes(*needed)
        ),
        Event::DiskFree { waited } => format!("there is room again after {}: going on", duration::text(*waited)),
        Event::DieSetAside { die, failure, .. } if failure.cause == Cause::OutOfMemory => {
            format!("die {die} is not used any more, so that the others have its memory: {failure}")
        }
        Event::WorkerLanes { die, lanes, why } => {
            let lanes = if *lanes == 1 { "1 lane".to_owned() } else { format!("{lanes} lanes") };
            format!("die {die} trains in {lanes}: {why}")
        }
        Event::DieSetAside { die, uuid: Some(uuid), failure } if failure.cause == Cause::DeviceLost => {
            format!("die {die} ({uuid}) is lost and set aside: {}", failure.message)
        }
        Event::DieSetAside { die, failure, .. } if failure.cause.ends_die() => {
            format!("die {die} is lost and set aside: {}", failure.message)
        }
        Event::DieSetAside { die, failure, .. } => {
            format!("die {die} is set aside after 3 failures in a row, the last of which was: {failure}")
        }
        Event::FinishedElsewhere { label, outcome: result, .. } => {
            format!("finished {done}/{total}  {label}  {}  (by another controller)", outcome(result))
        }
        Event::LeaseLost { label, holder, .. } => {
            format!("{label} was taken over by {holder}: the attempt here publishes nothing")
        }
        Event::ResultDiffers { message, .. } => {
            format!("WARNING: a run gave two results, which must never be: {message}")
        }
        Event::Waiting { runs: left, holders } => {
            format!("waiting for {}, held by {}", runs(*left), holders.join(" and "))
        }
        Event::BeatFailed { message } => {
            format!("warning: other controllers may take this one for dead: {message}")
        }
        Event::WorkerLeft { die } => {
            format!("worker of die {die} left: it had not heard of this controller for too long")
        }
        Event::Stopping { halt: Halt::TimeLimit { seconds } } => format!(
            "the time limit of {} is near: stopping after the steps in hand; runs in hand are saved and go on next time",
            duration::text(*seconds)
        ),
        Event::Stopping { halt: Halt::Signal { signal } } => format!(
            "{}: stopping after the steps in hand; runs in hand are saved and go on next time; a second signal stops at once",
            signal_name(*signal)
        ),
        Event::Stopping { halt } => format!("stopping: {halt}"),
        Event::SweepEnded { finished, failed, left, stopped, here, elsewhere, wall_sec } => {
            let rest = [(*stopped, "stopped early"), (*failed, "failed"), (*left, "left")];
            let rest: String = rest.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!(", {n} {word}")).collect();
            let shared = if *elsewhere > 0 {
                format!(" ({here} here, {elsewhere} by other controllers)")
            } else {
                String::new()
            };
            format!("{} finished{shared}{rest}, in {}", runs(*finished), span(*wall_sec))
        }
        Event::RungDecided { arm, steps, metric, standings } => {
            let gone = standings.iter().filter(|standing| !standing.goes_on).count();
            let of = standings.len();
            format!("{arm} after {steps} steps: {gone} of {of} configurations stop, by their mean {metric}")
        }
        Event::RunStopped { label, steps, metric, value, target, .. } => {
            let why = if *target { "target reached" } else { "stopped early" };
            format!("{why} after {steps} steps  {label}  {metric} {value:.4}")
        }
        Event::WorkerReady { .. }
        | Event::RunRests { .. }
        | Event::WorkerLost { .. }
        | Event::AttemptStarted { .. }
        | Event::Logged { .. }
        | Event::Beat { .. }
        | Event::Checkpointed { .. }
        | Event::AttemptFailed { again: false, .. }
        | Event::RunElsewhere { .. }
        | Event::AttemptAbandoned { .. } => return None,
    })
}

/// Whether an event's line is about trouble, and is shown even where progress is not.
pub(super) fn trouble(event: &Event) -> bool {
    match event {
        Event::RunFailed { .. }
        | Event::NotSaved { .. }
        | Event::DiskFull { .. }
        | Event::DiskFree { .. }
        | Event::DieSetAside { .. }
        | Event::WorkerLost { .. }
        | Event::LeaseLost { .. }
        | Event::ResultDiffers { .. }
        | Event::BeatFailed { .. }
        | Event::WorkerLeft { .. }
        | Event::AttemptFailed { .. } => true,
        Event::AttemptResumed { refused, .. } => !refused.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{At, Cause, Failure};
    use crate::run::RunId;

    #[test]
    fn quantities_are_short() {
        let durations = [0.2, 59.4, 61.0, 3599.0, 7500.0].map(span);
        assert_eq!(durations, ["0s", "59s", "1m 01s", "59m 59s", "2h 05m"]);
        assert_eq!([850.0, 51_234.0, 3.14e6].map(speed), ["850 tok/s", "51.2k tok/s", "3.1M tok/s"]);
    }

    #[test]
    fn events_read_as_sentences() {
        let at = At { run: RunId::from_bits(1), attempt: 2, die: 1, label: "sr4 seed=3".into() };
        let failure = Failure::new(Cause::Crashed, "its process was killed by SIGABRT");
        let say = |event| line(&event, 3, 12).unwrap();
        assert_eq!(
            say(Event::SweepStarted {
                sweep: "s".into(),
                results: "results/s".into(),
                runs: 12,
                finished: 5,
                failed: 0,
                stopped: 0,
                dies: 2
            }),
            "s: 12 runs: 5 finished, 7 to do, on 2 dies; results in results/s"
        );
        assert_eq!(
            say(Event::AttemptFailed { at, failure: failure.clone(), again: true }),
            "attempt 2 of sr4 seed=3 on die 1 failed, and will be made again: crashed: its process was killed by SIGABRT"
        );
        assert_eq!(
            say(Event::RunFailed { run: RunId::from_bits(1), label: "sr4 seed=3".into(), attempts: 1, failure }),
            "FAILED after 1 attempt: sr4 seed=3: crashed: its process was killed by SIGABRT"
        );
        assert_eq!(
            say(Event::Stopping { halt: Halt::Signal { signal: 2 } }),
            "SIGINT: stopping after the steps in hand; runs in hand are saved and go on next time; a second signal stops at once"
        );
        let at = || At { run: RunId::from_bits(1), attempt: 2, die: 1, label: "sr4 seed=3".into() };
        assert_eq!(
            say(Event::AttemptResumed { at: at(), steps: Some(50), refused: vec![] }),
            "sr4 seed=3 goes on after 50 steps"
        );
        let refused = vec!["a is damaged: x".to_owned(), "b is damaged: y".to_owned()];
        assert_eq!(
            say(Event::AttemptResumed { at: at(), steps: None, refused }),
            "warning: sr4 seed=3 starts over, since a is damaged: x; b is damaged: y"
        );
        assert_eq!(
            say(Event::SweepEnded {
                finished: 1,
                failed: 0,
                left: 2,
                stopped: 0,
                here: 1,
                elsewhere: 0,
                wall_sec: 61.0
            }),
            "1 run finished, 2 left, in 1m 01s"
        );
        assert_eq!(
            say(Event::SweepEnded {
                finished: 6,
                failed: 0,
                left: 0,
                stopped: 0,
                here: 4,
                elsewhere: 2,
                wall_sec: 3.0
            }),
            "6 runs finished (4 here, 2 by other controllers), in 3s"
        );
        let holders = vec!["process 7 on k80-1".to_owned(), "process 9 on k80-2".to_owned()];
        assert_eq!(
            say(Event::Waiting { runs: 3, holders }),
            "waiting for 3 runs, held by process 7 on k80-1 and process 9 on k80-2"
        );
        let (run, label, holder) = (RunId::from_bits(1), "sr4 seed=3".to_owned(), "process 7 on k80-1".to_owned());
        assert_eq!(
            say(Event::LeaseLost { run, label, holder }),
            "sr4 seed=3 was taken over by process 7 on k80-1: the attempt here publishes nothing"
        );
    }
}
