//! FreeBSD's lockmgr with data, by its guards: each operation, and in `asked` each flag.

mod asked;
#[path = "../helpers/mod.rs"]
mod helpers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use nearlock::Cancellation;
use nearlock::freebsd::{
    Attributes, Bypass, Destroy, LockError, LockMgr, LockMgrExclusiveGuard, LockMgrOptions,
    LockMgrSharedGuard, Status,
};

use helpers::{elsewhere, mistake};

const PLAIN: LockMgrOptions = LockMgrOptions::new();
const NO_WAIT: LockMgrOptions = LockMgrOptions::new().no_wait();
/// Sleeps at once, so that the lock shows that a thread waits.
const ASLEEP: LockMgrOptions = LockMgrOptions::new().no_spin();

const THREADS: u32 = 4;
const ROUNDS: u32 = if cfg!(miri) { 20 } else { 2000 };

type Lock = LockMgr<u32>;
type Asked = Result<(), LockError>;

/// One of the two guards.
type Guards<'a> = (Option<LockMgrSharedGuard<'a, u32>>, Option<LockMgrExclusiveGuard<'a, u32>>);
type Hold = fn(&Lock) -> Guards<'_>;

fn shared(lock: &Lock) -> Guards<'_> {
    (Some(lock.read()), None)
}

fn exclusive(lock: &Lock) -> Guards<'_> {
    (None, Some(lock.write()))
}

/// A way to lock a lockmgr, and to unlock it.
type Way = fn(&Lock, &LockMgrOptions<'_>) -> Asked;

fn reads(lock: &Lock, options: &LockMgrOptions<'_>) -> Asked {
    lock.read_with(options).map(drop)
}

fn writes(lock: &Lock, options: &LockMgrOptions<'_>) -> Asked {
    lock.write_with(options).map(drop)
}

fn upgrades(lock: &Lock, options: &LockMgrOptions<'_>) -> Asked {
    // Past the threads that have waited, whose bits may still be set.
    let shares = lock.read_with(&PLAIN.bypass(Bypass::Caller))?;
    shares.upgrade(options).map(drop)
}

fn drains(lock: &Lock, options: &LockMgrOptions<'_>) -> Asked {
    lock.drain(options).map(drop)
}

/// A hold, and a way that waits for it: those that have limits.
const WAITS: [(Hold, Way); 4] =
    [(exclusive, reads), (exclusive, writes), (shared, writes), (shared, upgrades)];
const DRAINS: [(Hold, Way); 2] = [(exclusive, drains), (shared, drains)];

/// Waits until a thread sleeps for it, or is about to. An unlock wakes that thread.
fn until_waited_for<T>(lock: &LockMgr<T>) {
    while !lock.has_waiters() {
        thread::yield_now();
    }
}

/// The result of a wait that sleeps until the other thread unlocks.
fn asleep(lock: &Lock, (hold, way): (Hold, Way), options: &LockMgrOptions<'_>) -> Asked {
    thread::scope(|scope| {
        let held = hold(lock);
        let waiter = scope.spawn(|| way(lock, &options.no_spin()));
        until_waited_for(lock);
        drop(held);
        waiter.join().unwrap()
    })
}

/// Checks that such a request is a mistake, or an error without debug assertions.
fn is_mistaken(says: &str, ask: impl Fn() -> Asked) {
    mistake(says, || _ = ask());
    if !cfg!(debug_assertions) {
        assert_eq!(ask(), Err(LockError::Deadlock));
    }
}

#[test]
fn sharers_hold_it_together() {
    let lock = Lock::new(1);
    let mine = lock.read();
    assert_eq!(lock.status(), Status::Shared);
    elsewhere(|| {
        assert_eq!(lock.read_with(&NO_WAIT).map(|other| *other), Ok(1));
        assert_eq!(writes(&lock, &NO_WAIT), Err(LockError::Busy));
    });
    drop(mine);
    assert_eq!(lock.status(), Status::Unlocked);
}

#[test]
fn an_exclusive_holder_is_alone() {
    let lock = LockMgr::new((0, 0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let mut pair = lock.write();
                    pair.0 += 1;
                    pair.1 += 1;
                    drop(pair);
                    let pair = lock.read();
                    assert_eq!(pair.0, pair.1);
                }
            });
        }
    });
    assert_eq!(lock.into_inner(), (THREADS * ROUNDS, THREADS * ROUNDS));
}

