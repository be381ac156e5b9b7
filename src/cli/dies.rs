//! The dies that `diesweep run` trains on.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::backend::cuda::library::{Host, load_driver};
use crate::controller::{CpuDies, DieSpec, DiesError, GpuPin};
use crate::devices::{Devices, Pick, PickError, cores_of_node, pick};
use crate::store::{DieClaim, DieClaimed, GpuState, StoreError};
use crate::worker::cores_allowed;

/// Kinds of dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Backend {
    /// CUDA where there is a GPU, which must be usable then; else the CPU
    Auto,
    /// Groups of CPU cores
    Cpu,
    /// NVIDIA GPUs
    Cuda,
}

/// What the user asks for.
pub(super) struct Asked<'a> {
    pub(super) backend: Backend,
    /// A number of groups of cores, or a list of GPUs.
    pub(super) dies: Option<&'a str>,
    pub(super) threads: usize,
    pub(super) share: bool,
    /// What the dies are used for, for others to read.
    pub(super) sweep: &'a std::path::Path,
}

/// The dies to train on.
pub(super) struct Dies {
    pub(super) specs: Vec<DieSpec>,
    /// What the user should know of them.
    pub(super) notes: Vec<String>,
    pub(super) cuda: bool,
    /// Keeps other controllers of this user off the GPUs, until it is dropped.
    pub(super) _claims: Vec<DieClaim>,
}

/// The dies cannot be had as asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChooseError {
    /// The CPU's.
    #[error(transparent)]
    Cpu(#[from] DiesError),
    /// On the CPU `--dies` is a number.
    #[error("--dies: on the CPU it is a number of dies from 1 to 65535, not `{0}`")]
    NotANumber(String),
    /// GPUs cannot be claimed.
    #[error("GPUs cannot be kept from other controllers: {0}; --share does without")]
    Claim(String),
    /// The GPUs.
    #[error("{pick}{}", driver.as_ref().map_or_else(String::new, |driver| format!("\n{driver}")))]
    Gpu {
        /// What is the matter.
        pick: PickError,
        /// Where the driver was looked for.
        driver: Option<String>,
    },
}

impl ChooseError {
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::Cpu(DiesError::Mask(_)) | Self::Claim(_) | Self::Gpu { pick: PickError::Unusable(_), .. } => 1,
            Self::Cpu(DiesError::Zero(_)) | Self::NotANumber(_) | Self::Gpu { .. } => 2,
        }
    }
}

/// Chooses the dies. Without a GPU, or under a mask that hides all, `auto` means the CPU; a GPU that is there and cannot be used is an
/// error and no reason to train elsewhere.
pub(super) fn choose(asked: &Asked<'_>) -> Result<Dies, ChooseError> {
    if asked.backend == Backend::Cpu {
        return on_cpu(asked);
    }
    let devices = Devices::read();
    let mask = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    match pick(&devices, Pick { mask: mask.as_deref(), listed: asked.dies, share: asked.share }) {
        Ok(picked) => {
            let allowed = cores_allowed().map_err(DiesError::Mask)?;
            let spec = |(die, visible): &(crate::devices::GpuDie, String)| DieSpec {
                cores: die.numa_node.map_or_else(Vec::new, |node| cores_of_node(node, &allowed)),
                gpu: Some(GpuPin {
                    visible: visible.clone(),
                    uuid: die.uuid.clone(),
                    pci: die.pci.clone(),
                    name: die.name.clone(),
                }),
            };
            let mut dies = Dies {
                specs: picked.dies.iter().map(spec).collect(),
                notes: picked.skipped,
                cuda: true,
                _claims: Vec::new(),
            };
            if !asked.share {
                claim(&mut dies, |uuid| DieClaim::take(uuid, &asked.sweep.display().to_string()))?;
            }
            dies.notes.iter_mut().for_each(|why| why.push_str("; --share uses it all the same"));
            Ok(dies)
        }
        Err(PickError::NoGpu(_) | PickError::Masked) if asked.backend == Backend::Auto => on_cpu(asked),
        Err(pick) => {
            let driver = match &pick {
                PickError::NoGpu(_) => load_driver(&Host::this()).err().map(|error| error.to_string()),
                _ => None,
            };
            Err(ChooseError::Gpu { pick, driver })
        }
    }
}

