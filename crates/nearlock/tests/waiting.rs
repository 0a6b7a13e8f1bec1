//! Waits that end without the lock: by a timeout, or by a cancellation.
//!
//! The tests check that no wait ends too early, and that each wait ends. They never measure whether
//! a wait ends too late.

use std::time::{Duration, Instant};

use nearlock::Mutex as NearMutex;
use nearlock::linux::{CounterMutex, Mutex, RawRwSem, RwSem};
use nearlock::lock_api::{self, RawMutexTimed, RawRwLockTimed};
use nearlock::{Cancellation, Cancelled, LockCancellable, RwLockCancellable};

const SHORT: Duration = Duration::from_millis(5);
/// More than the clock can count, and more than any test takes.
const LONG: [Duration; 2] = [Duration::MAX, Duration::from_secs(3600)];

/// Returns whether the call failed, after at least [`SHORT`].
fn lasts<T>(f: impl FnOnce() -> Option<T>) -> bool {
    let began = Instant::now();
    let refused = f().is_none();
    refused && began.elapsed() >= SHORT
}

fn mutex_waits_within_a_time<R>(lock: &lock_api::Mutex<R, u32>)
where
    R: RawMutexTimed<Duration = Duration, Instant = Instant> + Sync,
{
    let long_ago = Instant::now();
    assert_eq!(lock.try_lock_for(Duration::ZERO).as_deref(), Some(&1), "a free lock is locked");
    assert!(lock.try_lock_until(long_ago).is_some());
    let guard = lock.lock();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(lock.try_lock_for(Duration::ZERO).is_none() && lock.try_lock_until(long_ago).is_none());
            assert!(lasts(|| lock.try_lock_for(SHORT)));
            assert!(lasts(|| lock.try_lock_until(Instant::now() + SHORT)));
        });
    });
    std::thread::scope(|scope| {
        for time in LONG {
            scope.spawn(move || *lock.try_lock_for(time).expect("there is time") += 1);
        }
        scope.spawn(|| *lock.try_lock_until(Instant::now() + LONG[1]).expect("there is time") += 1);
        drop(guard);
    });
    assert_eq!(*lock.lock(), 4);
}

#[test]
fn mutexes_are_waited_for_within_a_time() {
    mutex_waits_within_a_time(&Mutex::new(1));
    mutex_waits_within_a_time(&CounterMutex::new(1));
    mutex_waits_within_a_time(&NearMutex::new(1));
}

#[test]
fn readers_and_writers_wait_within_a_time() {
    fn check<R>(lock: &lock_api::RwLock<R, u32>)
    where
        R: RawRwLockTimed<Duration = Duration, Instant = Instant> + Sync,
    {
        let read = lock.try_read_for(Duration::ZERO).expect("is free");
        assert!(lock.try_read_until(Instant::now()).is_some(), "readers are there together");
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(lasts(|| lock.try_write_for(SHORT))));
            scope.spawn(|| assert!(lasts(|| lock.try_write_until(Instant::now() + SHORT))));
        });
        assert!(lock.try_read().is_some(), "a waiter that gave up stops no thread");
        drop(read);
        let write = lock.try_write_until(Instant::now()).expect("is free");
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(lasts(|| lock.try_read_for(SHORT))));
            scope.spawn(|| assert!(lasts(|| lock.try_read_until(Instant::now() + SHORT))));
        });
        std::thread::scope(|scope| {
            for time in LONG {
                scope.spawn(move || assert!(lock.try_read_for(time).is_some()));
                scope.spawn(move || *lock.try_write_for(time).expect("there is time") += 1);
            }
            drop(write);
        });
        assert_eq!(*lock.read(), 3);
    }
    check(&RwSem::new(1));
    check(&lock_api::RwLock::<RawRwSem, _>::new(1));
}

/// Lets three threads wait, and cancels their waits, at once or after [`SHORT`].
fn are_cancelled(wait: impl Fn(&Cancellation) -> Result<(), Cancelled> + Sync) {
    for pause in [Duration::ZERO, SHORT] {
        let cancellation = Cancellation::new();
        std::thread::scope(|scope| {
            let waits = || wait(&cancellation);
            let waiters: [_; 3] = std::array::from_fn(|_| scope.spawn(waits));
            std::thread::sleep(pause);
            assert!(!cancellation.is_cancelled());
            cancellation.cancel();
            for waiter in waiters {
                assert_eq!(waiter.join().unwrap(), Err(Cancelled));
            }
        });
        assert!(cancellation.is_cancelled());
    }
}

#[test]
fn waits_for_a_mutex_are_cancelled() {
    fn check<L: LockCancellable + Sync>(lock: &L) {
        are_cancelled(|by| lock.lock_cancellable(by).map(drop));
    }
    let (mutex, counter, near) = (Mutex::new(1), CounterMutex::new(1), NearMutex::new(1));
    let guards = (mutex.lock(), counter.lock(), near.lock());
    check(&mutex);
    check(&counter);
    check(&near);
    drop(guards);
    let cancelled = Cancellation::new();
    cancelled.cancel();
    assert_eq!(mutex.lock_cancellable(&cancelled).as_deref(), Ok(&1), "a free lock is locked");
    assert_eq!(counter.lock_cancellable(&cancelled).as_deref(), Ok(&1));
    assert_eq!(near.lock_cancellable(&cancelled).as_deref(), Ok(&1));
}

#[test]
fn waits_of_readers_and_writers_are_cancelled() {
    let table = RwSem::new(1);
    let read = table.read();
    are_cancelled(|by| table.write_cancellable(by).map(drop));
    assert!(table.try_read().is_some(), "a waiter that gave up stops no thread");
    drop(read);
    let write = table.write();
    are_cancelled(|by| table.read_cancellable(by).map(drop));
    are_cancelled(|by| table.write_cancellable(by).map(drop));
    drop(write);
    assert_eq!(table.write_cancellable(&Cancellation::new()).as_deref(), Ok(&1));
}

#[test]
fn one_cancellation_ends_the_waits_for_several_locks_and_no_others() {
    static SHUTDOWN: Cancellation = Cancellation::new();
    let (first, second) = (Mutex::new(1), RwSem::new(2));
    let guards = (first.lock(), second.write());
    std::thread::scope(|scope| {
        let cancelled = [
            scope.spawn(|| first.lock_cancellable(&SHUTDOWN).is_err()),
            scope.spawn(|| second.read_cancellable(&SHUTDOWN).is_err()),
        ];
        let others = [
            scope.spawn(|| *first.lock_cancellable(&Cancellation::new()).unwrap()),
            scope.spawn(|| *second.read()),
        ];
        SHUTDOWN.cancel();
        assert_eq!(cancelled.map(|waiter| waiter.join().unwrap()), [true, true]);
        drop(guards);
        assert_eq!(others.map(|waiter| waiter.join().unwrap()), [1, 2]);
    });
    assert_eq!(
        format!("{SHUTDOWN:?} {Cancelled}"),
        "Cancellation { is_cancelled: true } the wait for a lock was cancelled"
    );
}
