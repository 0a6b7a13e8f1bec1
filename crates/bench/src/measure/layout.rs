//! This machine as a symmetric machine, as in a machine file: all sockets, all cache domains and
//! all cores are alike.

use std::collections::BTreeSet;

use nearlock_sim::spec::{CORES_MAX, DOMAINS_MAX};
use nearlock_topology::{HostTopology, NumberList};

/// Largest number of hardware threads per core in a machine file.
const SMT_MAX: usize = 8;

/// A core of the description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// Its NUMA node, as an index into [`Layout::hops`].
    pub node: usize,
    /// Its cache domain, numbered over all NUMA nodes.
    pub domain: usize,
    /// Those of its hardware threads that are described, with the system's numbers.
    pub cpus: Vec<u32>,
}

/// The largest symmetric part of the CPUs that the process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The cores by NUMA node, and by domain within a node.
    pub cores: Vec<Core>,
    /// Number of hops between each pair of NUMA nodes; 0 for the same one.
    pub hops: Vec<Vec<usize>>,
    /// CPUs that the process may use, but that do not fit into the description.
    pub left_out: NumberList,
    /// Whether there are more last-level caches than a machine file can have. Each NUMA node then
    /// counts as one cache.
    pub merged_caches: bool,
}

/// CPUs by NUMA node, domain and core.
type Tree = Vec<Vec<Vec<Vec<u32>>>>;

/// Number of elements in each element of the level above.
#[derive(Clone, Copy)]
struct Shape {
    nodes: usize,
    domains: usize,
    cores: usize,
    threads: usize,
}

impl Layout {
    /// The layout of the CPUs that the process may use.
    pub fn of(machine: &HostTopology) -> Self {
        let by_cache = tree(machine, true);
        let merged_caches = by_cache.iter().map(Vec::len).sum::<usize>() > DOMAINS_MAX;
        let tree = if merged_caches { tree(machine, false) } else { by_cache };
        let shape = largest(&tree);
        let mut cores = Vec::new();
        let mut numbers = Vec::new();
        for (number, domains) in tree.iter().enumerate() {
            if numbers.len() == shape.nodes || fitting_domains(domains, shape) < shape.domains {
                continue;
            }
            let fitting = domains.iter().filter(|domain| fitting_cores(domain, shape.threads) >= shape.cores);
            for (index, domain) in fitting.take(shape.domains).enumerate() {
                let whole = domain.iter().filter(|cpus| cpus.len() >= shape.threads).take(shape.cores);
                cores.extend(whole.map(|cpus| Core {
                    node: numbers.len(),
                    domain: numbers.len() * shape.domains + index,
                    cpus: cpus[..shape.threads].to_vec(),
                }));
            }
            numbers.push(number);
        }
        let kept: BTreeSet<u32> = cores.iter().flat_map(|core| core.cpus.iter().copied()).collect();
        let left_out = machine.allowed.iter().filter(|cpu| !kept.contains(cpu)).collect();
        Self { cores, hops: hops(machine, &numbers), left_out, merged_caches }
    }

    /// Number of NUMA nodes, which a machine file calls sockets.
    pub fn nodes(&self) -> usize {
        self.hops.len()
    }

    /// Cores of a NUMA node.
    pub fn cores_per_node(&self) -> usize {
        self.cores.len() / self.nodes()
    }

    /// Cores that share a last-level cache.
    pub fn cores_per_domain(&self) -> usize {
        self.cores.iter().filter(|core| core.domain == 0).count()
    }

    /// Hardware threads of a core.
    pub fn smt(&self) -> usize {
        self.cores.first().map_or(1, |core| core.cpus.len())
    }

    /// All described CPUs.
    pub fn cpus(&self) -> NumberList {
        self.cores.iter().flat_map(|core| core.cpus.iter().copied()).collect()
    }

    /// Number of distances inside a NUMA node.
    pub fn local_distances(&self) -> usize {
        if self.cores_per_domain() == self.cores_per_node() { 1 } else { 2 }
    }

    /// Names of the distances between cores, nearest first.
    pub fn distances(&self) -> Vec<String> {
        let local: &[&str] = if self.local_distances() == 1 { &["socket"] } else { &["domain", "socket"] };
        let farthest = self.hops.iter().flatten().max().copied().unwrap_or(0);
        let remote = (1..=farthest)
            .map(|hop| if farthest == 1 { "remote".to_owned() } else { format!("remote-{hop}") });
        local.iter().map(|&name| name.to_owned()).chain(remote).collect()
    }

