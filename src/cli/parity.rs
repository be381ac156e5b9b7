//! `diesweep parity`: holds this build against the golden cases of an independent model.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use crate::backend::cpu::simd::Level;
use crate::backend::cpu::team::Team;
use crate::golden;

/// Run golden cases, and say for each how far this build is from its known answers.
///
/// Ends with 0 where all hold, 1 where some fall short, 2 where a case or the folder is unusable.
#[derive(Args, Debug)]
pub struct ParityArgs {
    /// Folder of golden cases (*.json, with their *.safetensors)
    #[arg(required_unless_present = "exact")]
    pub dir: Option<PathBuf>,
    /// Train both arms of the default model on every backend and code path at hand, and compare all state byte by byte
    #[arg(long, conflicts_with_all = ["dir", "backend"])]
    pub exact: bool,
    /// Steps that --exact trains
    #[arg(long, default_value_t = 50, requires = "exact", value_parser = clap::value_parser!(u64).range(1..))]
    pub steps: u64,
    /// Where to compute
    #[arg(long, value_enum, default_value_t = Backend::Cpu)]
    pub backend: Backend,
    /// Threads to compute with
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: u16,
}

/// Where to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// CPU cores
    Cpu,
}

/// Runs the command.
pub fn run(args: &ParityArgs) -> ExitCode {
    let Backend::Cpu = args.backend;
    let Some(dir) = &args.dir else {
        return super::exact::run(args.steps, args.threads.into());
    };
    let team = match Level::current().map(|level| Team::new(args.threads.into(), level)) {
        Ok(Ok(team)) => Arc::new(team),
        Ok(Err(error)) => return unusable(&format!("no threads to compute with: {error}")),
        Err(error) => return unusable(&error.to_string()),
    };
    match report(dir, &team, &mut io::stdout().lock()) {
        Ok(Ok(verdict)) => verdict.into(),
        Ok(Err(error)) => unusable(&error.to_string()),
        Err(error) => unusable(&format!("standard output: {error}")),
    }
}

fn unusable(why: &str) -> ExitCode {
    say!("error: {why}");
    Verdict::Unusable.into()
}

/// What all cases come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Holds,
    FallsShort,
    Unusable,
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        Self::from(match verdict {
            Verdict::Holds => 0,
            Verdict::FallsShort => 1,
            Verdict::Unusable => 2,
        })
    }
}

/// Writes a line for each case, as soon as it is known, and one for all.
fn report(dir: &Path, team: &Arc<Team>, out: &mut impl Write) -> io::Result<Result<Verdict, golden::CaseError>> {
    let names = match golden::cases(dir) {
        Ok(names) => names,
        Err(error) => return Ok(Err(error)),
    };
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut count = [0u32; 3];
    for name in &names {
        let outcome = golden::run(dir, name, team);
        let (verdict, word, text) = match &outcome.result {
            Ok(report) if report.failed() == 0 => (Verdict::Holds, "ok   ", report.to_string()),
            Ok(report) => (Verdict::FallsShort, "FAIL ", report.to_string()),
            Err(error) => (Verdict::Unusable, "error", error.to_string()),
        };
        count[verdict as usize] += 1;
        writeln!(out, "{word} {name:width$}  {text}")?;
        out.flush()?;
    }
    let [holds, short, bad] = count;
    writeln!(out, "{} cases: {holds} hold, {short} fall short, {bad} unusable (cpu, {})", names.len(), team.level())?;
    Ok(Ok(match (short, bad) {
        (_, 1..) => Verdict::Unusable,
        (1.., 0) => Verdict::FallsShort,
        (0, 0) => Verdict::Holds,
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn golden_file(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
    }

    fn reported(dir: &Path) -> (Verdict, String) {
        let team = Arc::new(Team::new(1, Level::PORTABLE).expect("a team"));
        let mut text = Vec::new();
        let verdict = report(dir, &team, &mut text).expect("no output error").expect("a usable folder");
        (verdict, String::from_utf8(text).expect("UTF-8"))
    }

    #[test]
    fn each_case_has_a_line_and_the_worst_one_decides() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::copy(golden_file("windows.json"), dir.path().join("windows.json")).expect("a copy");
        let (verdict, text) = reported(dir.path());
        assert_eq!(verdict, Verdict::Holds);
        let expected = "\
ok    windows  all equal (31 checks)
1 cases: 1 hold, 0 fall short, 0 unusable (cpu, portable)
";
        assert_eq!(text, expected);

        let wrong = r#"{"kind": "lr", "cases": [{"total": 2, "lr0": 1.0, "lr_min": 0.0, "warmup": 0, "step": [0, 1], "lr": [1.0, 0.6]}]}"#;
        fs::write(dir.path().join("a.json"), wrong).expect("a file");
        let (verdict, text) = reported(dir.path());
        assert_eq!(verdict, Verdict::FallsShort);
        assert!(
            text.starts_with(
                "FAIL  a        rate of step 1 of 2: error 1.000e-1, tolerance 6.0e-13 (1 of 2 checks fall short)\n"
            ),
            "{text}"
        );

        fs::write(dir.path().join("b.json"), r#"{"kind": "riddle"}"#).expect("a file");
        let (verdict, text) = reported(dir.path());
        assert_eq!(verdict, Verdict::Unusable);
        assert!(text.contains("\nerror b        unknown kind `riddle` (known: "), "{text}");
        assert!(text.ends_with("3 cases: 1 hold, 1 fall short, 1 unusable (cpu, portable)\n"), "{text}");
    }
}
