//! The options of a lockmgr: each flag, and the operations that release another lock.

use std::thread;
use std::time::Duration;

use nearlock::Cancellation;
use nearlock::freebsd::{Attributes, Bypass, Destroy, LockError, Mtx, MtxGuard, Status};
use nearlock::process::{Setting, set_setting, setting};

use super::{
    ASLEEP, Asked, Hold, Lock, LockMgrOptions, NO_WAIT, PLAIN, WAITS, Way, asleep, elsewhere, exclusive,
    reads, shared, until_waited_for, writes,
};

#[test]
fn a_caller_that_must_not_wait_gets_busy() {
    for (hold, way) in WAITS {
        let lock = Lock::new(0);
        let held = hold(&lock);
        assert_eq!(elsewhere(|| way(&lock, &NO_WAIT)), Err(LockError::Busy));
        assert!(!lock.has_waiters(), "no thread has slept");
        drop(held);
        assert_eq!((lock.status(), way(&lock, &NO_WAIT)), (Status::Unlocked, Ok(())));
    }
}

#[test]
fn a_waiter_that_asks_to_fail_after_a_sleep_fails_when_woken() {
    for wait in WAITS {
        let lock = Lock::new(0);
        assert_eq!(asleep(&lock, wait, &PLAIN.sleep_fail()), Err(LockError::SleepFail));
        assert_eq!(lock.status(), Status::Unlocked, "and holds nothing");
        assert_eq!(wait.1(&lock, &PLAIN.sleep_fail()), Ok(()), "without a sleep");
    }
}

/// If an unlock woke only the waiters that fail, the sharers would sleep at a free lock.
#[test]
fn sharers_are_woken_together_with_waiters_that_fail() {
    let lock = Lock::new(0);
    thread::scope(|scope| {
        let held = lock.read();
        let fails = scope.spawn(|| writes(&lock, &ASLEEP.sleep_fail()));
        until_waited_for(&lock);
        let sharers = [(); 2].map(|()| scope.spawn(|| reads(&lock, &ASLEEP)));
        drop(held);
        assert_eq!(fails.join().unwrap(), Err(LockError::SleepFail));
        assert_eq!(sharers.map(|sharer| sharer.join().unwrap()), [Ok(()); 2]);
    });
}

#[test]
fn a_wait_ends_with_its_time() {
    let soon = Duration::from_millis(1);
    for (hold, way) in WAITS {
        let lock = Lock::new(0);
        let held = hold(&lock);
        assert_eq!(elsewhere(|| way(&lock, &PLAIN.timeout(soon))), Err(LockError::TimedOut));
        assert_eq!(elsewhere(|| way(&lock, &PLAIN.timeout(Duration::ZERO))), Err(LockError::TimedOut));
        drop(held);
        assert_eq!(lock.status(), Status::Unlocked);
        // A lock for which no thread has waited is locked without any time.
        assert_eq!(way(&Lock::new(0), &PLAIN.timeout(Duration::ZERO)), Ok(()));
    }
}

#[test]
fn a_time_without_an_end_is_no_limit() {
    for wait in WAITS {
        let lock = Lock::with(Attributes::new().timeout_ns(1), 0);
        let forever = PLAIN.timeout_of_lock().timeout(Duration::MAX);
        assert_eq!(asleep(&lock, wait, &forever), Ok(()));
    }
}

#[test]
fn a_lock_may_have_a_limit_for_waiters_that_ask_for_it() {
    let [limited, unlimited] = [Attributes::new().timeout_ns(1_000_000), Attributes::new()];
    let as_it_says = PLAIN.timeout(Duration::MAX).timeout_of_lock();
    for (hold, way) in WAITS {
        let lock = Lock::with(limited, 0);
        let held = hold(&lock);
        assert_eq!(elsewhere(|| way(&lock, &as_it_says)), Err(LockError::TimedOut));
        drop(held);
        assert_eq!(asleep(&Lock::with(limited, 0), (hold, way), &PLAIN), Ok(()), "not asked for");
        assert_eq!(asleep(&Lock::with(unlimited, 0), (hold, way), &as_it_says), Ok(()));
    }
}

#[test]
fn a_wait_ends_by_interruption() {
    for wait in WAITS {
        let (lock, by) = (Lock::new(0), Cancellation::new());
        let mut left = (None, None);
        thread::scope(|scope| {
            let held = wait.0(&lock);
            let waiter = scope.spawn(|| wait.1(&lock, &ASLEEP.interruptible(&by)));
            until_waited_for(&lock);
            by.cancel();
            assert_eq!(waiter.join().unwrap(), Err(LockError::Interrupted));
            left = held;
        });
        assert_eq!(
            elsewhere(|| wait.1(&lock, &PLAIN.interruptible(&by))),
            Err(LockError::Interrupted),
            "later too"
        );
        drop(left);
        assert_eq!(lock.status(), Status::Unlocked, "an upgrade keeps nothing");
        assert_eq!(wait.1(&lock, &PLAIN.interruptible(&by)), Ok(()), "a free lock is locked");
    }
}

