//! How many threads of the process can run at the same time. Nothing here allocates, because locks
//! ask for this number in their slow paths.

use core::fmt::{Arguments, Display};

use super::file::with_file;
pub use super::nodes::processors_of_process;
use crate::quota::CpuQuota;

/// The quota of the process' control group (version 2) in whole processors, at least one.
/// `u32::MAX` without a quota. Takes about 20 to 100 us.
pub fn processors_of_quota() -> u32 {
    let groups = format_args!("/proc/self/cgroup");
    let quota = with_file::<2048, _>(groups, |groups| cpus_of_quotas(groups, &cpu_max));
    quota.flatten().unwrap_or(u32::MAX).max(1)
}

fn cpu_max(name: Arguments<'_>) -> Option<CpuQuota> {
    with_file::<64, _>(name, CpuQuota::of_cpu_max).flatten()
}

/// The smallest quota of the process' control group (version 2) and all its ancestors, in whole
/// processors.
fn cpus_of_quotas(groups: &str, cpu_max: &dyn Fn(Arguments<'_>) -> Option<CpuQuota>) -> Option<u32> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?.trim_end_matches('/');
    let group = |path: &dyn Display| cpu_max(format_args!("/sys/fs/cgroup{path}/cpu.max"));
    let ancestors = path.match_indices('/').map(|(end, _)| &path[..end]).chain([path]);
    let cpus = ancestors.filter_map(|path| group(&path)).map(|quota| quota.whole_cpus()).min()?;
    u32::try_from(cpus).ok()
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
            ("1:cpu:/x\n0::/a/b\n", Some(2)),
            ("0::/a/c\n", Some(1)),
            ("0::/a/d\n", Some(1)),
            ("0::/elsewhere\n", None),
            ("1:cpu:/a\n", None),
        ] {
            assert_eq!(cpus_of_quotas(groups, &quotas), expected, "{groups}");
        }
    }
}
