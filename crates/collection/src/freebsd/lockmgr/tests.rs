use core::cell::Cell;
use std::boxed::Box;

use super::*;
use crate::events::LockEvent;
use crate::freebsd::recursion::Recursion;
use crate::freebsd::tuning::NotAdaptive;
use crate::native::Native;
use crate::parking::{GaveUp, RawTimedLock, RawTimedRwLock};
use crate::raw::{RawLock, RawRwLock, RawTryLock};
use crate::testing::{OTHER, OneThread, THIRD, acting, events_of, me, mistake, set_owner_state};

const _: () = assert!(size_of::<LockMgr<Native>>() == 32);
/// All bits zero is a lock with the default attributes.
const _: () = assert!(Sharing::Allowed as u8 == 0 && Recursion::Forbidden as u8 == 0);

type Lock<T = Standard> = LockMgr<OneThread, T>;
type Asked = Options<'static, OneThread>;

const PLAIN: Asked = Options::new();

fn leaked<T: Tuning>() -> &'static Lock<T> {
    Box::leak(Box::default())
}

fn leaked_with(attributes: Attributes) -> &'static Lock {
    Box::leak(Box::new(LockMgr::with(attributes)))
}

impl<T: Tuning> Lock<T> {
    fn now(&self) -> u64 {
        self.word.load(Relaxed)
    }

    fn failers(&self) -> u32 {
        self.sleep_failers.load(Relaxed)
    }

    /// Without an interlock.
    fn does(&self, operation: Operation, options: &Asked) -> Result<(), Failure> {
        // SAFETY: tests unlock what they lock, and convert and unlock what is held; so below.
        unsafe { self.perform(operation, options, NoInterlock) }
    }

    fn done(&self, operation: Operation) {
        assert_eq!(self.does(operation, &PLAIN), Ok(()), "{operation:?}");
    }

    fn done_as(&self, thread: ThreadId, operation: Operation) {
        acting(thread, || self.done(operation));
    }
}

fn sleeps() -> u64 {
    events_of(LockEvent::ChainSleep)
}

/// How many locks of the kind the thread shares.
fn shares() -> u32 {
    use crate::shared_holds::{SharedHolds, SharedLock};
    OneThread::with_shared_holds(SharedLock::LockMgr, Cell::get)
}

/// Lets the thread lock exclusively, and sleep.
fn owned_by_sleeper<T: Tuning>(lock: &Lock<T>, thread: ThreadId) {
    set_owner_state(thread, OwnerState::Asleep);
    lock.done_as(thread, Operation::Exclusive);
}

macro_rules! in_all_forms {
    ($($test:ident)*) => {
        mod in_all_forms {
            use super::*;
            $(#[test]
            fn $test() {
                each_preset!(super::$test);
                super::$test::<NotAdaptive>();
            })*
        }
    };
}
// Below the macro that they use.
mod asked;
mod interlock;
mod leaving;
mod waiting;

fn is_taken_and_released<T: Tuning>() {
    let lock = Lock::<T>::new();
    // SAFETY: one thread, which unlocks what it locks; so below.
    unsafe {
        for _ in 0..2 {
            assert_eq!(lock.status(), Status::Unlocked);
            lock.lock(&());
            assert_eq!((lock.now(), lock.status()), (owned_by(me()), Status::Exclusive));
            assert!(lock.is_locked() && lock.is_locked_exclusive() && !lock.is_recursed());
            assert!(!lock.try_lock(&()) && !lock.try_lock_shared(&()));
            assert_eq!(acting(OTHER, || lock.status()), Status::ExclusiveByOther);
            assert!(!acting(OTHER, || lock.try_lock(&())));
            lock.unlock(&());
            assert!(lock.try_lock(&()));
            lock.downgrade(&());
            assert!(lock.try_lock_shared(&()) && !lock.try_lock(&()));
            lock.lock_shared(&());
            assert_eq!((lock.now(), lock.status(), shares()), (3 * SHARER, Status::Shared, 3));
            assert!(lock.is_locked() && !lock.is_locked_exclusive() && !lock.has_waiters());
            (0..3).for_each(|_| lock.unlock_shared(&()));
            assert_eq!((lock.now(), shares()), (FREE, 0));
        }
    }
}

