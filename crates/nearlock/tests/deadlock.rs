//! Deadlocks that are found, and waits that are none. No test depends on time: one that fails by a
//! wait does not end. Threads of a deadlock stay until the process ends.

#![cfg(feature = "deadlock_detection")]

use std::collections::HashSet;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;

use nearlock::ReadRecursive;
use nearlock::deadlock::{
    Condvar, DeadlockedThread, FairMutex, Mutex, RecursiveRwLock, ReentrantMutex, RwLock,
    RwLockUpgradableReadGuard, RwLockWriteGuard, check_deadlock,
};

/// The list of waits belongs to the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(check_deadlock().is_empty());
    alone
}

fn next_deadlocks() -> Vec<Vec<DeadlockedThread>> {
    loop {
        let found = check_deadlock();
        if !found.is_empty() {
            return found;
        }
        thread::yield_now();
    }
}

/// The next deadlock has these threads, and is found once.
#[track_caller]
fn assert_deadlock(expected: &[ThreadId]) {
    let found = next_deadlocks();
    let ids: Vec<HashSet<ThreadId>> =
        found.iter().map(|threads| threads.iter().map(DeadlockedThread::thread_id).collect()).collect();
    assert_eq!(ids, [expected.iter().copied().collect()]);
    assert!(found[0].iter().all(|thread| !thread.backtrace().frames().is_empty()));
    assert!(check_deadlock().is_empty() && check_deadlock().is_empty());
}

/// Threads, each of which holds a lock and then locks the next one.
fn in_a_circle<L: Send + Sync + 'static>(
    count: usize,
    new: fn() -> L,
    hold_and_wait: fn(&L, &Barrier, &L),
) -> Vec<ThreadId> {
    let locks: Arc<Vec<L>> = Arc::new((0..count).map(|_| new()).collect());
    let barrier = Arc::new(Barrier::new(count));
    let threads = (0..count).map(|index| {
        let (locks, barrier) = (locks.clone(), barrier.clone());
        let act = move || hold_and_wait(&locks[index], &barrier, &locks[(index + 1) % locks.len()]);
        thread::spawn(act).thread().id()
    });
    threads.collect()
}

fn spawn<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> (ThreadId, JoinHandle<T>) {
    let handle = thread::spawn(act);
    (handle.thread().id(), handle)
}

#[test]
fn threads_that_lock_mutexes_in_a_circle() {
    let _alone = alone();
    for count in [2, 3, 7] {
        assert_deadlock(&in_a_circle(
            count,
            || Mutex::new(()),
            |own, all, next| {
                let _own = own.lock();
                all.wait();
                drop(next.lock());
            },
        ));
    }
}

#[test]
fn threads_that_lock_reentrant_mutexes_in_a_circle() {
    let _alone = alone();
    assert_deadlock(&in_a_circle(
        3,
        || ReentrantMutex::new(()),
        |own, all, next| {
            let _own = (own.lock(), own.lock());
            all.wait();
            drop(next.lock());
        },
    ));
}

#[test]
fn threads_that_read_or_write_and_write_in_a_circle() {
    let _alone = alone();
    type Act = fn(&RwLock<u32>, &Barrier, &RwLock<u32>);
    let acts: [Act; 6] = [
        |own, all, next| {
            let _own = own.write();
            all.wait();
            drop(next.write());
        },
        |own, all, next| {
            let _own = own.read();
            all.wait();
            drop(next.write());
        },
        |own, all, next| {
            let _own = own.write();
            all.wait();
            drop(next.read());
        },
        |own, all, next| {
            let _own = own.upgradable_read();
            all.wait();
            drop(next.upgradable_read());
        },
        |own, all, next| {
            let _own = RwLockWriteGuard::downgrade(own.write());
            all.wait();
            drop(next.write());
        },
        |own, all, next| {
            let _own = RwLockWriteGuard::downgrade_to_upgradable(own.write());
            all.wait();
            drop(next.write());
        },
    ];
    for act in acts {
        assert_deadlock(&in_a_circle(3, || RwLock::new(0), act));
        // The same when readers have lines of their own.
        let read_often = || {
            let lock = RwLock::new(0);
            (0..2_000).for_each(|_| drop(lock.read()));
            lock
        };
        assert_deadlock(&in_a_circle(2, read_often, act));
    }
}

