use super::*;
use crate::testing::{OneThread, UNPARKED, events_of};

mod waiting;

const _: () = assert!(size_of::<QSpinLock<OneThread>>() == 4);
const _: () = assert!(size_of::<Node<OneThread, ()>>() == 16);

fn cycle<T: QSpinTuning>() {
    let lock = QSpinLock::<OneThread, Fifo, T>::new();
    // SAFETY: one thread, and unlock follows lock.
    unsafe {
        lock.lock(&());
        assert_eq!(lock.word.load(Relaxed), LOCKED);
        assert!(!lock.try_lock(&()));
        lock.unlock(&());
        assert_eq!(lock.word.load(Relaxed), 0);
        assert!(lock.try_lock(&()));
        lock.unlock(&());
    }
}

#[test]
fn locks_and_unlocks_with_either_access() {
    cycle::<Standard>();
    cycle::<WholeWord>();
}

#[test]
fn waiters_alone_do_not_hold_the_lock() {
    let tail = Tail::encode(NodeId { slot: 6, level: 0 }).bits();
    for waiters in [0, PENDING, tail, tail | PENDING] {
        // SAFETY: no thread follows the name.
        let is_locked = |word| unsafe { QSpinLock::<OneThread>::with_word(word) }.is_locked();
        assert!(!is_locked(waiters) && is_locked(waiters | LOCKED));
    }
}

#[test]
fn tails_name_nodes_and_come_back() {
    for id in [
        NodeId { slot: 0, level: 0 },
        NodeId { slot: 0, level: 3 },
        NodeId { slot: NodeId::SLOTS - 1, level: 3 },
    ] {
        let tail = Tail::encode(id);
        assert_eq!(Tail::decode(tail.bits() | LOCKED | PENDING), Some(id));
        assert!(tail.bits() > 1 && tail.bits() & !TAIL_MASK == 0);
    }
    assert_eq!(Tail::decode(LOCKED | PENDING), None);
}

fn slow<T: QSpinTuning>(val: u32) -> u32 {
    // SAFETY: callers name no node.
    let lock = unsafe { QSpinLock::<OneThread, Fifo, T>::with_word(val) };
    lock.lock_slow(val);
    lock.word.load(Relaxed)
}

#[test]
fn a_free_word_is_taken_as_the_pending_waiter() {
    assert_eq!(slow::<Standard>(0), LOCKED);
    assert_eq!(slow::<WholeWord>(0), LOCKED);
}

fn queued<T: QSpinTuning>() {
    let lock = QSpinLock::<OneThread, Fifo, T>::new();
    let (node, tail) = (Node::default(), Tail::encode(NodeId { slot: 6, level: 0 }));
    lock.swap_tail(tail);
    // SAFETY: there is no other thread.
    unsafe { lock.lock_as_head(&node, tail) };
    assert_eq!(lock.word.load(Relaxed), LOCKED, "the only waiter leaves no queue");
}

#[test]
fn the_last_of_the_queue_clears_the_tail() {
    queued::<Standard>();
    queued::<WholeWord>();
}

#[test]
fn a_head_with_a_successor_passes_its_place_on() {
    let lock = QSpinLock::<OneThread>::new();
    let (node, next) = (Node::<OneThread, ()>::default(), Node::default());
    node.next.store(ptr::from_ref(&next).cast_mut(), Relaxed);
    let tail = Tail::encode(NodeId { slot: 7, level: 0 });
    lock.swap_tail(tail);
    // SAFETY: there is no other thread.
    unsafe { lock.lock_as_head(&node, Tail::encode(NodeId { slot: 6, level: 0 })) };
    assert_eq!(lock.word.load(Relaxed), tail.bits() | LOCKED);
    assert_eq!(next.granted.load(Relaxed), 1);
}

#[test]
fn without_a_node_it_waits_unqueued_and_says_so() {
    let lock = QSpinLock::<OneThread>::new();
    OneThread::without_nodes(|| {
        // As if another waiter were pending at first sight.
        let before = events_of(LockEvent::NoNode);
        lock.lock_slow(PENDING | LOCKED);
        assert_eq!(events_of(LockEvent::NoNode), before + 1);
    });
    assert_eq!(lock.word.load(Relaxed), LOCKED);
}

#[test]
fn nested_slow_paths_use_the_next_node() {
    let lock = QSpinLock::<OneThread>::new();
    OneThread::with_node(|_outer: Option<LentNode<Node<OneThread, ()>>>| {
        let before = events_of(LockEvent::UseNode2);
        lock.lock_slow(PENDING | LOCKED);
        assert_eq!(events_of(LockEvent::UseNode2), before + 1);
    });
}

