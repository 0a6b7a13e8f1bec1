use super::*;
use crate::linux::cna::testing::{Queues, tail};
use crate::testing::{self, OneThread, RANDOM, events_of};
use crate::tuning::Standard;

/// Moves the head's next waiter, which has another behind it, to the secondary queue.
fn splice_next(queues: &Queues<()>) -> bool {
    let mut begun = false;
    let next = queues.node(0).next.load(Relaxed);
    // SAFETY: the test has made a queue of live nodes.
    let after = unsafe { (*next).next.load(Relaxed) };
    splice(queues.node(0), next, after, || begun = true);
    begun
}

#[test]
fn a_secondary_queue_is_a_circle() {
    let queues = Queues::<()>::new(&[1, 1, 1]);
    assert!(splice_next(&queues), "this begins it");
    assert_eq!((queues.next_of(0), queues.granted(0)), (Some(2), tail(1).bits()));
    assert_eq!(queues.next_of(1), Some(1), "a circle of one");
    assert!(!splice_next(&queues));
    assert_eq!((queues.next_of(0), queues.granted(0)), (Some(3), tail(2).bits()));
    assert_eq!([1, 2].map(|slot| queues.next_of(slot)), [Some(2), Some(1)]);
    assert_eq!(events_of(LockEvent::CnaSplice), 2);
}

#[test]
fn a_flushed_secondary_queue_goes_first() {
    let queues = Queues::<()>::new(&[0]);
    queues.set_aside(&[4, 5]);
    flush::<_, _, Standard>(queues.node(0), queues.pointer(1));
    assert_eq!([4, 5].map(|slot| queues.next_of(slot)), [Some(5), Some(1)]);
    assert_eq!([4, 5, 1].map(|slot| queues.granted(slot)), [1, 0, 0]);
    assert_eq!(events_of(LockEvent::CnaFlush), 1);
}

fn clears_tail(queues: &Queues<()>, word: &<OneThread as Platform>::U32) -> bool {
    try_clear_tail::<OneThread, _, Standard>(word, tail(0).bits(), queues.node(0)).is_ok()
}

#[test]
fn without_a_secondary_queue_no_waiter_is_left() {
    let word = Atomic::new(tail(0).bits());
    assert!(clears_tail(&Queues::new(&[]), &word));
    assert_eq!(word.load(Relaxed), LOCKED);
    assert_eq!(events_of(LockEvent::CnaTailSplice), 0);
}

#[test]
fn an_empty_main_queue_is_replaced_by_the_secondary_queue() {
    let queues = Queues::<()>::new(&[]);
    queues.set_aside(&[4, 5]);
    let word = Atomic::new(tail(0).bits());
    assert!(clears_tail(&queues, &word));
    assert_eq!(word.load(Relaxed), tail(5).bits() | LOCKED);
    assert_eq!((queues.next_of(5), queues.granted(4), queues.granted(5)), (None, 1, 0));
    assert_eq!(events_of(LockEvent::CnaTailSplice), 1);
}

#[test]
fn if_a_waiter_queues_meanwhile_the_circle_is_restored() {
    let queues = Queues::<()>::new(&[]);
    queues.set_aside(&[4, 5]);
    let word = Atomic::new(tail(6).bits());
    assert!(!clears_tail(&queues, &word));
    assert_eq!(word.load(Relaxed), tail(6).bits());
    assert_eq!((queues.next_of(5), queues.granted(4), queues.granted(0)), (Some(4), 0, tail(5).bits()));
    assert_eq!(events_of(LockEvent::CnaTailUpdateFailed), 1);
}

#[test]
fn an_urgent_waiter_is_on_no_node_until_it_is_head() {
    let queues = Queues::<()>::new(&[]);
    OneThread::set_priority(true);
    queues.waiter(1, 3);
    assert_eq!(queues.numa_node(1), PRIORITY_NODE);
    queues.node(1).part.be_on_a_node();
    assert_eq!(queues.numa_node(1), 3);
    testing::set(Setting::CnaPriorityWaiters, 0);
    queues.waiter(1, 3);
    assert_eq!(queues.numa_node(1), 3, "no waiter is urgent if the setting says so");
}

#[test]
fn an_inherited_node_is_kept() {
    let queues = Queues::<()>::new(&[1]);
    queues.node(1).part.numa_node.store(2, Relaxed);
    queues.node(1).part.be_on_a_node();
    assert_eq!(queues.numa_node(1), 2);
}

#[test]
fn the_shuffle_reduction_leaves_most_queues_unsorted() {
    const BITS: Setting = Setting::CnaShuffleReduction;
    let queues = Queues::<()>::new(&[1, 0]);
    let left = || leave_unsorted::<OneThread, _, Standard>(queues.node(0), BITS);
    RANDOM.set(1 << 6);
    assert!(left());
    RANDOM.set(1 << 7);
    assert!(!left(), "the seven bits that count are 0");
    RANDOM.set(1 << 31);
    testing::set(BITS, 32);
    assert!(left(), "all bits count");
    testing::set(BITS, 0);
    RANDOM.set(u32::MAX);
    assert!(!left(), "no bit counts");
    testing::set(BITS, 7);
    assert!(left());
    assert!(!leave_unsorted::<OneThread, _, NoShuffleReduction>(queues.node(0), BITS));
    queues.set_aside(&[4]);
    assert!(!left(), "a secondary queue is always kept up");
}
