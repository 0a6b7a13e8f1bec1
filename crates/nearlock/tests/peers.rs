//! Bugs that other lock libraries have had, as their issue threads describe them. For each of them
//! there is a test here that would fail, or a reason why the bug cannot happen.
//!
//! Each entry has the bug, the library with the numbers of the issues, and what is here.
//!
//! - A later waiter takes the notification of an earlier one, which sleeps on (glibc 25847):
//!   `a_later_waiter_takes_no_notification`.
//! - A wake-up is lost with a waiter that times out (parking_lot 0.12.4):
//!   `a_waiter_that_times_out_takes_no_wake_up_along`; for condition variables: `condvar.rs`.
//! - Waiters are moved to a mutex that is free, and no thread ever unlocks it (any that requeues):
//!   `a_broadcast_to_a_free_mutex_reaches_all_waiters`.
//! - An unlock accesses a lock that its next holder has freed (glibc 13690):
//!   `the_last_waiter_may_free_it` in `condvar.rs`; `crates/os/tests/lifetime.rs` for mutexes.
//! - A timeout that has passed prevents the locking of a free lock (LiTL):
//!   `a_limit_that_is_over_still_tries`.
//! - A thread that reads already waits for a writer that waits for it (parking_lot 101, 169, 212,
//!   489, dashmap 195): `a_reader_may_read_again_beside_a_waiting_writer`. `linux::RwSem` does not
//!   promise it, and its documentation says so.
//! - The count of readers overflows (spin 123): `readers_that_never_leave_are_counted`.
//! - One way of `lock_api` to lock a lock does not exclude the others (spin, `try_upgrade` until
//!   0.12.1): `every_way_into_a_mutex_excludes`, `every_way_into_a_reader_writer_lock_excludes`. No
//!   lock implements `RawRwLockUpgrade`.
//! - Waiters spin for ever for a holder that has no processor (ConcurrencyKit 141):
//!   `one_processor_is_enough`.
//! - An unlock is Relaxed, or an acquisition is (spin 65 (RUSTSEC-2019-0013), parking_lot 292, 294,
//!   344, 501, oneTBB 2136): the models drop the orderings one at a time
//!   (`docs/internals/orderings.md`).
//! - A lock differs between debug and release builds of its users (abseil in azurelinux 10038): no
//!   lock has a `cfg`, which `xtask` checks.
//! - A lock is used before its constructor has run (abseil 1068): `new` is `const`, and free locks
//!   are zero bytes: `a_static_mutex_is_zero_bytes`.
//! - State of the process exists twice, in two shared objects (folly 1558): two copies of this
//!   crate in a process must not share a lock. A Rust program has one copy, unless it loads objects
//!   that bring their own.
//! - Writers starve while readers come and go (glibc (RedisGraph 1588, h2o 423)):
//!   `a_writer_has_its_turn_beside_readers_that_come_and_go`.
//! - A cell that is initialized once is used before that; a fair mutex loses count (spin, `Once`
//!   until 0.12.0, `FairMutex` until 0.12.2): neither type exists here.
//! - A lock next to its data shares the cache line of the data (std 117470): a lock is as small as
//!   possible, and has no padding. A program with such a cache line in a hot path aligns it.
//! - There is no choice of poisoning, timeouts or fairness (std 134645, 93740): `nearlock::poison`
//!   is separate; `try_lock_for`, `unlock_fair`: `poison.rs`, `waiting.rs`, `guards.rs`.
//! - A fixed number of pauses is slow where a pause takes ten times as long (parking_lot 201, 418,
//!   455, 461). Delays are in ns. `pauses_in` in `crates/os/src/platform.rs`, which has a test,
//!   converts them to pauses by the measured length of a pause.
//! - The kinds of a mutex are tested by `#ifdef`, and are an enumeration (glibc (ceph 19195, osal
//!   1573)): there are no kinds.
//! - No waiter spins unless a program asks for it (glibc (MariaDB 1923, 1935, RocksDB 1710)):
//!   waiters spin by default, for a bounded time, and not on one processor.
//! - A broadcast wakes all waiters, which then contend for the mutex (std, glibc): one is woken,
//!   and the others are moved to the mutex's queue:
//!   `a_broadcast_brings_along_where_its_waiters_were` and its neighbours in
//!   `crates/core/src/near/condvar/tests.rs`.
//! - No priority inheritance (parking_lot 205, std 128231): there is none here either.
//!   `docs/guide/which-lock.md` says what to use.
//! - The platform decides whether readers or writers go first (std (rfcs 2674)): each lock
//!   documents its own order, the same everywhere (`docs/guide/locks.md`).
//! - A deadlock detector reports a deadlock where there is none (parking_lot 490, abseil): there is
//!   none.

