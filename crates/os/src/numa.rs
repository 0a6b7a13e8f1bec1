//! The NUMA node of the calling thread, or the one that it claims.
//!
//! The first question decides how the NUMA node of a thread that claims none is found. This is
//! decided again after one of the settings `numa.*` has changed:
//!
//! ```text
//! bits 0-7 how (0: not decided) | 8-31 number of changes of settings | 32-63 a parameter of "how"
//!
//!    0 -> how   decided, if the settings have not changed meanwhile
//!  how -> 0     a setting has changed; the number of changes increases
//! ```
//! Neither the decision nor the question allocates, locks or calls the loader. Both may happen in a
//! signal handler, or inside a lock that the allocator uses.

use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};
use std::thread_local;

use nearlock_core::platform::NUMA_NODES_MAX;
use nearlock_core::settings::{NumaLocality, NumaMode, Setting};

use crate::settings::setting;
use crate::{sys, thread};

thread_local! {
    /// The claimed NUMA node plus one; 0 if none is claimed. Atomic because signal handlers may
    /// read it.
    static CLAIMED: AtomicU32 = const { AtomicU32::new(0) };
}

/// Makes the calling thread claim to run on this NUMA node, wherever it runs and whatever the
/// settings `numa.*` are. `None` withdraws the claim. This is for tests of NUMA-aware locks on
/// machines with one NUMA node, and for threads that know their NUMA node better.
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

/// The NUMA node that the caller claims, or otherwise the one that it is on by the settings.
#[inline]
pub fn numa_node() -> u32 {
    match CLAIMED.with(|word| word.load(Relaxed)) {
        0 => located(HOW.load(Relaxed)),
        claimed => claimed - 1,
    }
}

/// See the documentation of the module.
static HOW: AtomicU64 = AtomicU64::new(UNDECIDED);

const UNDECIDED: u64 = 0;
/// Every thread is on node 0.
const ONE_NODE: u64 = 1;
/// By the restartable-sequences area; the number is its offset.
const RSEQ: u64 = 2;
/// By the CPU that the C library or the kernel reports.
const GETCPU: u64 = 3;
/// By that CPU's last-level cache.
const LAST_LEVEL_CACHE: u64 = 4;
/// By the thread's slot; the number is how many NUMA nodes there are.
const SLOT: u64 = 5;

const HOW_MASK: u64 = 0xff;
const CHANGE: u64 = 0x100;
const CHANGES_MASK: u64 = 0xffff_ff00;
const NUMBER_SHIFT: u32 = 32;

/// The NUMA node of the caller by this word. No other memory is read through the word, so its load
/// may be Relaxed.
#[inline(always)]
fn located(how: u64) -> u32 {
    match how & HOW_MASK {
        ONE_NODE => 0,
        RSEQ => sys::numa_node_by_rseq((how >> NUMBER_SHIFT) as i32),
        GETCPU => sys::numa_node(),
        _ => located_elsewhere(how),
    }
}

#[cold]
#[inline(never)]
fn located_elsewhere(how: u64) -> u32 {
    match how & HOW_MASK {
        LAST_LEVEL_CACHE => sys::last_level_cache(),
        SLOT => thread::slot().map_or(0, |slot| slot % (how >> NUMBER_SHIFT) as u32),
        _ => located(decide()),
    }
}

#[cold]
fn decide() -> u64 {
    loop {
        // Ordering: Acquire, pairs with the Release in `settings_changed`: a thread that sees that
        // count sees the settings too.
        let word = HOW.load(Acquire);
        if word & HOW_MASK != UNDECIDED {
            return word;
        }
        let decided = word | decision();
        if HOW.compare_exchange(word, decided, Relaxed, Relaxed).is_ok() {
            return decided;
        }
    }
}

/// How NUMA nodes are found by the present settings.
fn decision() -> u64 {
    let nodes = setting(Setting::NumaSyntheticNodes);
    let locality = NumaLocality::of(setting(Setting::NumaLocality));
    let several = || match locality {
        NumaLocality::Node => sys::numa_nodes() > 1,
        NumaLocality::LastLevelCache => sys::several_last_level_caches(),
        NumaLocality::Synthetic => nodes > 1,
    };
    match NumaMode::of(setting(Setting::NumaMode)) {
        NumaMode::Off => return ONE_NODE,
        NumaMode::On => {}
        NumaMode::Auto if several() => {}
        NumaMode::Auto => return ONE_NODE,
    }
    match locality {
        NumaLocality::Node => match sys::rseq_offset() {
            Some(offset) => RSEQ | u64::from(offset as u32) << NUMBER_SHIFT,
            None => GETCPU,
        },
        NumaLocality::LastLevelCache => LAST_LEVEL_CACHE,
        NumaLocality::Synthetic => SLOT | nodes << NUMBER_SHIFT,
    }
}

