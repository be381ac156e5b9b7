//! comparison.csv: a row for each run.

use super::columns::{Table, first_cells, header, number, optional};
use crate::plan::{Plan, PlannedRun};
use crate::run::{Best, Ending};
use crate::settings::Precision;
use crate::store::{Loaded, RunState, StoredResult};

/// After arm and axes. The last seven are volatile.
const COLUMNS: [&str; 22] = [
    "seed",
    "status",
    "steps",
    "final_train_bpb",
    "final_val_bpb",
    "final_val_acc",
    "best_val_bpb",
    "best_val_bpb_step",
    "best_val_acc",
    "best_val_acc_step",
    "test_bpb",
    "test_acc",
    "diverged_step",
    "precision",
    "run_id",
    "wall_sec",
    "tok_per_sec",
    "attempts",
    "die",
    "host",
    "started",
    "ended",
];

/// The table, in the plan's order.
pub(super) fn comparison_csv(plan: &Plan, loaded: &Loaded) -> Vec<u8> {
    let mut table = Table::new(header(plan, &COLUMNS));
    for (run, state) in plan.runs.iter().zip(&loaded.states) {
        let mut row = first_cells(plan, &run.arm, &run.axes);
        row.extend(cells(run, state));
        table.row(row);
    }
    table.into_csv()
}

fn cells(run: &PlannedRun, state: &RunState) -> Vec<String> {
    let (status, result) = match state {
        RunState::Ended(result) => match result.outcome.ending {
            Ending::Finished(_) => ("finished", Some(result.as_ref())),
            Ending::Diverged { .. } => ("diverged", Some(result.as_ref())),
        },
        RunState::Failed { .. } => ("failed", None),
        RunState::Unfinished => ("unfinished", None),
    };
    let mut cells = vec![run.seed.to_string(), status.to_owned()];
    match result {
        Some(result) => cells.extend(values(result)),
        None => cells.extend(<[String; 11]>::default()),
    }
    cells.extend([precision(run.settings.precision).to_owned(), run.id.to_string()]);
    cells.extend(match (result, state) {
        (Some(result), _) => execution(result),
        (None, RunState::Failed { attempt, .. }) => [
            String::new(),
            String::new(),
            attempt.to_string(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
        ],
        (None, _) => <[String; 7]>::default(),
    });
    cells
}

/// From steps to diverged_step.
fn values(result: &StoredResult) -> [String; 11] {
    let outcome = &result.outcome;
    let (finals, diverged) = match outcome.ending {
        Ending::Finished(finals) => (Some(finals), None),
        Ending::Diverged { step, .. } => (None, Some(step)),
    };
    let value = |best: Option<Best>| optional(best.map(|b| b.value));
    let step = |best: Option<Best>| best.map(|b| b.step.to_string()).unwrap_or_default();
    [
        outcome.steps.to_string(),
        optional(finals.map(|f| f.train_bpb)),
        optional(finals.map(|f| f.val_bpb)),
        optional(finals.map(|f| f.val_acc)),
        value(outcome.best_val_bpb),
        step(outcome.best_val_bpb),
        value(outcome.best_val_acc),
        step(outcome.best_val_acc),
        optional(finals.and_then(|f| f.test_bpb)),
        optional(finals.and_then(|f| f.test_acc)),
        diverged.map(|step| step.to_string()).unwrap_or_default(),
    ]
}

/// The volatile columns.
fn execution(result: &StoredResult) -> [String; 7] {
    let execution = &result.execution;
    [
        number(result.outcome.wall_sec),
        number(result.outcome.tok_per_sec),
        execution.attempts.to_string(),
        execution.die.clone(),
        execution.host.clone(),
        execution.started.clone(),
        execution.ended.clone(),
    ]
}

fn precision(precision: Precision) -> &'static str {
    match precision {
        Precision::Fp32 => "fp32",
        Precision::Tf32 => "tf32",
        Precision::Tf32x3 => "tf32x3",
        Precision::Bf16 => "bf16",
    }
}