use std::mem;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use nearlock::lock_api::{
    self, RawMutexFair, RawMutexTimed, RawRwLockDowngrade, RawRwLockTimed, RawRwLockUpgrade,
};
use nearlock::{Condvar, Mutex, RawMutex};
use static_assertions::assert_not_impl_any;

assert_not_impl_any!(nearlock::linux::RawRwSem: RawRwLockUpgrade);
assert_not_impl_any!(nearlock::freebsd::RawRw: RawRwLockUpgrade);
assert_not_impl_any!(nearlock::freebsd::RawSx: RawRwLockUpgrade);

/// Waits until so many threads wait. They count themselves under the mutex, which they unlock by
/// the wait.
fn await_waiters(waiting: &Mutex<usize>, waiters: usize) {
    while *waiting.lock() < waiters {
        thread::yield_now();
    }
}

#[test]
fn a_later_waiter_takes_no_notification() {
    let (waiting, notified) = (Mutex::new(0), Condvar::new());
    let wait = || {
        let mut waiting = waiting.lock();
        *waiting += 1;
        notified.wait(&mut waiting);
    };
    thread::scope(|scope| {
        let earlier = scope.spawn(wait);
        await_waiters(&waiting, 1);
        let mut held = waiting.lock();
        assert!(notified.notify_one());
        *held += 1;
        // The earlier waiter wants the mutex. This one waits as well, and unlocks the mutex by
        // that.
        let later = scope.spawn(wait);
        assert!(notified.wait_for(&mut held, Duration::from_millis(1)).timed_out(), "it was not notified");
        drop(held);
        // There is no predicate: the earlier waiter returns by its notification, or never.
        earlier.join().unwrap();
        await_waiters(&waiting, 3);
        assert!(notified.notify_one(), "the later one still waits");
        later.join().unwrap();
    });
}

#[test]
fn a_waiter_that_times_out_takes_no_wake_up_along() {
    const ROUNDS: u32 = if cfg!(miri) { 3 } else { 300 };
    let mutex = Mutex::new(0);
    for round in 0..ROUNDS {
        let held = mutex.lock();
        thread::scope(|scope| {
            scope.spawn(|| drop(mutex.try_lock_for(Duration::from_micros(u64::from(round)))));
            scope.spawn(|| *mutex.lock() += 1);
            scope.spawn(|| drop(mutex.try_lock_for(Duration::from_micros(u64::from(round % 60)))));
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_micros(u64::from(round % 80)) {
                thread::yield_now();
            }
            drop(held);
        });
    }
    assert_eq!(mutex.into_inner(), ROUNDS);
}

#[test]
fn a_broadcast_to_a_free_mutex_reaches_all_waiters() {
    const ROUNDS: usize = if cfg!(miri) { 2 } else { 100 };
    const WAITERS: usize = 4;
    for _ in 0..ROUNDS {
        let (waiting, notified) = (Mutex::new(0), Condvar::new());
        thread::scope(|scope| {
            for _ in 0..WAITERS {
                scope.spawn(|| {
                    let mut waiting = waiting.lock();
                    *waiting += 1;
                    notified.wait(&mut waiting);
                });
            }
            await_waiters(&waiting, WAITERS);
            // No thread holds the mutex, and only the waiters will lock it.
            assert_eq!(notified.notify_all(), WAITERS);
        });
    }
}

