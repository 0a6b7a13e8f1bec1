use super::*;
use crate::events::LockEvent;
use crate::linux::cna::NoShuffleReduction;
use crate::linux::cna::testing::sequences::{Rules, counterexample};
use crate::linux::cna::testing::{Queues, tail};
use crate::platform::Priority;
use crate::testing::{self, NOW_NS, NUMA_NODE, OneThread, RANDOM, events_of};

/// Sorts whenever it may.
type Sorting = CnaV13<NoShuffleReduction>;
type Stage = Queues<State<OneThread>>;

const TICK_NS: u64 = 1_000_000;

fn became_head<T: CnaTuning>(stage: &Stage) {
    // SAFETY: the node in slot 0 is the head in all tests.
    unsafe { CnaV13::<T>::became_head::<Standard>(&<OneThread as Platform>::U32::new(0), stage.node(0)) };
}

fn hand_over_to(stage: &Stage, slot: u32) {
    // SAFETY: the test made this the node behind the head.
    unsafe { Sorting::hand_over::<Standard>(stage.node(0), stage.pointer(slot)) };
}

/// Gives the head these waiters, on NUMA node 1, as its secondary queue, begun in tick 1.
fn set_aside(stage: &Stage, slots: &[u32]) {
    stage.set_aside(slots);
    stage.node(0).part.state.start_tick.store(1, Relaxed);
}

fn order(stage: &Stage) -> u32 {
    stage.node(0).part.state.order.load(Relaxed)
}

fn start_tick(stage: &Stage, slot: u32) -> u32 {
    stage.node(slot).part.state.start_tick.load(Relaxed)
}

#[test]
fn the_first_far_waiter_begins_a_secondary_queue() {
    NOW_NS.set(7 * TICK_NS);
    let stage = Stage::new(&[1, 0]);
    became_head::<NoShuffleReduction>(&stage);
    assert_eq!((order(&stage), stage.next_of(0)), (FOUND, Some(2)));
    assert_eq!((stage.granted(0), start_tick(&stage, 0)), (tail(1).bits(), 7));
    assert_eq!(events_of(LockEvent::CnaSplice), 1);
}

#[test]
fn one_waiter_is_moved_and_the_next_one_counts_as_near() {
    NOW_NS.set(5 * TICK_NS);
    let stage = Stage::new(&[1, 1, 0]);
    set_aside(&stage, &[4, 5]);
    became_head::<NoShuffleReduction>(&stage);
    assert_eq!(stage.granted(0), tail(1).bits());
    assert_eq!([4, 5, 1].map(|slot| stage.next_of(slot)), [Some(5), Some(1), Some(4)]);
    assert_eq!(start_tick(&stage, 0), 1, "the secondary queue is as old as before");
    assert_eq!((stage.next_of(0), stage.numa_node(2)), (Some(2), 0));
}

#[test]
fn a_near_waiter_stays() {
    let stage = Stage::new(&[0, 1, 0]);
    became_head::<NoShuffleReduction>(&stage);
    assert_eq!((order(&stage), stage.next_of(0), stage.granted(0)), (FOUND, Some(1), 0));
    hand_over_to(&stage, 1);
    assert_eq!((stage.granted(1), start_tick(&stage, 1)), (1, 0));
}

#[test]
fn the_last_waiter_is_never_moved_but_counts_as_near() {
    let stage = Stage::new(&[1]);
    became_head::<NoShuffleReduction>(&stage);
    assert_eq!((order(&stage), stage.next_of(0), stage.granted(0)), (FOUND, Some(1), 0));
    assert_eq!(stage.numa_node(1), 0);
}

#[test]
fn an_urgent_waiter_is_not_moved() {
    let stage = Stage::new(&[1, 0]);
    OneThread::set_priority(true);
    NUMA_NODE.set(1);
    Sorting::prepare(stage.node(1), tail(1));
    assert_eq!(stage.numa_node(1), PRIORITY_NODE);
    became_head::<NoShuffleReduction>(&stage);
    assert_eq!((order(&stage), stage.next_of(0), stage.numa_node(1)), (FOUND, Some(1), 0));
    testing::set(Setting::CnaV13PriorityWaiters, 0);
    Sorting::prepare(stage.node(1), tail(1));
    assert_eq!(stage.numa_node(1), 1, "no waiter is urgent if the setting says so");
}

#[test]
fn an_urgent_head_sorts_by_its_real_node() {
    let stage = Stage::new(&[1, 0]);
    OneThread::set_priority(true);
    NUMA_NODE.set(1);
    Sorting::prepare(stage.node(0), tail(0));
    became_head::<NoShuffleReduction>(&stage);
    assert_eq!((stage.numa_node(0), stage.next_of(0), stage.granted(0)), (1, Some(1), 0));
}

#[test]
fn a_head_without_a_successor_sorts_when_it_hands_over() {
    let stage = Stage::new(&[]);
    became_head::<NoShuffleReduction>(&stage);
    assert_eq!(order(&stage), NOT_FOUND);
    let stage = Stage::new(&[1, 0]);
    hand_over_to(&stage, 1);
    assert_eq!(stage.granted(1), 0);
    let begun = (tail(1).bits(), 1);
    assert_eq!((stage.granted(2), start_tick(&stage, 2)), begun, "in tick 0, which is stored as 1");
}

#[test]
fn a_secondary_queue_that_has_waited_too_long_goes_first() {
    let stage = Stage::new(&[0]);
    set_aside(&stage, &[4, 5]);
    NOW_NS.set(11 * TICK_NS);
    became_head::<NoShuffleReduction>(&stage);
    assert_eq!(order(&stage), FOUND, "ten ticks since tick 1: not more than the threshold");
    NOW_NS.set(12 * TICK_NS);
    became_head::<NoShuffleReduction>(&stage);
    assert_eq!(order(&stage), FLUSH);
    hand_over_to(&stage, 1);
    assert_eq!((stage.granted(4), stage.granted(1)), (1, 0));
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
fn ticks_have_a_length_whatever_the_setting() {
    for hz in [0, 1, 1_000_000_001, u64::MAX] {
        testing::set(Setting::CnaV13TickHz, hz);
        assert!(tick_ns::<OneThread>() > 0);
    }
}

#[test]
fn the_shuffle_reduction_is_a_setting() {
    RANDOM.set(1 << 6);
    let stage = Stage::new(&[1, 0]);
    became_head::<Standard>(&stage);
    assert_eq!((order(&stage), stage.next_of(0), stage.granted(0)), (FOUND, Some(1), 0));
    testing::set(Setting::CnaV13ShuffleReduction, 0);
    became_head::<Standard>(&stage);
    assert_eq!((stage.next_of(0), stage.granted(0)), (Some(2), tail(1).bits()));
}

#[test]
fn after_all_sequences_its_queues_are_those_of_the_reference() {
    let rules = Rules { moves_max: 1, next_counts_as_near: true };
    assert_eq!(counterexample::<Sorting, State<OneThread>>(rules), None);
}
