//! comparison.csv: a row for each run.

use super::columns::{AxisForms, Table, header, number, optional, optional_whole};
use crate::plan::{Mark, Plan, PlannedRun};
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
    let forms = AxisForms::of(plan);
    for (run, state) in plan.runs.iter().zip(&loaded.states) {
        let mut row = forms.first_cells(plan, &run.arm, &run.axes);
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
        RunState::Stopped { .. } => ("stopped", None),
        RunState::Unfinished => ("unfinished", None),
    };
    let mut cells = vec![run.seed.to_string(), status.to_owned()];
    match (result, state) {
        (Some(result), _) => cells.extend(values(result)),
        (None, RunState::Stopped { mark }) => cells.extend(stopped(mark)),
        (None, _) => cells.extend(std::array::from_fn::<String, 11, _>(|_| optional(None))),
    }
    cells.extend([precision(run.settings.precision).to_owned(), run.id.to_string()]);
    cells.extend(match (result, state) {
        (Some(result), _) => execution(result),
        (None, RunState::Failed { attempt, .. }) => no_execution(Some(*attempt)),
        (None, _) => no_execution(None),
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
    let step = |best: Option<Best>| optional_whole(best.map(|b| b.step));
    [
        optional_whole(Some(outcome.steps)),
        optional(finals.map(|f| f.train_bpb)),
        optional(finals.map(|f| f.val_bpb)),
        optional(finals.map(|f| f.val_acc)),
        value(outcome.best_val_bpb),
        step(outcome.best_val_bpb),
        value(outcome.best_val_acc),
        step(outcome.best_val_acc),
        optional(finals.and_then(|f| f.test_bpb)),
        optional(finals.and_then(|f| f.test_acc)),
        optional_whole(diverged),
    ]
}

/// The same of a run that was stopped early: what it had come to, which is no final value.
fn stopped(mark: &Mark) -> [String; 11] {
    let (bpb, acc) = (mark.best_val_bpb, mark.best_val_acc);
    let mut cells = std::array::from_fn(|_| optional(None));
    cells[0] = optional_whole(Some(mark.steps));
    cells[4] = optional(bpb.map(|best| best.value));
    cells[5] = optional_whole(bpb.map(|best| best.step));
    cells[6] = optional(acc.map(|best| best.value));
    cells[7] = optional_whole(acc.map(|best| best.step));
    cells
}

/// The volatile columns.
fn execution(result: &StoredResult) -> [String; 7] {
    let execution = &result.execution;
    [
        number(result.outcome.wall_sec),
        number(result.outcome.tok_per_sec),
        optional_whole(Some(u64::from(execution.attempts))),
        execution.die.clone(),
        execution.host.clone(),
        execution.started.clone(),
        execution.ended.clone(),
    ]
}

/// The volatile columns of a run without a result.
fn no_execution(attempts: Option<u32>) -> [String; 7] {
    let [wall_sec, tok_per_sec] = [optional(None), optional(None)];
    let attempts = optional_whole(attempts.map(u64::from));
    [wall_sec, tok_per_sec, attempts, String::new(), String::new(), String::new(), String::new()]
}

fn precision(precision: Precision) -> &'static str {
    match precision {
        Precision::Fp32 => "fp32",
        Precision::Tf32 => "tf32",
        Precision::Tf32x3 => "tf32x3",
        Precision::Bf16 => "bf16",
    }
}
