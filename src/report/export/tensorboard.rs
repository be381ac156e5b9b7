//! Event files for TensorBoard: a folder for each run, a scalar for each column of its log, and its settings for the HParams tab.
//!
//! Messages and fields are those of tensorboard's `event.proto`, `summary.proto` and `plugins/hparams/plugin_data.proto`. Values are written as floats, which
//! hold every digit of a log's.

use std::fs;
use std::path::Path;

use rayon::prelude::*;

use super::super::html::milliseconds;
use super::ExportError;
use super::proto::Message;
use super::records::push_record;
use crate::plan::{AxisValue, Plan, PlannedRun};
use crate::run::{Ending, Row};
use crate::store::{Loaded, StoreError, StoredResult, View, read_log, replace};

/// Writes the runs that have a result into folders of `out`, named as those of `runs/`, and gives back how many. What is there by these names is
/// replaced; the same results give the same bytes.
pub fn export_tensorboard(view: &View, plan: &Plan, loaded: &Loaded, out: &Path) -> Result<usize, ExportError> {
    let ended: Vec<(&PlannedRun, &StoredResult)> =
        plan.runs.iter().zip(&loaded.states).filter_map(|(run, state)| Some((run, state.result()?))).collect();
    ended.par_iter().try_for_each(|(run, result)| export_run(view, plan, run, result, out))?;
    Ok(ended.len())
}

fn export_run(
    view: &View,
    plan: &Plan,
    run: &PlannedRun,
    result: &StoredResult,
    out: &Path,
) -> Result<(), ExportError> {
    let log = read_log(&view.run_paths(run).log())?;
    let started = start(result);
    let folder = out.join(&run.folder);
    fs::create_dir_all(&folder).map_err(|source| StoreError::Io {
        action: "create the folder".to_owned(),
        path: folder.clone(),
        source,
    })?;
    let file = folder.join(format!("events.out.tfevents.{:010}.{}", started.max(0.0) as u64, run.id));
    replace(&file, &event_file(plan, run, result, &log.rows, started))?;
    Ok(())
}

/// Seconds since 1970 at which the run would have begun had it never been interrupted; 0 where no time is known.
fn start(result: &StoredResult) -> f64 {
    milliseconds(&result.execution.ended).map_or(0.0, |ms| ms as f64 / 1000.0 - result.outcome.wall_sec)
}

fn event_file(plan: &Plan, run: &PlannedRun, result: &StoredResult, rows: &[Row], started: f64) -> Vec<u8> {
    let mut file = Vec::new();
    push_record(&mut file, Message::default().double(1, started).text(3, "brain.Event:2").bytes());
    let mut event = |seconds: f64, step: u64, summary: &Message| {
        push_record(&mut file, Message::default().double(1, seconds).int(2, step).message(5, summary).bytes());
    };
    event(started, 0, &hyperparameters(plan, run, started));
    for row in rows {
        let values =
            scalars(row).into_iter().fold(Message::default(), |all, (tag, x)| all.message(1, &scalar(&tag, x)));
        event(started + row.timing.elapsed_sec, row.step, &values);
    }
    let ended = started + result.outcome.wall_sec;
    let last = result.outcome.steps.saturating_sub(1);
    if let Ending::Finished(finals) = &result.outcome.ending {
        let finals = [
            ("final/train_bpb", Some(finals.train_bpb)),
            ("final/val_bpb", Some(finals.val_bpb)),
            ("final/val_acc", Some(finals.val_acc)),
            ("final/test_bpb", finals.test_bpb),
            ("final/test_acc", finals.test_acc),
        ];
        let there = finals.into_iter().filter_map(|(tag, x)| Some((tag, x?)));
        let values = there.fold(Message::default(), |all, (tag, x)| all.message(1, &scalar(tag, x)));
        event(ended, last, &values);
    }
    event(ended, last, &session_end(result, ended));
    file
}