    /// The distance between two cores, as an index into [`Layout::distances`].
    pub fn distance(&self, a: &Core, b: &Core) -> usize {
        if a.domain == b.domain { 0 } else { self.local_distances() - 1 + self.hops[a.node][b.node] }
    }
}

/// The CPUs that the process may use, by NUMA node, last-level cache (if `by_cache`) and core.
fn tree(machine: &HostTopology, by_cache: bool) -> Tree {
    let cores_of = |cpus: &NumberList| -> Vec<Vec<u32>> {
        let cores = machine.cores.iter().map(|core| core.and(cpus).iter().collect::<Vec<_>>());
        cores.filter(|core| !core.is_empty()).collect()
    };
    let nodes = machine.nodes.iter().map(|node| {
        let cpus = node.cpus.and(&machine.allowed);
        if !by_cache {
            return vec![cores_of(&cpus)];
        }
        let domains = machine.last_level_caches.iter().map(|cache| cores_of(&cache.cpus.and(&cpus)));
        domains.filter(|domain| !domain.is_empty()).collect()
    });
    nodes.collect()
}

fn fitting_cores(domain: &[Vec<u32>], threads: usize) -> usize {
    domain.iter().filter(|cpus| cpus.len() >= threads).count()
}

fn fitting_domains(domains: &[Vec<Vec<u32>>], shape: Shape) -> usize {
    domains.iter().filter(|domain| fitting_cores(domain, shape.threads) >= shape.cores).count()
}

/// The shape with the most CPUs. Among several, the one with the most cores, then with the most
/// NUMA nodes.
fn largest(tree: &Tree) -> Shape {
    let domains_max = tree.iter().map(Vec::len).max().unwrap_or(1);
    let all = || tree.iter().flatten();
    let cores_max = all().map(Vec::len).max().unwrap_or(1).min(CORES_MAX);
    let threads_max = all().flatten().map(Vec::len).max().unwrap_or(1).min(SMT_MAX);
    let mut best = Shape { nodes: 1, domains: 1, cores: 1, threads: 1 };
    for threads in 1..=threads_max {
        for cores in 1..=cores_max {
            for domains in 1..=domains_max.min(CORES_MAX / cores).min(DOMAINS_MAX) {
                let shape = Shape { nodes: 0, domains, cores, threads };
                let fitting = tree.iter().filter(|node| fitting_domains(node, shape) >= domains).count();
                let most = (CORES_MAX / (cores * domains)).min(DOMAINS_MAX / domains);
                let shape = Shape { nodes: fitting.min(most), ..shape };
                let size = |Shape { nodes, domains, cores, threads }| {
                    (nodes * domains * cores * threads, nodes * domains * cores, nodes)
                };
                if size(shape) > size(best) {
                    best = shape;
                }
            }
        }
    }
    best
}

