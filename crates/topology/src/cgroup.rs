//! The processor time that the process may use: the quotas of its control groups.
//!
//! Source: the kernel's administrator's guide, "Control Group v2" (`cpu.max`), and "CFS Bandwidth
//! Control" (`cpu.cfs_quota_us`).

use std::path::{Component, Path, PathBuf};

use nearlock_os::CpuQuota;

use super::text;

/// The least quota of the process' control groups and all their ancestors. `None` if none of them
/// has a quota, or the system does not report it. Systems mount control groups below
/// `/sys/fs/cgroup`.
pub fn quota(root: &Path) -> Option<CpuQuota> {
    let groups = text(&root.join("proc/self/cgroup"))?;
    let mounts = root.join("sys/fs/cgroup");
    let mut quotas = Vec::new();
    for line in groups.lines() {
        // number:controllers:path. In version 2 there are no controllers.
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        if controllers.is_empty() {
            for mount in [mounts.clone(), mounts.join("unified")] {
                quotas.extend(least_along(&mount, path, version_2));
            }
        } else if controllers.split(',').any(|controller| controller == "cpu") {
            for mount in [mounts.join(controllers), mounts.join("cpu")] {
                quotas.extend(least_along(&mount, path, version_1));
            }
        }
    }
    quotas.into_iter().min_by(|a, b| a.cpus().total_cmp(&b.cpus()))
}

/// The least quota of the group and its ancestors up to the mount. Invisible ancestors, as in a
/// container, have none.
fn least_along(mount: &Path, path: &str, of_group: fn(&Path) -> Option<CpuQuota>) -> Option<CpuQuota> {
    let names = Path::new(path).components().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let mut group = PathBuf::from(mount);
    let mut quotas = Vec::from_iter(of_group(&group));
    for name in names {
        group.push(name);
        quotas.extend(of_group(&group));
    }
    quotas.into_iter().min_by(|a, b| a.cpus().total_cmp(&b.cpus()))
}

fn version_2(group: &Path) -> Option<CpuQuota> {
    CpuQuota::of_cpu_max(&text(&group.join("cpu.max"))?)
}

/// A quota of -1 means that there is none.
fn version_1(group: &Path) -> Option<CpuQuota> {
    let number = |name| text(&group.join(name))?.trim().parse().ok();
    CpuQuota::of(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
}
