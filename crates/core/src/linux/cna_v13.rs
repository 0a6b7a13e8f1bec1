//! CNA, compact NUMA-aware lock, as version 13 of the patch series had it: a queued spinlock whose queue
//! prefers waiters of the holder's NUMA node.
//!
//! ```text
//!  main queue       head --next--> waiter --next--> waiter ... <-- tail in the lock word
//!                    |
//!                    | granted = name of the secondary queue's tail (1: there is none)
//!                    v
//!  secondary queue  tail --next--> first --next--> ... --next--> tail      a circle
//! ```
//! The word is that of [`qspinlock`]; so is everything but the four hooks.
//!
//! granted (of the head)  0 or 1: no secondary queue     greater: name of its last node
//! start_tick (head)      0: no secondary queue          else: the tick it was begun in
//!
//! 1. Each waiter is in exactly one of the queues. The last of the main queue is never moved, so the
//!    lock word's tail is changed only by newcomers and by `try_clear_tail`.
//! 2. The secondary queue, its circle and the head's `granted` and `start_tick` belong to the head. They
//!    pass to the next head with the Release of `granted`, so Relaxed is enough for them.
//! 3. Of the head, granted > 1 exactly if start_tick is not 0.
//!
//! What differs from the final form (v15): at most one waiter is moved per acquisition, whether or not the
//! lock is busy; whoever ends up next, near or not, inherits the head's NUMA node; and the threshold
//! counts scheduler ticks.
//!
//! Fairness: within a queue first come, first served. A secondary queue is flushed to the front after at most
//! the threshold, two ticks and a hand-over; that bounds the wait of its first only. The others may be moved
//! again, so that a wait lasts a few thresholds where there are several far nodes.
//! Source: Dice and Kogan, "Compact NUMA-aware locks", EuroSys 2019 (arXiv 1810.05600); Kogan, "Add
//! NUMA-awareness to qspinlock", v13, December 2020, patches 3 to 6, from a description in own words.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::events::LockEvent;
use crate::linux::qspinlock::{self, LOCKED, QSpinLock, QSpinTuning, QueuePolicy, Tail, grant};
use crate::platform::{
    Atomic, Clock, LocalNodes, NUMA_NODES_MAX, Park, Platform, Priority, Random, Settings, Topology, ZeroNode,
};
use crate::settings::Setting;
use crate::tuning::Standard;

/// CNA on this platform, with all recommended values.
pub type CnaV13Lock<P, T = Standard> = QSpinLock<P, CnaV13<T>>;

/// The queue node of CNA.
pub type Node<P> = qspinlock::Node<P, CnaPart<P>>;

/// The NUMA node of an urgent waiter: none, so that it is never far.
const PRIORITY_NODE: u32 = NUMA_NODES_MAX;

/// Values of [`CnaPart::order`].
const NOT_FOUND: u32 = 0;
const FOUND: u32 = 1;
const FLUSH: u32 = 2;

/// The switches of [`CnaV13`] that are fixed at compile time.
pub trait CnaTuning: Send + Sync + 'static {
    /// While there is no secondary queue, begin one only now and then: at low contention, sorting costs
    /// more than it brings. How often: [`Setting::CnaV13ShuffleReduction`].
    const SHUFFLE_REDUCTION: bool = true;
}

impl CnaTuning for Standard {}

/// Sorts at every acquisition: the series without its last patch.
#[derive(Debug)]
pub struct NoShuffleReduction;

impl CnaTuning for NoShuffleReduction {
    const SHUFFLE_REDUCTION: bool = false;
}

/// What CNA keeps in a queue node.
#[repr(C)]
pub struct CnaPart<P: Platform> {
    /// The node that the owner counts as being on: its own, `PRIORITY_NODE`, or inherited.
    pub numa_node: P::U32,
    /// The node that the owner ran on when it queued.
    real_numa_node: P::U32,
    /// The name of this node.
    pub tail: P::U32,
    /// What the owner found as head: [`NOT_FOUND`], [`FOUND`] or [`FLUSH`].
    order: P::U32,
    /// The tick in which the secondary queue was begun; 0 if there is none.
    pub start_tick: P::U32,
}

