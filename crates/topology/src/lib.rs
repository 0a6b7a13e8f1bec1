//! The machine of the process: CPUs, NUMA nodes, caches, and the part of them that the process may
//! use.
//!
//! The data comes from the files of the kernel, without any library. It is no error if a file is
//! missing or makes no sense. If the NUMA node of a CPU is not known, all CPUs are on one NUMA
//! node. A CPU without known siblings has none. If no cache is known, the CPUs of a NUMA node share
//! one.
//!
//! Source: the kernel's documents "ABI/stable/sysfs-devices-node",
//! "ABI/testing/sysfs-devices-system-cpu" and "admin-guide/cputopology".

mod cgroup;
mod list;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub use list::NumberList;
pub use nearlock_os::CpuQuota;
use nearlock_os::{CACHES_MAX, affinity};

/// The distances of a NUMA node from itself and from the others, if the system does not report
/// them. The values are those of ACPI.
const DISTANCE_LOCAL: u32 = 10;
const DISTANCE_REMOTE: u32 = 20;

/// A machine as the process sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTopology {
    /// CPUs that exist or could be plugged in.
    pub possible: NumberList,
    /// CPUs that run.
    pub online: NumberList,
    /// CPUs that run and that the process may use: its affinity.
    pub allowed: NumberList,
    /// NUMA nodes, at least one, in ascending order. A NUMA node may have no CPU (memory only).
    /// There may be gaps between the numbers.
    pub nodes: Vec<NumaNode>,
    /// The running CPUs of each core, in ascending order of the first CPU.
    pub cores: Vec<NumberList>,
    /// The running CPUs that share each last-level cache, in ascending order of the first CPU.
    pub last_level_caches: Vec<LastLevelCache>,
    /// The processor time that the control groups of the process allow.
    pub quota: Option<CpuQuota>,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumaNode {
    /// The number of the NUMA node.
    pub number: u32,
    /// The running CPUs of the NUMA node.
    pub cpus: NumberList,
    /// The distance to each NUMA node of [`HostTopology::nodes`], in their order. 10 is local, 20
    /// is twice as far.
    pub distances: Vec<u32>,
}

/// A last-level cache: the last one before memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastLevelCache {
    /// The level of the cache. 0 if the system does not report caches.
    pub level: u32,
    /// The running CPUs that share the cache.
    pub cpus: NumberList,
}

impl HostTopology {
    /// Reads this machine, as the calling thread may use it.
    pub fn of_this_process() -> Self {
        Self::read(Path::new("/"), affinity().map(NumberList::from_iter))
    }

    /// Reads the machine whose files are below `root`, for a thread of this affinity (`None`: all
    /// CPUs).
    pub fn read(root: &Path, affinity: Option<NumberList>) -> Self {
        let cpu = root.join("sys/devices/system/cpu");
        let one = || NumberList::from_iter([0]);
        let known = |name| list(&cpu.join(name)).filter(|list| !list.is_empty());
        let online = known("online").or_else(|| affinity.clone()).unwrap_or_else(one);
        let possible = known("possible").unwrap_or_else(|| online.clone());
        let allowed = affinity.map_or_else(|| online.clone(), |affinity| affinity.and(&online));
        let nodes = nodes(&root.join("sys/devices/system/node"), &online)
            .unwrap_or_else(|| vec![NumaNode::only(online.clone())]);
        let cores = cores(&cpu, &online);
        let last_level_caches = last_level_caches(&cpu, &online, &nodes);
        let quota = cgroup::quota(root);
        Self { possible, online, allowed, nodes, cores, last_level_caches, quota }
    }

    /// Returns the NUMA node of a running CPU.
    pub fn node_of_cpu(&self, cpu: u32) -> Option<&NumaNode> {
        self.nodes.iter().find(|node| node.cpus.contains(cpu))
    }

    /// Returns the NUMA nodes that the process can run on: those with a CPU that it may use.
    pub fn allowed_nodes(&self) -> impl Iterator<Item = &NumaNode> {
        self.nodes.iter().filter(|node| node.cpus.iter().any(|cpu| self.allowed.contains(cpu)))
    }

    /// Returns how many threads of the process can run at the same time. This is the number of CPUs
    /// that it may use, but at most the number of whole CPUs in its quota, and at least one.
    pub fn parallelism(&self) -> usize {
        let quota = self.quota.map_or(usize::MAX, |quota| quota.whole_cpus());
        self.allowed.len().min(quota).max(1)
    }
}

