//! Whether there is memory and disk for a sweep, before it starts.

use std::path::Path;

use crate::backend::cpu::memory::worker_bytes;
use crate::event::Past;
use crate::plan::Plan;
use crate::plan::work::{checkpoint_bytes, files_bytes};
use crate::resources::{available_memory, free_disk};

/// Not even one worker has enough memory.
#[derive(Debug, thiserror::Error)]
#[error(
    "a worker of this sweep takes about {} of memory, and {} are available: a smaller batch or seq_len takes less",
    mib(*needed), mib(*available)
)]
pub(super) struct TooLittleMemory {
    needed: u64,
    available: u64,
}

/// The number of dies, of those asked for, whose workers the available memory holds, and what is to be said where that
/// is fewer.
///
/// # Errors
/// It holds not even one.
pub(super) fn dies_that_fit(
    plan: &Plan,
    past: &[Past],
    dies: usize,
) -> Result<(usize, Option<String>), TooLittleMemory> {
    let open = plan.runs.iter().zip(past).filter(|(_, past)| **past == Past::Open);
    let needed = open.map(|(run, _)| worker_bytes(&run.settings)).max();
    match (needed, available_memory()) {
        (Some(needed), Some(available)) => fit(needed, available, dies),
        _ => Ok((dies, None)),
    }
}

fn fit(needed: u64, available: u64, dies: usize) -> Result<(usize, Option<String>), TooLittleMemory> {
    let room = usize::try_from(available / needed.max(1)).unwrap_or(usize::MAX);
    match room {
        0 => Err(TooLittleMemory { needed, available }),
        room if room < dies => {
            let (needed, available) = (mib(needed), mib(available));
            let text =
                format!("{room} of {dies} dies are used: a worker takes about {needed} of the {available} available");
            Ok((room, Some(text)))
        }
        _ => Ok((dies, None)),
    }
}

/// What is to be said where the disk may be too small for what the open runs will write.
pub(super) fn disk_warning(plan: &Plan, past: &[Past], dies: usize, folder: &Path) -> Option<String> {
    let open = || plan.runs.iter().zip(past).filter(|(_, past)| **past == Past::Open).map(|(run, _)| &run.settings);
    // Each die has two checkpoints and one that is being written.
    let largest = open().map(checkpoint_bytes).max().unwrap_or(0);
    let files: u64 = open().map(files_bytes).fold(0, u64::saturating_add);
    let kept = if plan.options.keep_checkpoints { 2 * open().count() as u64 } else { 3 * dies as u64 };
    tight(files.saturating_add(largest.saturating_mul(kept)), free_disk(folder)?, folder)
}

fn tight(needed: u64, free: u64, folder: &Path) -> Option<String> {
    (needed > free).then(|| {
        let (needed, free) = (mib(needed), mib(free));
        format!("logs and checkpoints take about {needed}, and {free} are free in {}", folder.display())
    })
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn as_many_dies_as_memory_holds() {
        assert!(matches!(fit(100 * MIB, 1000 * MIB, 4), Ok((4, None))));
        let (dies, text) = fit(100 * MIB, 350 * MIB, 4).unwrap();
        assert_eq!(dies, 3);
        let want = "3 of 4 dies are used: a worker takes about 100 MiB of the 350 MiB available";
        assert_eq!(text.as_deref(), Some(want));
        let want = "a worker of this sweep takes about 100 MiB of memory, and 99 MiB are available: a smaller batch or \
            seq_len takes less";
        assert_eq!(fit(100 * MIB, 99 * MIB, 4).unwrap_err().to_string(), want);
    }

    #[test]
    fn a_small_disk_is_told_of() {
        assert_eq!(tight(MIB, MIB, Path::new("r")), None);
        let want = "logs and checkpoints take about 5 MiB, and 2 MiB are free in r";
        assert_eq!(tight(5 * MIB, 2 * MIB, Path::new("r")).as_deref(), Some(want));
    }
}
