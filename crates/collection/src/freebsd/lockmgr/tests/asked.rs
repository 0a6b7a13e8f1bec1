//! Operations and options.

use super::*;
use crate::freebsd::lock_chain;
use crate::parking::Cancellation;
use crate::testing::{NOW_NS, meanwhile, others_are_done};

use Operation::{Downgrade, Drain, Exclusive, Shared, TryUpgrade, Unlock, Upgrade};

fn does_not_wait<T: Tuning>() {
    let lock = leaked::<T>();
    let no_wait = Options::new().no_wait().sleep_fail();
    for free in [Shared, Exclusive, Drain] {
        assert_eq!(lock.does(free, &no_wait), Ok(()), "{free:?}");
        lock.done(Unlock);
    }
    let before = sleeps();
    lock.done_as(OTHER, Exclusive);
    for operation in [Shared, Exclusive, Drain] {
        assert_eq!(lock.does(operation, &no_wait), Err(Failure::Busy), "{operation:?}");
    }
    acting(OTHER, || lock.done(Downgrade));
    for operation in [Exclusive, Drain] {
        assert_eq!(lock.does(operation, &no_wait), Err(Failure::Busy), "{operation:?}");
    }
    lock.word.fetch_or(EXCLUSIVE_WAITERS, Relaxed);
    assert_eq!(lock.does(Shared, &no_wait), Err(Failure::Busy), "others wait");
    lock.done_as(OTHER, Unlock);
    lock.word.store(SHARED_WAITERS, Relaxed);
    assert_eq!(lock.does(Exclusive, &no_wait), Err(Failure::Busy), "only under the chain's lock");
    assert_eq!((lock.now(), lock.failers(), sleeps()), (SHARED_WAITERS, 0, before));
}

fn fails_after_a_sleep<T: Tuning>() {
    let lock = leaked::<T>();
    let once = Options::new().sleep_fail();
    for (operation, failers) in [(Shared, 0), (Exclusive, 1)] {
        assert_eq!(lock.does(operation, &once), Ok(()), "without a sleep");
        lock.done(Unlock);
        owned_by_sleeper(lock, OTHER);
        meanwhile(move || {
            assert_eq!(lock.failers(), failers);
            lock.done_as(OTHER, Unlock);
        });
        assert_eq!(lock.does(operation, &once), Err(Failure::SleepFail));
        assert_eq!((lock.now(), lock.failers(), shares()), (FREE, 0, 0));
    }
    lock.done(Shared);
    lock.done_as(OTHER, Shared);
    meanwhile(|| lock.done_as(OTHER, Unlock));
    assert_eq!(lock.does(Upgrade, &once), Err(Failure::SleepFail));
    assert_eq!((lock.now(), shares(), others_are_done()), (FREE, 0, true));
    owned_by_sleeper(lock, OTHER);
    meanwhile(|| {
        assert_eq!(lock.failers(), 0);
        lock.done_as(OTHER, Unlock);
    });
    assert_eq!(lock.does(Drain, &once), Ok(()), "a drain ignores it");
    lock.done(Unlock);
    set_owner_state(OTHER, OwnerState::Running);
}

fn gives_up_in_time<T: Tuning>() {
    let lock = Box::leak(Box::new(Lock::<T>::with(Attributes::new().timeout_ns(7))));
    let cancellation: &'static Cancellation<OneThread> = Box::leak(Box::default());
    cancellation.cancel();
    let at = |ns| Options::new().timeout(Timeout::At(NOW_NS.get() + ns));
    let of_lock = Options::new().timeout(Timeout::OfLock);
    let interruptible = Options::new().interruptible(cancellation);
    for operation in [Shared, Exclusive, Drain] {
        assert_eq!(lock.does(operation, &at(0)), Ok(()), "it is free");
        lock.done(Unlock);
        assert_eq!(lock.does(operation, &interruptible), Ok(()));
        lock.done(Unlock);
    }
    owned_by_sleeper(lock, OTHER);
    for operation in [Shared, Exclusive] {
        let began = NOW_NS.get();
        assert_eq!(lock.does(operation, &at(3)), Err(Failure::TimedOut));
        assert_eq!(NOW_NS.get(), began + 3);
        assert_eq!(lock.does(operation, &of_lock), Err(Failure::TimedOut));
        assert_eq!(NOW_NS.get(), began + 10);
        assert_eq!(lock.does(operation, &of_lock.sleep_fail()), Err(Failure::TimedOut), "no sleep has ended");
        assert_eq!(lock.does(operation, &interruptible), Err(Failure::Interrupted));
        assert_eq!(lock.failers(), 0, "a waiter that gives up is not counted any more");
    }
    meanwhile(|| ());
    meanwhile(|| lock.done_as(OTHER, Unlock));
    assert_eq!(lock.does(Drain, &at(3).interruptible(cancellation)), Ok(()), "a drain ignores limits");
    lock.done(Unlock);
    set_owner_state(OTHER, OwnerState::Running);
    assert_eq!(lock.now(), FREE);
}

