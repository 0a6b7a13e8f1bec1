//! CNA, compact NUMA-aware lock, in the final form of its patch series (v15): a queued spinlock
//! whose queue prefers waiters of the holder's NUMA node.
//!
//! The word, and everything except the four hooks, is that of
//! [`qspinlock`](crate::linux::qspinlock). The two queues, and their invariants 1 and 2, are those
//! of [`queues`].
//!
//! ```text
//! granted (of the head)   0 or 1: no secondary queue | greater: the name of its last node
//! start_ns (of the head)  0: no secondary queue | 1: it is to be flushed | else: when it was begun
//!
//!  start_ns  0 -> now   the first waiter was moved aside            `became_head`
//!          now -> now   passed on, with the preferred NUMA node     `hand_over`
//!          now -> 1     the threshold has passed                    `became_head`
//!            1 -> 0     flushed: its first waiter becomes the head  `hand_over`, `try_clear_tail`
//! ```
//! 3. In the head's node, `granted` is greater than 1 if and only if `start_ns` is not 0.
//! 4. A head whose `start_ns` is 1 does not sort. So its next waiter, with which `hand_over` is
//!    called, has not changed since it became the head.
//!
//! While the lock is busy, a head moves far waiters aside one by one, until a near waiter comes
//! next. Sorting takes only time in which the head would wait anyway. The preference for the NUMA
//! node is passed on with the secondary queue. It is also passed on through a head on another NUMA
//! node, which is urgent or was the last in the queue.
//!
//! With the switches for preempted waiters, the head sorts for at most [`QSpinTuning::head_turns`]
//! turns. After that, it must sleep, or keep newcomers from stealing the lock.
//!
//! Fairness: first come, first served within a queue. The first head after the threshold flushes
//! the secondary queue to the front. This bounds only the wait of the first waiter in the secondary
//! queue. The others may be moved again, so that a wait lasts a few thresholds if there are several
//! far NUMA nodes.
//! Source: Dice and Kogan, "Compact NUMA-aware locks", EuroSys 2019 (arXiv 1810.05600); Kogan, "Add
//! NUMA-awareness to qspinlock", v15, May 2021, patches 3 to 6. Written from a description in our
//! own words.

pub mod queues;
#[cfg(test)]
pub(in crate::linux) mod testing;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::linux::qspinlock::{
    LOCKED_MASK, PENDING, QSpinLock, QSpinTuning, QueuePolicy, Tail, competes, grant,
};
use crate::platform::{Atomic, Platform, ZeroNode};
use crate::settings::Setting;
use crate::tuning::Standard;

pub use queues::{CnaPart, CnaPlatform, CnaTuning, NoShuffleReduction, SWITCHES};
use queues::{PRIORITY_NODE, flush, leave_unsorted, splice, try_clear_tail};

/// CNA on this platform, with all recommended values.
pub type CnaLock<P, T = Standard> = QSpinLock<P, Cna<T>>;

/// The queue node of CNA.
pub type Node<P> = queues::Node<P, State<P>>;

/// Values of [`State::start_ns`].
const NO_SECONDARY: u64 = 0;
const FLUSH: u64 = 1;
const EARLIEST_NS: u64 = 2;

/// The data of this version in a node.
pub struct State<P: Platform> {
    /// The time when the secondary queue was begun, from 2 ns up, or a mark.
    pub start_ns: P::U64,
}

// SAFETY: words of zero bits are valid.
unsafe impl<P: Platform> ZeroNode for State<P> {}

impl<P: Platform> Default for State<P> {
    fn default() -> Self {
        Self { start_ns: Atomic::new(NO_SECONDARY) }
    }
}

/// The policy; see the [module](self).
#[derive(Debug)]
pub struct Cna<T: CnaTuning = Standard>(PhantomData<T>);

// SAFETY: the head grants one waiter, from either queue. Each waiter is in one of the queues
// (invariant 1).
unsafe impl<P: CnaPlatform<State<P>>, T: CnaTuning> QueuePolicy<P> for Cna<T> {
    type Part = CnaPart<P, State<P>>;