// SAFETY: words of zero bits are valid.
unsafe impl<P: Platform> ZeroNode for CnaPart<P> {}

impl<P: Platform> Default for CnaPart<P> {
    fn default() -> Self {
        Self {
            numa_node: Atomic::new(0),
            real_numa_node: Atomic::new(0),
            tail: Atomic::new(0),
            order: Atomic::new(0),
            start_tick: Atomic::new(0),
        }
    }
}

/// The policy; see the [module](self).
#[derive(Debug)]
pub struct CnaV13<T: CnaTuning = Standard>(PhantomData<T>);

/// The capabilities that CNA asks for.
pub trait CnaPlatform:
    Topology + Clock + Priority + Random + Settings + Park + LocalNodes<Node<Self>>
{
}
impl<P: Topology + Clock + Priority + Random + Settings + Park + LocalNodes<Node<P>>> CnaPlatform for P {}

// SAFETY: the one head grants one waiter, of whichever queue; each waiter is in one of them (invariant 1).
unsafe impl<P: CnaPlatform, T: CnaTuning> QueuePolicy<P> for CnaV13<T> {
    type Part = CnaPart<P>;

    fn prepare(node: &Node<P>, tail: Tail) {
        let urgent = P::setting(Setting::CnaV13PriorityWaiters) != 0 && P::is_priority();
        let real = P::numa_node();
        node.part.real_numa_node.store(real, Relaxed);
        node.part.numa_node.store(if urgent { PRIORITY_NODE } else { real }, Relaxed);
        node.part.tail.store(tail.bits(), Relaxed);
        node.part.start_tick.store(0, Relaxed);
    }

    unsafe fn became_head(_word: &P::U32, node: &Node<P>) {
        let part = &node.part;
        let order = if T::SHUFFLE_REDUCTION && node.granted.load(Relaxed) <= 1 && leave_unsorted::<P>() {
            FOUND
        } else if threshold_passed::<P>(part.start_tick.load(Relaxed)) {
            FLUSH
        } else {
            if part.numa_node.load(Relaxed) == PRIORITY_NODE {
                part.numa_node.store(part.real_numa_node.load(Relaxed), Relaxed);
            }
            sort_one(node)
        };
        part.order.store(order, Relaxed);
    }

    unsafe fn try_clear_tail<L: QSpinTuning>(word: &P::U32, val: u32, node: &Node<P>) -> bool {
        let Some(last) = Tail::decode(node.granted.load(Relaxed)) else {
            // Relaxed: as in `Fifo::try_clear_tail`.
            return word.compare_exchange(val, LOCKED, Relaxed, Relaxed).is_ok();
        };
        let last_tail = Tail::encode(last).bits();
        let last = P::node(last);
        // SAFETY: a node in the secondary queue is in use, and by invariant 2 ours to change.
        let last_next = unsafe { &(*last).next };
        let first = last_next.load(Relaxed);
        // The circle becomes the main queue. It must be open before its end is in the word: who queues
        // behind it writes its `next`.
        last_next.store(ptr::null_mut(), Relaxed);
        // Ordering: Release, pairs with the Acquire half of the tail swap: the null above comes before the
        // link of whoever queues behind. Relaxed on failure: nothing is read through the value.
        if word.compare_exchange(val, last_tail | LOCKED, Release, Relaxed).is_err() {
            P::count(LockEvent::CnaTailUpdateFailed);
            last_next.store(first, Relaxed);
            return false;
        }
        P::count(LockEvent::CnaTailSplice);
        // SAFETY: the first of the secondary queue waits for `granted`, so its node is in use.
        grant::<P, L>(unsafe { &(*first).granted }, 1);
        true
    }

