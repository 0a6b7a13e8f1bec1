//! Waits, and what other threads do meanwhile.

use super::*;
use crate::testing::{meanwhile, others_are_done};
use std::boxed::Box;
use std::cell::Cell;

type Lock<T, Q = Fifo> = QSpinLock<OneThread, Q, T>;

/// The last of a queue that the word names.
const LAST: NodeId = NodeId { slot: 7, level: 0 };

fn lock_with_word<T: QSpinTuning>(word: u32) -> &'static Lock<T> {
    // SAFETY: the tests name only nodes whose threads they play.
    Box::leak(Box::new(unsafe { QSpinLock::with_word(word) }))
}

fn node(id: NodeId) -> &'static Node<OneThread, ()> {
    // SAFETY: nodes are never freed.
    unsafe { &*OneThread::node(id) }
}

fn own_node() -> &'static Node<OneThread, ()> {
    node(NodeId { slot: OneThread::SLOT, level: 0 })
}

fn lock(lock: &Lock<impl QSpinTuning>) {
    // SAFETY: only the test unlocks.
    unsafe { lock.lock(&()) };
    assert!(others_are_done());
}

fn unlock(lock: &Lock<impl QSpinTuning>) {
    // SAFETY: the test plays the holder.
    unsafe { lock.unlock(&()) };
}

#[test]
fn the_pending_waiter_waits_for_the_holder() {
    fn waits<T: QSpinTuning>() {
        let contended = lock_with_word::<T>(LOCKED);
        meanwhile(|| {
            assert_eq!(contended.word.load(Relaxed), PENDING | LOCKED);
            unlock(contended);
        });
        lock(contended);
        assert_eq!(contended.word.load(Relaxed), LOCKED);
    }
    waits::<Standard>();
    waits::<WholeWord>();
}

#[test]
fn a_mark_that_comes_too_late_does_not_stay_and_that_of_another_does() {
    let tail = Tail::encode(LAST).bits();
    for word in [tail, tail | LOCKED, PENDING | LOCKED, tail | PENDING] {
        let late = lock_with_word::<Standard>(word);
        assert!(!late.lock_pending(LOCKED), "as if no thread had been pending, or queued, a moment ago");
        assert_eq!(late.word.load(Relaxed), word);
    }
}

#[test]
fn a_newcomer_looks_for_a_while_at_a_lock_that_is_being_taken() {
    let slow = lock_with_word::<Standard>(PENDING);
    assert!(!slow.lock_pending(PENDING));
    assert_eq!(slow.word.load(Relaxed), PENDING);
}

#[test]
fn a_waiter_queues_behind_the_last_and_is_granted() {
    fn queues<T: QSpinTuning>() {
        let contended = lock_with_word::<T>(Tail::encode(LAST).bits() | LOCKED);
        meanwhile(|| {
            assert_eq!(node(LAST).next.load(Relaxed).cast_const(), ptr::from_ref(own_node()));
            grant::<OneThread, T>(&own_node().granted, 1);
        });
        meanwhile(|| unlock(contended));
        lock(contended);
        assert_eq!(contended.word.load(Relaxed), LOCKED, "no thread is behind");
    }
    queues::<Standard>();
    queues::<WholeWord>();
}

#[test]
fn a_waiter_that_finds_another_pending_and_no_queue_is_the_head() {
    let contended = lock_with_word::<Standard>(PENDING | LOCKED);
    // The pending waiter has the lock in between.
    meanwhile(|| contended.word.store_low_half(0, Relaxed));
    lock(contended);
    assert_eq!(contended.word.load(Relaxed), LOCKED);
}

#[test]
fn a_waiter_that_sleeps_is_woken_to_be_the_head_and_again_to_have_the_lock() {
    let contended = lock_with_word::<ParkOnly>(Tail::encode(LAST).bits() | LOCKED);
    let counted = || {
        [LockEvent::WaitNode, LockEvent::KickWaiter, LockEvent::WaitHead, LockEvent::KickUnlock]
            .map(events_of)
    };
    let before = counted();
    meanwhile(|| {
        assert_eq!(own_node().granted.load(Relaxed), queue::HALTED, "asleep, and woken for no reason")
    });
    meanwhile(|| grant::<OneThread, ParkOnly>(&own_node().granted, 1));
    meanwhile(|| assert!(contended.is_locked(), "asleep again"));
    meanwhile(|| unlock(contended));
    lock(contended);
    assert_eq!(contended.word.load(Relaxed), LOCKED);
    assert_eq!(counted(), before.map(|count| count + 1));
}

#[test]
fn a_waiter_that_is_granted_as_it_falls_asleep_stays_awake() {
    let waiter = Node::<OneThread, ()>::default();
    waiter.granted.store(1, Relaxed);
    queue::sleep_until_granted(&waiter);
    assert_eq!(waiter.granted.load(Relaxed), 1);
}