#[test]
fn a_limit_that_is_over_still_tries() {
    let (mutex, long_ago) = (Mutex::new(()), Instant::now());
    assert!(mutex.try_lock_until(long_ago).is_some());
    assert!(mutex.try_lock_for(Duration::ZERO).is_some());
    let _held = mutex.lock();
    assert!(mutex.try_lock_until(long_ago).is_none());
}

#[test]
fn a_reader_may_read_again_beside_a_waiting_writer() {
    const LOOKS: u32 = if cfg!(miri) { 20 } else { 2_000 };
    let (lock, comes) = (nearlock::freebsd::Rw::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let first = lock.read();
        let writer = scope.spawn(|| {
            comes.store(true, Relaxed);
            *lock.write() = 1;
        });
        while !comes.load(Relaxed) {
            thread::yield_now();
        }
        for _ in 0..LOOKS {
            assert_eq!(*lock.read(), 0, "this one reads already, and the writer waits by now");
            thread::yield_now();
        }
        drop(first);
        writer.join().unwrap();
    });
    assert_eq!(lock.into_inner(), 1);
}

/// The test never ends if the writer does not get the lock.
#[test]
fn a_writer_has_its_turn_beside_readers_that_come_and_go() {
    let (lock, is_written) = (nearlock::linux::RwSem::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                // Each thread locks again before it unlocks, if it can. So there is a reader at all
                // times.
                let mut held = lock.read();
                while !is_written.load(Relaxed) {
                    match lock.try_read() {
                        Some(next) => held = next,
                        None => {
                            drop(held);
                            held = lock.read();
                        }
                    }
                    thread::yield_now();
                }
                drop(held);
            });
        }
        scope.spawn(|| {
            *lock.write() = true;
            is_written.store(true, Relaxed);
        });
    });
    assert!(lock.into_inner());
}

#[test]
fn readers_that_never_leave_are_counted() {
    const READERS: usize = if cfg!(miri) { 300 } else { 100_000 };
    let lock = nearlock::linux::RwSem::new(());
    for _ in 0..READERS {
        mem::forget(lock.read());
        if lock.try_write().is_some() {
            panic!("a writer gets in");
        }
    }
}

/// Locks a mutex in each way of `lock_api`, and unlocks it in each way.
fn ways_into<R>()
where
    R: RawMutexFair + RawMutexTimed<Duration = Duration, Instant = Instant>,
{
    let mutex = R::INIT;
    let now = Instant::now();
    let ins: [&dyn Fn() -> R::Guard; 4] = [
        &|| mutex.lock(),
        &|| mutex.try_lock().expect("is free"),
        &|| mutex.try_lock_for(Duration::ZERO).expect("is free"),
        &|| mutex.try_lock_until(now).expect("is free"),
    ];
    for (way, lock) in ins.iter().enumerate() {
        for is_fair in [false, true] {
            let mut guard = lock();
            let is_excluded = || {
                let tried = [mutex.try_lock(), mutex.try_lock_for(Duration::ZERO), mutex.try_lock_until(now)];
                tried.iter().all(Option::is_none) && mutex.is_locked()
            };
            assert!(is_excluded(), "way {way}");
            // SAFETY: the mutex is held by the only guard, which is given up at last.
            unsafe {
                mutex.bump(&mut guard);
                assert!(is_excluded(), "way {way}");
                if is_fair { mutex.unlock_fair(guard) } else { mutex.unlock(guard) }
            }
            assert!(!mutex.is_locked(), "way {way}");
        }
    }
}

#[test]
fn every_way_into_a_mutex_excludes() {
    ways_into::<RawMutex>();
}

/// Runs `look` in another thread: FreeBSD's locks know their caller.
fn elsewhere(look: impl Fn() -> bool + Sync) -> bool {
    thread::scope(|scope| scope.spawn(&look).join().unwrap())
}

/// A way to lock a reader-writer lock.
type Way<'a, R, G> = fn(&'a lock_api::RwLock<R, u32>) -> G;

