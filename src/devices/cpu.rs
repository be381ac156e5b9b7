//! The CPU as a die.

use serde::Serialize;

/// Cores that runs can use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CpuDie {
    /// Model, where the system tells.
    pub model: Option<String>,
    /// Cores that this process may run on.
    pub cores: usize,
    /// NUMA nodes.
    pub numa_nodes: usize,
}

impl CpuDie {
    /// This machine's.
    pub fn read() -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let nodes = std::fs::read_dir("/sys/devices/system/node").into_iter().flatten().filter_map(Result::ok);
        let is_node = |name: &str| {
            name.strip_prefix("node").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        let numa_nodes = nodes.filter(|entry| is_node(&entry.file_name().to_string_lossy())).count().max(1);
        Self {
            model: model(&info),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            numa_nodes,
        }
    }
}

fn model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_read_where_there_is_one() {
        let info = "processor\t: 0\nmodel name\t: AMD EPYC 7B13\ncpu MHz\t\t: 2450\n";
        assert_eq!(model(info).as_deref(), Some("AMD EPYC 7B13"));
        assert_eq!(model("processor : 0\n"), None);
    }

    #[test]
    fn this_machine_has_a_core() {
        let cpu = CpuDie::read();
        assert!(cpu.cores >= 1 && cpu.numa_nodes >= 1);
    }
}