#[test]
fn a_head_lets_newcomers_steal_between_its_series_of_looks_and_not_for_ever() {
    crate::tuning! {
        /// No thread may steal once there is a head.
        struct Jealous: QSpinTuning {
            stealing: Stealing = Stealing::Once;
            head_stretches_max: u32 = 0;
        }
    }
    fn pending_between_series<T: QSpinTuning>() -> bool {
        let tail = Tail::encode(LAST).bits();
        let contended = lock_with_word::<T>(tail | LOCKED);
        let pending: &'static Cell<bool> = Box::leak(Box::default());
        meanwhile(|| {
            pending.set(contended.word.load(Relaxed) & PENDING != 0);
            unlock(contended);
        });
        assert_eq!(contended.compete(), tail | LOCKED);
        assert_eq!(contended.word.load(Relaxed), tail | LOCKED);
        pending.get()
    }
    assert!(!pending_between_series::<StealOnce>() && !pending_between_series::<WakefulHead>());
    assert!(pending_between_series::<Jealous>());
}

#[test]
fn a_newcomer_that_steals_says_so() {
    let tail = Tail::encode(LAST).bits();
    let free = lock_with_word::<StealOnce>(tail);
    let before = events_of(LockEvent::Stealing);
    lock(free);
    assert_eq!(free.word.load(Relaxed), tail | LOCKED);
    assert_eq!(events_of(LockEvent::Stealing), before + 1);
}

#[test]
fn a_head_waits_for_a_successor_that_has_swapped_and_not_linked() {
    fn waits<T: QSpinTuning>() {
        let contended = lock_with_word::<T>(Tail::encode(LAST).bits());
        let head = node(NodeId { slot: 6, level: 0 });
        head.next.store(ptr::null_mut(), Relaxed);
        node(LAST).granted.store(0, Relaxed);
        meanwhile(|| head.next.store(ptr::from_ref(node(LAST)).cast_mut(), Relaxed));
        // SAFETY: there is no other thread.
        unsafe { contended.lock_as_head(head, Tail::encode(NodeId { slot: 6, level: 0 })) };
        assert!(others_are_done());
        assert_eq!(contended.word.load(Relaxed), Tail::encode(LAST).bits() | LOCKED);
        assert_eq!(node(LAST).granted.load(Relaxed), 1);
    }
    waits::<Standard>();
    waits::<WholeWord>();
}

std::thread_local! {
    /// The number of late waiters that come, one after the other.
    static LATE: Cell<u32> = const { Cell::new(0) };
}

/// With this policy, a late waiter marks itself just before a head would clear the tail.
struct Marked;

// SAFETY: for one thread.
unsafe impl QueuePolicy<OneThread> for Marked {
    type Part = ();
    fn prepare(_node: &Node<OneThread, ()>, _tail: Tail) {}
    unsafe fn became_head<T: QSpinTuning>(_word: &<OneThread as Platform>::U32, _node: &Node<OneThread, ()>) {
    }
    unsafe fn try_clear_tail<T: QSpinTuning>(
        word: &<OneThread as Platform>::U32,
        val: u32,
        node: &Node<OneThread, ()>,
    ) -> Result<(), u32> {
        if LATE.get() > 0 {
            LATE.set(LATE.get() - 1);
            word.fetch_or(PENDING, Relaxed);
        }
        // SAFETY: the caller's.
        unsafe { <Fifo as QueuePolicy<OneThread>>::try_clear_tail::<T>(word, val, node) }
    }
    unsafe fn hand_over<T: QSpinTuning>(node: &Node<OneThread, ()>, next: *mut Node<OneThread, ()>) {
        // SAFETY: the caller's.
        unsafe { <Fifo as QueuePolicy<OneThread>>::hand_over::<T>(node, next) }
    }
}

#[test]
fn a_head_waits_until_the_marks_of_late_waiters_are_gone() {
    let (head, tail) = (node(NodeId { slot: 6, level: 0 }), Tail::encode(NodeId { slot: 6, level: 0 }));
    for behind in [None, Some(Tail::encode(LAST))] {
        // SAFETY: the test plays all threads that the word names.
        let contended: &Lock<Standard, Marked> =
            Box::leak(Box::new(unsafe { QSpinLock::with_word(tail.bits()) }));
        head.next.store(ptr::null_mut(), Relaxed);
        node(LAST).granted.store(0, Relaxed);
        LATE.set(2);
        let goes = move || {
            let marked = contended.word.fetch_and(!PENDING, Relaxed);
            assert_eq!(marked, tail.bits() | PENDING | LOCKED);
        };
        meanwhile(goes);
        meanwhile(move || {
            goes();
            if let Some(behind) = behind {
                contended.swap_tail(behind);
                head.next.store(ptr::from_ref(node(LAST)).cast_mut(), Relaxed);
            }
        });
        // SAFETY: there is no other thread.
        unsafe { contended.lock_as_head(head, tail) };
        assert!(others_are_done());
        assert_eq!(contended.word.load(Relaxed), behind.map_or(0, Tail::bits) | LOCKED);
        assert_eq!(node(LAST).granted.load(Relaxed), u32::from(behind.is_some()));
    }
}

#[test]
fn a_thread_without_a_node_waits_for_the_lock_itself() {
    fn waits<T: QSpinTuning>() {
        let contended = lock_with_word::<T>(LOCKED);
        meanwhile(|| unlock(contended));
        contended.lock_without_node();
        assert!(others_are_done());
        assert_eq!(contended.word.load(Relaxed), LOCKED);
    }
    waits::<Standard>();
    waits::<Preemptible>();
}
