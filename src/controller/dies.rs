//! Dies: groups of CPU cores, and GPUs.

use crate::event::Device;
use crate::worker::{BindError, cores_allowed};

/// A die as workers are started on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DieSpec {
    /// Cores that its worker is asked to pin itself to; empty: none in particular.
    pub cores: Vec<usize>,
    /// The GPU; none of a group of cores.
    pub gpu: Option<GpuPin>,
}

/// A GPU that a worker is pinned to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuPin {
    /// What `CUDA_VISIBLE_DEVICES` names: its UUID, or that of a MIG instance.
    pub visible: String,
    /// UUID of the whole die.
    pub uuid: String,
    /// PCI bus, `00000000:04:00.0`.
    pub pci: String,
    /// Model.
    pub name: String,
}

impl GpuPin {
    /// Why what a worker opened is not this GPU; none where it is. A driver may name an instance by its own UUID or by its die's.
    pub(super) fn mismatch(&self, opened: Option<&Device>) -> Option<String> {
        let Some(opened) = opened else {
            return Some(format!("it was pinned to {} and opened no GPU", self.visible));
        };
        let same = |uuid: &str| uuid.eq_ignore_ascii_case(&opened.uuid);
        let here = same(&self.visible) || same(&self.uuid);
        (!here || !self.pci.eq_ignore_ascii_case(&opened.pci)).then(|| {
            format!(
                "it was pinned to {} on bus {} and opened {} on bus {}",
                self.visible, self.pci, opened.uuid, opened.pci
            )
        })
    }
}

/// The CPU cannot be divided as asked.
#[derive(Debug, thiserror::Error)]
pub enum DiesError {
    /// The mask cannot be read.
    #[error(transparent)]
    Mask(#[from] BindError),
    /// A number is zero.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
}

/// The dies of this machine's CPU that this process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuDies {
    /// Cores of each die.
    pub cores: Vec<Vec<usize>>,
    /// Threads of each die.
    pub threads: usize,
    /// Whether dies share cores, since there are not enough.
    pub shared: bool,
}

impl CpuDies {
    /// Divides the cores that this process may use. `dies`: how many, by default as many as there are cores for.
    ///
    /// # Errors
    /// A count of zero; the mask cannot be read.
    pub fn of_this_process(dies: Option<usize>, threads: usize) -> Result<Self, DiesError> {
        let allowed = cores_allowed()?;
        // Knows of the quota of a container, which the mask does not show.
        let quota = std::thread::available_parallelism().map_or(allowed.len(), std::num::NonZero::get);
        Self::divide(&allowed, quota, dies, threads)
    }

    /// The dies as workers are started on them.
    pub fn specs(&self) -> Vec<DieSpec> {
        self.cores.iter().map(|cores| DieSpec { cores: cores.clone(), gpu: None }).collect()
    }

    fn divide(allowed: &[usize], quota: usize, dies: Option<usize>, threads: usize) -> Result<Self, DiesError> {
        if threads == 0 {
            return Err(DiesError::Zero("threads per die"));
        }
        let dies = dies.unwrap_or_else(|| (allowed.len().min(quota) / threads).max(1));
        if dies == 0 {
            return Err(DiesError::Zero("the number of dies"));
        }
        let shared = dies.saturating_mul(threads) > allowed.len();
        let cores = if shared {
            vec![allowed.to_vec(); dies]
        } else {
            allowed.chunks(threads).take(dies).map(<[usize]>::to_vec).collect()
        };
        Ok(Self { cores, threads, shared })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divide(allowed: &[usize], quota: usize, dies: Option<usize>, threads: usize) -> (Vec<Vec<usize>>, bool) {
        let dies = CpuDies::divide(allowed, quota, dies, threads).unwrap();
        (dies.cores, dies.shared)
    }

    #[test]
    fn a_core_belongs_to_one_die() {
        assert_eq!(divide(&[0, 1, 4, 5], 4, None, 1), (vec![vec![0], vec![1], vec![4], vec![5]], false));
        assert_eq!(divide(&[0, 1, 4, 5, 7], 5, None, 2), (vec![vec![0, 1], vec![4, 5]], false));
        assert_eq!(divide(&[2, 3, 9], 3, Some(2), 1), (vec![vec![2], vec![3]], false));
    }

    #[test]
    fn a_quota_counts_where_nothing_is_asked() {
        assert_eq!(divide(&[0, 1, 2, 3], 2, None, 1), (vec![vec![0], vec![1]], false));
        assert_eq!(divide(&[0, 1, 2, 3], 2, Some(3), 1).0.len(), 3);
    }

    #[test]
    fn too_few_cores_are_shared_and_never_exceeded() {
        assert_eq!(divide(&[3], 1, Some(2), 1), (vec![vec![3], vec![3]], true));
        assert_eq!(divide(&[0, 1], 2, None, 4), (vec![vec![0, 1]], true));
    }

    #[test]
    fn zero_is_refused() {
        assert!(matches!(CpuDies::divide(&[0], 1, Some(0), 1), Err(DiesError::Zero(_))));
        assert!(matches!(CpuDies::divide(&[0], 1, None, 0), Err(DiesError::Zero(_))));
    }

    #[test]
    fn a_worker_must_have_opened_the_gpu_that_it_was_pinned_to() {
        let pin = |visible: &str| GpuPin {
            visible: visible.into(),
            uuid: "GPU-1".into(),
            pci: "00000000:0A:00.0".into(),
            name: "Tesla K80".into(),
        };
        let opened = |uuid: &str, pci: &str| Device { uuid: uuid.into(), pci: pci.into(), name: "Tesla K80".into() };
        assert_eq!(pin("GPU-1").mismatch(Some(&opened("gpu-1", "00000000:0a:00.0"))), None);
        assert_eq!(pin("MIG-2").mismatch(Some(&opened("GPU-1", "00000000:0a:00.0"))), None);
        assert_eq!(pin("MIG-2").mismatch(Some(&opened("MIG-2", "00000000:0a:00.0"))), None);
        assert_eq!(
            pin("GPU-1").mismatch(Some(&opened("GPU-3", "00000000:0b:00.0"))).unwrap(),
            "it was pinned to GPU-1 on bus 00000000:0A:00.0 and opened GPU-3 on bus 00000000:0b:00.0"
        );
        assert!(pin("GPU-1").mismatch(Some(&opened("GPU-1", "00000000:0b:00.0"))).is_some());
        assert!(pin("GPU-1").mismatch(None).unwrap().ends_with("and opened no GPU"));
    }
}
