//! `diesweep torture`: the fault harness. For those who work on diesweep.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;

use super::{error_chain, print};
use crate::torture::{Report, Suffered, Torture, TortureError};

/// Disturb a small sweep in many ways, and prove that nothing is lost and nothing done twice
#[derive(Args, Debug)]
pub(super) struct TortureArgs {
    /// What schedules follow from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Schedules to go through
    #[arg(long, value_name = "N", default_value_t = 200, conflicts_with = "only")]
    schedules: u32,
    /// Go through this schedule alone, and keep its folder
    #[arg(long, value_name = "NUMBER")]
    only: Option<u32>,
    /// Schedules at a time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Folder for the files [default: a new one in the folder for temporary files]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print the schedules, and do nothing
    #[arg(long)]
    show: bool,
    /// Fail if no fault struck at some point
    #[arg(long)]
    every_point: bool,
}

/// Goes through the schedules.
pub(super) fn run(args: &TortureArgs) -> ExitCode {
    match torture(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say!("error: {}", error_chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn torture(args: &TortureArgs) -> Result<bool, TortureError> {
    let numbers: Vec<u32> = args.only.map_or_else(|| (0..args.schedules).collect(), |number| vec![number]);
    if args.show {
        for number in numbers {
            say(&format!("schedule {number}\n{}", crate::torture::Schedule::new(args.seed, number)));
        }
        return Ok(true);
    }
    if let Some(status) = crate::torture::elsewhere() {
        return Ok(status == 0);
    }
    if !crate::torture::has_small_disks() {
        say("note: the system permits no mounts; schedules that fill a disk have theirs spared\n");
    }
    let began = Instant::now();
    let named = args.folder.clone();
    let folder = named.unwrap_or_else(|| std::env::temp_dir().join(format!("diesweep-torture-{}", std::process::id())));
    let made = std::fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
    let folder = made.map_err(|source| TortureError::Io { action: "create", path: folder, source })?;
    let keep = args.only.is_some();
    let torture = Torture { seed: args.seed, numbers, jobs: usize::from(args.jobs), folder, keep };
    let report = torture.run(|suffered| tell(suffered, args.seed, keep))?;
    if report.failed == 0 && !keep && args.folder.is_none() {
        let removed = std::fs::remove_dir_all(&torture.folder);
        removed.map_err(|source| TortureError::Io { action: "remove", path: torture.folder, source })?;
    }
    let spared = report.spared();
    if !spared.is_empty() && args.only.is_none() {
        let names: Vec<String> = spared.iter().map(ToString::to_string).collect();
        say(&format!("no fault struck at {}\n", names.join(", ")));
    }
    say(&closing_line(&report, args.seed, began.elapsed().as_secs_f64()));
    Ok(report.failed == 0 && (spared.is_empty() || !args.every_point))
}

fn tell(suffered: &Suffered, seed: u64, always: bool) {
    let number = suffered.schedule.number;
    let struck: Vec<String> = suffered.struck.iter().map(|fault| format!("  struck: {fault}\n")).collect();
    let folder = suffered.folder.display();
    if !suffered.wrong.is_empty() {
        let wrong: Vec<String> = suffered.wrong.iter().map(|what| format!("  WRONG: {what}\n")).collect();
        say(&format!(
            "schedule {number} went wrong; its files are in {folder}; to go through it again: \
            diesweep torture --seed {seed} --only {number}\n{}{}{}",
            suffered.schedule,
            struck.concat(),
            wrong.concat()
        ));
    } else if always {
        say(&format!(
            "schedule {number} went well; its files are in {folder}\n{}{}",
            suffered.schedule,
            struck.concat()
        ));
    }
}

fn closing_line(report: &Report, seed: u64, seconds: f64) -> String {
    let Report { schedules, failed, points, struck, calls } = report;
    let verdict = match failed {
        0 => "no difference, no run lost or done twice, nothing left over".to_owned(),
        failed => format!("{failed} went wrong"),
    };
    let hit = points.len();
    format!(
        "{schedules} schedules of seed {seed}, {calls} calls, {struck} faults at {hit} points and at events, {seconds:.0} s: {verdict}\n"
    )
}

/// Prints; a reader that is gone changes nothing.
fn say(text: &str) {
    let _ = print(text);
}
