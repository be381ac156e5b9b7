//! The dies of this machine: which there are, which this process may use, and in what state they are.

mod cores;
mod cpu;
mod pick;
mod table;
mod visible;

pub use cores::cores_of_node;
pub use cpu::CpuDie;
pub use pick::{Pick, PickError, Picked, pick};
pub use table::render;
pub use visible::{Chosen, Known, Selection, visible};

use serde::Serialize;

/// Oldest chips that the kernels run on.
pub const OLDEST: (u32, u32) = (3, 5);

/// How the reason begins that other processes use a die.
const IN_USE: &str = "in use by";

/// What `diesweep devices` knows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Devices {
    /// Driver and management library, where there are any.
    pub driver: Option<Driver>,
    /// Why no GPU could be listed; none where GPUs are listed.
    pub no_gpu: Option<String>,
    /// First entry of `CUDA_VISIBLE_DEVICES` that names no die: it and what follows it select nothing.
    pub mask_stops_at: Option<String>,
    /// GPU dies in PCI order.
    pub dies: Vec<GpuDie>,
    /// The CPU's.
    pub cpu: CpuDie,
}

/// Versions of the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Driver {
    /// Driver, e.g. 470.256.02.
    pub version: String,
    /// Newest CUDA that it takes, e.g. 11.4.
    pub cuda: String,
}

/// One GPU die. A reading that the driver does not give is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GpuDie {
    /// Place in PCI order, as `nvidia-smi` counts.
    pub index: u32,
    /// UUID, `GPU-…`.
    pub uuid: String,
    /// UUIDs of its MIG instances.
    pub mig: Vec<String>,
    /// Model.
    pub name: String,
    /// PCI bus.
    pub pci: String,
    /// Board: dies with the same number share it.
    pub board: Option<u32>,
    /// NUMA node of its bus.
    pub numa_node: Option<u32>,
    /// Bytes of memory in all.
    pub memory_total: Option<u64>,
    /// Bytes in use.
    pub memory_used: Option<u64>,
    /// Major and minor compute capability.
    pub compute_capability: Option<(u32, u32)>,
    /// Clocks of the multiprocessors.
    pub sm_clock: Clock,
    /// Clocks of the memory.
    pub memory_clock: Clock,
    /// Whether ECC is on.
    pub ecc: Option<bool>,
    /// Uncorrected ECC errors since the driver was loaded.
    pub ecc_errors: Option<u64>,
    /// What holds its clocks down now.
    pub throttling: Vec<String>,
    /// Degrees Celsius.
    pub temperature: Option<u32>,
    /// Processes that compute on it.
    pub processes: Vec<GpuProcess>,
    /// Why it cannot be used; none where it can.
    pub unusable: Option<String>,
}

/// A clock in MHz.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Clock {
    /// Now.
    pub now: Option<u32>,
    /// The highest that is allowed.
    pub allowed: Option<u32>,
}

/// A process on a die.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GpuProcess {
    /// Its id.
    pub pid: u32,
    /// Its name, where it can be read.
    pub name: Option<String>,
    /// Bytes of the die's memory that it holds.
    pub memory: Option<u64>,
}

impl Devices {
    /// Reads this machine's dies. Never fails: what cannot be read is absent, and said.
    pub fn read() -> Self {
        let mut devices = crate::backend::cuda::nvml::read();
        let mask = std::env::var("CUDA_VISIBLE_DEVICES").ok();
        devices.judge(mask.as_deref(), std::process::id());
        devices
    }

    /// Says of each die whether it can be used, under a mask, by the process `own`.
    fn judge(&mut self, mask: Option<&str>, own: u32) {
        let known: Vec<Known> =
            self.dies.iter().map(|die| Known { uuid: die.uuid.clone(), mig: die.mig.clone() }).collect();
        let selection = visible(mask, &known);
        for (i, die) in self.dies.iter_mut().enumerate() {
            let seen = selection.chosen.iter().any(|chosen| chosen.die == i);
            die.unusable = reason(die, seen, own);
        }
        self.mask_stops_at = selection.stopped_at;
    }
}

fn reason(die: &GpuDie, seen: bool, own: u32) -> Option<String> {
    if !seen {
        return Some("hidden by CUDA_VISIBLE_DEVICES".to_owned());
    }
    if let Some(capability) = die.compute_capability.filter(|&c| c < OLDEST) {
        let (major, minor) = capability;
        let (oldest, dot) = OLDEST;
        return Some(format!("compute capability {major}.{minor} is below {oldest}.{dot}"));
    }
    let foreign: Vec<String> = die.processes.iter().filter(|p| p.pid != own).map(GpuProcess::describe).collect();
    (!foreign.is_empty()).then(|| format!("{IN_USE} {}", foreign.join(", ")))
}

impl GpuProcess {
    fn describe(&self) -> String {
        match &self.name {
            Some(name) => format!("{} ({name})", self.pid),
            None => self.pid.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn k80(index: u32, board: u32) -> GpuDie {
        GpuDie {
            index,
            uuid: format!("GPU-0000000{index}-1111-2222-3333-444444444444"),
            name: "Tesla K80".to_owned(),
            pci: format!("00000000:0{}:00.0", 4 + index),
            board: Some(board),
            numa_node: Some(0),
            memory_total: Some(11_996_954_624),
            memory_used: Some(0),
            compute_capability: Some((3, 7)),
            sm_clock: Clock { now: Some(562), allowed: Some(875) },
            memory_clock: Clock { now: Some(2505), allowed: Some(2505) },
            ecc: Some(true),
            ecc_errors: Some(0),
            temperature: Some(41),
            ..GpuDie::default()
        }
    }

    fn judged(mask: Option<&str>, mut dies: Vec<GpuDie>, change: impl FnOnce(&mut Vec<GpuDie>)) -> Vec<Option<String>> {
        change(&mut dies);
        let cpu = CpuDie { model: None, cores: 2, numa_nodes: 1 };
        let mut devices = Devices { driver: None, no_gpu: None, mask_stops_at: None, dies, cpu };
        devices.judge(mask, 77);
        devices.dies.into_iter().map(|die| die.unusable).collect()
    }

    #[test]
    fn each_die_says_why_it_cannot_be_used() {
        let process = |pid, name: Option<&str>| GpuProcess { pid, name: name.map(str::to_owned), memory: None };
        let reasons = judged(Some("0,1,2"), vec![k80(0, 1), k80(1, 1), k80(2, 2), k80(3, 2)], |dies| {
            dies[1].processes = vec![process(12, Some("python3")), process(77, None), process(13, None)];
            dies[2].compute_capability = Some((3, 0));
        });
        assert_eq!(
            reasons,
            [
                None,
                Some("in use by 12 (python3), 13".to_owned()),
                Some("compute capability 3.0 is below 3.5".to_owned()),
                Some("hidden by CUDA_VISIBLE_DEVICES".to_owned()),
            ]
        );
    }

    #[test]
    fn without_readings_a_die_is_still_usable() {
        let bare = GpuDie { uuid: "GPU-1".to_owned(), ..GpuDie::default() };
        assert_eq!(judged(None, vec![bare], |_| ()), [None]);
    }
}
