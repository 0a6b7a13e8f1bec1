//! The interlock is released once, whatever happens.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::shared_holds::{SharedHolds, SharedLock};
use crate::testing::{NOW_NS, PAUSES, meanwhile, others_are_done};

std::thread_local! {
    static RELEASES: Cell<u32> = const { Cell::new(0) };
}

fn interlock() -> impl Interlock {
    || RELEASES.set(RELEASES.get() + 1)
}

/// The result of an operation with an interlock, which is released once.
fn with_interlock(lock: &Lock, operation: Operation, options: &Asked) -> Result<(), Failure> {
    RELEASES.set(0);
    // SAFETY: as in `does`.
    let done = unsafe { lock.perform(operation, options, interlock()) };
    assert_eq!(RELEASES.get(), 1, "{operation:?}");
    done
}

#[test]
fn it_is_released_with_every_outcome() {
    use Operation::{Downgrade, Drain, Exclusive, Shared, TryUpgrade, Unlock, Upgrade};
    let lock = leaked::<Standard>();
    for operation in [Shared, Upgrade, Downgrade, TryUpgrade, Unlock, Exclusive, Unlock, Drain] {
        assert_eq!(with_interlock(lock, operation, &PLAIN), Ok(()));
    }
    let no_wait = Options::new().no_wait();
    assert_eq!(with_interlock(lock, Shared, &PLAIN), Err(Failure::Deadlock));
    for operation in [Shared, Exclusive, Drain] {
        let done = acting(OTHER, || with_interlock(lock, operation, &no_wait));
        assert_eq!(done, Err(Failure::Busy));
    }
    lock.done(Downgrade);
    lock.done_as(OTHER, Shared);
    assert_eq!(with_interlock(lock, TryUpgrade, &no_wait), Err(Failure::Busy));
    assert_eq!(with_interlock(lock, Upgrade, &no_wait), Err(Failure::Busy));
    let past = Options::new().timeout(Timeout::At(NOW_NS.get()));
    assert_eq!(with_interlock(lock, Exclusive, &past), Err(Failure::TimedOut));
    let unshared = leaked_with(Attributes::new().no_share());
    unshared.done(Exclusive);
    assert_eq!(with_interlock(unshared, Downgrade, &PLAIN), Ok(()));
}

#[test]
fn it_is_released_where_the_kernel_panics() {
    let lock = leaked::<Standard>();
    lock.done(Operation::Exclusive);
    let again = |operation, says| {
        RELEASES.set(0);
        let tried = Cell::new(0);
        mistake(says, || {
            tried.set(1);
            // SAFETY: it does not return.
            _ = unsafe { lock.perform(operation, &PLAIN, interlock()) };
        });
        assert_eq!(RELEASES.get(), tried.get());
    };
    again(Operation::Exclusive, "must not be acquired again");
    again(Operation::Drain, "drains a lock that it holds");
}

/// The interlock is not held in sleep: others need it to unlock the lock.
#[test]
fn it_is_released_before_the_sleep() {
    let lock = leaked::<Standard>();
    for operation in [Operation::Shared, Operation::Exclusive, Operation::Drain] {
        lock.done_as(OTHER, Operation::Exclusive);
        meanwhile(|| {
            assert_eq!(RELEASES.get(), 1);
            lock.done_as(OTHER, Operation::Unlock);
        });
        PAUSES.take();
        assert_eq!(with_interlock(lock, operation, &Options::new().adaptive()), Ok(()));
        assert!(PAUSES.take().is_empty(), "a thread with an interlock does not spin");
        lock.done(Operation::Unlock);
    }
    assert!(others_are_done());
}

/// If the operation does not have to wait, the interlock is released last.
#[test]
fn a_panic_of_its_release_takes_the_acquisition_back() {
    use Operation::{Downgrade, Drain, Exclusive, Shared, TryUpgrade, Unlock, Upgrade};
    fn fails() {
        panic!("of the interlock");
    }
    let fails_after = |before: &[Operation], operation, options: &Asked| {
        let lock = leaked::<Standard>();
        before.iter().for_each(|before| lock.done(*before));
        // SAFETY: what is locked is unlocked, or leaked with the lock. Only what is held is
        // converted and unlocked.
        let act = || unsafe { lock.perform(operation, options, fails) };
        assert!(catch_unwind(AssertUnwindSafe(act)).is_err(), "{operation:?}");
        (lock.now(), OneThread::with_shared_holds(SharedLock::LockMgr, |shares| shares.replace(0)))
    };
    for operation in [Shared, Exclusive, Drain] {
        assert_eq!(fails_after(&[], operation, &PLAIN), (FREE, 0), "{operation:?}");
    }
    let again = Options::new().can_recurse();
    assert_eq!(fails_after(&[Exclusive], Exclusive, &again), (owned_by(me()), 0), "once less");
    assert_eq!(fails_after(&[Shared], Upgrade, &PLAIN), (FREE, 0), "as with an error");
    // Operations that need no undoing are done.
    assert_eq!(fails_after(&[Shared], TryUpgrade, &PLAIN), (owned_by(me()), 0));
    assert_eq!(fails_after(&[Exclusive], Downgrade, &PLAIN), (SHARER, 1));
    assert_eq!(fails_after(&[Exclusive], Unlock, &PLAIN), (FREE, 0));
}

/// The interlock is not held while an upgrade waits for the other sharers.
#[test]
fn it_is_released_before_an_upgrade_sleeps() {
    let lock = leaked::<Standard>();
    lock.done(Operation::Shared);
    lock.done_as(OTHER, Operation::Shared);
    meanwhile(|| {
        assert_eq!((RELEASES.get(), lock.now()), (1, SHARER | EXCLUSIVE_WAITERS));
        lock.done_as(OTHER, Operation::Unlock);
    });
    assert_eq!(with_interlock(lock, Operation::Upgrade, &PLAIN), Ok(()));
    assert!(others_are_done());
    lock.done(Operation::Unlock);
}