#[test]
fn a_thread_that_waits_for_itself() {
    let _alone = alone();
    let acts: [fn(); 5] = [
        || {
            let mutex = Mutex::new(());
            let _first = mutex.lock();
            drop(mutex.lock());
        },
        || {
            let lock = RwLock::new(());
            let _first = (lock.read(), lock.read());
            drop(lock.write());
        },
        || {
            let lock = RwLock::new(());
            let _first = lock.write();
            drop(lock.read());
        },
        || {
            let lock = RwLock::new(());
            let (upgradable, _read) = (lock.upgradable_read(), lock.read());
            drop(RwLockUpgradableReadGuard::upgrade(upgradable));
        },
        || {
            let mutex = Mutex::new(());
            mem::forget(mutex.lock());
            drop(mutex.lock());
        },
    ];
    for act in acts {
        assert_deadlock(&[spawn(act).0]);
    }
}

/// The reader waits for the writer, which waits for the other reader.
#[test]
fn a_reader_that_a_waiting_writer_keeps_out() {
    let _alone = alone();
    // So many that the first thread is the only reader in each way that a lock has for that.
    for reads in [0, 1, 10, 100, 2000] {
        keeps_a_reader_out(reads);
    }
}

/// The lock was read so often before.
fn keeps_a_reader_out(before: u32) {
    let (lock, mutex) = (Arc::new(RwLock::new(())), Arc::new(Mutex::new(())));
    let (is_reading, reads) = channel();
    let (go_on, may_go_on) = channel();
    let (has_locked, locks) = channel();
    let (first, _) = spawn({
        let (lock, mutex) = (lock.clone(), mutex.clone());
        move || {
            (0..before).for_each(|_| drop(lock.read()));
            let _read = lock.read();
            is_reading.send(()).unwrap();
            may_go_on.recv().unwrap();
            drop(mutex.lock());
        }
    });
    reads.recv().unwrap();
    let (writer, _) = spawn({
        let lock = lock.clone();
        move || drop(lock.write())
    });
    while lock.try_read().is_some() {
        thread::yield_now();
    }
    let (second, _) = spawn(move || {
        let _held = mutex.lock();
        has_locked.send(()).unwrap();
        drop(lock.read());
    });
    locks.recv().unwrap();
    go_on.send(()).unwrap();
    assert_deadlock(&[first, writer, second]);
}

/// The waiter has been notified, and holds another mutex.
#[test]
fn a_waiter_of_a_condition_variable_that_locks_its_mutex_again() {
    let _alone = alone();
    struct Shared {
        outer: Mutex<()>,
        inner: Mutex<bool>,
        changed: Condvar,
    }
    let shared =
        Arc::new(Shared { outer: Mutex::new(()), inner: Mutex::new(false), changed: Condvar::new() });
    let (waits, is_waiting) = channel();
    let (waiter, _) = spawn({
        let shared = shared.clone();
        move || {
            let _outer = shared.outer.lock();
            let mut inner = shared.inner.lock();
            waits.send(()).unwrap();
            shared.changed.wait_while(&mut inner, |done| !*done);
        }
    });
    is_waiting.recv().unwrap();
    let (notifier, _) = spawn(move || {
        let mut inner = shared.inner.lock();
        *inner = true;
        assert!(shared.changed.notify_one());
        drop(shared.outer.lock());
    });
    assert_deadlock(&[waiter, notifier]);
}

/// A deadlock, and a thread that waits behind it, and later takes part in another one.
#[test]
fn a_thread_that_waits_for_a_deadlock_is_not_part_of_it() {
    let _alone = alone();
    let locks: Arc<[Mutex<()>; 2]> = Arc::default();
    let (has_locked, is_locked) = channel();
    let (own, _) = spawn({
        let locks = locks.clone();
        move || {
            let _first = locks[0].lock();
            has_locked.send(()).unwrap();
            drop(locks[0].lock());
        }
    });
    is_locked.recv().unwrap();
    for _ in 0..3 {
        let locks = locks.clone();
        _ = spawn(move || drop(locks[0].lock()));
    }
    assert_deadlock(&[own]);
}

/// None of these waits is a deadlock, although locks have been forgotten, moved and dropped, and
/// threads have ended.
#[test]
fn waits_that_end_are_no_deadlock() {
    let _alone = alone();
    let mutex = Arc::new(Mutex::new(0));
    // A thread that has ended holds it for ever.
    spawn({
        let mutex = mutex.clone();
        move || mem::forget(mutex.lock())
    })
    .1
    .join()
    .unwrap();
    assert!(mutex.try_lock().is_none());
    assert!(mutex.try_lock_for(Duration::from_millis(1)).is_none());
    _ = spawn(move || drop(mutex.lock()));

    for _ in 0..100 {
        let lock = Box::new(RwLock::new(0));
        mem::forget(lock.read());
        drop(Box::new(*lock));
        let mutex = Box::new(Mutex::new(0));
        mem::forget(mutex.lock());
        drop(Box::new(*mutex));
        // At the addresses of those that are gone.
        let (lock, mutex) = (Arc::new(RwLock::new(0)), Arc::new(Mutex::new(0)));
        let (locked, read) = (mutex.lock(), lock.read());
        let (_, waiter) = spawn({
            let (lock, mutex) = (lock.clone(), mutex.clone());
            move || {
                *mutex.lock() += 1;
                *lock.write() += 1;
            }
        });
        assert!(check_deadlock().is_empty());
        drop(locked);
        assert!(check_deadlock().is_empty());
        drop(read);
        waiter.join().unwrap();
        assert_eq!(*lock.read() + *mutex.lock(), 2);
    }
}