/// A row's values by their tags; what the run does not log is absent.
fn scalars(row: &Row) -> Vec<(String, f64)> {
    let metrics = [
        ("train_bpb", row.train_bpb),
        ("val_bpb", row.val_bpb),
        ("val_acc", row.val_acc),
        ("grad_norm", row.grad_norm),
        ("lr", row.lr),
    ];
    let t = row.timing;
    let timing = [
        ("step_sec", t.step_sec),
        ("tok_per_sec", t.tok_per_sec),
        ("elapsed_sec", t.elapsed_sec),
        ("ETA_sec", t.eta_sec),
    ];
    let panel = row.panel.map(|p| {
        [
            ("churn", p.churn),
            ("pct_neg", p.pct_neg),
            ("pct_zero", p.pct_zero),
            ("pct_pos", p.pct_pos),
            ("rail_pct", p.rail_pct),
            ("dead_pct", p.dead_pct),
            ("scale_mean", p.scale_mean),
            ("scale_min", p.scale_min),
            ("scale_max", p.scale_max),
        ]
    });
    let named = |group: &'static str| move |(name, x): (&str, f64)| (format!("{group}/{name}"), x);
    let metrics = metrics.into_iter().map(named("log"));
    metrics
        .chain(panel.into_iter().flatten().map(named("ternary")))
        .chain(timing.into_iter().map(named("time")))
        .collect()
}

/// Summary.Value with a tag and a simple value.
fn scalar(tag: &str, x: f64) -> Message {
    Message::default().text(1, tag).float(2, x as f32)
}

/// The settings that tell the run apart, as the HParams tab reads them.
fn hyperparameters(plan: &Plan, run: &PlannedRun, started: f64) -> Message {
    let arm = AxisValue { axis: "arm".to_owned(), value: run.arm.clone() };
    let seed = AxisValue { axis: "seed".to_owned(), value: run.seed.to_string() };
    let settings = std::iter::once(&arm)
        .chain(run.axes.iter().filter(|a| plan.axes.contains(&a.axis)))
        .chain(std::iter::once(&seed));
    let session = settings.fold(Message::default(), |session, setting| {
        // google.protobuf.Value: a number or a text.
        let value = match setting.value.parse::<f64>() {
            Ok(x) => Message::default().double(2, x),
            Err(_) => Message::default().text(3, &setting.value),
        };
        session.message(1, &Message::default().text(1, &setting.axis).message(2, &value))
    });
    let session = session.text(4, configuration_of(run)).double(5, started);
    plugin("_hparams_/session_start_info", &Message::default().message(3, &session))
}

/// The name that all seeds of a configuration share.
fn configuration_of(run: &PlannedRun) -> String {
    let axes: String = run.axes.iter().map(|a| format!(" {}={}", a.axis, a.value)).collect();
    run.arm.clone() + &axes
}

fn session_end(result: &StoredResult, ended: f64) -> Message {
    let (success, failure) = (1, 2);
    let status = if matches!(result.outcome.ending, Ending::Finished(_)) { success } else { failure };
    let session = Message::default().int(1, status).double(2, ended);
    plugin("_hparams_/session_end_info", &Message::default().message(4, &session))
}

/// A Summary with data for the plugin `hparams`: its metadata, and an empty tensor as value.
fn plugin(tag: &str, data: &Message) -> Message {
    let plugin_data = Message::default().text(1, "hparams").text(2, data.bytes());
    let metadata = Message::default().message(1, &plugin_data);
    let float = 1;
    let tensor = Message::default().int(1, float).message(2, &Message::default());
    Message::default().message(1, &Message::default().text(1, tag).message(8, &tensor).message(9, &metadata))
}

#[cfg(test)]
mod tests {
    use super::super::records::read_records;
    use super::*;
    use crate::testing::{finished, plan, publish, row};

