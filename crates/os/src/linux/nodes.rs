//! The NUMA node and the last-level cache of the caller's processor.
//!
//! Nothing here allocates: files are read onto the stack (see [`numa`](crate::numa)).

use core::ffi::{c_int, c_ulong, c_void};
use core::ptr;
use core::sync::atomic::AtomicU16;
use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::NUMA_NODES_MAX;

use super::file::read;
use super::{c, rseq};
use crate::CACHES_MAX;
use crate::ranges::ranges;
use crate::text::number;

/// Whether the system tells the NUMA nodes.
pub const KNOWS_NODES: bool = true;

/// The number of processors whose NUMA node and cache are remembered. The kernel of x86-64 has at
/// most 8192. For a processor beyond these, the kernel is asked each time; with 0 it would be asked
/// each time for all processors.
const CPUS_MAX: usize = 8192;

/// Indexed by processor: a number plus one, or 0 if it is not known yet.
type Remembered = [AtomicU16; CPUS_MAX];

static NUMA_NODES: Remembered = [const { AtomicU16::new(0) }; CPUS_MAX];
static LAST_LEVEL_CACHES: Remembered = [const { AtomicU16::new(0) }; CPUS_MAX];

/// The longest list in a file. The list of a machine with 8192 processors fits, unless the numbers
/// were chosen to make it long.
const LIST_MAX: usize = 4096;

const _: () = assert!(NUMA_NODES_MAX <= u16::MAX as u32);

fn remember(table: &Remembered, cpu: u32, number: u32) -> u32 {
    let number = number.min(NUMA_NODES_MAX - 1);
    if let Some(known) = table.get(cpu as usize) {
        known.store((number + 1) as u16, Relaxed);
    }
    number
}

fn remembered(table: &Remembered, cpu: i32) -> Option<u32> {
    // -1, the failure to tell the processor, is beyond all processors.
    let known = table.get(cpu as usize)?.load(Relaxed);
    u32::from(known).checked_sub(1)
}

/// `sched_getcpu` reads the thread's restartable-sequences area (1 ns, glibc 2.35), whereas the
/// system call costs 100 ns.
#[inline]
fn cpu() -> i32 {
    // SAFETY: has no conditions.
    unsafe { c::sched_getcpu() }
}

/// The processor that the caller runs on, or ran on a moment ago; `None` if that is not known.
pub fn processor() -> Option<u32> {
    u32::try_from(cpu()).ok()
}

/// The NUMA node of the processor that the caller runs on, as the kernel told it for that
/// processor.
#[inline]
pub fn numa_node() -> u32 {
    remembered(&NUMA_NODES, cpu()).unwrap_or_else(ask_numa_node)
}

/// The same, from the thread's restartable-sequences area, which has this offset.
#[inline(always)]
pub fn numa_node_by_rseq(offset: i32) -> u32 {
    // SAFETY: callers have the offset from `rseq::offset`.
    match unsafe { rseq::node(offset) } {
        Some(numa_node) => numa_node.min(NUMA_NODES_MAX - 1),
        None => numa_node(),
    }
}

/// Asks the kernel, and remembers the answer. If the kernel does not tell (as in some sandboxes),
/// there is one NUMA node.
#[cold]
pub fn ask_numa_node() -> u32 {
    let (mut cpu, mut numa_node) = (u32::MAX, 0u32);
    // SAFETY: both pointers are writable and of the right type. The third is unused since Linux
    // 2.6.24.
    unsafe { c::syscall(c::SYS_getcpu, &raw mut cpu, &raw mut numa_node, ptr::null_mut::<c_void>()) };
    remember(&NUMA_NODES, cpu, numa_node)
}

/// The number of NUMA nodes that have processors; 1 if the system does not tell.
pub fn numa_nodes() -> u32 {
    let mut text = [0; LIST_MAX];
    let nodes = read(format_args!("/sys/devices/system/node/has_cpu"), &mut text).and_then(listed);
    nodes.map_or(1, |nodes| nodes.count)
}

/// The last-level cache of the processor that the caller runs on, named by the first processor that
/// shares it. If the system does not tell the caches, the NUMA node instead.
pub fn last_level_cache() -> u32 {
    let cpu = cpu();
    remembered(&LAST_LEVEL_CACHES, cpu).unwrap_or_else(|| {
        let sharing = u32::try_from(cpu).ok().and_then(last_level_cache_of);
        sharing.map_or_else(numa_node, |sharing| remember(&LAST_LEVEL_CACHES, cpu as u32, sharing.first))
    })
}

/// Whether there are at least two last-level caches: whether some online processor does not share
/// the cache of the first online processor.
pub fn several_last_level_caches() -> bool {
    let mut text = [0; LIST_MAX];
    let online = read(format_args!("{CPUS}/online"), &mut text).and_then(listed);
    let Some(online) = online else { return false };
    last_level_cache_of(online.first).is_some_and(|sharing| sharing.count < online.count)
}

const CPUS: &str = "/sys/devices/system/cpu";

/// The parts of a list that are used here.
struct Listed {
    first: u32,
    /// At least 1.
    count: u32,
}

/// `None` if the text is no list, or an empty one.
fn listed(list: &str) -> Option<Listed> {
    let mut all: Option<Listed> = None;
    for range in ranges(list) {
        let range = range?;
        let count = range.end() - range.start() + 1;
        match &mut all {
            None => all = Some(Listed { first: *range.start(), count }),
            Some(all) => all.count += count,
        }
    }
    all
}

