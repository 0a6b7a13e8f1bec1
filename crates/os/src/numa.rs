//! The NUMA node of the calling thread, or the one that it claims.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use std::thread_local;

use nearlock_core::platform::NUMA_NODES_MAX;

use crate::sys;

thread_local! {
    /// The claimed node plus one; 0: none claimed. Atomic because signal handlers may look.
    static CLAIMED: AtomicU32 = const { AtomicU32::new(0) };
}

/// Makes the calling thread claim to run on this NUMA node, whichever it runs on, or takes that back
/// (`None`). For tests of NUMA-aware locks on machines with one node, and for threads that know better.
///
/// # Panics
///
/// If the node is not below [`NUMA_NODES_MAX`].
pub fn set_numa_node(numa_node: Option<u32>) {
    let claimed = match numa_node {
        Some(numa_node) => {
            assert!(numa_node < NUMA_NODES_MAX, "NUMA node {numa_node} is not below {NUMA_NODES_MAX}");
            numa_node + 1
        }
        None => 0,
    };
    CLAIMED.with(|word| word.store(claimed, Relaxed));
}

/// The NUMA node that the caller claims, or else that of the processor it runs on.
#[inline]
pub fn numa_node() -> u32 {
    match CLAIMED.with(|word| word.load(Relaxed)) {
        0 => sys::numa_node(),
        claimed => claimed - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_counts_for_its_thread_until_taken_back() {
        set_numa_node(Some(NUMA_NODES_MAX - 1));
        assert_eq!(numa_node(), NUMA_NODES_MAX - 1);
        let other = std::thread::spawn(|| CLAIMED.with(|word| word.load(Relaxed))).join().unwrap();
        assert_eq!(other, 0);
        set_numa_node(Some(0));
        assert_eq!(numa_node(), 0);
        set_numa_node(None);
        assert_eq!(CLAIMED.with(|word| word.load(Relaxed)), 0);
    }

    #[test]
    #[cfg_attr(miri, ignore)] // asks the kernel
    fn the_real_node_is_below_the_limit() {
        assert!(numa_node() < NUMA_NODES_MAX);
    }

    #[test]
    #[should_panic(expected = "not below")]
    fn marks_of_the_locks_are_no_nodes() {
        set_numa_node(Some(NUMA_NODES_MAX));
    }
}
