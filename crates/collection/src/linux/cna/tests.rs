use super::testing::sequences::{Rules, counterexample};
use super::testing::{Queues, tail};
use super::*;
use crate::events::LockEvent;
use crate::linux::qspinlock::{LOCKED, Preemptible, StealOnce};
use crate::platform::Priority;
use crate::testing::{self, NOW_NS, NUMA_NODE, OneThread, RANDOM, events_of};

/// Sorts whenever it may.
type Sorting = Cna<NoShuffleReduction>;
type Stage = Queues<State<OneThread>>;

const MS: u64 = 1_000_000;

/// The head, in slot 0, becomes the head with this word.
fn became_head<T: CnaTuning, L: QSpinTuning>(stage: &Stage, word: u32) {
    // SAFETY: the node in slot 0 is the head in all tests.
    unsafe { Cna::<T>::became_head::<L>(&Atomic::new(word), stage.node(0)) };
}

fn became_head_of_busy_lock(stage: &Stage) {
    became_head::<NoShuffleReduction, Standard>(stage, LOCKED);
}

fn hand_over_to(stage: &Stage, slot: u32) {
    // SAFETY: the test made this the node behind the head.
    unsafe { Sorting::hand_over::<Standard>(stage.node(0), stage.pointer(slot)) };
}

/// Gives the head these waiters, on NUMA node 1, as its secondary queue.
fn set_aside(stage: &Stage, slots: &[u32], start_ns: u64) {
    stage.set_aside(slots);
    stage.node(0).part.state.start_ns.store(start_ns, Relaxed);
}

fn start_ns(stage: &Stage, slot: u32) -> u64 {
    stage.node(slot).part.state.start_ns.load(Relaxed)
}

#[test]
fn far_waiters_are_moved_aside_until_a_near_one_comes_next() {
    NOW_NS.set(7 * MS);
    let stage = Stage::new(&[1, 2, 1, 0, 1, 0]);
    became_head_of_busy_lock(&stage);
    assert_eq!(stage.next_of(0), Some(4));
    assert_eq!(stage.granted(0), tail(3).bits());
    assert_eq!([1, 2, 3].map(|slot| stage.next_of(slot)), [Some(2), Some(3), Some(1)]);
    assert_eq!(start_ns(&stage, 0), 7 * MS);
    assert_eq!(events_of(LockEvent::CnaSplice), 3);
}

#[test]
fn a_free_lock_is_taken_and_nothing_is_sorted() {
    let stage = Stage::new(&[1, 0]);
    became_head::<NoShuffleReduction, Standard>(&stage, tail(2).bits());
    assert_eq!((stage.next_of(0), stage.granted(0), start_ns(&stage, 0)), (Some(1), 0, 0));
    became_head::<NoShuffleReduction, Standard>(&stage, tail(2).bits() | PENDING);
    assert_eq!(stage.next_of(0), Some(2), "a pending waiter keeps it busy");
}

#[test]
fn the_last_waiter_is_never_moved_and_the_head_of_a_competing_lock_stops_sorting() {
    let stage = Stage::new(&[1, 1]);
    became_head::<NoShuffleReduction, Preemptible>(&stage, LOCKED);
    assert_eq!((stage.next_of(0), stage.granted(0)), (Some(2), tail(1).bits()));
    let alone = Stage::new(&[]);
    became_head::<NoShuffleReduction, StealOnce>(&alone, LOCKED);
    assert_eq!((alone.next_of(0), alone.granted(0)), (None, 0));
}

#[test]
fn the_preference_travels_with_the_secondary_queue() {
    let stage = Stage::new(&[1, 2]);
    set_aside(&stage, &[4], 5 * MS);
    became_head::<NoShuffleReduction, Preemptible>(&stage, LOCKED);
    assert_eq!(stage.next_of(0), Some(2), "far, but the last");
    hand_over_to(&stage, 1);
    assert_eq!((stage.granted(1), stage.granted(2)), (0, tail(1).bits()));
    assert_eq!((stage.numa_node(2), start_ns(&stage, 2)), (0, 5 * MS));
}

#[test]
fn without_a_secondary_queue_there_is_no_preference() {
    let stage = Stage::new(&[1]);
    became_head::<NoShuffleReduction, Preemptible>(&stage, LOCKED);
    hand_over_to(&stage, 1);
    assert_eq!((stage.granted(1), stage.numa_node(1), start_ns(&stage, 1)), (1, 1, NO_SECONDARY));
}

