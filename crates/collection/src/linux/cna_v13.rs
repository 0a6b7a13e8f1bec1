//! CNA, compact NUMA-aware lock, in version 13 of its patch series: a queued spinlock whose queue
//! prefers waiters of the holder's NUMA node.
//!
//! The word, and everything except the four hooks, is that of
//! [`qspinlock`](crate::linux::qspinlock). The two queues, and their invariants 1 and 2, are those
//! of [`queues`].
//!
//! ```text
//! granted (of the head)     0 or 1: no secondary queue | greater: the name of its last node
//! start_tick (of the head)  0: no secondary queue | else: the tick in which it was begun
//! ```
//! 3. In the head's node, `granted` is greater than 1 if and only if `start_tick` is not 0.
//!
//! Differences from the final form ([`cna`](crate::linux::cna)):
//!
//! - A head moves at most one waiter per acquisition, whether or not the lock is busy.
//! - The waiter that is next after that inherits the head's NUMA node, near or not.
//! - The threshold counts scheduler ticks.
//!
//! Fairness: first come, first served within a queue. A secondary queue is flushed to the front
//! after at most the threshold, two ticks and a hand-over. This bounds only the wait of its first
//! waiter. The others may be moved again, so that a wait lasts a few thresholds if there are
//! several far NUMA nodes.
//! Source: Dice and Kogan, "Compact NUMA-aware locks", EuroSys 2019 (arXiv 1810.05600); Kogan, "Add
//! NUMA-awareness to qspinlock", v13, December 2020, patches 3 to 6. Written from a description in
//! our own words.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::linux::cna::queues::{
    self, CnaPart, CnaPlatform, CnaTuning, PRIORITY_NODE, flush, leave_unsorted, splice, try_clear_tail,
};
use crate::linux::qspinlock::{QSpinLock, QSpinTuning, QueuePolicy, Tail, grant};
use crate::platform::{Atomic, Platform, ZeroNode};
use crate::settings::Setting;
use crate::tuning::Standard;

/// CNA on this platform, with all recommended values.
pub type CnaV13Lock<P, T = Standard> = QSpinLock<P, CnaV13<T>>;

/// The queue node of CNA.
pub type Node<P> = queues::Node<P, State<P>>;

/// Values of [`State::order`].
const NOT_FOUND: u32 = 0;
const FOUND: u32 = 1;
const FLUSH: u32 = 2;

/// The data of this version in a node.
#[repr(C)]
pub struct State<P: Platform> {
    /// What the owner found as head: [`NOT_FOUND`], [`FOUND`] or [`FLUSH`].
    order: P::U32,
    /// The tick in which the secondary queue was begun; 0 if there is none.
    pub start_tick: P::U32,
}

// SAFETY: words of zero bits are valid.
unsafe impl<P: Platform> ZeroNode for State<P> {}

impl<P: Platform> Default for State<P> {
    fn default() -> Self {
        Self { order: Atomic::new(0), start_tick: Atomic::new(0) }
    }
}

/// The policy; see the [module](self).
#[derive(Debug)]
pub struct CnaV13<T: CnaTuning = Standard>(PhantomData<T>);

// SAFETY: the head grants one waiter, from either queue. Each waiter is in one of the queues
// (invariant 1).
unsafe impl<P: CnaPlatform<State<P>>, T: CnaTuning> QueuePolicy<P> for CnaV13<T> {
    type Part = CnaPart<P, State<P>>;

    fn prepare(node: &Node<P>, tail: Tail) {
        node.part.prepare(tail, Setting::CnaV13PriorityWaiters);
        node.part.state.start_tick.store(0, Relaxed);
    }

    unsafe fn became_head<L: QSpinTuning>(_word: &P::U32, node: &Node<P>) {
        let part = &node.part;
        let order = if leave_unsorted::<P, _, T>(node, Setting::CnaV13ShuffleReduction) {
            FOUND
        } else if threshold_passed::<P>(part.state.start_tick.load(Relaxed)) {
            FLUSH
        } else {
            part.be_on_a_node();
            sort_one(node)
        };
        part.state.order.store(order, Relaxed);
    }

    unsafe fn try_clear_tail<L: QSpinTuning>(word: &P::U32, val: u32, node: &Node<P>) -> Result<(), u32> {
        try_clear_tail::<P, _, L>(word, val, node)
    }

    unsafe fn hand_over<L: QSpinTuning>(node: &Node<P>, next: *mut Node<P>) {
        let part = &node.part;
        if part.state.order.load(Relaxed) == FLUSH {
            return flush::<P, _, L>(node, next);
        }
        if part.state.order.load(Relaxed) == NOT_FOUND {
            // There was no next waiter when we became the head. There is one now.
            sort_one(node);
        }
        // Sorting may have changed the next waiter, so that it is not the one that was passed in.
        // Relaxed: if so, we have stored it, and `sort_one` has loaded that node with Acquire.
        // Otherwise `lock_as_head` has.
        let next = node.next.load(Relaxed);
        let secondary = node.granted.load(Relaxed);
        // SAFETY: the next waiter waits for `granted`, so its node is in use, and ours
        // (invariant 2).
        let (next_state, next_granted) = unsafe { (&(*next).part.state, &(*next).granted) };
        if secondary > 1 {
            next_state.start_tick.store(part.state.start_tick.load(Relaxed), Relaxed);
        }
        grant::<P, L>(next_granted, secondary.max(1));
    }
}

/// The length of a tick in ns: at least 1, whatever the setting.
fn tick_ns<P: CnaPlatform<State<P>>>() -> u64 {
    (1_000_000_000 / P::setting(Setting::CnaV13TickHz).max(1)).max(1)
}

/// The present tick, truncated to 32 bits, as the node keeps it.
fn tick<P: CnaPlatform<State<P>>>() -> u32 {
    (P::now_ns() / tick_ns::<P>()) as u32
}

/// Whether a secondary queue begun in tick `start` (0: there is none) has waited for more ticks
/// than the threshold, rounded up.
fn threshold_passed<P: CnaPlatform<State<P>>>(start: u32) -> bool {
    if start == 0 {
        return false;
    }
    let threshold = P::setting(Setting::CnaV13ThresholdNs).div_ceil(tick_ns::<P>());
    i64::from(tick::<P>().wrapping_sub(start).cast_signed()) > threshold.cast_signed()
}

/// Moves the next waiter to the secondary queue if it is far, not urgent and not the last. The
/// waiter that is next then counts as near. [`NOT_FOUND`] if there is no next waiter.
fn sort_one<P: CnaPlatform<State<P>>>(node: &Node<P>) -> u32 {
    // Ordering: Acquire, pairs with the Release link store in `lock_queued`: the next node is
    // initialised.
    let mut next = node.next.load(Acquire);
    if next.is_null() {
        return NOT_FOUND;
    }
    let here = node.part.numa_node.load(Relaxed);
    // SAFETY: linked waiters wait for `granted`, so their nodes are in use; those in front of the
    // main queue are ours to move (invariants 1 and 2).
    let there = unsafe { &(*next).part.numa_node }.load(Relaxed);
    if there == here {
        return FOUND;
    }
    if there != PRIORITY_NODE {
        // Ordering: Acquire, as above, for the node after the next.
        // SAFETY: as above.
        let after = unsafe { &(*next).next }.load(Acquire);
        if !after.is_null() {
            splice(node, next, after, || node.part.state.start_tick.store(tick::<P>().max(1), Relaxed));
            next = after;
        }
    }
    // SAFETY: as above.
    unsafe { &(*next).part.numa_node }.store(here, Relaxed);
    FOUND
}

#[cfg(test)]
mod tests;
