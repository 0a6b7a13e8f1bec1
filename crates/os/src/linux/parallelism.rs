//! How many threads of the process can run at the same time. Nothing here allocates, because locks
//! ask for this number in their slow paths.

use core::fmt::Arguments;

use super::file::read;
pub use super::nodes::processors_of_process;
use crate::quota::CpuQuota;

/// The quota of the process' control group (version 2) in whole processors, at least one.
/// `u32::MAX` without a quota. Takes about 20 to 100 us.
pub fn processors_of_quota() -> u32 {
    let mut text = [0; 2048];
    let groups = read(format_args!("/proc/self/cgroup"), &mut text);
    groups.and_then(|groups| cpus_of_quotas(groups, &cpu_max)).unwrap_or(u32::MAX).max(1)
}

fn cpu_max(name: Arguments<'_>) -> Option<CpuQuota> {
    read(name, &mut [0; 64]).and_then(CpuQuota::of_cpu_max)
}

/// The smallest quota of the process' control group (version 2) and all its ancestors, in whole
/// processors.
fn cpus_of_quotas(groups: &str, cpu_max: &dyn Fn(Arguments<'_>) -> Option<CpuQuota>) -> Option<u32> {
    let path = path_of_version_2(groups)?;
    let mut least = None;
    for (end, byte) in path.bytes().enumerate() {
        // The text before a slash is an ancestor. The text before the line feed is the group.
        if byte == b'/' || byte == b'\n' {
            let group = path.split_at(end).0;
            if let Some(quota) = cpu_max(format_args!("/sys/fs/cgroup{group}/cpu.max")) {
                let cpus = quota.whole_cpus();
                least = Some(least.map_or(cpus, |least: usize| least.min(cpus)));
            }
        }
        if byte == b'\n' {
            break;
        }
    }
    u32::try_from(least?).ok()
}

/// The rest of the text of `/proc/self/cgroup` from the path of the group on. The path follows
/// `0::` at the beginning of a line.
fn path_of_version_2(groups: &str) -> Option<&str> {
    let mut begin = 0;
    for (end, byte) in groups.bytes().enumerate() {
        if byte == b'\n' {
            let line = groups.split_at(begin).1;
            if let [b'0', b':', b':', ..] = line.as_bytes() {
                return Some(line.split_at(3).1);
            }
            begin = end + 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_topology::HostTopology;

    #[test]
    #[cfg_attr(miri, ignore)] // asks the kernel
    fn the_number_is_within_that_of_the_topology() {
        let machine = HostTopology::of_this_process();
        // Only `HostTopology` reads quotas of version 1.
        let cpus = machine.parallelism()..=machine.allowed.len();
        let told = processors_of_process().unwrap().min(processors_of_quota()) as usize;
        assert!(cpus.contains(&told), "{told} instead of {cpus:?}");
    }

    #[test]
    fn the_least_quota_on_the_way_to_the_root_counts() {
        let quotas = |name: Arguments<'_>| {
            let text = match &*name.to_string() {
                "/sys/fs/cgroup/cpu.max" => "max 100000\n",
                "/sys/fs/cgroup/a/cpu.max" => "250000 100000\n",
                "/sys/fs/cgroup/a/b/cpu.max" => "400000 100000\n",
                "/sys/fs/cgroup/a/c/cpu.max" => "150000 100000\n",
                "/sys/fs/cgroup/a/d/cpu.max" => "50000 100000\n",
                _ => return None,
            };
            CpuQuota::of_cpu_max(text)
        };
        for (groups, expected) in [
            ("0::/\n", None),
            ("0::/a\n", Some(2)),
            ("1:cpu:/x\n0::/a/b\n2:x:/a/d\n", Some(2)),
            ("0::/a/c\n", Some(1)),
            ("0::/a/d\n", Some(1)),
            ("0::/elsewhere\n", None),
            ("1:cpu:/a\n", None),
        ] {
            assert_eq!(cpus_of_quotas(groups, &quotas), expected, "{groups}");
        }
    }
}