#[test]
fn an_urgent_waiter_is_not_moved() {
    let stage = Stage::new(&[1, 2, 0]);
    OneThread::set_priority(true);
    NUMA_NODE.set(1);
    Sorting::prepare(stage.node(2), tail(2));
    became_head_of_busy_lock(&stage);
    assert_eq!((stage.next_of(0), stage.granted(0)), (Some(2), tail(1).bits()));
    testing::set(Setting::CnaPriorityWaiters, 0);
    Sorting::prepare(stage.node(2), tail(2));
    became_head_of_busy_lock(&stage);
    assert_eq!(stage.next_of(0), Some(3), "no waiter is urgent if the setting says so");
}

#[test]
fn an_urgent_head_sorts_by_its_real_node() {
    let stage = Stage::new(&[0, 1, 0]);
    OneThread::set_priority(true);
    NUMA_NODE.set(1);
    Sorting::prepare(stage.node(0), tail(0));
    became_head_of_busy_lock(&stage);
    assert_eq!((stage.numa_node(0), stage.next_of(0)), (1, Some(2)));
}

#[test]
fn a_secondary_queue_that_has_waited_too_long_goes_first() {
    let stage = Stage::new(&[1, 0]);
    set_aside(&stage, &[4, 5], 2 * MS);
    NOW_NS.set(3 * MS);
    assert!(!threshold_passed::<OneThread>(2 * MS), "1 ms: not more than the threshold");
    NOW_NS.set(3 * MS + 1);
    became_head_of_busy_lock(&stage);
    assert_eq!((start_ns(&stage, 0), stage.next_of(0)), (FLUSH, Some(1)), "nothing is sorted any more");
    hand_over_to(&stage, 1);
    assert_eq!([4, 5].map(|slot| stage.next_of(slot)), [Some(5), Some(1)]);
    assert_eq!((stage.granted(4), stage.granted(1), start_ns(&stage, 4)), (1, 0, NO_SECONDARY));
    assert_eq!(stage.numa_node(4), 1, "its own node is preferred from now on");
    assert_eq!(events_of(LockEvent::CnaFlush), 1);
}

#[test]
fn the_threshold_is_a_setting_and_0_is_never() {
    NOW_NS.set(100 * MS);
    assert!(threshold_passed::<OneThread>(98 * MS));
    testing::set(Setting::CnaThresholdNs, 3 * MS);
    assert!(!threshold_passed::<OneThread>(98 * MS));
    testing::set(Setting::CnaThresholdNs, 0);
    assert!(!threshold_passed::<OneThread>(EARLIEST_NS));
    testing::set(Setting::CnaThresholdNs, 1);
    assert!(!threshold_passed::<OneThread>(NO_SECONDARY));
    assert!(!threshold_passed::<OneThread>(101 * MS), "begun by a clock that is ahead");
}

#[test]
fn a_time_is_never_taken_for_a_mark() {
    let stage = Stage::new(&[1, 0]);
    became_head_of_busy_lock(&stage);
    assert_eq!(start_ns(&stage, 0), EARLIEST_NS);
    Sorting::prepare(stage.node(0), tail(0));
    assert_eq!(start_ns(&stage, 0), NO_SECONDARY);
}

#[test]
fn the_shuffle_reduction_is_a_setting() {
    RANDOM.set(1 << 6);
    let stage = Stage::new(&[1, 0]);
    became_head::<Standard, Standard>(&stage, LOCKED);
    assert_eq!((stage.next_of(0), stage.granted(0)), (Some(1), 0));
    testing::set(Setting::CnaShuffleReduction, 0);
    became_head::<Standard, Standard>(&stage, LOCKED);
    assert_eq!((stage.next_of(0), stage.granted(0)), (Some(2), tail(1).bits()));
}

#[test]
fn an_empty_main_queue_is_replaced_by_the_secondary_queue() {
    let stage = Stage::new(&[]);
    set_aside(&stage, &[4, 5], MS);
    let word = Atomic::new(tail(0).bits());
    // SAFETY: as in `became_head`.
    let cleared = unsafe { Sorting::try_clear_tail::<Standard>(&word, tail(0).bits(), stage.node(0)) };
    assert_eq!(cleared, Ok(()));
    assert_eq!(word.load(Relaxed), tail(5).bits() | LOCKED);
    assert_eq!((stage.granted(4), start_ns(&stage, 4)), (1, NO_SECONDARY));
}

/// The rules of this version.
const RULES: Rules = Rules { moves_max: usize::MAX, next_counts_as_near: false };

#[test]
fn after_all_sequences_its_queues_are_those_of_the_reference() {
    assert_eq!(counterexample::<Sorting, State<OneThread>>(RULES), None);
}

#[test]
fn another_reference_is_found_out_by_a_short_sequence() {
    let found = counterexample::<Sorting, State<OneThread>>(Rules { moves_max: 0, ..RULES });
    assert!(found.as_ref().is_some_and(|sequence| sequence.len() <= 4), "{found:?}");
}
