//! The dies that `diesweep run` trains on.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::backend::cuda::library::{Host, load_driver};
use crate::controller::{CpuDies, DieSpec, DiesError, GpuPin};
use crate::devices::{Devices, Pick, PickError, cores_of_node, pick};
use crate::store::GpuState;
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
}

/// The dies to train on.
pub(super) struct Dies {
    pub(super) specs: Vec<DieSpec>,
    /// What the user should know of them.
    pub(super) notes: Vec<String>,
    pub(super) cuda: bool,
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
            Self::Cpu(DiesError::Mask(_)) | Self::Gpu { pick: PickError::Unusable(_), .. } => 1,
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
            let skipped = picked.skipped.iter().map(|why| format!("{why}; --share uses it all the same"));
            Ok(Dies { specs: picked.dies.iter().map(spec).collect(), notes: skipped.collect(), cuda: true })
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

fn on_cpu(asked: &Asked<'_>) -> Result<Dies, ChooseError> {
    let number = |text: &str| text.parse::<u16>().map_err(|_| ChooseError::NotANumber(text.to_owned()));
    let count = asked.dies.map(number).transpose()?;
    let dies = CpuDies::of_this_process(count.map(usize::from), asked.threads)?;
    let cores = dies.cores.first().map_or(0, Vec::len);
    let shared = format!("{} dies of {} threads share {cores} cores", dies.cores.len(), dies.threads);
    let notes = if dies.shared { vec![shared] } else { Vec::new() };
    Ok(Dies { specs: dies.specs(), notes, cuda: false })
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
