//! Ties a worker to its parent and to its cores.

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A worker could not be tied to its parent or its cores.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The parent-death signal cannot be set.
    #[error("the parent-death signal cannot be set")]
    DeathSignal(#[source] rustix::io::Errno),
    /// The parent ended between the fork and now.
    #[error("process {expected} is not the parent of this worker")]
    Orphan {
        /// Process that should be the parent.
        expected: u32,
    },
    /// The mask cannot be read.
    #[error("the affinity mask cannot be read")]
    Read(#[source] rustix::io::Errno),
    /// A core lies outside the inherited mask.
    #[error("core {core} is not among the cores that this process may use")]
    Outside {
        /// The core.
        core: usize,
    },
    /// The mask cannot be set.
    #[error("this process cannot be pinned to cores {cores:?}")]
    Pin {
        /// The cores.
        cores: Vec<usize>,
        /// Cause.
        #[source]
        source: rustix::io::Errno,
    },
}

/// Has the kernel kill this process when the thread that started it ends.
pub(super) fn to_parent(parent: u32) -> Result<(), BindError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(BindError::DeathSignal)?;
    // A parent that ended before the line above sends no signal any more.
    let actual = getppid().map(Pid::as_raw_nonzero).map(|pid| pid.get().unsigned_abs());
    if actual == Some(parent) { Ok(()) } else { Err(BindError::Orphan { expected: parent }) }
}

/// Cores that this process may run on, ascending.
///
/// # Errors
/// The kernel does not tell.
pub fn cores_allowed() -> Result<Vec<usize>, BindError> {
    let mask = sched_getaffinity(None).map_err(BindError::Read)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| mask.is_set(core)).collect())
}

/// Pins this thread, and all that it starts, to `cores`; none asked for: leaves the mask as it is. Never widens
/// the mask. Returns the cores that the kernel says it is pinned to.
pub(super) fn to_cores(cores: &[usize]) -> Result<Vec<usize>, BindError> {
    if !cores.is_empty() {
        let allowed = cores_allowed()?;
        if let Some(&core) = cores.iter().find(|core| !allowed.contains(core)) {
            return Err(BindError::Outside { core });
        }
        let mut mask = CpuSet::new();
        cores.iter().for_each(|&core| mask.set(core));
        sched_setaffinity(None, &mask).map_err(|source| BindError::Pin { cores: cores.to_vec(), source })?;
    }
    cores_allowed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_within_the_mask_and_never_beyond() {
        // The mask is a thread's own: a thread of its own leaves the other tests alone.
        std::thread::spawn(|| {
            let allowed = cores_allowed().unwrap();
            let last = *allowed.last().unwrap();
            assert_eq!(to_cores(&[last]).unwrap(), [last]);
            assert!(matches!(to_cores(&[last + 1]), Err(BindError::Outside { core }) if core == last + 1));
            if allowed.len() > 1 {
                assert!(matches!(to_cores(&allowed), Err(BindError::Outside { .. })));
            }
            assert_eq!(cores_allowed().unwrap(), [last]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_stranger_is_no_parent() {
        let me = std::process::id();
        assert!(matches!(to_parent(me), Err(BindError::Orphan { expected }) if expected == me));
        set_parent_process_death_signal(None).unwrap();
    }
}
