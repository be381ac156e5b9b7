//! The points, in one table.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// What a file is to a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileKind {
    /// sweep.toml.
    Sweep,
    /// plan.json.
    Plan,
    /// Who works on a run, and a controller's beat.
    Lock,
    /// A run's or an attempt's folder.
    Folder,
    /// run.json.
    Run,
    /// log.csv, an attempt's and the published one.
    Log,
    /// A checkpoint.
    Checkpoint,
    /// final.safetensors, an attempt's and the published one.
    Weights,
    /// result.json.
    Result,
    /// failure.json.
    Failure,
    /// A table.
    Table,
    /// report.html, and the plots as files.
    Report,
    /// `events/<controller>.jsonl`.
    Events,
    /// No file: a worker's line to its controller.
    Protocol,
    /// No file: the wall clock.
    Clock,
    /// A file that the results folder does not have.
    Other,
}

/// The system call that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Moment {
    /// A file or folder is made; of a file that will be renamed or linked, the temporary one.
    Create,
    /// Bytes are written.
    Write,
    /// Half of the bytes are written: the other half.
    Torn,
    /// The file is flushed to disk.
    Flush,
    /// The file gets its name, by renaming or linking.
    Name,
    /// Its folder is flushed.
    Sync,
    /// None: all is done.
    Done,
    /// The file is removed.
    Remove,
    /// The clock is read.
    Read,
}

use FileKind::{
    Checkpoint, Clock, Events, Failure, Folder, Lock, Log, Other, Plan, Protocol, Report, Result as Outcome, Run,
    Sweep, Table, Weights,
};
use Moment::{Create, Done, Flush, Name, Read, Remove, Sync, Torn, Write};

/// How a file that is whole or not there comes about.
const WHOLE: &[Moment] = &[Create, Write, Flush, Name, Sync, Done];

/// Every kind with its moments in the order in which they come. [`Moment::Torn`] follows from each `Write` that is answered by
/// `half`, and stands in none.
pub const TABLE: &[(FileKind, &[Moment])] = &[
    (Sweep, WHOLE),
    (Plan, WHOLE),
    (Lock, &[Create, Write, Flush, Name, Sync, Done, Remove]),
    (Folder, &[Create, Done]),
    (Run, WHOLE),
    (Log, &[Create, Write, Flush, Name, Sync, Done]),
    (Checkpoint, &[Create, Write, Flush, Name, Sync, Done, Remove]),
    (Weights, WHOLE),
    (Outcome, WHOLE),
    (Failure, WHOLE),
    (Table, WHOLE),
    (Report, WHOLE),
    (Events, &[Create, Write]),
    (Protocol, &[Write]),
    (Clock, &[Read]),
];

/// Whether a name is that of a run's folder.
fn ends_in_an_id(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(_, id)| id.parse::<crate::run::RunId>().is_ok())
}

/// A place in the program at which a fault may strike; written `result.flush`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    /// What is changed.
    pub file: FileKind,
    /// By what.
    pub moment: Moment,
}

impl Point {
    /// All points of [`TABLE`].
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().flat_map(|(file, moments)| moments.iter().map(|moment| Self { file: *file, moment: *moment }))
    }
}

impl FileKind {
    const NAMES: [(Self, &'static str); 16] = [
        (Sweep, "sweep"),
        (Plan, "plan"),
        (Lock, "lock"),
        (Folder, "folder"),
        (Run, "run"),
        (Log, "log"),
        (Checkpoint, "checkpoint"),
        (Weights, "weights"),
        (Outcome, "result"),
        (Failure, "failure"),
        (Table, "table"),
        (Report, "report"),
        (Events, "events"),
        (Protocol, "protocol"),
        (Clock, "clock"),
        (Other, "other"),
    ];

    /// The kind of the file or folder that has, or will have, this path.
    pub fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match name.as_ref() {
            "sweep.toml" => Sweep,
            "plan.json" => Plan,
            "run.json" => Run,
            "log.csv" => Log,
            "result.json" => Outcome,
            "failure.json" => Failure,
            "final.safetensors" => Weights,
            "report.html" => Report,
            _ if path.parent().is_some_and(|folder| folder.ends_with("plots")) => Report,
            name if name.starts_with("lease.") || name.ends_with(".beat") => Lock,
            name if name.starts_with("checkpoint-") => Checkpoint,
            name if name.starts_with("attempt-") || ends_in_an_id(name) => Folder,
            name if name.ends_with(".csv") => Table,
            name if name.ends_with(".jsonl") => Events,
            _ => Other,
        }
    }

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("other", |(_, name)| name)
    }
}

impl Moment {
    const NAMES: [(Self, &'static str); 9] = [
        (Create, "create"),
        (Write, "write"),
        (Torn, "torn"),
        (Flush, "flush"),
        (Name, "name"),
        (Sync, "sync"),
        (Done, "done"),
        (Remove, "remove"),
        (Read, "read"),
    ];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(moment, _)| *moment == self).map_or("done", |(_, name)| name)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.file.name(), self.moment.name())
    }
}

/// A text is no point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no point at which a fault may strike")]
pub struct NoPoint(String);

impl FromStr for Point {
    type Err = NoPoint;

    fn from_str(text: &str) -> Result<Self, NoPoint> {
        let point = || {
            let (file, moment) = text.split_once('.')?;
            let (file, _) = FileKind::NAMES.iter().find(|(_, name)| *name == file)?;
            let (moment, _) = Moment::NAMES.iter().find(|(_, name)| *name == moment)?;
            Some(Self { file: *file, moment: *moment })
        };
        point().ok_or_else(|| NoPoint(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Layout, TABLES, checkpoint_file};

    #[test]
    fn points_read_back() {
        for point in Point::all() {
            assert_eq!(point.to_string().parse(), Ok(point));
        }
        assert_eq!("result.flush".parse(), Ok(Point { file: Outcome, moment: Flush }));
        for none in ["", "result", "result.x", "x.flush"] {
            assert_eq!(none.parse::<Point>(), Err(NoPoint(none.to_owned())));
        }
    }

    #[test]
    fn every_file_of_a_results_folder_is_of_a_kind() {
        let layout = Layout::new("/r");
        let run = layout.run("sr4_s1-0123456789abcdef");
        let attempt = run.attempt(1);
        let kinds = [
            (layout.sweep_toml(), Sweep),
            (layout.plan(), Plan),
            (layout.report(), Report),
            (layout.events().join("vm-1-2.jsonl"), Events),
            (run.dir().to_owned(), Folder),
            (run.lease(3), Lock),
            (layout.beat("vm-1-0123456789abcdef"), Lock),
            (run.run_json(), Run),
            (run.log(), Log),
            (run.result(), Outcome),
            (run.final_weights(), Weights),
            (checkpoint_file(&attempt, 5), Checkpoint),
            (attempt.join("failure.json"), Failure),
            (attempt, Folder),
        ];
        for (path, kind) in kinds {
            assert_eq!(FileKind::of(&path), kind, "{}", path.display());
        }
        for table in TABLES {
            assert_eq!(FileKind::of(&layout.table(table)), Table);
        }
    }
}