fn is_taken_again_where_permitted<T: Tuning>() {
    let lock = Lock::<T>::with(Attributes::new().can_recurse());
    lock.done(Operation::Exclusive);
    lock.done(Operation::Exclusive);
    assert_eq!(lock.does(Operation::Exclusive, &Options::new().no_wait()), Ok(()));
    assert_eq!((lock.now(), lock.depth.get()), (owned_by(me()) | RECURSED, 2));
    lock.word.fetch_or(SHARED_WAITERS, Relaxed);
    lock.done(Operation::Unlock);
    assert_eq!((lock.now(), lock.is_recursed()), (owned_by(me()) | RECURSED | SHARED_WAITERS, true));
    lock.done(Operation::Unlock);
    assert_eq!((lock.now(), lock.is_recursed()), (owned_by(me()) | SHARED_WAITERS, false), "the bit stays");
    lock.done(Operation::Unlock);
    assert_eq!(lock.now(), FREE);

    for attributes in [Attributes::new(), Attributes::new().can_recurse().cannot_recurse()] {
        let lock = Lock::<T>::with(attributes);
        lock.done(Operation::Exclusive);
        assert_eq!(lock.does(Operation::Exclusive, &Options::new().can_recurse()), Ok(()), "this once");
        assert!(lock.is_recursed());
        lock.done(Operation::Unlock);
        assert_eq!(lock.does(Operation::Exclusive, &Options::new().no_wait()), Err(Failure::Busy));
        mistake("must not be acquired again", || _ = lock.does(Operation::Exclusive, &PLAIN));
        // SAFETY: it does not return.
        mistake("must not be acquired again", || unsafe { lock.lock(&()) });
        assert_eq!(lock.now(), owned_by(me()));
        lock.done(Operation::Unlock);
    }
}

in_all_forms!(is_taken_and_released is_taken_again_where_permitted);

#[test]
fn the_holder_cannot_share_it() {
    let lock = leaked::<Standard>();
    lock.done(Operation::Exclusive);
    assert_eq!(lock.does(Operation::Shared, &PLAIN), Err(Failure::Deadlock));
    assert_eq!(lock.does(Operation::Shared, &Options::new().no_wait()), Err(Failure::Deadlock));
    // SAFETY: it does not return.
    mistake("holds already", || unsafe { lock.lock_shared(&()) });
    let limit = Limit::until(0);
    // SAFETY: it does not return.
    mistake("holds already", || _ = unsafe { lock.lock_shared_within(&(), &limit) });
    assert_eq!((lock.now(), shares()), (owned_by(me()), 0));
}

#[test]
fn a_lock_that_cannot_be_shared_is_exclusive() {
    let lock = leaked_with(Attributes::new().no_share());
    lock.done(Operation::Shared);
    assert_eq!((lock.now(), shares()), (owned_by(me()), 0));
    for conversion in [Operation::Upgrade, Operation::TryUpgrade, Operation::Downgrade] {
        lock.done(conversion);
        assert_eq!(lock.now(), owned_by(me()), "{conversion:?}");
        acting(OTHER, || mistake("does not hold", || lock.done(conversion)));
    }
    assert_eq!(acting(OTHER, || lock.does(Operation::Shared, &Options::new().no_wait())), Err(Failure::Busy));
    assert_eq!(lock.does(Operation::Exclusive, &Options::new().can_recurse()), Ok(()));
    mistake("more than once", || lock.done(Operation::Downgrade));
    lock.done(Operation::Unlock);
    lock.done(Operation::Unlock);
    assert_eq!(lock.now(), FREE);
    // SAFETY: it does not return.
    mistake("cannot be shared", || unsafe { lock.lock_shared(&()) });
}

