//! Waiters that spin, and waiters that sleep.

use super::*;
use crate::freebsd::lock_chain;
use crate::testing::{PAUSES, SPINS, meanwhile, others_are_done};

use Operation::{Drain, Exclusive, Shared, Unlock};

/// Only the present form spins.
fn spins<T: Tuning>() -> bool {
    T::adaptive() && T::lockmgr_adaptive()
}

fn waits_for_a_holder_that_runs<T: Tuning>() {
    let lock = leaked::<T>();
    for operation in [Shared, Exclusive] {
        let before = sleeps();
        lock.done_as(OTHER, Exclusive);
        PAUSES.take();
        meanwhile(|| {
            assert_eq!(lock.has_waiters(), !spins::<T>());
            lock.done_as(OTHER, Unlock);
        });
        assert_eq!(lock.does(operation, &Options::new().adaptive()), Ok(()));
        assert_eq!(PAUSES.take().len(), usize::from(spins::<T>()));
        assert_eq!((sleeps() - before, others_are_done()), (u64::from(!spins::<T>()), true));
        lock.done(Unlock);
    }
}

/// Cases in which no waiter spins.
fn sleeps_for_others<T: Tuning>() {
    let lock = leaked::<T>();
    let asleep = |operation, options: &Asked| {
        let before = sleeps();
        PAUSES.take();
        meanwhile(|| {
            assert!(lock.has_waiters());
            lock.done_as(OTHER, Unlock);
        });
        assert_eq!(lock.does(operation, options), Ok(()));
        assert_eq!((PAUSES.take().len(), sleeps() - before, others_are_done()), (0, 1, true));
        lock.done(Unlock);
        assert_eq!(lock.now(), FREE);
    };
    for operation in [Shared, Exclusive] {
        let adaptive = Options::new().adaptive();
        for options in [PLAIN, Options::default(), adaptive.not_adaptive()] {
            lock.done_as(OTHER, Exclusive);
            asleep(operation, &options);
        }
        owned_by_sleeper(lock, OTHER);
        asleep(operation, &adaptive);
        set_owner_state(OTHER, OwnerState::Running);
        lock.done_as(OTHER, Exclusive);
        lock.word.fetch_or(SHARED_WAITERS, Relaxed);
        asleep(operation, &adaptive);
        lock.done_as(OTHER, Exclusive);
        // SAFETY: the thread holds the lock.
        acting(OTHER, || unsafe { lock.disown() });
        asleep(operation, &adaptive);
    }
    lock.done_as(OTHER, Shared);
    asleep(Exclusive, &Options::new().adaptive());
}

/// A woken waiter finds another holder.
fn sleeps_again<T: Tuning>() {
    let lock = leaked::<T>();
    for operation in [Shared, Exclusive] {
        let before = sleeps();
        owned_by_sleeper(lock, OTHER);
        meanwhile(|| {
            lock.done_as(OTHER, Unlock);
            owned_by_sleeper(lock, THIRD);
        });
        meanwhile(|| lock.done_as(THIRD, Unlock));
        lock.done(operation);
        assert_eq!((sleeps() - before, others_are_done()), (2, true));
        lock.done(Unlock);
    }
    set_owner_state(OTHER, OwnerState::Running);
    set_owner_state(THIRD, OwnerState::Running);
}

/// Waiter bits on a word that is free otherwise.
fn is_taken_from_waiters<T: Tuning>() {
    let lock = leaked::<T>();
    lock.word.store(SHARED_WAITERS, Relaxed);
    lock.done(Exclusive);
    assert_eq!(lock.now(), owned_by(me()) | SHARED_WAITERS, "they are woken when it is released");
    lock.done(Unlock);
    assert_eq!(lock.now(), FREE);
    lock.word.store(SHARED_WAITERS, Relaxed);
    lock.done(Shared);
    assert_eq!(lock.now(), SHARER | SHARED_WAITERS);
    lock.done(Unlock);
    assert_eq!(lock.now(), FREE);
}

/// The holder unlocks before the waiter has locked the chain.
fn does_not_sleep_if_the_lock_is_free_by_then<T: Tuning>() {
    let lock = leaked::<T>();
    let counts = || [LockEvent::ChainSleep, LockEvent::ChainCancel].map(events_of);
    for operation in [Shared, Exclusive, Drain] {
        let before = counts();
        lock.done_as(OTHER, Exclusive);
        let chain = lock_chain::<OneThread, _>(lock);
        meanwhile(move || {
            lock.done_as(OTHER, Unlock);
            drop(chain);
        });
        lock.done(operation);
        assert!(others_are_done());
        assert_eq!(counts(), [before[0], before[1] + 1], "{operation:?}");
        lock.done(Unlock);
        assert_eq!(lock.now(), FREE);
    }
}

in_all_forms!(
    waits_for_a_holder_that_runs
    sleeps_for_others
    sleeps_again
    is_taken_from_waiters
    does_not_sleep_if_the_lock_is_free_by_then
);

#[test]
fn a_spinner_backs_off_and_sleeps_when_it_has_spun_for_long() {
    let lock = leaked::<Standard>();
    for operation in [Shared, Exclusive] {
        let before = sleeps();
        lock.done_as(OTHER, Exclusive);
        PAUSES.take();
        (0..SPINS).for_each(|_| meanwhile(|| ()));
        meanwhile(|| lock.done_as(OTHER, Unlock));
        assert_eq!(lock.does(operation, &Options::new().adaptive()), Ok(()));
        assert_eq!((PAUSES.take(), sleeps() - before), (std::vec![1, 2, 4, 8], 1));
        lock.done(Unlock);
    }
}

/// Another thread sets a waiter bit while a thread spins. The spinner then sleeps too.
#[test]
fn a_spinner_sleeps_when_another_thread_begins_to_wait() {
    let lock = leaked::<Standard>();
    let before = sleeps();
    lock.done_as(OTHER, Exclusive);
    meanwhile(|| _ = lock.word.fetch_or(EXCLUSIVE_WAITERS, Relaxed));
    meanwhile(|| lock.done_as(OTHER, Unlock));
    // SAFETY: unlocked below.
    unsafe { lock.lock(&()) };
    assert_eq!((sleeps() - before, others_are_done()), (1, true));
    lock.done(Unlock);
}