    /// The fields of a message: numbers, and bytes by their lengths.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let mut x = 0;
            for shift in (0..).step_by(7) {
                let byte = bytes[0];
                *bytes = &bytes[1..];
                x |= u64::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    break;
                }
            }
            x
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let n = match key & 7 {
                0 => {
                    found.push((key >> 3, varint(&mut bytes).to_le_bytes().to_vec()));
                    continue;
                }
                1 => 8,
                5 => 4,
                _ => varint(&mut bytes) as usize,
            };
            found.push((key >> 3, bytes[..n].to_vec()));
            bytes = &bytes[n..];
        }
        found
    }

    fn field(bytes: &[u8], number: u64) -> Option<Vec<u8>> {
        fields(bytes).into_iter().find(|(n, _)| *n == number).map(|(_, bytes)| bytes)
    }

    #[test]
    fn every_value_of_a_log_is_an_event() {
        let root = tempfile::tempdir().unwrap();
        let plan = plan(&[("adamw", &[]), ("sr4", &["0.01"])], &[1]);
        let results = crate::store::Results::open_or_create(root.path(), &plan, "").unwrap().results;
        publish(&results, &plan.runs[0], &finished(2.25, Some(2.5)), 10.0);
        let loaded = results.load(&plan).unwrap();
        let out = root.path().join("board");
        assert_eq!(export_tensorboard(&results, &plan, &loaded, &out).unwrap(), 1);
        let folder = out.join(&plan.runs[0].folder);
        let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(files.len(), 1);
        assert!(files[0].file_name().unwrap().to_str().unwrap().starts_with("events.out.tfevents."), "{files:?}");

        let events = read_records(&fs::read(&files[0]).unwrap()).unwrap();
        assert_eq!(field(&events[0], 3).unwrap(), b"brain.Event:2");
        // Settings, three rows, the final values, the end.
        assert_eq!(events.len(), 1 + 1 + 3 + 1 + 1);
        let steps: Vec<u64> =
            events[2..5].iter().map(|e| u64::from_le_bytes(field(e, 2).unwrap().try_into().unwrap())).collect();
        assert_eq!(steps, [0, 50, 99]);
        let summary = field(&events[3], 5).unwrap();
        let values: Vec<(String, f32)> = fields(&summary)
            .into_iter()
            .map(|(_, value)| {
                let tag = String::from_utf8(field(&value, 1).unwrap()).unwrap();
                (tag, f32::from_le_bytes(field(&value, 2).unwrap().try_into().unwrap()))
            })
            .collect();
        assert_eq!(values.len(), 5 + 4);
        assert!(values.contains(&("log/val_bpb".to_owned(), 7.5)), "{values:?}");
        assert!(values.contains(&("time/elapsed_sec".to_owned(), 5.0)), "{values:?}");
        let finals = field(&events[5], 5).unwrap();
        assert!(String::from_utf8_lossy(&finals).contains("final/test_bpb"));
    }

    #[test]
    fn a_panel_adds_its_values_and_the_same_results_give_the_same_bytes() {
        let plan = plan(&[("sr4", &["0.01"])], &[1]);
        let p = crate::run::Panel {
            churn: 0.1,
            pct_neg: 0.2,
            pct_zero: 0.3,
            pct_pos: 0.5,
            rail_pct: 0.0,
            dead_pct: 0.0,
            scale_mean: 1.0,
            scale_min: 1.0,
            scale_max: 1.0,
        };
        let with_panel = Row { panel: Some(p), ..row(0, 8.0, 1.0) };
        let tags: Vec<String> = scalars(&with_panel).into_iter().map(|(tag, _)| tag).collect();
        assert_eq!(tags.len(), 18);
        assert!(tags.contains(&"ternary/churn".to_owned()), "{tags:?}");
        let root = tempfile::tempdir().unwrap();
        let results = crate::store::Results::open_or_create(root.path(), &plan, "").unwrap().results;
        publish(&results, &plan.runs[0], &finished(2.0, None), 1.0);
        let result = results.finished(&plan.runs[0]).unwrap().unwrap();
        let file = || event_file(&plan, &plan.runs[0], &result, std::slice::from_ref(&with_panel), 5.0);
        assert_eq!(file(), file());
    }
}
