//! What the locks with a part for each NUMA node have in common.

use crate::platform::{NUMA_NODES_MAX, Topology};

/// How many parts a lock has. NUMA nodes whose numbers are equal modulo this share one: correct,
/// but the lock then travels between them without noticing. 8 is what the biggest machines with few
/// nodes have; each part costs 128 or 256 bytes.
pub const PARTS: usize = 8;

/// In place of a part's index: the acquisition went past the parts.
pub const NO_PART: u32 = NUMA_NODES_MAX;

const _: () = assert!(PARTS < NO_PART as usize);

/// The index of the part of the calling thread's NUMA node.
#[inline]
pub fn part_here<P: Topology>() -> u32 {
    P::numa_node() % PARTS as u32
}

/// Something on cache lines of its own: two, since processors fetch lines in pairs.
#[repr(C, align(128))]
pub struct OwnLines<T>(pub T);