/// The same for a reader-writer lock.
fn ways_into_rw<R>()
where
    R: RawRwLockDowngrade + RawRwLockTimed<Duration = Duration, Instant = Instant> + Sync,
{
    let lock = lock_api::RwLock::<R, u32>::new(0);
    let now = Instant::now();
    let cannot_read = || {
        elsewhere(|| {
            lock.try_read().is_none()
                && lock.try_read_for(Duration::ZERO).is_none()
                && lock.try_read_until(now).is_none()
        })
    };
    let cannot_write = || {
        elsewhere(|| {
            lock.try_write().is_none()
                && lock.try_write_for(Duration::ZERO).is_none()
                && lock.try_write_until(now).is_none()
        })
    };
    let writes: [Way<'_, R, lock_api::RwLockWriteGuard<'_, R, u32>>; 4] = [
        lock_api::RwLock::write,
        |lock| lock.try_write().expect("is free"),
        |lock| lock.try_write_for(Duration::ZERO).expect("is free"),
        |lock| lock.try_write_until(Instant::now()).expect("is free"),
    ];
    for write in writes {
        let guard = write(&lock);
        assert!(cannot_read() && cannot_write() && lock.is_locked_exclusive());
        let guard = lock_api::RwLockWriteGuard::downgrade(guard);
        assert!(!cannot_read() && cannot_write());
        drop(guard);
        assert!(!lock.is_locked());
    }
    let reads: [Way<'_, R, lock_api::RwLockReadGuard<'_, R, u32>>; 4] = [
        lock_api::RwLock::read,
        |lock| lock.try_read().expect("is free"),
        |lock| lock.try_read_for(Duration::ZERO).expect("is free"),
        |lock| lock.try_read_until(Instant::now()).expect("is free"),
    ];
    for read in reads {
        let guards = [read(&lock), read(&lock)];
        assert!(!cannot_read() && cannot_write() && !lock.is_locked_exclusive());
        let [first, second] = guards;
        drop(first);
        assert!(cannot_write(), "one still reads");
        drop(second);
        assert!(!lock.is_locked());
    }
}

#[test]
fn every_way_into_a_reader_writer_lock_excludes() {
    ways_into_rw::<nearlock::RawRwLock>();
    ways_into_rw::<nearlock::linux::RawRwSem>();
    ways_into_rw::<nearlock::freebsd::RawSx>();
}

/// All threads of this test run on one processor. A holder runs only if the waiters let it.
#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(miri, ignore = "the interpreter has no affinity")]
fn one_processor_is_enough() {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    const THREADS: u64 = 6;
    const SECTIONS: u64 = 2_000;
    let confined = thread::spawn(|| {
        let allowed = sched_getaffinity(None).unwrap();
        let mut one = CpuSet::new();
        one.set((0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).expect("it runs"));
        sched_setaffinity(None, &one).unwrap();
        let (count, is_done, changed) = (Mutex::new(0), AtomicBool::new(false), Condvar::new());
        // The threads inherit the affinity.
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..SECTIONS {
                        *count.lock() += 1;
                    }
                    is_done.store(*count.lock() == THREADS * SECTIONS, Relaxed);
                    changed.notify_all();
                });
            }
            changed.wait_while(&mut count.lock(), |count| *count < THREADS * SECTIONS);
        });
        count.into_inner()
    });
    assert_eq!(confined.join().unwrap(), THREADS * SECTIONS);
}

#[test]
fn a_static_mutex_is_zero_bytes() {
    static MUTEX: Mutex<u32> = Mutex::new(0);
    static NEVER: Condvar = Condvar::new();
    // SAFETY: no thread has used them, and all bits zero is free.
    let (mutex, never): (Mutex<u32>, Condvar) = unsafe { mem::zeroed() };
    *mutex.lock() += 1;
    assert!(!never.notify_one() && !NEVER.notify_one());
    assert_eq!((*mutex.lock(), *MUTEX.lock()), (1, 0));
}
