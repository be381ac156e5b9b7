//! Runs that diverged or failed, with their cause.

use std::fmt::Write;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::page::Source;
use super::text::{count, esc};
use crate::plan::PlannedRun;
use crate::run::Ending;
use crate::store::{Attempt, RunState};

/// Rows of the table.
const MOST_ROWS: usize = 200;
/// Rows with the last lines of a log.
const MOST_LOGS: usize = 40;
/// Lines of a log that are shown, and the bytes at its end that they are looked for in.
const MOST_LINES: usize = 12;
const MOST_BYTES: u64 = 4 << 10;

/// A loss in few digits.
fn short(loss: f64) -> String {
    if loss.is_finite() { format!("{loss:.4}") } else { format!("{loss}") }
}

/// A run that did not end well.
struct Trouble<'a> {
    kind: &'static str,
    run: &'a PlannedRun,
    cause: String,
    /// The file that its last lines are of, in the run's folder.
    log: PathBuf,
}

fn trouble<'a>(source: &Source, run: &'a PlannedRun, state: &RunState) -> Option<Trouble<'a>> {
    let paths = source.view.run_paths(run);
    let (kind, cause, log) = match state {
        RunState::Failed { attempt, failure } => (
            "failed",
            format!("attempt {attempt}: {}: {}", failure.cause, failure.message),
            Attempt { number: *attempt, folder: paths.attempt(*attempt) }.worker_log(),
        ),
        RunState::Ended(result) => match result.outcome.ending {
            Ending::Diverged { step, loss } => {
                let best = result.outcome.best_val_bpb;
                let best = best.map(|b| format!("; best val_bpb before: {:.4} at step {}", b.value, b.step));
                let cause = format!("loss {} nats at step {step}{}", short(loss), best.unwrap_or_default());
                ("diverged", cause, paths.log())
            }
            Ending::Finished(finals) if !finals.val_bpb.is_finite() => {
                ("diverged", format!("ended with val_bpb {}", finals.val_bpb), paths.log())
            }
            Ending::Finished(_) => return None,
        },
        RunState::Stopped { .. } | RunState::Unfinished => return None,
    };
    Some(Trouble { kind, run, cause, log })
}

/// The last lines of a file, if there are any that can be read.
fn last_lines(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST_BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<&str> = text.lines().collect();
    if length > MOST_BYTES && lines.len() > 1 {
        // The first one is cut.
        lines.remove(0);
    }
    let lines = &lines[lines.len().saturating_sub(MOST_LINES)..];
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The last lines of a run's log, folded.
fn log(trouble: &Trouble) -> String {
    let Some(lines) = last_lines(&trouble.log) else {
        return String::new();
    };
    let name = trouble.log.file_name().unwrap_or_default().to_string_lossy();
    format!("<details><summary>last lines of {}</summary><pre>{}</pre></details>", esc(&name), esc(&lines))
}

/// The section.
pub(super) fn section(source: &Source) -> String {
    let states = source.plan.runs.iter().zip(&source.loaded.states);
    let rows: Vec<Trouble> = states.filter_map(|(run, state)| trouble(source, run, state)).collect();
    let mut html = "<section id=\"troubles\"><h2>Diverged and failed runs</h2>".to_owned();
    if rows.is_empty() {
        return html + "<p class=\"none\">None: no run has diverged or failed.</p></section>";
    }
    html += "<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th scope=\"col\">run</th><th scope=\"col\">how it \
        ended</th><th scope=\"col\">cause</th><th scope=\"col\">folder</th></tr></thead><tbody>";
    for (i, trouble) in rows.iter().take(MOST_ROWS).enumerate() {
        let lines = if i < MOST_LOGS { log(trouble) } else { String::new() };
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td><b class=\"bad\">{}</b></td><td data-v=\"{cause}\">{cause}{lines}</td>\
             <td><code>runs/{}</code></td></tr>",
            esc(&trouble.run.label()),
            trouble.kind,
            esc(&trouble.run.folder),
            cause = esc(&trouble.cause),
        );
    }
    html += "</tbody></table></div>";
    if rows.len() > MOST_ROWS {
        let more = count(rows.len() - MOST_ROWS, "more run");
        let _ = write!(html, "<p class=\"sub\">And {more}; comparison.csv has all.</p>");
    }
    if rows.len() > MOST_LOGS {
        let _ = write!(
            html,
            "<p class=\"sub\">Of the first {MOST_LOGS} the last lines are shown; the folders have all.</p>"
        );
    }
    html + "</section>"
}