/// A test sets the bit of a waiter in the word, and an unlock clears it.
#[test]
fn tests_of_other_crates_see_the_word_and_write_to_it() {
    let lock = leaked::<Standard>();
    lock.done(Operation::Exclusive);
    // SAFETY: a sharer could wait, whose bit is set.
    let word = unsafe { lock.word() };
    assert_eq!(word.fetch_or(SHARED_WAITERS, Relaxed), owned_by(me()));
    assert!(lock.has_waiters());
    lock.done(Operation::Unlock);
    assert_eq!((word.load(Relaxed), lock.has_waiters()), (FREE, false));
}

#[test]
fn a_disowned_lock_is_released_by_another_thread() {
    let lock = leaked::<Standard>();
    lock.done(Operation::Exclusive);
    // SAFETY: the thread holds the lock, or the lock is disowned.
    let disown = || unsafe { lock.disown() };
    acting(OTHER, || mistake("does not hold", disown));
    disown();
    disown();
    assert_eq!((lock.now(), lock.status()), (DISOWNED, Status::Exclusive));
    assert_eq!(acting(OTHER, || lock.status()), Status::Exclusive);
    assert_eq!(lock.does(Operation::Shared, &Options::new().no_wait()), Err(Failure::Busy), "no deadlock");
    lock.done_as(OTHER, Operation::Unlock);
    assert_eq!(lock.now(), FREE);
    lock.done(Operation::Exclusive);
    assert_eq!(lock.does(Operation::Exclusive, &Options::new().can_recurse()), Ok(()));
    mistake("more than once", disown);
}

#[test]
fn only_an_idle_lock_is_destroyed() {
    let lock = leaked::<Standard>();
    lock.done(Operation::Shared);
    assert_eq!(lock.destroy(), Err(InUse::Held));
    lock.done(Operation::Unlock);
    lock.done(Operation::Exclusive);
    assert_eq!(lock.destroy(), Err(InUse::Held));
    assert_eq!(lock.does(Operation::Exclusive, &Options::new().can_recurse()), Ok(()));
    assert_eq!((lock.destroy(), acting(OTHER, || lock.destroy())), (Err(InUse::Recursed), Err(InUse::Held)));
    lock.done(Operation::Unlock);
    lock.word.fetch_or(EXCLUSIVE_WAITERS, Relaxed);
    assert_eq!(lock.destroy(), Err(InUse::Contested));
    lock.done(Operation::Unlock);
    lock.word.store(SHARED_WAITERS, Relaxed);
    assert_eq!(lock.destroy(), Err(InUse::Contested));
    lock.word.store(FREE, Relaxed);
    assert_eq!(lock.destroy(), Ok(()));
    assert_eq!((lock.destroy(), lock.status()), (Err(InUse::Destroyed), Status::ExclusiveByOther));
    mistake("has been destroyed", || lock.done(Operation::Exclusive));
    mistake("has been destroyed", || lock.done(Operation::Shared));
}

#[test]
fn errors_have_the_names_of_the_kernel() {
    use Failure::{Busy, Deadlock, Interrupted, SleepFail, TimedOut};
    let all = [Busy, SleepFail, TimedOut, Interrupted, Deadlock];
    assert_eq!(all.map(Failure::errno), ["EBUSY", "ENOLCK", "EWOULDBLOCK", "EINTR", "EDEADLK"]);
    let texts = [
        "the lock is held, and the caller must not wait (EBUSY)",
        "the caller has waited, and asked to fail after that (ENOLCK)",
        "the time has passed (EWOULDBLOCK)",
        "the wait was cancelled (EINTR)",
        "the caller holds the lock exclusively (EDEADLK)",
    ];
    assert_eq!(all.map(|failure| std::format!("{failure}")), texts);
    assert_eq!([GaveUp::TimedOut, GaveUp::Cancelled].map(Failure::from), [TimedOut, Interrupted]);
}