    unsafe fn hand_over<L: QSpinTuning>(node: &Node<P>, next: *mut Node<P>) {
        let part = &node.part;
        if part.order.load(Relaxed) == FLUSH {
            return flush::<P, L>(node, next);
        }
        if part.order.load(Relaxed) == NOT_FOUND {
            // There was nobody when we became head; there is now.
            sort_one(node);
        }
        // Sorting may have put another next than the one that was passed in.
        // Relaxed: that is a store of ours, of a node that `sort_one` has acquired; otherwise it is the one
        // passed in, which `lock_as_head` has.
        let next = node.next.load(Relaxed);
        let secondary = node.granted.load(Relaxed);
        if secondary > 1 {
            // SAFETY: the next waiter waits for `granted`, so its node is in use.
            unsafe { &(*next).part.start_tick }.store(part.start_tick.load(Relaxed), Relaxed);
        }
        // SAFETY: as above.
        grant::<P, L>(unsafe { &(*next).granted }, secondary.max(1));
    }
}

/// The shuffle reduction: true for all but one in 2^bits heads.
fn leave_unsorted<P: CnaPlatform>() -> bool {
    let bits = P::setting(Setting::CnaV13ShuffleReduction) as u32;
    let mask = 1u32.checked_shl(bits).map_or(u32::MAX, |one| one - 1);
    mask != 0 && P::random_u32() & mask != 0
}

fn tick_ns<P: CnaPlatform>() -> u64 {
    1_000_000_000 / P::setting(Setting::CnaV13TickHz)
}

/// The present tick, truncated to the word that it is kept in.
fn tick<P: CnaPlatform>() -> u32 {
    (P::now_ns() / tick_ns::<P>()) as u32
}

/// Whether a secondary queue begun in tick `start` (0: there is none) has waited for more ticks than
/// the threshold, rounded up.
fn threshold_passed<P: CnaPlatform>(start: u32) -> bool {
    if start == 0 {
        return false;
    }
    let threshold = P::setting(Setting::CnaV13ThresholdNs).div_ceil(tick_ns::<P>());
    i64::from(tick::<P>().wrapping_sub(start).cast_signed()) > threshold.cast_signed()
}

/// Moves the next waiter to the secondary queue if it is far, not urgent and not the last; then whoever
/// is next counts as near. [`NOT_FOUND`] if nobody is next.
fn sort_one<P: CnaPlatform>(node: &Node<P>) -> u32 {
    // Ordering: Acquire, pairs with the Release link store in `lock_queued`: the next node is initialised.
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
            splice(node, next, after);
            next = after;
        }
    }
    // SAFETY: as above.
    unsafe { &(*next).part.numa_node }.store(here, Relaxed);
    FOUND
}

/// Moves `next`, which has `after` behind it, to the end of the secondary queue.
fn splice<P: CnaPlatform>(node: &Node<P>, next: *mut Node<P>, after: *mut Node<P>) {
    P::count(LockEvent::CnaSplice);
    // SAFETY: `next` is a linked waiter, its node in use and ours to move (invariants 1 and 2).
    let (next_next, next_tail) = unsafe { (&(*next).next, &(*next).part.tail) };
    node.next.store(after, Relaxed);
    if let Some(last) = Tail::decode(node.granted.load(Relaxed)) {
        // SAFETY: a node in the secondary queue is in use, and ours to change (invariant 2).
        let last_next = unsafe { &(*P::node(last)).next };
        next_next.store(last_next.load(Relaxed), Relaxed);
        last_next.store(next, Relaxed);
    } else {
        next_next.store(next, Relaxed);
        node.part.start_tick.store(tick::<P>().max(1), Relaxed);
    }
    node.granted.store(next_tail.load(Relaxed), Relaxed);
}

/// Puts the secondary queue in front of `next` and makes its first waiter the head, whose NUMA node is
/// preferred from now on.
fn flush<P: CnaPlatform, L: QSpinTuning>(node: &Node<P>, next: *mut Node<P>) {
    P::count(LockEvent::CnaFlush);
    let last = Tail::decode(node.granted.load(Relaxed)).expect("a head that flushes has a secondary queue");
    // SAFETY: a node in the secondary queue is in use, and ours to change (invariant 2).
    let last_next = unsafe { &(*P::node(last)).next };
    let first = last_next.load(Relaxed);
    last_next.store(next, Relaxed);
    // SAFETY: the first of the secondary queue waits for `granted`, so its node is in use.
    grant::<P, L>(unsafe { &(*first).granted }, 1);
}

#[cfg(test)]
mod tests;