impl NumaNode {
    fn only(cpus: NumberList) -> Self {
        Self { number: 0, cpus, distances: vec![DISTANCE_LOCAL] }
    }
}

/// The text of a file, if it can be read.
fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn list(path: &Path) -> Option<NumberList> {
    NumberList::parse(&text(path)?)
}

fn number(path: &Path) -> Option<u32> {
    text(path)?.trim().parse().ok()
}

/// The NUMA nodes of this directory. `None` unless each CPU is on exactly one of them.
fn nodes(directory: &Path, online: &NumberList) -> Option<Vec<NumaNode>> {
    let numbers = list(&directory.join("online"))?;
    let mut nodes = Vec::with_capacity(numbers.len());
    for number in numbers.iter() {
        let files = directory.join(format!("node{number}"));
        let cpus = list(&files.join("cpulist"))?.and(online);
        let distances = distances(&files).filter(|distances| distances.len() == numbers.len());
        let usual = || {
            let distance = |other| if other == number { DISTANCE_LOCAL } else { DISTANCE_REMOTE };
            numbers.iter().map(distance).collect()
        };
        nodes.push(NumaNode { number, cpus, distances: distances.unwrap_or_else(usual) });
    }
    let placed: Vec<u32> = nodes.iter().flat_map(|node| node.cpus.iter()).collect();
    let all = placed.len() == online.len() && &placed.into_iter().collect::<NumberList>() == online;
    all.then_some(nodes)
}

fn distances(node: &Path) -> Option<Vec<u32>> {
    text(&node.join("distance"))?.split_whitespace().map(|word| word.parse().ok()).collect()
}

/// The CPUs of each core. `core_cpus_list` is the newer name of a file that existed before.
fn cores(cpu: &Path, online: &NumberList) -> Vec<NumberList> {
    let siblings = |number: u32| {
        let topology = cpu.join(format!("cpu{number}/topology"));
        let names = ["core_cpus_list", "thread_siblings_list"];
        let list = names.iter().find_map(|name| list(&topology.join(name)))?.and(online);
        list.contains(number).then_some(list)
    };
    groups(online.iter().map(|cpu| (cpu, siblings(cpu).unwrap_or_else(|| NumberList::from_iter([cpu])))))
}

/// The groups that CPUs say they belong to. A CPU in the group of an earlier CPU belongs to that
/// group.
fn groups(of_cpus: impl Iterator<Item = (u32, NumberList)>) -> Vec<NumberList> {
    let mut groups: Vec<NumberList> = Vec::new();
    for (cpu, group) in of_cpus {
        if !groups.iter().any(|known| known.contains(cpu)) {
            let others = group.iter().filter(|&other| !groups.iter().any(|known| known.contains(other)));
            let group = others.collect();
            groups.push(group);
        }
    }
    groups
}

fn last_level_caches(cpu: &Path, online: &NumberList, nodes: &[NumaNode]) -> Vec<LastLevelCache> {
    let mut levels = BTreeMap::new();
    let of_cpus = online.iter().map(|number| {
        let known = last_level_cache(&cpu.join(format!("cpu{number}/cache")));
        let known = known.map(|(level, cpus)| (level, cpus.and(online)));
        let known = known.filter(|(_, cpus)| cpus.contains(number));
        let of_node = || {
            let node = nodes.iter().find(|node| node.cpus.contains(number));
            (0, node.map_or_else(|| NumberList::from_iter([number]), |node| node.cpus.clone()))
        };
        let (level, cpus) = known.unwrap_or_else(of_node);
        levels.insert(number, level);
        (number, cpus)
    });
    let groups = groups(of_cpus);
    let level_of = |cpus: &NumberList| cpus.iter().next().and_then(|cpu| levels.get(&cpu)).copied();
    groups.into_iter().map(|cpus| LastLevelCache { level: level_of(&cpus).unwrap_or(0), cpus }).collect()
}

/// The level and the CPUs of the cache with the highest level that holds data.
fn last_level_cache(caches: &Path) -> Option<(u32, NumberList)> {
    let known = (0..CACHES_MAX).filter_map(|index| {
        let cache = caches.join(format!("index{index}"));
        let holds_data = text(&cache.join("type")).is_none_or(|text| text.trim() != "Instruction");
        let level = number(&cache.join("level")).filter(|&level| level < CACHES_MAX && holds_data)?;
        Some((level, list(&cache.join("shared_cpu_list"))?))
    });
    known.max_by_key(|(level, _)| *level)
}
