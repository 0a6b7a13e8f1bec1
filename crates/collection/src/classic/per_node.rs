//! Common parts of the locks that have a part for each NUMA node.

use crate::platform::{NUMA_NODES_MAX, Topology};

/// How many parts a lock has. NUMA nodes whose numbers are equal modulo this share one. This is
/// correct, but the lock then moves between these NUMA nodes as if they were one. The biggest
/// machines with few NUMA nodes have 8. Each part costs 128 bytes.
pub const PARTS: usize = 8;

/// Stored instead of a part's index by an acquisition without a part.
pub const NO_PART: u32 = NUMA_NODES_MAX;

const _: () = assert!(PARTS < NO_PART as usize);

/// The index of the part of the calling thread's NUMA node.
#[inline]
pub fn part_here<P: Topology>() -> u32 {
    P::numa_node() % PARTS as u32
}

/// A value that has its cache lines alone: two lines, since processors fetch lines in pairs.
#[repr(C, align(128))]
pub struct OwnLines<T>(pub T);
