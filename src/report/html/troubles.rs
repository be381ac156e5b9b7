//! Runs that diverged or failed, with their cause.

use std::fmt::Write;

use super::page::Source;
use super::text::{count, esc};
use crate::run::Ending;
use crate::store::RunState;

/// Rows of the table.
const MOST_ROWS: usize = 200;

/// A loss in few digits.
fn short(loss: f64) -> String {
    if loss.is_finite() { format!("{loss:.4}") } else { format!("{loss}") }
}

/// The section.
pub(super) fn section(source: &Source) -> String {
    let mut rows = Vec::new();
    for (run, state) in source.plan.runs.iter().zip(&source.loaded.states) {
        let (kind, cause) = match state {
            RunState::Failed { attempt, failure } => {
                ("failed", format!("attempt {attempt}: {}: {}", failure.cause, failure.message))
            }
            RunState::Ended(result) => match result.outcome.ending {
                Ending::Diverged { step, loss } => {
                    let best = result.outcome.best_val_bpb;
                    let best = best.map(|b| format!("; best val_bpb before: {:.4} at step {}", b.value, b.step));
                    ("diverged", format!("loss {} nats at step {step}{}", short(loss), best.unwrap_or_default()))
                }
                Ending::Finished(finals) if !finals.val_bpb.is_finite() => {
                    ("diverged", format!("ended with val_bpb {}", finals.val_bpb))
                }
                Ending::Finished(_) => continue,
            },
            RunState::Unfinished => continue,
        };
        rows.push((kind, run, cause));
    }
    let mut html = "<section id=\"troubles\"><h2>Diverged and failed runs</h2>".to_owned();
    if rows.is_empty() {
        return html + "<p class=\"none\">None: no run has diverged or failed.</p></section>";
    }
    html += "<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th scope=\"col\">run</th><th scope=\"col\">how it \
        ended</th><th scope=\"col\">cause</th><th scope=\"col\">folder</th></tr></thead><tbody>";
    for (kind, run, cause) in rows.iter().take(MOST_ROWS) {
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td><b class=\"bad\">{kind}</b></td><td>{}</td><td><code>runs/{}</code></td></tr>",
            esc(&run.label()),
            esc(cause),
            esc(&run.folder)
        );
    }
    html += "</tbody></table></div>";
    if rows.len() > MOST_ROWS {
        let more = count(rows.len() - MOST_ROWS, "more run");
        let _ = write!(html, "<p class=\"sub\">And {more}; comparison.csv has all.</p>");
    }
    html + "</section>"
}
