//! Whether the kernel killed processes for want of memory.

use std::fs;
use std::path::{Path, PathBuf};

/// Counts of processes that the kernel killed for want of memory: of this machine, and of this process's control group.
/// What cannot be read is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OomKills(Vec<Option<u64>>);

impl OomKills {
    /// The counts as they are.
    pub(super) fn now() -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let group = event_files(&groups).into_iter().map(|path| count(&path));
        Self(std::iter::once(count(Path::new("/proc/vmstat"))).chain(group).collect())
    }

    /// Whether one of them is higher than it was.
    pub(super) fn grew_since(&self, before: &Self) -> bool {
        self.0.iter().zip(&before.0).any(|(now, before)| now.zip(*before).is_some_and(|(now, before)| now > before))
    }
}

/// The files that count kills of the control groups that `/proc/self/cgroup` names: version 2 first, then version 1.
/// Within a container the group's own folder may be the root of what is mounted.
fn event_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let path = path.trim_start_matches('/');
        let (root, name) = match controllers {
            "" => (Path::new("/sys/fs/cgroup"), "memory.events"),
            controllers if controllers.split(',').any(|c| c == "memory") => {
                (Path::new("/sys/fs/cgroup/memory"), "memory.oom_control")
            }
            _ => continue,
        };
        files.push(root.join(path).join(name));
        files.push(root.join(name));
    }
    files
}

fn count(path: &Path) -> Option<u64> {
    oom_kill_of(&fs::read_to_string(path).ok()?)
}

fn oom_kill_of(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_in_each_kind_of_file() {
        assert_eq!(oom_kill_of("low 0\nhigh 0\nmax 5\noom 1\noom_kill 3\noom_group_kill 0\n"), Some(3));
        assert_eq!(oom_kill_of("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"), Some(2));
        assert_eq!(oom_kill_of("pgfault 7\noom_kill 12\n"), Some(12));
        assert_eq!(oom_kill_of("pgfault 7\n"), None);
    }

    #[test]
    fn groups_of_both_versions_are_found() {
        let both = event_files("12:cpu,memory:/job/step\n1:name=systemd:/x\n0::/user.slice/a:b\n");
        let both: Vec<_> = both.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(
            both,
            [
                "/sys/fs/cgroup/memory/job/step/memory.oom_control",
                "/sys/fs/cgroup/memory/memory.oom_control",
                "/sys/fs/cgroup/user.slice/a:b/memory.events",
                "/sys/fs/cgroup/memory.events",
            ]
        );
    }

    #[test]
    fn only_a_higher_count_of_the_same_file_tells() {
        let kills = |counts: &[Option<u64>]| OomKills(counts.to_vec());
        let before = kills(&[Some(3), None]);
        assert!(!kills(&[Some(3), Some(9)]).grew_since(&before));
        assert!(kills(&[Some(4), None]).grew_since(&before));
        assert!(!kills(&[None, None]).grew_since(&before));
    }
}
