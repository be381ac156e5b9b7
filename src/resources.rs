//! What this machine has left for this process: memory, and room on a disk.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of memory that processes of this one's control group may still take: the least of what the machine has
/// available and of what each limit above the group leaves. `None` where the kernel tells nothing.
pub fn available_memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| meminfo(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    machine.into_iter().chain(folders(&groups).iter().filter_map(|folder| left(folder))).min()
}

/// Bytes that are free for this user on the file system of `path`.
pub fn free_disk(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// `MemAvailable` of /proc/meminfo.
fn meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The folders of the control groups that limit this process's memory, outermost last: of version 2, and of version 1's memory
/// controller. Within a container the group's own path may not be there, but the root is.
fn folders(groups: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let root = match controllers {
            "" => Path::new("/sys/fs/cgroup"),
            controllers if controllers.split(',').any(|c| c == "memory") => Path::new("/sys/fs/cgroup/memory"),
            _ => continue,
        };
        let group = root.join(path.trim_start_matches('/'));
        folders.extend(group.ancestors().take_while(|folder| folder.starts_with(root)).map(Path::to_owned));
    }
    folders
}

/// What a group's limit leaves. The pages of files that it holds can be dropped and count as free.
fn left(folder: &Path) -> Option<u64> {
    let number = |name: &str| -> Option<u64> { fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok() };
    let (limit, used) = match number("memory.max") {
        Some(limit) => (limit, number("memory.current")?),
        // Version 1 writes a number near 2^63 for no limit.
        None => (number("memory.limit_in_bytes").filter(|&limit| limit < 1 << 60)?, number("memory.usage_in_bytes")?),
    };
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let pages = ["inactive_file ", "active_file "].iter().filter_map(|key| {
        stat.lines().find_map(|line| line.strip_prefix(key)).and_then(|value| value.trim().parse::<u64>().ok())
    });
    Some(limit.saturating_sub(used.saturating_sub(pages.sum())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_has_is_read() {
        assert_eq!(meminfo("MemTotal:  4 kB\nMemAvailable:    2 kB\n"), Some(2048));
        assert_eq!(meminfo("MemTotal:  4 kB\n"), None);
        assert!(available_memory().is_some_and(|bytes| bytes > 0));
        assert!(free_disk(Path::new("/")).is_some());
        assert_eq!(free_disk(Path::new("/no/such/place")), None);
    }

    #[test]
    fn a_groups_limit_leaves_what_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        assert_eq!(left(folder.path()), None);
        write("memory.max", "max\n");
        assert_eq!(left(folder.path()), None);
        write("memory.max", "1000\n");
        write("memory.current", "700\n");
        assert_eq!(left(folder.path()), Some(300));
        write("memory.stat", "anon 400\ninactive_file 200\nactive_file 50\n");
        assert_eq!(left(folder.path()), Some(550));
    }

    #[test]
    fn limits_of_all_groups_above_count() {
        let folders = folders("0::/a/b\n5:cpu,memory:/j\n6:pids:/p\n");
        let folders: Vec<_> = folders.iter().map(|path| path.to_str().unwrap()).collect();
        let v1 = ["/sys/fs/cgroup/memory/j", "/sys/fs/cgroup/memory"];
        assert_eq!(folders, [&["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"][..], &v1].concat());
    }
}
