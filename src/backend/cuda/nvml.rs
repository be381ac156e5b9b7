//! Reads the dies through the management library, NVML. A reading that a driver lacks is absent; nothing fails for it.

use std::ffi::OsStr;

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock as Kind, EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::{Device, Nvml, cuda_driver_version_major, cuda_driver_version_minor};

use super::library::{self, Candidate, Host, NotFound, Wanted};
use crate::devices::{Clock, CpuDie, Devices, Driver, GpuDie, GpuProcess};

/// What slows a die, in words. (Idling is no slowdown.)
const REASONS: &[(ThrottleReasons, &str)] = &[
    (ThrottleReasons::SW_POWER_CAP, "power cap"),
    (ThrottleReasons::HW_SLOWDOWN, "hardware slowdown"),
    (ThrottleReasons::SYNC_BOOST, "sync boost"),
    (ThrottleReasons::SW_THERMAL_SLOWDOWN, "temperature (software)"),
    (ThrottleReasons::HW_THERMAL_SLOWDOWN, "temperature (hardware)"),
    (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "power brake"),
];

/// All dies of the machine.
pub fn read() -> Devices {
    let bare = |why: String| Devices {
        driver: None,
        no_gpu: Some(why),
        mask_stops_at: None,
        dies: vec![],
        cpu: CpuDie::read(),
    };
    let nvml = match open(&Host::this()) {
        Ok(nvml) => nvml,
        Err(why) => return bare(why),
    };
    let count = match nvml.device_count() {
        Ok(count) => count,
        Err(error) => return bare(format!("the driver does not list its dies: {error}")),
    };
    let dies: Vec<GpuDie> = (0..count)
        .filter_map(|index| match nvml.device_by_index(index) {
            Ok(device) => Some(die(&device, index, &nvml)),
            // A die that has fallen off the bus keeps its place in the list.
            Err(error) => {
                tracing::warn!("die {index} cannot be read: {error}");
                None
            }
        })
        .collect();
    Devices {
        driver: driver(&nvml),
        no_gpu: dies.is_empty().then(|| "the driver lists none".to_owned()),
        mask_stops_at: None,
        dies,
        cpu: CpuDie::read(),
    }
}

/// Opens the library wherever it lies.
fn open(host: &Host<'_>) -> Result<Nvml, String> {
    let (candidates, looked) = library::search(host, Wanted::Nvml);
    let mut refusal = None;
    for candidate in &candidates {
        let name: &OsStr = match candidate {
            Candidate::Name(name) => name.as_ref(),
            Candidate::File(path) => path.as_os_str(),
        };
        match Nvml::builder().lib_path(name).init() {
            Ok(nvml) => return Ok(nvml),
            Err(nvml_wrapper::error::NvmlError::LibloadingError(_)) => {}
            Err(error) => refusal = refusal.or(Some(format!("{candidate}: {error}"))),
        }
    }
    Err(refusal.unwrap_or_else(|| NotFound::new(Wanted::Nvml, looked).to_string()))
}

fn driver(nvml: &Nvml) -> Option<Driver> {
    let cuda = nvml
        .sys_cuda_driver_version()
        .ok()
        .map_or("?".to_owned(), |v| format!("{}.{}", cuda_driver_version_major(v), cuda_driver_version_minor(v)));
    Some(Driver { version: nvml.sys_driver_version().ok()?, cuda })
}

fn die(device: &Device<'_>, index: u32, nvml: &Nvml) -> GpuDie {
    let pci = device.pci_info().ok().map(|pci| pci.bus_id).unwrap_or_default();
    let (memory_total, memory_used) = memory(device, nvml).unzip();
    let reasons = device.current_throttle_reasons().unwrap_or(ThrottleReasons::NONE);
    let clock = |kind: Kind| Clock { now: device.clock_info(kind).ok(), allowed: device.max_clock_info(kind).ok() };
    GpuDie {
        index,
        uuid: device.uuid().unwrap_or_default(),
        mig: instances(device),
        name: device.name().unwrap_or_else(|_| "unknown GPU".to_owned()),
        board: device.board_id().ok(),
        numa_node: numa_node(&pci),
        pci,
        memory_total,
        memory_used,
        compute_capability: device
            .cuda_compute_capability()
            .ok()
            .map(|c| (c.major.unsigned_abs(), c.minor.unsigned_abs())),
        sm_clock: clock(Kind::SM),
        memory_clock: clock(Kind::Memory),
        ecc: device.is_ecc_enabled().ok().map(|ecc| ecc.currently_enabled),
        ecc_errors: device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile).ok(),
        throttling: REASONS.iter().filter(|(r, _)| reasons.contains(*r)).map(|(_, text)| (*text).to_owned()).collect(),
        temperature: device.temperature(TemperatureSensor::Gpu).ok(),
        processes: processes(device, nvml),
        unusable: None,
    }
}

/// Total and used memory, by the newer call or the older.
fn memory(device: &Device<'_>, nvml: &Nvml) -> Option<(u64, u64)> {
    if let Ok(info) = device.memory_info() {
        return Some((info.total, info.used));
    }
    // Drivers before R510 have only the first version of the call.
    let call = nvml.lib().nvmlDeviceGetMemoryInfo.as_ref().ok()?;
    // SAFETY: the struct holds three integers, for which zero is a value; the handle belongs to the open library, which
    // writes the struct.
    let (status, info) = unsafe {
        let mut info = std::mem::zeroed();
        (call(device.handle(), &mut info), info)
    };
    (status == 0).then_some((info.total, info.used))
}

/// Processes that compute on the die, by the newer call or the older.
fn processes(device: &Device<'_>, nvml: &Nvml) -> Vec<GpuProcess> {
    let listed = device.running_compute_processes().or_else(|_| device.running_compute_processes_v2());
    let name = |pid: u32| {
        let own = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|name| name.trim().to_owned());
        own.or_else(|| nvml.sys_process_name(pid, 64).ok())
    };
    listed
        .unwrap_or_default()
        .into_iter()
        .map(|process| GpuProcess {
            pid: process.pid,
            name: name(process.pid),
            memory: match process.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => Some(bytes),
                UsedGpuMemory::Unavailable => None,
            },
        })
        .collect()
}

fn instances(device: &Device<'_>) -> Vec<String> {
    let count = device.mig_device_count().unwrap_or(0);
    let uuid = |i| device.mig_device_by_index(i).ok().and_then(|instance| instance.uuid().ok());
    (0..count).filter_map(uuid).collect()
}

/// NUMA node of a PCI bus id such as `00000000:04:00.0`; none where the system does not know.
fn numa_node(bus: &str) -> Option<u32> {
    let short = bus.get(bus.len().checked_sub(12)?..)?.to_ascii_lowercase();
    let text = std::fs::read_to_string(format!("/sys/bus/pci/devices/{short}/numa_node")).ok()?;
    // -1 means unknown.
    text.trim().parse().ok()
}