#[test]
fn each_thread_learns_which_thread_holds_it() {
    let lock = Lock::new(0);
    let mine = lock.write();
    assert_eq!((lock.status(), elsewhere(|| lock.status())), (Status::Exclusive, Status::ExclusiveByOther));
    let disowned = mine.disown();
    assert_eq!((lock.status(), elsewhere(|| lock.status())), (Status::Exclusive, Status::Exclusive));
    drop(disowned);
    assert_eq!((lock.status(), lock.has_waiters()), (Status::Unlocked, false));
}

#[test]
fn a_release_lets_sleepers_in() {
    for wait in WAITS.into_iter().chain(DRAINS) {
        let lock = Lock::new(0);
        assert_eq!(asleep(&lock, wait, &PLAIN), Ok(()));
        assert_eq!((lock.status(), lock.has_waiters()), (Status::Unlocked, false));
    }
}

#[test]
fn the_holder_does_not_get_it_again() {
    // The attribute has no effect: there would be two `&mut`.
    let lock = Lock::with(Attributes::new().can_recurse(), 0);
    let held = lock.write();
    assert_eq!(reads(&lock, &PLAIN), Err(LockError::Deadlock));
    assert_eq!(reads(&lock, &NO_WAIT), Err(LockError::Deadlock));
    assert_eq!([writes(&lock, &NO_WAIT), elsewhere(|| writes(&lock, &NO_WAIT))], [Err(LockError::Busy); 2]);
    is_mistaken("must not be acquired again", || writes(&lock, &PLAIN));
    is_mistaken("drains a lock that it holds", || drains(&lock, &PLAIN));
    // Operations that cannot return the error panic.
    assert!(catch_unwind(AssertUnwindSafe(|| drop(lock.read()))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(lock.write()))).is_err());
    assert_eq!(lock.status(), Status::Exclusive);
    drop(held);
    assert_eq!(writes(&lock, &NO_WAIT), Ok(()), "and nothing has changed");
}

#[test]
fn the_only_sharer_is_upgraded_past_all_waiters() {
    let lock = LockMgr::new(Vec::new());
    thread::scope(|scope| {
        let [first, second] = ["upgrade", "try_upgrade"];
        let shares = lock.read();
        scope.spawn(|| lock.write_with(&ASLEEP).unwrap().push("the other"));
        until_waited_for(&lock);
        let mut writes = shares.upgrade(&PLAIN).expect("no other sharer");
        writes.push(first);
        let mut writes = writes.downgrade().try_upgrade().expect("no other sharer");
        writes.push(second);
    });
    assert_eq!(lock.into_inner(), ["upgrade", "try_upgrade", "the other"]);
}

#[test]
fn an_upgrade_waits_for_the_other_sharers_which_may_write_before() {
    let lock = LockMgr::new(Vec::new());
    thread::scope(|scope| {
        let mine = lock.read();
        scope.spawn(|| {
            let mut writes = lock.read().upgrade(&PLAIN).expect("it may wait");
            assert_eq!(*writes, ["another"], "the data has changed since it was read");
            writes.push("the waiter");
        });
        until_waited_for(&lock);
        mine.try_upgrade().expect("the other's share is released").push("another");
    });
    assert_eq!(lock.into_inner(), ["another", "the waiter"]);
}

#[test]
fn an_upgrade_that_fails_keeps_nothing() {
    let lock = Lock::new(0);
    let other = lock.read();
    assert_eq!(elsewhere(|| upgrades(&lock, &NO_WAIT)), Err(LockError::Busy));
    let error = lock.read().upgrade(&NO_WAIT).map(drop);
    assert_eq!(error, Err(LockError::Busy), "other shares of the caller prevent it too");
    assert_eq!(lock.status(), Status::Shared, "but stay");
    drop(other);
    assert_eq!(lock.status(), Status::Unlocked);
}

#[test]
fn a_try_to_upgrade_that_fails_keeps_the_share() {
    let lock = Lock::new(7);
    let (mine, other) = (lock.read(), lock.read());
    let mine = mine.try_upgrade().expect_err("two share");
    drop(other);
    assert_eq!((*mine, lock.status()), (7, Status::Shared));
    let mut mine = mine.try_upgrade().expect("one shares");
    *mine += 1;
    assert_eq!(elsewhere(|| reads(&lock, &NO_WAIT)), Err(LockError::Busy));
    drop(mine);
    assert_eq!(lock.into_inner(), 8);
}