/// The processors that share this one's cache of the highest level that holds data.
fn last_level_cache_of(cpu: u32) -> Option<Listed> {
    let mut highest = None;
    let mut level_max = 0;
    let mut text = [0; LIST_MAX];
    for index in 0..CACHES_MAX {
        let level = cache_file(cpu, index, "level", &mut text).and_then(|level| number(level.as_bytes()));
        let Some((level, _)) = level else { continue };
        if level > level_max
            && cache_file(cpu, index, "type", &mut text).is_none_or(|kind| kind.trim_ascii() != "Instruction")
            && let Some(sharing) = cache_file(cpu, index, "shared_cpu_list", &mut text).and_then(listed)
        {
            (level_max, highest) = (level, Some(sharing));
        }
    }
    highest
}

fn cache_file<'a>(cpu: u32, index: u32, name: &str, into: &'a mut [u8]) -> Option<&'a str> {
    read(format_args!("{CPUS}/cpu{cpu}/cache/index{index}/{name}"), into)
}

const LONG_BITS: usize = c_ulong::BITS as usize;

/// A set of processors in the kernel's format. The kernel fills in no more longs than its
/// processors need. On a small 32-bit machine that is one long of four bytes.
type AffinityMask = [c_ulong; CPUS_MAX / LONG_BITS];

/// The processors that a thread of the process may run on. The thread is given by its id; 0 is the
/// caller.
fn mask_of(thread: c_int) -> Option<(AffinityMask, usize)> {
    if cfg!(miri) {
        // Miri has no such call.
        return None;
    }
    let mut mask: AffinityMask = [0; _];
    // SAFETY: the mask is writable, and its size is passed.
    let bytes =
        unsafe { c::syscall(c::SYS_sched_getaffinity, thread, size_of_val(&mask), mask.as_mut_ptr()) };
    Some((mask, usize::try_from(bytes).ok()?))
}

/// How many processors the caller or the first thread of the process may run on.
pub fn processors_of_process() -> Option<u32> {
    // SAFETY: has no conditions.
    let first = mask_of(unsafe { c::getpid() })?.0;
    let own = mask_of(0)?.0;
    let mut count = 0;
    for (first, own) in first.iter().zip(&own) {
        count += (first | own).count_ones();
    }
    Some(count)
}

/// The processors that the calling thread may run on.
pub fn affinity() -> Option<impl Iterator<Item = u32>> {
    let (mask, bytes) = mask_of(0)?;
    let bits = size_of::<c_ulong>() * (bytes / size_of::<c_ulong>()) * 8;
    Some((0..bits as u32).filter(move |&cpu| {
        let bit = cpu as usize;
        mask[bit / LONG_BITS] >> (bit % LONG_BITS) & 1 != 0
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_topology::HostTopology;

    #[test]
    #[cfg_attr(miri, ignore)] // asks the kernel
    fn the_remembered_node_is_the_one_asked_for() {
        // On a machine with several nodes the thread may move in between, so the comparison is
        // repeated.
        assert!((0..1000).any(|_| ask_numa_node() == numa_node()));
    }

    #[test]
    #[cfg_attr(miri, ignore)] // asks the kernel
    fn files_that_are_read_onto_the_stack_describe_the_machine() {
        let machine = HostTopology::of_this_process();
        let with_cpus = machine.nodes.iter().filter(|node| !node.cpus.is_empty()).count();
        assert_eq!(numa_nodes() as usize, with_cpus.max(1));
        let known = machine.last_level_caches.iter().all(|cache| cache.level > 0);
        assert_eq!(several_last_level_caches(), known && machine.last_level_caches.len() > 1);
        let caches = machine.last_level_caches.iter().filter_map(|cache| cache.cpus.iter().next());
        let caches: Vec<u32> = caches.collect();
        assert!(!known || caches.contains(&last_level_cache()));
    }

    #[test]
    #[cfg_attr(miri, ignore)] // asks the kernel
    fn a_thread_that_is_bound_to_a_processor_sees_that_one_only() {
        std::thread::spawn(|| {
            let cpu = affinity().unwrap().next().unwrap();
            let mut mask: AffinityMask = [0; _];
            mask[cpu as usize / LONG_BITS] = 1 << (cpu as usize % LONG_BITS);
            // SAFETY: the mask is readable, and its size is passed.
            let result =
                unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&mask), mask.as_ptr()) };
            assert_eq!(result, 0);
            let machine = HostTopology::of_this_process();
            assert_eq!(machine.allowed.iter().collect::<Vec<_>>(), [cpu]);
            assert_eq!(machine.parallelism(), 1);
            let node = machine.node_of_cpu(cpu).unwrap();
            assert!(machine.allowed_nodes().eq([node]));
            // The thread cannot be moved now, so the answers must agree at once.
            assert_eq!((numa_node(), ask_numa_node()), (node.number, node.number));
            if let Some(offset) = rseq::offset() {
                assert_eq!(numa_node_by_rseq(offset), node.number);
            }
            let sharing = |cache: &&nearlock_topology::LastLevelCache| cache.cpus.contains(cpu);
            let cache = machine.last_level_caches.iter().find(sharing).unwrap();
            let expected = if cache.level > 0 { cache.cpus.iter().next().unwrap() } else { node.number };
            assert_eq!(last_level_cache(), expected);
        })
        .join()
        .unwrap();
    }
}