fn gives_up_by_the_light_entry_points<T: Tuning>() {
    let lock = leaked::<T>();
    let cancellation: &'static Cancellation<OneThread> = Box::leak(Box::default());
    let cancelled = Limit { until_ns: None, cancellation: Some(cancellation) };
    let soon = || Limit::until(NOW_NS.get() + 5);
    // SAFETY: what is locked is unlocked.
    unsafe {
        assert_eq!((lock.lock_within(&(), &soon()), lock.now()), (Ok(()), owned_by(me())));
        lock.unlock(&());
        assert_eq!((lock.lock_shared_within(&(), &soon()), lock.now()), (Ok(()), SHARER));
        lock.unlock_shared(&());
        owned_by_sleeper(lock, OTHER);
        assert_eq!(lock.lock_within(&(), &soon()), Err(GaveUp::TimedOut));
        assert_eq!(lock.lock_shared_within(&(), &soon()), Err(GaveUp::TimedOut));
        meanwhile(|| cancellation.cancel());
        assert_eq!(lock.lock_within(&(), &cancelled), Err(GaveUp::Cancelled));
        assert_eq!(lock.lock_shared_within(&(), &cancelled), Err(GaveUp::Cancelled));
    }
    assert!(others_are_done());
    lock.done_as(OTHER, Unlock);
    set_owner_state(OTHER, OwnerState::Running);
    assert_eq!(lock.now(), FREE, "the bits of waiters that gave up are gone");
}

fn is_upgraded<T: Tuning>() {
    let lock = leaked::<T>();
    for upgrade in [Upgrade, TryUpgrade] {
        lock.done(Shared);
        lock.word.fetch_or(WAITERS, Relaxed);
        lock.done(upgrade);
        assert_eq!((lock.now(), shares()), (owned_by(me()) | WAITERS, 0), "it overtakes waiters");
        lock.done(Unlock);
        assert_eq!(lock.now(), FREE);
    }
    lock.done(Shared);
    lock.done_as(OTHER, Shared);
    assert_eq!(lock.does(TryUpgrade, &PLAIN), Err(Failure::Busy));
    assert_eq!((lock.now(), shares()), (2 * SHARER, 1), "it has kept its share");
    assert_eq!(lock.does(Upgrade, &Options::new().no_wait()), Err(Failure::Busy));
    assert_eq!((lock.now(), shares()), (SHARER, 0), "it holds nothing");
    lock.done(Shared);
    meanwhile(|| {
        assert_eq!((lock.now(), shares()), (SHARER | EXCLUSIVE_WAITERS, 0));
        // Another thread holds the lock exclusively before the upgrade ends.
        lock.done_as(OTHER, Upgrade);
        lock.done_as(OTHER, Unlock);
    });
    lock.done(Upgrade);
    assert_eq!((lock.now(), others_are_done()), (owned_by(me()), true));
    for upgrade in [Upgrade, TryUpgrade] {
        mistake("no thread shares", || lock.done(upgrade));
        assert_eq!(lock.now(), owned_by(me()), "{upgrade:?}");
    }
    lock.done(Unlock);
    mistake("no thread shares", || lock.done(Upgrade));
}

/// The two owners of PR 69934: a writer that is woken after an upgrade has overtaken it.
fn is_exclusive_when_upgraded_past_a_sleeper<T: Tuning>() {
    let lock = leaked::<T>();
    let before = sleeps();
    lock.done_as(OTHER, Shared);
    meanwhile(|| {
        lock.done_as(OTHER, Upgrade);
        assert_eq!(lock.now(), owned_by(OTHER) | EXCLUSIVE_WAITERS);
        set_owner_state(OTHER, OwnerState::Asleep);
        // As by an unlock that is late.
        lock_chain::<OneThread, _>(lock).wake_all(Queue::Exclusive);
    });
    meanwhile(move || {
        assert_eq!(
            (lock.now(), sleeps()),
            (owned_by(OTHER) | EXCLUSIVE_WAITERS, before + 2),
            "it sleeps again"
        );
        lock.done_as(OTHER, Unlock);
    });
    lock.done(Exclusive);
    assert_eq!((lock.now(), others_are_done()), (owned_by(me()), true));
    lock.done(Unlock);
    set_owner_state(OTHER, OwnerState::Running);
}

