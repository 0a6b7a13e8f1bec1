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
//!    lock word's tail is touched only by `try_clear_tail`.
//! 2. The secondary queue, its circle and the head's `granted` and `start_tick` belong to the head. They
//!    pass to the next head with the Release of `granted`, so Relaxed is enough for them.
//! 3. Of the head, granted > 1 exactly if start_tick is not 0.
//!
//! What differs from the final form (v15): at most one waiter is moved per acquisition, whether or not the
//! lock is busy; whoever ends up next, near or not, inherits the head's NUMA node; and the threshold
//! counts scheduler ticks.
//!
//! Fairness: within a queue first come, first served. The first of the secondary queue waits at most the
//! threshold, one tick and one hand-over until the queue is flushed to the front.
//! Source: Dice and Kogan, "Compact NUMA-aware locks", EuroSys 2019 (arXiv 1810.05600); Kogan, "Add
//! NUMA-awareness to qspinlock", v13, December 2020, patches 3 to 6, from a description in own words.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::events::LockEvent;
use crate::linux::qspinlock::{self, LOCKED, QSpinLock, QueuePolicy, Tail};
use crate::platform::{
    Atomic, Clock, LocalNodes, NUMA_NODES_MAX, Platform, Priority, Random, Settings, Topology, ZeroNode,
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
pub trait CnaPlatform: Topology + Clock + Priority + Random + Settings + LocalNodes<Node<Self>> {}
impl<P: Topology + Clock + Priority + Random + Settings + LocalNodes<Node<P>>> CnaPlatform for P {}

impl<P: CnaPlatform, T: CnaTuning> QueuePolicy<P> for CnaV13<T> {
    type Part = CnaPart<P>;

    fn prepare(node: &Node<P>, tail: Tail) {
        let urgent = P::setting(Setting::CnaV13PriorityWaiters) != 0 && P::is_priority();
        let real = P::numa_node();
        node.part.real_numa_node.store(real, Relaxed);
        node.part.numa_node.store(if urgent { PRIORITY_NODE } else { real }, Relaxed);
        node.part.tail.store(tail.bits(), Relaxed);
        node.part.start_tick.store(0, Relaxed);
    }

    fn became_head(node: &Node<P>) {
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

    fn try_clear_tail(word: &P::U32, val: u32, node: &Node<P>) -> bool {
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
        // Ordering: Release, pairs with the Acquire wait for `granted`: the new head sees its queue.
        // SAFETY: the first of the secondary queue waits for `granted`, so its node is in use.
        unsafe { &(*first).granted }.store(1, Release);
        true
    }

    unsafe fn hand_over(node: &Node<P>, next: *mut Node<P>) {
        let part = &node.part;
        if part.order.load(Relaxed) == FLUSH {
            return flush(node, next);
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
        // Ordering: Release, pairs with the Acquire wait for `granted`: the next head sees the queues.
        // SAFETY: as above.
        unsafe { &(*next).granted }.store(secondary.max(1), Release);
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
fn flush<P: CnaPlatform>(node: &Node<P>, next: *mut Node<P>) {
    P::count(LockEvent::CnaFlush);
    let last = Tail::decode(node.granted.load(Relaxed)).expect("a head that flushes has a secondary queue");
    // SAFETY: a node in the secondary queue is in use, and ours to change (invariant 2).
    let last_next = unsafe { &(*P::node(last)).next };
    let first = last_next.load(Relaxed);
    last_next.store(next, Relaxed);
    // Ordering: Release, pairs with the Acquire wait for `granted`: the new head sees its queue.
    // SAFETY: the first of the secondary queue waits for `granted`, so its node is in use.
    unsafe { &(*first).granted }.store(1, Release);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::NodeId;
    use crate::testing::{self, NOW_NS, NUMA_NODE, OneThread, RANDOM, events_of};
    use std::vec::Vec;

    /// Sorts whenever it may.
    type Sorting = CnaV13<NoShuffleReduction>;

    const TICK_NS: u64 = 1_000_000;

    fn pointer(slot: u32) -> *mut Node<OneThread> {
        let node: *const Node<OneThread> = OneThread::node(NodeId { slot, level: 0 });
        node.cast_mut()
    }

    fn node(slot: u32) -> &'static Node<OneThread> {
        // SAFETY: nodes are never freed.
        unsafe { &*pointer(slot) }
    }

    fn tail(slot: u32) -> u32 {
        Tail::encode(NodeId { slot, level: 0 }).bits()
    }

    /// Prepares the node in `slot` for a waiter on this NUMA node.
    fn waiter(slot: u32, numa_node: u32) {
        NUMA_NODE.set(numa_node);
        Sorting::prepare(node(slot), Tail::encode(NodeId { slot, level: 0 }));
    }

    /// Links the waiters in these slots, the first of them the head.
    fn main_queue(slots: &[u32]) {
        for pair in slots.windows(2) {
            node(pair[0]).next.store(pointer(pair[1]), Relaxed);
        }
    }

    /// The head's waiters, in slots from 1 up, on these NUMA nodes. The head, in slot 0, is on node 0.
    fn head_and(numa_nodes: &[u32]) {
        let slots: Vec<_> = (0..=numa_nodes.len() as u32).collect();
        waiter(0, 0);
        slots[1..].iter().zip(numa_nodes).for_each(|(slot, numa_node)| waiter(*slot, *numa_node));
        main_queue(&slots);
    }

    /// Gives the head these waiters, all on NUMA node 1, as its secondary queue, begun in tick 1.
    fn secondary_queue(slots: &[u32]) {
        slots.iter().for_each(|slot| waiter(*slot, 1));
        main_queue(slots);
        let (first, last) = (slots[0], slots[slots.len() - 1]);
        node(last).next.store(pointer(first), Relaxed);
        node(0).granted.store(tail(last), Relaxed);
        node(0).part.start_tick.store(1, Relaxed);
    }

    fn hand_over_to(slot: u32) {
        // SAFETY: the test made this the node behind the head.
        unsafe { Sorting::hand_over(node(0), pointer(slot)) };
    }

    fn next_of(slot: u32) -> Option<u32> {
        let next = node(slot).next.load(Relaxed);
        (0..10).find(|slot| pointer(*slot) == next)
    }

    fn granted(slot: u32) -> u32 {
        node(slot).granted.load(Relaxed)
    }

    fn numa_node(slot: u32) -> u32 {
        node(slot).part.numa_node.load(Relaxed)
    }

    fn order() -> u32 {
        node(0).part.order.load(Relaxed)
    }

    fn start_tick(slot: u32) -> u32 {
        node(slot).part.start_tick.load(Relaxed)
    }

    #[test]
    fn the_first_far_waiter_begins_a_secondary_queue() {
        NOW_NS.set(7 * TICK_NS);
        head_and(&[1, 0]);
        Sorting::became_head(node(0));
        assert_eq!((order(), next_of(0)), (FOUND, Some(2)));
        assert_eq!((granted(0), next_of(1)), (tail(1), Some(1)), "a circle of one");
        assert_eq!(start_tick(0), 7);
        assert_eq!(events_of(LockEvent::CnaSplice), 1);
    }

    #[test]
    fn further_far_waiters_join_the_end_of_the_circle() {
        NOW_NS.set(5 * TICK_NS);
        head_and(&[1, 1, 0]);
        secondary_queue(&[4, 5]);
        Sorting::became_head(node(0));
        assert_eq!(granted(0), tail(1));
        assert_eq!([4, 5, 1].map(next_of), [Some(5), Some(1), Some(4)]);
        assert_eq!(start_tick(0), 1, "the secondary queue is as old as before");
        assert_eq!((next_of(0), numa_node(2)), (Some(2), 0), "one is moved; whoever is next counts as near");
    }

    #[test]
    fn a_near_waiter_stays() {
        head_and(&[0, 1, 0]);
        Sorting::became_head(node(0));
        assert_eq!((order(), next_of(0), granted(0)), (FOUND, Some(1), 0));
        hand_over_to(1);
        assert_eq!((granted(1), start_tick(1)), (1, 0));
    }

    #[test]
    fn the_last_waiter_is_never_moved_but_counts_as_near() {
        head_and(&[1]);
        Sorting::became_head(node(0));
        assert_eq!((order(), next_of(0), granted(0)), (FOUND, Some(1), 0));
        assert_eq!(numa_node(1), 0);
    }

    #[test]
    fn an_urgent_waiter_is_not_moved() {
        head_and(&[1, 0]);
        OneThread::set_priority(true);
        waiter(1, 1);
        assert_eq!(numa_node(1), PRIORITY_NODE);
        Sorting::became_head(node(0));
        assert_eq!((order(), next_of(0), numa_node(1)), (FOUND, Some(1), 0));
        testing::set(Setting::CnaV13PriorityWaiters, 0);
        waiter(1, 1);
        assert_eq!(numa_node(1), 1, "nobody is urgent if the setting says so");
    }

    #[test]
    fn an_urgent_head_sorts_by_its_real_node() {
        head_and(&[1, 0]);
        OneThread::set_priority(true);
        waiter(0, 1);
        Sorting::became_head(node(0));
        assert_eq!((numa_node(0), next_of(0), granted(0)), (1, Some(1), 0));
    }

    #[test]
    fn a_head_without_a_successor_sorts_when_it_hands_over() {
        head_and(&[]);
        Sorting::became_head(node(0));
        assert_eq!(order(), NOT_FOUND);
        head_and(&[1, 0]);
        hand_over_to(1);
        assert_eq!(granted(1), 0);
        assert_eq!((granted(2), start_tick(2)), (tail(1), 1), "begun in tick 0, which is stored as 1");
    }

    #[test]
    fn a_secondary_queue_that_has_waited_too_long_goes_first() {
        head_and(&[0]);
        secondary_queue(&[4, 5]);
        NOW_NS.set(11 * TICK_NS);
        Sorting::became_head(node(0));
        assert_eq!(order(), FOUND, "ten ticks since tick 1: not more than the threshold");
        NOW_NS.set(12 * TICK_NS);
        Sorting::became_head(node(0));
        assert_eq!(order(), FLUSH);
        hand_over_to(1);
        assert_eq!([4, 5].map(next_of), [Some(5), Some(1)]);
        assert_eq!((granted(4), granted(1)), (1, 0));
        assert_eq!(events_of(LockEvent::CnaFlush), 1);
    }

    #[test]
    fn the_threshold_is_a_setting_and_is_rounded_up_to_ticks() {
        testing::set(Setting::CnaV13ThresholdNs, TICK_NS + 1);
        NOW_NS.set(3 * TICK_NS);
        assert!(!threshold_passed::<OneThread>(1));
        NOW_NS.set(4 * TICK_NS);
        assert!(threshold_passed::<OneThread>(1));
        assert!(!threshold_passed::<OneThread>(0), "0: no secondary queue");
    }

    #[test]
    fn an_empty_main_queue_is_replaced_by_the_secondary_queue() {
        head_and(&[]);
        secondary_queue(&[4, 5]);
        let word = Atomic::new(tail(0));
        assert!(Sorting::try_clear_tail(&word, tail(0), node(0)));
        assert_eq!(word.load(Relaxed), tail(5) | LOCKED);
        assert_eq!((next_of(5), granted(4), granted(5)), (None, 1, 0));
        assert_eq!(events_of(LockEvent::CnaTailSplice), 1);
    }

    #[test]
    fn if_somebody_queues_meanwhile_the_circle_is_restored() {
        head_and(&[]);
        secondary_queue(&[4, 5]);
        let word = Atomic::new(tail(6));
        assert!(!Sorting::try_clear_tail(&word, tail(0), node(0)));
        assert_eq!(word.load(Relaxed), tail(6));
        assert_eq!((next_of(5), granted(4), granted(0)), (Some(4), 0, tail(5)));
        assert_eq!(events_of(LockEvent::CnaTailUpdateFailed), 1);
    }

    #[test]
    fn the_shuffle_reduction_leaves_most_queues_unsorted() {
        RANDOM.set(1 << 6);
        head_and(&[1, 0]);
        CnaV13::<Standard>::became_head(node(0));
        assert_eq!((order(), next_of(0), granted(0)), (FOUND, Some(1), 0));
        RANDOM.set(1 << 7);
        CnaV13::<Standard>::became_head(node(0));
        assert_eq!((next_of(0), granted(0)), (Some(2), tail(1)), "the seven bits that count are 0");
        RANDOM.set(1);
        head_and(&[1, 0]);
        secondary_queue(&[4]);
        CnaV13::<Standard>::became_head(node(0));
        assert_eq!(granted(0), tail(1), "a secondary queue is always kept up");
    }
}
