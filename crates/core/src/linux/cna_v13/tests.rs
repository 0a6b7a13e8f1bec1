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

fn became_head<T: CnaTuning>() {
    // SAFETY: the node in slot 0 is the head in all tests.
    unsafe { CnaV13::<T>::became_head(&<OneThread as Platform>::U32::new(0), node(0)) };
}

fn try_clear_tail(word: &<OneThread as Platform>::U32) -> bool {
    // SAFETY: as above.
    unsafe { Sorting::try_clear_tail::<Standard>(word, tail(0), node(0)) }
}

fn hand_over_to(slot: u32) {
    // SAFETY: the test made this the node behind the head.
    unsafe { Sorting::hand_over::<Standard>(node(0), pointer(slot)) };
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
    became_head::<NoShuffleReduction>();
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
    became_head::<NoShuffleReduction>();
    assert_eq!(granted(0), tail(1));
    assert_eq!([4, 5, 1].map(next_of), [Some(5), Some(1), Some(4)]);
    assert_eq!(start_tick(0), 1, "the secondary queue is as old as before");
    assert_eq!((next_of(0), numa_node(2)), (Some(2), 0), "one is moved; whoever is next counts as near");
}

#[test]
fn a_near_waiter_stays() {
    head_and(&[0, 1, 0]);
    became_head::<NoShuffleReduction>();
    assert_eq!((order(), next_of(0), granted(0)), (FOUND, Some(1), 0));
    hand_over_to(1);
    assert_eq!((granted(1), start_tick(1)), (1, 0));
}

#[test]
fn the_last_waiter_is_never_moved_but_counts_as_near() {
    head_and(&[1]);
    became_head::<NoShuffleReduction>();
    assert_eq!((order(), next_of(0), granted(0)), (FOUND, Some(1), 0));
    assert_eq!(numa_node(1), 0);
}

#[test]
fn an_urgent_waiter_is_not_moved() {
    head_and(&[1, 0]);
    OneThread::set_priority(true);
    waiter(1, 1);
    assert_eq!(numa_node(1), PRIORITY_NODE);
    became_head::<NoShuffleReduction>();
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
    became_head::<NoShuffleReduction>();
    assert_eq!((numa_node(0), next_of(0), granted(0)), (1, Some(1), 0));
}

#[test]
fn a_head_without_a_successor_sorts_when_it_hands_over() {
    head_and(&[]);
    became_head::<NoShuffleReduction>();
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
    became_head::<NoShuffleReduction>();
    assert_eq!(order(), FOUND, "ten ticks since tick 1: not more than the threshold");
    NOW_NS.set(12 * TICK_NS);
    became_head::<NoShuffleReduction>();
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
    assert!(try_clear_tail(&word));
    assert_eq!(word.load(Relaxed), tail(5) | LOCKED);
    assert_eq!((next_of(5), granted(4), granted(5)), (None, 1, 0));
    assert_eq!(events_of(LockEvent::CnaTailSplice), 1);
}

#[test]
fn if_somebody_queues_meanwhile_the_circle_is_restored() {
    head_and(&[]);
    secondary_queue(&[4, 5]);
    let word = Atomic::new(tail(6));
    assert!(!try_clear_tail(&word));
    assert_eq!(word.load(Relaxed), tail(6));
    assert_eq!((next_of(5), granted(4), granted(0)), (Some(4), 0, tail(5)));
    assert_eq!(events_of(LockEvent::CnaTailUpdateFailed), 1);
}

#[test]
fn the_shuffle_reduction_leaves_most_queues_unsorted() {
    RANDOM.set(1 << 6);
    head_and(&[1, 0]);
    became_head::<Standard>();
    assert_eq!((order(), next_of(0), granted(0)), (FOUND, Some(1), 0));
    RANDOM.set(1 << 7);
    became_head::<Standard>();
    assert_eq!((next_of(0), granted(0)), (Some(2), tail(1)), "the seven bits that count are 0");
    RANDOM.set(1);
    head_and(&[1, 0]);
    secondary_queue(&[4]);
    became_head::<Standard>();
    assert_eq!(granted(0), tail(1), "a secondary queue is always kept up");
}