/// Threads that contend in one order, with all kinds of acquisitions, while another one looks.
#[test]
fn contention_is_no_deadlock() {
    const THREADS: usize = 6;
    const ROUNDS: usize = 300;
    let _alone = alone();
    let (first, lock, changed) = (Mutex::new(0), RwLock::new(0), Condvar::new());
    let done = AtomicUsize::new(0);
    let done = &done;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (first, lock, changed) = (&first, &lock, &changed);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let mut held = first.lock();
                    *held += 1;
                    match (thread + round) % 5 {
                        0 => *lock.write() += 1,
                        1 => *RwLockUpgradableReadGuard::upgrade(lock.upgradable_read()) += 1,
                        2 => {
                            let read = lock.read();
                            drop(held);
                            assert_eq!(*read, *lock.read());
                            thread::yield_now();
                        }
                        3 => _ = changed.wait_for(&mut held, Duration::from_micros(50)),
                        _ => {
                            drop(held);
                            changed.notify_all();
                            drop(RwLockWriteGuard::downgrade(lock.write()));
                        }
                    }
                }
                done.fetch_add(1, Relaxed);
            });
        }
        while done.load(Relaxed) != THREADS {
            assert!(check_deadlock().is_empty());
        }
    });
    assert_eq!(*first.lock(), THREADS * ROUNDS);
}

#[test]
#[should_panic(expected = "more than one mutex")]
fn a_condition_variable_has_one_mutex_at_a_time() {
    let (mutexes, changed): ([Mutex<()>; 2], Condvar) = Default::default();
    thread::scope(|scope| {
        let (has_locked, is_locked) = channel();
        let (changed, first) = (&changed, &mutexes[0]);
        scope.spawn(move || {
            let mut guard = first.lock();
            has_locked.send(()).unwrap();
            changed.wait(&mut guard);
        });
        is_locked.recv().unwrap();
        drop(first.lock());
        let result = catch_unwind(AssertUnwindSafe(|| changed.wait(&mut mutexes[1].lock())));
        assert!(mutexes[1].try_lock().is_some());
        assert!(changed.notify_one() && !changed.notify_one());
        result.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

#[test]
fn threads_that_lock_fair_mutexes_or_read_recursively_in_a_circle() {
    let _alone = alone();
    assert_deadlock(&in_a_circle(
        2,
        || FairMutex::new(()),
        |own, all, next| {
            let _own = own.lock();
            all.wait();
            drop(next.lock());
        },
    ));
    // A recursive reader waits for a writer that is in.
    assert_deadlock(&in_a_circle(
        2,
        || RecursiveRwLock::new(()),
        |own, all, next| {
            let _own = own.write();
            all.wait();
            drop(next.read());
        },
    ));
}

/// Reads a lock while the thread of a round holds a mutex.
type Read = fn(&RwLock<()>);

/// A reader waits for a mutex, whose holder reads recursively what the reader reads. A writer waits
/// in between. It would be a deadlock if the second reader waited for that writer.
#[test]
fn a_recursive_reader_does_not_wait_for_a_waiting_writer() {
    const ROUNDS: usize = 100;
    let _alone = alone();
    let reads: [Read; 2] = [
        |lock| drop(lock.read_recursive()),
        |lock| drop(lock.try_read_recursive_for(Duration::from_secs(600))),
    ];
    for round in 0..ROUNDS {
        let (lock, mutex, ready) = (RwLock::new(()), Mutex::new(()), Barrier::new(3));
        let done = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let _first = lock.read();
                ready.wait();
                drop(mutex.lock());
                done.fetch_add(1, Relaxed);
            });
            scope.spawn(|| {
                let _mutex = mutex.lock();
                ready.wait();
                while lock.try_read().is_some() {
                    thread::yield_now();
                }
                reads[round % reads.len()](&lock);
                done.fetch_add(1, Relaxed);
            });
            scope.spawn(|| {
                ready.wait();
                drop(lock.write());
                done.fetch_add(1, Relaxed);
            });
            while done.load(Relaxed) < 3 {
                assert!(check_deadlock().is_empty(), "it ends by itself");
                thread::yield_now();
            }
        });
    }
}