    fn prepare(node: &Node<P>, tail: Tail) {
        node.part.prepare(tail, Setting::CnaPriorityWaiters);
        node.part.state.start_ns.store(NO_SECONDARY, Relaxed);
    }

    unsafe fn became_head<L: QSpinTuning>(word: &P::U32, node: &Node<P>) {
        if leave_unsorted::<P, _, T>(node, Setting::CnaShuffleReduction) {
            return;
        }
        let start_ns = &node.part.state.start_ns;
        if threshold_passed::<P>(start_ns.load(Relaxed)) {
            start_ns.store(FLUSH, Relaxed);
            return;
        }
        node.part.be_on_a_node();
        let turns_max = if competes::<L>() { L::head_turns() } else { u32::MAX };
        for turn in 0..turns_max {
            // Relaxed: a later access, with Acquire, takes the lock.
            let busy = word.load(Relaxed) & (LOCKED_MASK | PENDING) != 0;
            if !busy || near_comes_next(node) {
                return;
            }
            P::cpu_relax(turn);
        }
    }

    unsafe fn try_clear_tail<L: QSpinTuning>(word: &P::U32, val: u32, node: &Node<P>) -> Result<(), u32> {
        try_clear_tail::<P, _, L>(word, val, node)
    }

    unsafe fn hand_over<L: QSpinTuning>(node: &Node<P>, next: *mut Node<P>) {
        let part = &node.part;
        let start_ns = part.state.start_ns.load(Relaxed);
        if start_ns == FLUSH {
            return flush::<P, _, L>(node, next);
        }
        // Sorting may have changed the next waiter, so that it is not the one that was passed in.
        // Relaxed: if so, we have stored it, and `near_comes_next` has loaded that node with
        // Acquire. Otherwise `lock_as_head` has.
        let next = node.next.load(Relaxed);
        let secondary = node.granted.load(Relaxed);
        // SAFETY: the next waiter waits for `granted`, so its node is in use, and ours
        // (invariant 2).
        let (next_part, next_granted) = unsafe { (&(*next).part, &(*next).granted) };
        if secondary > 1 {
            next_part.numa_node.store(part.numa_node.load(Relaxed), Relaxed);
            next_part.state.start_ns.store(start_ns, Relaxed);
        }
        grant::<P, L>(next_granted, secondary.max(1));
    }
}

/// Whether a secondary queue begun at `start_ns` ([`NO_SECONDARY`]: there is none) has waited for
/// longer than the threshold. The clocks of two processors may differ.
fn threshold_passed<P: CnaPlatform<State<P>>>(start_ns: u64) -> bool {
    let threshold_ns = P::setting(Setting::CnaThresholdNs);
    start_ns != NO_SECONDARY && threshold_ns != 0 && P::now_ns().saturating_sub(start_ns) > threshold_ns
}

/// Whether the next waiter is near or urgent. If it is neither, and not the last, moves it aside.
fn near_comes_next<P: CnaPlatform<State<P>>>(node: &Node<P>) -> bool {
    // Ordering: Acquire, pairs with the Release link store in `lock_queued`: the next node is
    // initialised.
    let next = node.next.load(Acquire);
    if next.is_null() {
        return false;
    }
    // SAFETY: linked waiters wait for `granted`, so their nodes are in use; those in front of the
    // main queue are ours to move (invariants 1 and 2).
    let there = unsafe { &(*next).part.numa_node }.load(Relaxed);
    if there == PRIORITY_NODE || there == node.part.numa_node.load(Relaxed) {
        return true;
    }
    // Ordering: Acquire, as above, for the node after the next.
    // SAFETY: as above.
    let after = unsafe { &(*next).next }.load(Acquire);
    if !after.is_null() {
        let start_ns = &node.part.state.start_ns;
        splice(node, next, after, || start_ns.store(P::now_ns().max(EARLIEST_NS), Relaxed));
    }
    false
}

#[cfg(test)]
mod tests;