/// Hops between these NUMA nodes: the ranks of the distances that the system reports.
fn hops(machine: &HostTopology, numbers: &[usize]) -> Vec<Vec<usize>> {
    let far = |a: usize, b: usize| machine.nodes[a].distances[b].max(machine.nodes[b].distances[a]);
    let pairs = || numbers.iter().flat_map(|&a| numbers.iter().map(move |&b| (a, b)));
    let ranks: BTreeSet<u32> = pairs().filter(|(a, b)| a != b).map(|(a, b)| far(a, b)).collect();
    let hop = |a: usize, b: usize| {
        if a == b { 0 } else { 1 + ranks.iter().take_while(|&&rank| rank < far(a, b)).count() }
    };
    numbers.iter().map(|&a| numbers.iter().map(|&b| hop(a, b)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_topology::{LastLevelCache, NumaNode};

    fn list(text: &str) -> NumberList {
        NumberList::parse(text).expect("a list")
    }

    /// A machine whose NUMA nodes, caches and cores are given by their CPUs.
    fn machine(nodes: &[(&str, &[u32])], caches: &[&str], cores: &[&str], allowed: &str) -> HostTopology {
        let online: NumberList =
            nodes.iter().flat_map(|(cpus, _)| list(cpus).iter().collect::<Vec<_>>()).collect();
        HostTopology {
            possible: online.clone(),
            online,
            allowed: list(allowed),
            nodes: nodes
                .iter()
                .enumerate()
                .map(|(number, (cpus, distances))| NumaNode {
                    number: number as u32,
                    cpus: list(cpus),
                    distances: distances.to_vec(),
                })
                .collect(),
            cores: cores.iter().map(|cpus| list(cpus)).collect(),
            last_level_caches: caches
                .iter()
                .map(|cpus| LastLevelCache { level: 3, cpus: list(cpus) })
                .collect(),
            quota: None,
        }
    }

    /// Two sockets, each with two caches of two cores with two hardware threads each.
    fn big(allowed: &str) -> Layout {
        let cores = ["0,8", "1,9", "2,10", "3,11", "4,12", "5,13", "6,14", "7,15"];
        let nodes: [(&str, &[u32]); 2] = [("0-3,8-11", &[10, 21]), ("4-7,12-15", &[21, 10])];
        Layout::of(&machine(&nodes, &["0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"], &cores, allowed))
    }

    fn sizes(layout: &Layout) -> [usize; 4] {
        [layout.nodes(), layout.cores_per_node(), layout.cores_per_domain(), layout.smt()]
    }

    #[test]
    fn a_symmetric_machine_is_described_as_it_is() {
        let layout = big("0-15");
        assert_eq!(sizes(&layout), [2, 4, 2, 2]);
        assert_eq!(layout.distances(), ["domain", "socket", "remote"]);
        assert!(layout.left_out.is_empty() && !layout.merged_caches);
        let from_first = |other: usize| layout.distance(&layout.cores[0], &layout.cores[other]);
        assert_eq!([1, 2, 3, 4, 7].map(from_first), [0, 1, 1, 2, 2]);
        assert_eq!(layout.cores[5], Core { node: 1, domain: 2, cpus: vec![5, 13] });
    }

    #[test]
    fn of_odd_sets_the_largest_symmetric_part_is_kept() {
        // One thread of most cores gives more CPUs than two threads of some cores.
        let layout = big("0-7,8");
        assert_eq!(sizes(&layout), [2, 4, 2, 1]);
        assert_eq!(layout.left_out, list("8"));
        // One whole domain of each socket.
        let layout = big("0-2,4-5");
        assert_eq!((sizes(&layout), layout.left_out.to_string()), ([2, 2, 2, 1], "2".to_owned()));
        let layout = big("5");
        assert_eq!((sizes(&layout), layout.distances()), ([1, 1, 1, 1], vec!["socket".to_owned()]));
        assert_eq!(layout.cores[0].cpus, [5]);
        // One core of each socket.
        let layout = big("3,4");
        assert_eq!(sizes(&layout), [2, 1, 1, 1]);
        assert_eq!(layout.distances(), ["socket", "remote"]);
    }

    #[test]
    fn distances_of_the_system_are_hops() {
        let nodes: [(&str, &[u32]); 4] = [
            ("0", &[10, 16, 32, 32]),
            ("1", &[16, 10, 32, 32]),
            ("2", &[32, 32, 10, 16]),
            ("3", &[32, 33, 16, 10]),
        ];
        let layout = Layout::of(&machine(&nodes, &["0", "1", "2", "3"], &["0", "1", "2", "3"], "0-3"));
        assert_eq!(layout.hops, [[0, 1, 2, 2], [1, 0, 2, 3], [2, 2, 0, 1], [2, 3, 1, 0]]);
        assert_eq!(layout.distances(), ["socket", "remote-1", "remote-2", "remote-3"]);
    }

    #[test]
    fn a_machine_is_cut_to_what_a_file_can_have() {
        let numbers: Vec<String> = (0..400).map(|cpu| cpu.to_string()).collect();
        let each: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let nodes: [(&str, &[u32]); 2] = [("0-199", &[10, 20]), ("200-399", &[20, 10])];
        let layout = Layout::of(&machine(&nodes, &each, &each, "0-399"));
        assert!(layout.merged_caches, "400 caches");
        assert_eq!(sizes(&layout), [2, 128, 128, 1]);
        assert_eq!(layout.left_out.len(), 400 - 256);
    }
}