#[test]
fn the_fifth_nested_slow_path_goes_without_a_node() {
    fn nested(levels: u32, f: &dyn Fn()) {
        match levels {
            0 => f(),
            _ => OneThread::with_node(|lent: Option<LentNode<Node<OneThread, ()>>>| {
                assert!(lent.is_some());
                nested(levels - 1, f);
            }),
        }
    }
    let lock = QSpinLock::<OneThread>::new();
    let before = events_of(LockEvent::NoNode);
    nested(NodeId::NESTING, &|| lock.lock_slow(PENDING | LOCKED));
    assert_eq!(events_of(LockEvent::NoNode), before + 1);
    assert_eq!(lock.word.load(Relaxed), LOCKED);
}

/// A lock with a queue whose last waiter is another thread, and the name of its node.
fn with_queue<T: QSpinTuning>(low: u32) -> (QSpinLock<OneThread, Fifo, T>, u32) {
    let tail = Tail::encode(NodeId { slot: 7, level: 0 }).bits();
    // SAFETY: no thread follows the name.
    (unsafe { QSpinLock::with_word(tail | low) }, tail)
}

fn steals<T: QSpinTuning>(low: u32) -> bool {
    let (lock, tail) = with_queue::<T>(low);
    let stolen = lock.steal();
    let expected = if stolen { LOCKED } else { low };
    assert_eq!(lock.word.load(Relaxed), tail | expected);
    stolen
}

#[test]
fn newcomers_steal_a_free_lock_that_its_head_does_not_look_at() {
    assert!(steals::<StealOnce>(0) && steals::<StealHybrid>(0) && steals::<Preemptible>(0));
    assert!(!steals::<ParkOnly>(0), "no thread steals with this switch off");
    for low in [LOCKED, PENDING, PENDING | LOCKED] {
        assert!(!steals::<StealOnce>(low) && !steals::<StealHybrid>(low) && !steals::<Preemptible>(low));
    }
}

#[test]
fn a_head_takes_the_lock_and_leaves_the_tail() {
    fn compete<T: QSpinTuning>() {
        let (lock, tail) = with_queue::<T>(0);
        assert_eq!(lock.compete(), tail | LOCKED);
        assert_eq!(lock.word.load(Relaxed), tail | LOCKED);
    }
    compete::<StealOnce>();
    compete::<ParkOnly>();
    compete::<Preemptible>();
}

#[test]
fn a_head_that_goes_to_sleep_may_find_the_lock_free_instead() {
    let (lock, tail) = with_queue::<Preemptible>(PENDING);
    assert_eq!(lock.park_head(), Some(tail | LOCKED));
    assert_eq!(lock.word.load(Relaxed), tail | LOCKED);
}

#[test]
fn an_unlock_wakes_a_head_that_sleeps_and_no_other_thread() {
    const ASLEEP: u32 = 3;
    for (low, woken) in [(ASLEEP, true), (LOCKED, false)] {
        let (lock, tail) = with_queue::<Preemptible>(low);
        UNPARKED.set(None);
        // SAFETY: the word says that the lock is held. No other thread holds it.
        unsafe { lock.unlock(&()) };
        assert_eq!(lock.word.load(Relaxed), tail);
        assert_eq!(UNPARKED.get(), woken.then_some((ptr::from_ref(&lock.word), 1)));
    }
}

#[test]
fn a_grant_wakes_a_waiter_that_sleeps_and_no_other_thread() {
    const ASLEEP: u32 = 2;
    for (before, woken) in [(ASLEEP, true), (0, false)] {
        let granted = Atomic::new(before);
        UNPARKED.set(None);
        grant::<OneThread, Preemptible>(&granted, 1);
        assert_eq!(granted.load(Relaxed), 1);
        assert_eq!(UNPARKED.get(), woken.then_some((ptr::from_ref(&granted), 1)));
    }
}

#[test]
fn a_waiter_sleeps_early_if_its_predecessor_does() {
    const ASLEEP: u32 = 2;
    let (node, predecessor) = (Node::<OneThread, ()>::default(), Node::<OneThread, ()>::default());
    let early = events_of(LockEvent::WaitEarly);
    // SAFETY: both are alive.
    let looks = || unsafe { queue::looks_granted::<OneThread, (), Preemptible>(&node, &predecessor, 1000) };
    assert!(!looks());
    assert_eq!(events_of(LockEvent::WaitEarly), early);
    predecessor.granted.store(ASLEEP, Relaxed);
    assert!(!looks());
    assert_eq!(events_of(LockEvent::WaitEarly), early + 1);
    crate::tuning! {
        /// As `Preemptible`, with this switch off.
        struct Steadfast: QSpinTuning {
            wait_early: bool = false;
        }
    }
    // SAFETY: as above.
    assert!(!unsafe { queue::looks_granted::<OneThread, (), Steadfast>(&node, &predecessor, 1000) });
    assert_eq!(events_of(LockEvent::WaitEarly), early + 1, "not early");
    node.granted.store(1, Relaxed);
    assert!(looks());
}
