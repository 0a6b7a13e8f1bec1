//! Which threads unlocks, downgrades and drains wake.

use std::vec::Vec;

use super::*;
use crate::freebsd::lock_chain;
use crate::freebsd::sleepers::{is_awake, sleeper_at};
use crate::shared_holds::SharedHolds;
use crate::testing::{PAUSES, meanwhile, others_are_done};

use Queue::{Exclusive, Shared};

crate::tuning! {
    /// Counts the threads that fail after their sleep as the kernel does.
    struct Forgetful: Tuning {
        lockmgr_sleep_failers: SleepFailers = SleepFailers::Forgotten;
    }
}

crate::tuning! {
    /// Does not count them, as before there was a count.
    struct Ignorant: Tuning {
        lockmgr_sleep_failers: SleepFailers = SleepFailers::Ignored;
    }
}

/// A lock in this state, and for each of its sleepers a function that tells whether it is awake.
/// The calling thread counts as many shares as the word does.
fn staged<T: Tuning>(
    word: u64,
    failers: u32,
    queues: &[Queue],
) -> (&'static Lock<T>, Vec<&'static dyn Fn() -> bool>) {
    let lock = leaked::<T>();
    let sleepers = queues.iter().map(|queue| {
        let sleeper = sleeper_at(lock, *queue);
        let is_awake: &'static dyn Fn() -> bool = Box::leak(Box::new(move || is_awake(sleeper)));
        is_awake
    });
    let sleepers = sleepers.collect();
    lock.word.store(word, Relaxed);
    lock.sleep_failers.store(failers, Relaxed);
    let shares = if word & EXCLUSIVE == 0 { word / SHARER } else { 0 };
    OneThread::with_shared_holds(holds(), |holds| holds.set(shares as u32));
    (lock, sleepers)
}

fn holds() -> crate::shared_holds::SharedLock {
    crate::shared_holds::SharedLock::LockMgr
}

/// Which sleepers are awake after it, and the word that is left.
fn after<T: Tuning>(
    word: u64,
    failers: u32,
    queues: &[Queue],
    act: impl FnOnce(&'static Lock<T>),
) -> (Vec<bool>, u64) {
    let (lock, sleepers) = staged::<T>(word, failers, queues);
    act(lock);
    OneThread::with_shared_holds(holds(), |holds| holds.set(0));
    let awake = sleepers.iter().map(|is_awake| is_awake()).collect();
    for queue in [Exclusive, Shared] {
        lock_chain::<OneThread, _>(lock).wake_all(queue);
    }
    (awake, lock.now())
}

const BOTH: &[Queue] = &[Exclusive, Shared, Exclusive];

fn wakes_the_right_queues<T: Tuning>() {
    for holder in [owned_by(me()), DISOWNED, SHARER] {
        let released = |bits, failers, queues| {
            after::<T>(holder | bits, failers, queues, |lock| {
                lock.done(Operation::Unlock);
                assert_eq!(lock.failers(), 0, "those that fail are awake");
            })
        };
        let of = |awake: &[bool], word| (Vec::from(awake), word);
        assert_eq!(released(WAITERS, 0, BOTH), of(&[true, false, true], SHARED_WAITERS), "exclusive first");
        assert_eq!(released(WAITERS, 1, BOTH), of(&[true, false, true], SHARED_WAITERS), "one will take it");
        assert_eq!(released(WAITERS, 2, BOTH), of(&[true; 3], FREE), "none will take it");
        assert_eq!(released(WAITERS, 0, &[Shared]), of(&[true], FREE), "all have given up");
        assert_eq!(released(SHARED_WAITERS, 0, &[Shared, Shared]), of(&[true; 2], FREE));
        assert_eq!(released(EXCLUSIVE_WAITERS, 0, &[Exclusive]), of(&[true], FREE));
        assert_eq!(released(EXCLUSIVE_WAITERS, 1, &[Exclusive]), of(&[true], FREE));
        assert_eq!(released(EXCLUSIVE_WAITERS, 0, &[]), of(&[], FREE));
    }
    let left = after::<T>((2 * SHARER) | WAITERS, 2, BOTH, |lock| {
        lock.done(Operation::Unlock);
        assert_eq!(lock.failers(), 2);
    });
    assert_eq!(left, (Vec::from([false; 3]), SHARER | WAITERS), "the last one will");
}

fn wakes_no_thread_by_a_downgrade<T: Tuning>() {
    for bits in [SHARED_WAITERS, EXCLUSIVE_WAITERS, WAITERS] {
        let downgraded = after::<T>(owned_by(me()) | bits, 0, BOTH, |lock| lock.done(Operation::Downgrade));
        assert_eq!(downgraded, (Vec::from([false; 3]), SHARER | bits));
    }
}

fn wakes_before_it_drains<T: Tuning>() {
    let drained = after::<T>(SHARED_WAITERS, 0, &[Shared], |lock| lock.done(Operation::Drain));
    assert_eq!(drained, (Vec::from([true]), owned_by(me())), "the sharer has not come");
    let (lock, sleepers) = staged::<T>(SHARED_WAITERS, 0, &[Shared]);
    meanwhile(move || {
        assert!(sleepers[0](), "it comes");
        lock.done_as(OTHER, Operation::Shared);
    });
    meanwhile(|| {
        assert_eq!(lock.now(), SHARER | EXCLUSIVE_WAITERS);
        lock.done_as(OTHER, Operation::Unlock);
    });
    lock.done(Operation::Drain);
    assert_eq!((lock.now(), others_are_done()), (owned_by(me()), true));
    mistake("drains a lock that it holds", || lock.done(Operation::Drain));
    lock.done(Operation::Unlock);
}

in_all_forms!(wakes_the_right_queues wakes_no_thread_by_a_downgrade wakes_before_it_drains);

#[test]
fn a_drain_backs_off() {
    PAUSES.take();
    after::<Standard>(SHARED_WAITERS, 0, &[Shared], |lock| lock.done(Operation::Drain));
    assert_eq!(PAUSES.take(), [1, 2, 4, 8]);
}

/// A sharer that seems to be the last locks the chain, and others share by then: the last of them
/// wakes.
#[test]
fn the_last_sharer_knows_of_waiters_that_fail() {
    fn of<T: Tuning>() -> (Vec<bool>, u64) {
        after::<T>((2 * SHARER) | WAITERS, 1, &[Exclusive, Shared], |lock| {
            lock.release_shared_slow();
            lock.done(Operation::Unlock);
        })
    }
    assert_eq!(of::<Standard>(), (Vec::from([true; 2]), FREE));
    assert_eq!(of::<Forgetful>(), (Vec::from([true, false]), SHARED_WAITERS), "sleeps at a free lock");
    assert_eq!(of::<Ignorant>(), (Vec::from([true, false]), SHARED_WAITERS));
    let simply =
        |release: fn(&'static Lock<Forgetful>)| after(SHARER | WAITERS, 1, &[Exclusive, Shared], release);
    assert_eq!(simply(|lock| lock.done(Operation::Unlock)), (Vec::from([true; 2]), FREE));
}