fn is_downgraded<T: Tuning>() {
    let lock = leaked::<T>();
    lock.done(Exclusive);
    acting(OTHER, || mistake("does not hold", || lock.done(Downgrade)));
    assert_eq!(lock.now(), owned_by(me()));
    lock.done(Downgrade);
    assert_eq!((lock.now(), shares()), (SHARER, 1));
    lock.done(Unlock);
    assert_eq!(lock.does(Exclusive, &Options::new().can_recurse()), Ok(()));
    assert_eq!(lock.does(Exclusive, &Options::new().can_recurse()), Ok(()));
    mistake("more than once", || lock.done(Downgrade));
}

in_all_forms!(
    does_not_wait
    fails_after_a_sleep
    gives_up_in_time
    gives_up_by_the_light_entry_points
    is_upgraded
    is_exclusive_when_upgraded_past_a_sleeper
    is_downgraded
);

#[test]
fn neither_release_nor_downgrade_can_fail() {
    let lock = leaked::<Standard>();
    lock.done(Exclusive);
    for options in [Options::new().no_wait(), Options::new().sleep_fail()] {
        mistake("neither waits nor sleeps", || _ = lock.does(Downgrade, &options));
        mistake("neither waits nor sleeps", || _ = lock.does(Unlock, &options));
    }
    assert_eq!(lock.now(), owned_by(me()));
    acting(OTHER, || mistake("does not hold", || lock.done(Unlock)));
    lock.done(Unlock);
    mistake("does not hold", || lock.done(Unlock));
}

#[test]
fn a_clone_of_options_says_the_same() {
    let lock = leaked::<Standard>();
    let cancellation: &'static Cancellation<OneThread> = Box::leak(Box::default());
    cancellation.cancel();
    owned_by_sleeper(lock, OTHER);
    let past = Options::new().timeout(Timeout::At(NOW_NS.get()));
    let cases = [
        (Options::new().no_wait(), Failure::Busy),
        (past, Failure::TimedOut),
        (Options::new().interruptible(cancellation), Failure::Interrupted),
    ];
    for (options, why) in &cases {
        assert_eq!(lock.does(Exclusive, &Clone::clone(options)), Err(*why));
    }
    meanwhile(|| lock.done_as(OTHER, Unlock));
    assert_eq!(lock.does(Exclusive, &Clone::clone(&Options::new().sleep_fail())), Err(Failure::SleepFail));
    lock.done(Exclusive);
    assert_eq!(lock.does(Exclusive, &Clone::clone(&Options::new().can_recurse())), Ok(()));
    (0..2).for_each(|_| lock.done(Unlock));
    assert_eq!((lock.now(), others_are_done()), (FREE, true));
    set_owner_state(OTHER, OwnerState::Running);
}

/// A thread that shares any lock of the kind overtakes waiters, unless it asks not to. A thread
/// that asks for it overtakes them too.
#[test]
fn sharers_overtake_waiters() {
    let (lock, another) = (leaked::<Standard>(), leaked::<Standard>());
    lock.done_as(OTHER, Shared);
    lock.word.fetch_or(EXCLUSIVE_WAITERS, Relaxed);
    let asking = |bypass| lock.does(Shared, &Options::new().no_wait().bypass(bypass));
    assert_eq!([Bypass::Holders, Bypass::Nobody].map(asking), [Err(Failure::Busy); 2]);
    assert_eq!(asking(Bypass::Caller), Ok(()));
    lock.done(Unlock);
    another.done(Shared);
    assert_eq!(asking(Bypass::Nobody), Err(Failure::Busy));
    assert_eq!(asking(Bypass::Holders), Ok(()));
    // SAFETY: unlocked below.
    assert!(unsafe { lock.try_lock_shared(&()) });
    assert_eq!(lock.now(), (3 * SHARER) | EXCLUSIVE_WAITERS);
    (0..2).for_each(|_| lock.done(Unlock));
    another.done(Unlock);
    lock.done_as(OTHER, Unlock);
    assert_eq!((lock.now(), another.now()), (FREE, FREE));
}
