//! Machines made of files in a directory.

use super::*;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// A directory with the files of a machine. It is removed when this is dropped.
struct Fixture(PathBuf);

impl Fixture {
    /// A machine with these running CPUs, and without files on NUMA nodes, cores and caches.
    fn new(cpus: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("nearlock-topology-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let fixture = Self(std::env::temp_dir().join(name));
        fixture.cpu("online", cpus).cpu("possible", cpus);
        fixture
    }

    fn file(&self, name: &str, text: &str) -> &Self {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    fn cpu(&self, name: &str, text: &str) -> &Self {
        self.file(&format!("sys/devices/system/cpu/{name}"), text)
    }

    fn node(&self, name: &str, text: &str) -> &Self {
        self.file(&format!("sys/devices/system/node/{name}"), text)
    }

    /// Adds one of a CPU's caches.
    fn cache(&self, cpu: u32, index: u32, level: &str, kind: &str, shared: &str) -> &Self {
        let cache = format!("cpu{cpu}/cache/index{index}");
        self.cpu(&format!("{cache}/level"), level)
            .cpu(&format!("{cache}/type"), kind)
            .cpu(&format!("{cache}/shared_cpu_list"), shared)
    }

    fn read(&self) -> HostTopology {
        HostTopology::read(&self.0, None)
    }

    fn read_with(&self, affinity: &str) -> HostTopology {
        HostTopology::read(&self.0, NumberList::parse(affinity))
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `number: CPUs (distances)` of each node.
fn nodes(machine: &HostTopology) -> Vec<String> {
    machine.nodes.iter().map(|node| format!("{}: {} {:?}", node.number, node.cpus, node.distances)).collect()
}

fn cores(machine: &HostTopology) -> Vec<String> {
    machine.cores.iter().map(ToString::to_string).collect()
}

fn caches(machine: &HostTopology) -> Vec<String> {
    machine.last_level_caches.iter().map(|cache| format!("L{}: {}", cache.level, cache.cpus)).collect()
}

#[test]
#[cfg_attr(miri, ignore)] // makes files
fn nothing_at_all_is_one_node() {
    let nowhere = HostTopology::read(Path::new("/nowhere/at/all"), None);
    assert_eq!((nodes(&nowhere), cores(&nowhere)), (vec!["0: 0 [10]".into()], vec!["0".into()]));
    assert_eq!((nowhere.parallelism(), nowhere.quota), (1, None));
    let bound = HostTopology::read(Path::new("/nowhere/at/all"), NumberList::parse("2-3"));
    assert_eq!((nodes(&bound), bound.parallelism()), (vec!["0: 2-3 [10]".into()], 2));
}

#[test]
#[cfg_attr(miri, ignore)] // makes files
fn without_a_node_directory_all_cpus_are_on_one_node() {
    let machine = Fixture::new("0-3").read();
    assert_eq!(nodes(&machine), ["0: 0-3 [10]"]);
    assert_eq!(cores(&machine), ["0", "1", "2", "3"]);
    assert_eq!(caches(&machine), ["L0: 0-3"]);
    assert_eq!(machine.allowed, machine.online);
}

#[test]
#[cfg_attr(miri, ignore)] // makes files
fn two_nodes_with_two_threads_to_a_core() {
    let fixture = Fixture::new("0-7");
    fixture.node("online", "0-1");
    fixture.node("node0/cpulist", "0-1,4-5").node("node0/distance", "10 21");
    fixture.node("node1/cpulist", "2-3,6-7").node("node1/distance", "21 10");
    for cpu in 0..8 {
        let (first, second) = (cpu % 4, cpu % 4 + 4);
        fixture.cpu(&format!("cpu{cpu}/topology/thread_siblings_list"), &format!("{first},{second}"));
        let socket = if first < 2 { "0-1,4-5" } else { "2-3,6-7" };
        fixture.cache(cpu, 0, "1", "Data", &format!("{first},{second}"));
        fixture.cache(cpu, 1, "1", "Instruction", &format!("{first},{second}"));
        fixture.cache(cpu, 2, "3", "Unified", socket);
    }
    let machine = fixture.read();
    assert_eq!(nodes(&machine), ["0: 0-1,4-5 [10, 21]", "1: 2-3,6-7 [21, 10]"]);
    assert_eq!(cores(&machine), ["0,4", "1,5", "2,6", "3,7"]);
    assert_eq!(caches(&machine), ["L3: 0-1,4-5", "L3: 2-3,6-7"]);
    assert_eq!(machine.node_of_cpu(6).unwrap().number, 1);
    assert!(machine.node_of_cpu(8).is_none());
}

#[test]
#[cfg_attr(miri, ignore)] // makes files
fn node_numbers_may_be_left_out() {
    let fixture = Fixture::new("0-3");
    fixture.node("online", "0,8").node("node0/cpulist", "0-1").node("node8/cpulist", "2-3");
    fixture.node("node0/distance", "10 40").node("node8/distance", "40 10");
    let machine = fixture.read();
    assert_eq!(nodes(&machine), ["0: 0-1 [10, 40]", "8: 2-3 [40, 10]"]);
    assert_eq!(machine.node_of_cpu(2).unwrap().number, 8);
}

#[test]
#[cfg_attr(miri, ignore)] // makes files
fn a_node_may_have_no_cpu_and_odd_distances_are_the_usual_ones() {
    let fixture = Fixture::new("0-1");
    fixture.node("online", "0-1").node("node0/cpulist", "0-1").node("node1/cpulist", "");
    fixture.node("node0/distance", "10 far").node("node1/distance", "10");
    let machine = fixture.read();
    assert_eq!(nodes(&machine), ["0: 0-1 [10, 20]", "1:  [20, 10]"]);
    assert_eq!(machine.allowed_nodes().count(), 1);
}

#[test]
#[cfg_attr(miri, ignore)] // makes files
fn cpus_that_do_not_run_are_on_no_node() {
    let fixture = Fixture::new("0,2-3");
    fixture.cpu("possible", "0-7");
    fixture.node("online", "0-1").node("node0/cpulist", "0").node("node1/cpulist", "2-3");
    fixture.cpu("cpu2/topology/core_cpus_list", "1-2").cpu("cpu3/topology/core_cpus_list", "3");
    let machine = fixture.read();
    assert_eq!((machine.possible.len(), machine.online.to_string()), (8, "0,2-3".into()));
    assert_eq!(nodes(&machine), ["0: 0 [10, 20]", "1: 2-3 [20, 10]"]);
    assert_eq!(cores(&machine), ["0", "2", "3"]);
}

#[test]
#[cfg_attr(miri, ignore)] // makes files
fn a_restricted_process_can_run_on_some_nodes_only() {
    let fixture = Fixture::new("0-7");
    fixture.node("online", "0-1").node("node0/cpulist", "0-3").node("node1/cpulist", "4-7");
    let machine = fixture.read_with("5-6,9");
    assert_eq!(machine.allowed.to_string(), "5-6");
    assert_eq!(machine.allowed_nodes().map(|node| node.number).collect::<Vec<_>>(), [1]);
    assert_eq!((machine.nodes.len(), machine.parallelism()), (2, 2));
}

#[test]
#[cfg_attr(miri, ignore)] // makes files
fn cores_of_different_kinds_have_different_caches() {
    let fixture = Fixture::new("0-5");
    // Two large cores share a third-level cache. Two small ones share a second-level cache of their
    // own. One core has no files, and the list of another one does not contain the core itself.
    for cpu in 0..2 {
        fixture.cache(cpu, 0, "2", "Unified", &cpu.to_string());
        fixture.cache(cpu, 1, "3", "Unified", "0-1");
    }
    for cpu in 2..4 {
        fixture.cache(cpu, 0, "2", "Unified", "2-3");
        fixture.cache(cpu, 1, "9", "Instruction", "0-5");
    }
    fixture.cache(5, 0, "2", "Unified", "0-1");
    assert_eq!(caches(&fixture.read()), ["L3: 0-1", "L2: 2-3", "L0: 4-5"]);
}

#[test]
#[cfg_attr(miri, ignore)] // makes files
fn garbage_is_one_node() {
    let garbage = ["", "x", "0-", "99999999999999999999", "0-65536", "\u{0}\u{1}", "7-0", "0,,1", "-"];
    for text in garbage {
        let fixture = Fixture::new("0-1");
        fixture.node("online", text).node("node0/cpulist", "0-1");
        assert_eq!(nodes(&fixture.read()), ["0: 0-1 [10]"], "online {text:?}");

        let fixture = Fixture::new("0-1");
        fixture.node("online", "0-1").node("node0/cpulist", "0-1").node("node1/cpulist", text);
        let expected = if text.is_empty() { 2 } else { 1 };
        assert_eq!(fixture.read().nodes.len(), expected, "cpulist {text:?}");

        let fixture = Fixture::new(text);
        fixture.cpu("cpu0/topology/core_cpus_list", text).cache(0, 0, text, text, text);
        fixture.file("proc/self/cgroup", text);
        let machine = fixture.read_with("0-1");
        assert_eq!((nodes(&machine), caches(&machine)), (vec!["0: 0-1 [10]".into()], vec!["L0: 0-1".into()]));
    }
}

#[test]
#[cfg_attr(miri, ignore)] // makes files
fn nodes_that_share_or_lack_a_cpu_are_garbage() {
    for (first, second) in [("0-1", "1"), ("0", ""), ("0", "2")] {
        let fixture = Fixture::new("0-1");
        fixture.node("online", "0-1").node("node0/cpulist", first).node("node1/cpulist", second);
        assert_eq!(nodes(&fixture.read()), ["0: 0-1 [10]"], "{first} {second}");
    }
}

fn quota(files: &[(&str, &str)]) -> Option<f64> {
    let fixture = Fixture::new("0-7");
    for (name, text) in files {
        fixture.file(name, text);
    }
    fixture.read().quota.map(|quota| quota.cpus())
}

#[test]
#[cfg_attr(miri, ignore)] // makes files
fn the_least_quota_of_a_group_and_its_ancestors_counts() {
    let own = ("proc/self/cgroup", "0::/a/b");
    let unlimited = ("sys/fs/cgroup/a/b/cpu.max", "max 100000");
    assert_eq!(quota(&[own, unlimited]), None);
    assert_eq!(quota(&[own, unlimited, ("sys/fs/cgroup/a/cpu.max", "150000 100000")]), Some(1.5));
    let outer = ("sys/fs/cgroup/cpu.max", "400000 100000");
    assert_eq!(quota(&[own, outer, ("sys/fs/cgroup/a/b/cpu.max", "20000 10000")]), Some(2.0));
    assert_eq!(quota(&[own, outer, ("sys/fs/cgroup/a/b/cpu.max", "800000 100000")]), Some(4.0));
    assert_eq!(quota(&[own, ("sys/fs/cgroup/elsewhere/cpu.max", "1000 100000")]), None);
    // In a container the path may not exist, and an upward path leads nowhere.
    assert_eq!(quota(&[("proc/self/cgroup", "0::/docker/0123"), outer]), Some(4.0));
    assert_eq!(quota(&[("proc/self/cgroup", "0::/../b"), outer]), Some(4.0));
    assert_eq!(quota(&[("proc/self/cgroup", "0::/"), ("sys/fs/cgroup/unified/cpu.max", "1 2")]), Some(0.5));
}

#[test]
#[cfg_attr(miri, ignore)] // makes files
fn quotas_of_version_1_count_too() {
    let own = ("proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/a:b\n0::/");
    let period = ("sys/fs/cgroup/cpu,cpuacct/a:b/cpu.cfs_period_us", "100000");
    let limited = ("sys/fs/cgroup/cpu,cpuacct/a:b/cpu.cfs_quota_us", "250000");
    assert_eq!(quota(&[own, period, limited]), Some(2.5));
    assert_eq!(quota(&[own, period, ("sys/fs/cgroup/cpu,cpuacct/a:b/cpu.cfs_quota_us", "-1")]), None);
    let both = [own, period, limited, ("sys/fs/cgroup/cpu.max", "50000 100000")];
    assert_eq!(quota(&both), Some(0.5), "the least of both");
    let linked = ("sys/fs/cgroup/cpu/a:b/cpu.cfs_quota_us", "300000");
    assert_eq!(quota(&[own, linked, ("sys/fs/cgroup/cpu/a:b/cpu.cfs_period_us", "100000")]), Some(3.0));
}

#[test]
#[cfg_attr(miri, ignore)] // makes files
fn a_quota_that_makes_no_sense_is_none() {
    for text in ["", "max", "0 100000", "100000 0", "-5 100000", "100000", "much more"] {
        assert_eq!(quota(&[("proc/self/cgroup", "0::/"), ("sys/fs/cgroup/cpu.max", text)]), None, "{text}");
    }
}

#[test]
#[cfg_attr(miri, ignore)] // makes files
fn as_many_threads_run_as_affinity_and_quota_allow() {
    for (affinity, max, expected) in
        [("0-7", "max 1", 8), ("0-7", "350 100", 3), ("0", "350 100", 1), ("0-7", "50 100", 1)]
    {
        let fixture = Fixture::new("0-7");
        fixture.file("proc/self/cgroup", "0::/").file("sys/fs/cgroup/cpu.max", max);
        assert_eq!(fixture.read_with(affinity).parallelism(), expected, "{affinity} {max}");
    }
}

#[test]
#[cfg_attr(miri, ignore)] // asks the kernel
fn this_machine_makes_sense() {
    let machine = HostTopology::of_this_process();
    assert!(!machine.allowed.is_empty() && machine.allowed_nodes().count() > 0);
    for groups in [machine.cores.clone(), machine.nodes.iter().map(|node| node.cpus.clone()).collect()] {
        let cpus: NumberList = groups.iter().flat_map(NumberList::iter).collect();
        assert_eq!(cpus, machine.online);
    }
    assert!((1..=machine.online.len()).contains(&machine.parallelism()));
}