#[test]
fn a_downgrade_admits_sharers_and_wakes_no_thread() {
    let lock = Lock::new(0);
    thread::scope(|scope| {
        let mut held = lock.write();
        *held = 5;
        let sleeper = scope.spawn(|| lock.read_with(&ASLEEP).map(|value| *value));
        until_waited_for(&lock);
        let shares = held.downgrade();
        assert_eq!(lock.status(), Status::Shared);
        elsewhere(|| {
            assert_eq!(lock.read_with(&NO_WAIT).map(|value| *value), Ok(5));
            assert_eq!(writes(&lock, &NO_WAIT), Err(LockError::Busy));
        });
        assert!(lock.has_waiters() && !sleeper.is_finished(), "it sleeps until a release");
        drop(shares);
        assert_eq!(sleeper.join().unwrap(), Ok(5));
    });
}

#[test]
fn a_disowned_guard_may_be_used_and_released_by_any_thread() {
    let lock = Lock::new(0);
    let mut disowned = lock.write().disown();
    *disowned += 1;
    assert_eq!(reads(&lock, &NO_WAIT), Err(LockError::Busy), "no deadlock: it is not the caller's");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| lock.read_with(&ASLEEP).map(|value| *value));
        until_waited_for(&lock);
        scope.spawn(move || *disowned += 1);
        assert_eq!(waiter.join().unwrap(), Ok(2));
    });
    assert_eq!(lock.status(), Status::Unlocked);
}

#[test]
fn a_drained_lock_is_held_alone() {
    let lock = Lock::new(1);
    let mut last = lock.drain(&PLAIN).expect("it is free");
    *last += 1;
    assert_eq!(lock.status(), Status::Exclusive);
    assert_eq!(elsewhere(|| reads(&lock, &NO_WAIT)), Err(LockError::Busy));
    drop(last);
    assert_eq!(lock.destroy(), 2);
}

#[test]
fn a_drain_that_must_not_wait_fails() {
    let lock = Lock::new(0);
    for (hold, drains) in DRAINS {
        let held = hold(&lock);
        assert_eq!(elsewhere(|| drains(&lock, &NO_WAIT)), Err(LockError::Busy));
        drop(held);
        assert_eq!(drains(&lock, &NO_WAIT), Ok(()));
    }
}

#[test]
fn a_drain_ignores_limits() {
    let by = Cancellation::new();
    by.cancel();
    let impatient = PLAIN.timeout(Duration::ZERO).interruptible(&by).sleep_fail();
    for drain in DRAINS {
        assert_eq!(asleep(&Lock::new(0), drain, &impatient), Ok(()));
    }
}

#[test]
fn a_drain_lets_sleepers_in() {
    let lock = LockMgr::new(0);
    thread::scope(|scope| {
        let held = lock.write();
        for _ in 0..THREADS {
            scope.spawn(|| *lock.write_with(&ASLEEP).unwrap() += 1);
            scope.spawn(|| assert!(*lock.read_with(&ASLEEP).unwrap() <= THREADS + 1));
        }
        until_waited_for(&lock);
        scope.spawn(|| *lock.drain(&PLAIN).unwrap() += 1);
        drop(held);
    });
    assert_eq!(lock.destroy(), THREADS + 1, "and gets it");
}

#[test]
fn a_lockmgr_is_made_and_shown_as_any_value() {
    let mut lock = LockMgr::from(vec![1]);
    assert_eq!(format!("{lock:?}"), "LockMgr { value: [1] }");
    lock.get_mut().push(2);
    {
        let held = lock.write();
        assert_eq!(
            (format!("{held:?}"), format!("{lock:?}")),
            ("[1, 2]".into(), "LockMgr { value: <locked> }".into())
        );
        assert_eq!(format!("{:?}", held.downgrade()), "[1, 2]");
    }
    assert_eq!(format!("{:?}", lock.write().disown()), "[1, 2]");
    assert_eq!(LockMgr::<Vec<u8>>::default().into_inner(), []);
}
