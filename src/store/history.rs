//! How fast this machine was in earlier sweeps, from the results that they left.

use std::fs;
use std::path::Path;

use crate::plan::Plan;
use crate::plan::work::run_flops;

use super::{Layout, StoredResult, host_name};

/// Results of a folder that are read: more would not make a forecast better.
const MOST_READ: usize = 100;

/// Operations a second a die over the finished runs of this host in the results folders under `root`; none where there are none.
/// What cannot be read is left out: this is for a forecast.
pub fn measured_speed(root: &Path) -> Option<f64> {
    let (mut flops, mut seconds) = (0.0, 0.0);
    let host = host_name();
    for entry in fs::read_dir(root).ok()?.flatten() {
        let layout = Layout::new(entry.path());
        let Some(plan) = read_plan(&layout) else { continue };
        let results = plan.runs.iter().filter_map(|run| {
            let text = fs::read(layout.run(&run.folder).result()).ok()?;
            let result: StoredResult = serde_json::from_slice(&text).ok()?;
            (result.execution.host == host && result.outcome.steps == run.settings.steps).then_some((run, result))
        });
        for (run, result) in results.take(MOST_READ) {
            let corpus = plan.corpora.first().map_or(0, |corpus| corpus.bytes);
            flops += run_flops(&run.settings, corpus) as f64;
            seconds += result.outcome.wall_sec;
        }
    }
    (seconds > 0.0).then(|| flops / seconds)
}

fn read_plan(layout: &Layout) -> Option<Plan> {
    serde_json::from_slice(&fs::read(layout.plan()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_measured_where_nothing_has_run() {
        let root = tempfile::tempdir().expect("a folder");
        assert_eq!(measured_speed(root.path()), None);
        assert_eq!(measured_speed(&root.path().join("missing")), None);
        fs::create_dir_all(root.path().join("x")).expect("a folder");
        fs::write(root.path().join("x/plan.json"), "{").expect("a file");
        assert_eq!(measured_speed(root.path()), None);
    }
}