/// Claims each GPU, and leaves out those that another controller has: it may not have started its workers yet, so that nothing
/// else tells of it.
fn claim(dies: &mut Dies, mut take: impl FnMut(&str) -> Result<DieClaimed, StoreError>) -> Result<(), ChooseError> {
    for spec in std::mem::take(&mut dies.specs) {
        let Some(gpu) = &spec.gpu else { continue };
        match take(&gpu.visible).map_err(|error| ChooseError::Claim(error.full_text()))? {
            DieClaimed::Ours(claim) => {
                dies._claims.push(claim);
                dies.specs.push(spec);
            }
            DieClaimed::Taken { holder } => {
                dies.notes.push(format!("die {} ({}) is in use by {holder}", gpu.name, gpu.visible));
            }
        }
    }
    if dies.specs.is_empty() {
        let pick = PickError::Unusable(std::mem::take(&mut dies.notes));
        return Err(ChooseError::Gpu { pick, driver: None });
    }
    Ok(())
}

fn on_cpu(asked: &Asked<'_>) -> Result<Dies, ChooseError> {
    let number = |text: &str| text.parse::<u16>().map_err(|_| ChooseError::NotANumber(text.to_owned()));
    let count = asked.dies.map(number).transpose()?;
    let dies = CpuDies::of_this_process(count.map(usize::from), asked.threads)?;
    let cores = dies.cores.first().map_or(0, Vec::len);
    let shared = format!("{} dies of {} threads share {cores} cores", dies.cores.len(), dies.threads);
    let notes = if dies.shared { vec![shared] } else { Vec::new() };
    Ok(Dies { specs: dies.specs(), notes, cuda: false, _claims: Vec::new() })
}

/// Readings of the dies, for the record beside each result.
pub(super) struct Readings {
    last: Mutex<Option<(Instant, Devices)>>,
}

/// Readings are taken anew after this.
const FRESH: Duration = Duration::from_secs(5);

impl Readings {
    pub(super) const fn new() -> Self {
        Self { last: Mutex::new(None) }
    }

    /// ECC and clocks of a die now; none of one that is not listed any more.
    pub(super) fn of(&self, gpu: &GpuPin) -> Option<GpuState> {
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (_, devices) = match last.take() {
            Some((at, devices)) if at.elapsed() < FRESH => last.insert((at, devices)),
            _ => last.insert((Instant::now(), Devices::read())),
        };
        let die = devices.dies.iter().find(|die| die.uuid == gpu.uuid)?;
        Some(GpuState {
            uuid: gpu.visible.clone(),
            pci: gpu.pci.clone(),
            driver: devices.driver.as_ref().map(|driver| driver.version.clone()),
            ecc: die.ecc,
            ecc_errors: die.ecc_errors,
            sm_clock_mhz: die.sm_clock.now,
            sm_clock_allowed_mhz: die.sm_clock.allowed,
            memory_clock_mhz: die.memory_clock.now,
            throttling: die.throttling.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dies(uuids: &[&str]) -> Dies {
        let pin = |uuid: &&str| GpuPin {
            visible: (*uuid).into(),
            uuid: (*uuid).into(),
            pci: "00000000:04:00.0".into(),
            name: "Tesla K80".into(),
        };
        let specs = uuids.iter().map(|uuid| DieSpec { cores: Vec::new(), gpu: Some(pin(uuid)) }).collect();
        Dies { specs, notes: Vec::new(), cuda: true, _claims: Vec::new() }
    }

    #[test]
    fn a_die_of_another_controller_is_named_and_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let take = |uuid: &str| DieClaim::take_in(folder.path(), uuid, "a.toml");
        let (first, second) = ("GPU-1", "GPU-2");
        let mut ours = dies(&[first]);
        claim(&mut ours, take).unwrap();
        let mut theirs = dies(&[first, second]);
        claim(&mut theirs, take).unwrap();
        let left: Vec<_> =
            theirs.specs.iter().filter_map(|spec| spec.gpu.as_ref()).map(|gpu| gpu.uuid.as_str()).collect();
        assert_eq!(left, [second]);
        let [note] = &theirs.notes[..] else { panic!("{:?}", theirs.notes) };
        assert!(note.starts_with(&format!("die Tesla K80 ({first}) is in use by ")), "{note}");
        assert!(note.ends_with(", for a.toml"), "{note}");
        // None is left: an error, and never the CPU.
        let error = claim(&mut dies(&[first, second]), take).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().starts_with("no die can be used: die Tesla K80"), "{error}");
        drop((ours, theirs));
        let mut free = dies(&[first, second]);
        claim(&mut free, take).unwrap();
        assert_eq!(free.specs.len(), 2);
    }
}