/// To be called after a setting that the decision depends on has changed.
pub fn settings_changed() {
    let mut word = HOW.load(Relaxed);
    loop {
        let undecided = word.wrapping_add(CHANGE) & CHANGES_MASK;
        // Ordering: Release, pairs with the Acquire in `decide`: the setting is visible before the
        // count that makes others decide again. Relaxed on failure: the value is only tried again.
        match HOW.compare_exchange(word, undecided, Release, Relaxed) {
            Ok(_) => return,
            Err(seen) => word = seen,
        }
    }
}

/// How the NUMA node of a thread that claims none is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeSource {
    /// Every thread counts as on NUMA node 0: `numa.mode` is off, or it is auto and there are fewer
    /// than two NUMA nodes.
    OneNode,
    /// By the number that the kernel keeps in the thread's restartable-sequences area.
    Rseq,
    /// By the CPU that `sched_getcpu` or `getcpu` reports.
    Getcpu,
    /// By the last-level cache of that CPU.
    LastLevelCache,
    /// By the thread's slot: the NUMA nodes are synthetic.
    Slot,
}

impl fmt::Display for NodeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::OneNode => "all threads count as on one node",
            Self::Rseq => "rseq",
            Self::Getcpu => "getcpu",
            Self::LastLevelCache => "the CPU's last-level cache",
            Self::Slot => "synthetic, by the thread's slot",
        })
    }
}

/// How NUMA nodes are found by the present settings; decided now if needed.
pub fn node_source() -> NodeSource {
    match decide() & HOW_MASK {
        ONE_NODE => NodeSource::OneNode,
        RSEQ => NodeSource::Rseq,
        LAST_LEVEL_CACHE => NodeSource::LastLevelCache,
        SLOT => NodeSource::Slot,
        _ => NodeSource::Getcpu,
    }
}

/// How the machine's own NUMA nodes are found, if they are asked for: [`NodeSource::Rseq`] or
/// [`NodeSource::Getcpu`]; [`NodeSource::OneNode`] if the system does not tell.
pub fn machine_node_source() -> NodeSource {
    match sys::rseq_offset() {
        Some(_) => NodeSource::Rseq,
        None if sys::KNOWS_NODES => NodeSource::Getcpu,
        None => NodeSource::OneNode,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{alone_with_settings, set_setting};

    #[test]
    fn a_claim_counts_for_its_thread_until_it_is_withdrawn() {
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
        alone_with_settings(|| assert!(numa_node() < NUMA_NODES_MAX));
    }

    #[test]
    #[should_panic(expected = "not below")]
    fn marks_of_the_locks_are_no_nodes() {
        set_numa_node(Some(NUMA_NODES_MAX));
    }

    #[test]
    #[cfg_attr(miri, ignore)] // asks the kernel
    fn the_settings_decide() {
        alone_with_settings(|| {
            let set = |mode: NumaMode, locality: NumaLocality, nodes| {
                set_setting(Setting::NumaMode, mode as u64).unwrap();
                set_setting(Setting::NumaLocality, locality as u64).unwrap();
                set_setting(Setting::NumaSyntheticNodes, nodes).unwrap();
            };
            set(NumaMode::Off, NumaLocality::Synthetic, 2);
            assert_eq!((node_source(), numa_node()), (NodeSource::OneNode, 0));
            set_numa_node(Some(7));
            assert_eq!(numa_node(), 7, "a claim counts whatever the settings");
            set_numa_node(None);

            set(NumaMode::Auto, NumaLocality::Synthetic, 1);
            assert_eq!(node_source(), NodeSource::OneNode);
            set(NumaMode::Auto, NumaLocality::Synthetic, 3);
            assert_eq!((node_source(), numa_node()), (NodeSource::Slot, thread::slot().unwrap() % 3));

            set(NumaMode::On, NumaLocality::Node, 2);
            assert_eq!(node_source(), machine_node_source());
            set(NumaMode::On, NumaLocality::LastLevelCache, 2);
            assert_eq!(node_source(), NodeSource::LastLevelCache);
            assert!(numa_node() < NUMA_NODES_MAX);
            set(NumaMode::Auto, NumaLocality::Node, 2);
            assert_eq!(node_source() == NodeSource::OneNode, sys::numa_nodes() < 2);
        });
    }

    #[test]
    fn a_decision_by_settings_that_have_changed_is_not_kept() {
        alone_with_settings(|| {
            let before = HOW.load(Relaxed) & CHANGES_MASK;
            set_setting(Setting::NumaMode, NumaMode::Off as u64).unwrap();
            assert_eq!(HOW.load(Relaxed), before + CHANGE, "undecided again");
            // A thread that began to decide before finds another count.
            assert!(HOW.compare_exchange(before, before | GETCPU, Relaxed, Relaxed).is_err());
            assert_eq!(numa_node(), 0);
            assert_eq!(HOW.load(Relaxed) & HOW_MASK, ONE_NODE);
        });
    }
}