#[test]
fn a_waiter_that_must_not_spin_sleeps_though_the_holder_runs() {
    let before = setting(Setting::SpinBudgetNs);
    // A waiter that spins goes on for a second.
    set_setting(Setting::SpinBudgetNs, 1_000_000_000).unwrap();
    for wait in [(exclusive as Hold, reads as Way), (exclusive, writes)] {
        assert_eq!(asleep(&Lock::new(0), wait, &PLAIN.no_spin()), Ok(()));
    }
    set_setting(Setting::SpinBudgetNs, before).unwrap();
}

#[test]
fn sharers_overtake_waiters_if_they_may() {
    let (lock, another) = (Lock::new(0), Lock::new(0));
    thread::scope(|scope| {
        let held = lock.read();
        scope.spawn(|| writes(&lock, &ASLEEP));
        until_waited_for(&lock);
        elsewhere(|| {
            let ask = |bypass| reads(&lock, &NO_WAIT.bypass(bypass));
            assert_eq!([Bypass::Holders, Bypass::Nobody].map(ask), [Err(LockError::Busy); 2]);
            assert_eq!(ask(Bypass::Caller), Ok(()));
            let _shared = another.read();
            assert_eq!(reads(&lock, &NO_WAIT), Ok(()), "the caller shares another lock of the kind");
            assert_eq!(ask(Bypass::Nobody), Err(LockError::Busy), "the request overtakes no waiters");
        });
        drop(held);
    });
}

#[test]
fn a_lock_that_cannot_be_shared_is_held_alone() {
    let lock = Lock::with(Attributes::new().no_share(), 3);
    let alone =
        || elsewhere(|| [reads(&lock, &NO_WAIT), writes(&lock, &NO_WAIT)]) == [Err(LockError::Busy); 2];
    let shares = lock.read();
    assert!(*shares == 3 && lock.status() == Status::Exclusive && alone());
    let writes = shares.upgrade(&NO_WAIT).expect("it is exclusive already");
    assert!(alone());
    let shares = writes.downgrade();
    assert!(lock.status() == Status::Exclusive && alone());
    let writes = shares.try_upgrade().expect("as above");
    assert!(alone());
    drop(writes);
    assert_eq!(lock.destroy(), 3);
}

/// A way to lock a lockmgr, and to release a mutex.
type ReleasingWay = fn(&Lock, &LockMgrOptions<'_>, MtxGuard<'_, ()>) -> Asked;

fn reads_releasing(lock: &Lock, options: &LockMgrOptions<'_>, held: MtxGuard<'_, ()>) -> Asked {
    lock.read_releasing(options, held).map(drop)
}

fn writes_releasing(lock: &Lock, options: &LockMgrOptions<'_>, held: MtxGuard<'_, ()>) -> Asked {
    lock.write_releasing(options, held).map(drop)
}

fn upgrades_releasing(lock: &Lock, options: &LockMgrOptions<'_>, held: MtxGuard<'_, ()>) -> Asked {
    lock.read().upgrade_releasing(options, held).map(drop)
}

fn drains_releasing(lock: &Lock, options: &LockMgrOptions<'_>, held: MtxGuard<'_, ()>) -> Asked {
    lock.drain_releasing(options, held).map(drop)
}

const RELEASING: [(Hold, ReleasingWay); 4] = [
    (exclusive, reads_releasing),
    (exclusive, writes_releasing),
    (shared, upgrades_releasing),
    (shared, drains_releasing),
];

#[test]
fn an_interlock_is_released_with_every_outcome() {
    let interlock = Mtx::new(());
    let is_released = || elsewhere(|| interlock.try_lock().is_some());
    for (hold, way) in RELEASING {
        let lock = Lock::new(0);
        assert_eq!(way(&lock, &PLAIN, interlock.lock()), Ok(()));
        assert!(is_released());
        let held = hold(&lock);
        elsewhere(|| {
            assert_eq!(way(&lock, &NO_WAIT, interlock.lock()), Err(LockError::Busy));
            assert!(is_released());
        });
        drop(held);
        assert_eq!(lock.status(), Status::Unlocked);
    }
    let (lock, held) = (Lock::new(0), interlock.lock());
    let _mine = lock.write();
    assert_eq!(reads_releasing(&lock, &PLAIN, held), Err(LockError::Deadlock));
    assert!(is_released());
}

#[test]
fn an_interlock_is_released_while_its_holder_waits() {
    let interlock = Mtx::new(());
    for (hold, way) in RELEASING {
        let lock = Lock::new(0);
        thread::scope(|scope| {
            let held = hold(&lock);
            let waiter = scope.spawn(|| way(&lock, &PLAIN, interlock.lock()));
            until_waited_for(&lock);
            // The holder needs it before it unlocks.
            drop(interlock.lock());
            drop(held);
            assert_eq!(waiter.join().unwrap(), Ok(()));
        });
    }
}
