//! CPU dies: groups of cores.

use crate::worker::{BindError, cores_allowed};

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
}
