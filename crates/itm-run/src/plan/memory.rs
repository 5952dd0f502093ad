//! How much memory a process can still take, on Linux.

use std::fs;
use std::path::Path;

use crate::system::bytes_of;

/// Bytes that this process can still take: the minimum of the machine's available memory and the memory left in each control
/// group around the process, of version 1 or 2. `None` if the system reports neither.
pub(crate) fn available() -> Option<u64> {
    available_below(Path::new("/"))
}

/// [`available`] with `root` in place of `/`.
fn available_below(root: &Path) -> Option<u64> {
    let machine = bytes_of(&root.join("proc/meminfo"), "MemAvailable:");
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| group(root, line));
    machine.into_iter().chain(limits).min()
}

/// The bytes left in the control group of a line `number:controllers:path` and in the groups around it: the minimum.
fn group(root: &Path, line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let mounted = root.join("sys/fs/cgroup");
    let (mounted, names) = match controllers {
        "" => (mounted, V2),
        some if some.split(',').any(|c| c == "memory") => (mounted.join("memory"), V1),
        _ => return None,
    };
    // Inside a container the path may exist only outside: then the mount itself is the group.
    let inner = mounted.join(path.trim_start_matches('/'));
    let around = inner.ancestors().take_while(|folder| folder.starts_with(&mounted));
    around.filter_map(|folder| left(folder, &names)).min()
}

/// Names of the files of a control group: its limit, its use, and the lines of `memory.stat` that count cached files.
type Names = [&'static str; 4];

const V1: Names =
    ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"];
const V2: Names = ["memory.max", "memory.current", "inactive_file", "active_file"];

/// Limit minus use. Cached files do not count as use: they give way when a program needs memory. `None` without a limit.
fn left(folder: &Path, [limit, used, cached @ ..]: &Names) -> Option<u64> {
    let number =
        |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let (limit, used) = (number(limit)?, number(used)?); // "max" is no number
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cached = stat.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        cached.contains(&name).then(|| value.trim().parse::<u64>().ok()).flatten()
    });
    Some(limit.saturating_sub(used.saturating_sub(cached.sum())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The available memory of a machine with these files.
    fn machine(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        available_below(root.path())
    }

    const FREE: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:       24684084 kB\nMemFree:        13890064 kB\nMemAvailable:   10000000 kB\n",
    );

    #[test]
    fn the_least_of_machine_and_groups() {
        assert_eq!(machine(&[]), None);
        assert_eq!(machine(&[("proc/meminfo", "MemTotal: 5 kB\n")]), None);
        assert_eq!(machine(&[FREE]), Some(10_240_000_000));
        // Version 2: a limit of 3,000,000 with 500,000 used, 100,000 + 50,000 of them by cached files. The group around it
        // has less left: 2,000,000 − 400,000.
        let two = [
            FREE,
            ("proc/self/cgroup", "0::/outer/inner\n"),
            ("sys/fs/cgroup/outer/inner/memory.max", "3000000\n"),
            ("sys/fs/cgroup/outer/inner/memory.current", "500000\n"),
            (
                "sys/fs/cgroup/outer/inner/memory.stat",
                "anon 9\ninactive_file 100000\nactive_file 50000\n",
            ),
            ("sys/fs/cgroup/outer/memory.max", "2000000\n"),
            ("sys/fs/cgroup/outer/memory.current", "400000\n"),
        ];
        assert_eq!(machine(&two), Some(1_600_000));
        assert_eq!(machine(&two[..5]), Some(2_650_000));
        let unlimited = [FREE, two[1], ("sys/fs/cgroup/outer/inner/memory.max", "max\n"), two[3]];
        assert_eq!(machine(&unlimited), Some(10_240_000_000));
        // A path that exists only outside the container: the limit is at the mount.
        let inside = [
            FREE,
            ("proc/self/cgroup", "0::/docker/0123\n"),
            ("sys/fs/cgroup/memory.max", "700000\n"),
            ("sys/fs/cgroup/memory.current", "800000\n"),
        ];
        assert_eq!(machine(&inside), Some(0), "more used than allowed");
        // Version 1: the controller is one of several; 9223372036854771712 means no limit.
        let one = |limit| {
            machine(&[
                FREE,
                ("proc/self/cgroup", "5:cpu:/x\n4:hugetlb,memory:/job\n0::/\n"),
                ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", limit),
                ("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "300000\n"),
                ("sys/fs/cgroup/memory/job/memory.stat", "cache 7\ntotal_inactive_file 100000\n"),
            ])
        };
        assert_eq!(one("1000000\n"), Some(800_000));
        assert_eq!(one("9223372036854771712\n"), Some(10_240_000_000));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_some() {
        assert!(available().is_some_and(|bytes| bytes > 1 << 20));
    }
}
