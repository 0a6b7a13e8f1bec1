//! What `RwLock` promises beyond other locks with readers. No test depends on time: one that fails
//! by a wait does not end.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::mem;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use nearlock::{
    Cancellation, RwLock, RwLockCancellable, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
};

/// More than a thread has slots for.
const MANY: usize = 20;
/// More reads than any mode needs.
const READS: usize = 2_000;

/// Reads until the lock is in its last mode.
fn read_often<T>(lock: &RwLock<T>) {
    (0..READS).for_each(|_| drop(lock.read()));
}

/// Waits until a writer waits: then a thread that does not read cannot read.
fn await_writer<T: Send + Sync>(lock: &RwLock<T>) {
    while thread::scope(|scope| scope.spawn(|| lock.try_read().is_some()).join().unwrap()) {
        thread::yield_now();
    }
}

/// Calls `act` while this thread reads the lock and a writer waits.
fn beside_a_waiting_writer(lock: &RwLock<u32>, act: impl FnOnce()) {
    thread::scope(|scope| {
        let read = lock.read();
        scope.spawn(|| *lock.write() += 1);
        await_writer(lock);
        act();
        assert_eq!(*read, 0);
    });
    assert_eq!(*lock.read(), 1);
}

#[test]
fn a_reader_may_read_again_beside_a_waiting_writer() {
    for reads in [0, READS] {
        let lock = RwLock::new(0);
        (0..reads).for_each(|_| drop(lock.read()));
        beside_a_waiting_writer(&lock, || {
            let guards: Vec<_> = (0..5).map(|_| lock.read()).collect();
            assert!(guards.iter().all(|value| **value == 0));
            assert!(lock.try_read().is_some());
        });
    }
}

#[test]
fn a_reader_of_many_locks_may_read_again_beside_a_waiting_writer() {
    let others: Vec<RwLock<()>> = (0..MANY).map(|_| RwLock::new(())).collect();
    let _reads: Vec<_> = others.iter().map(|lock| lock.read()).collect();
    let lock = RwLock::new(0);
    beside_a_waiting_writer(&lock, || assert_eq!(*lock.read(), 0));
}

#[test]
fn many_locks_are_read_at_a_time_and_released_in_any_order() {
    let locks: Vec<RwLock<usize>> = (0..MANY).map(RwLock::new).collect();
    locks.iter().for_each(read_often);
    for first in 0..MANY {
        let mut guards: Vec<_> = locks.iter().map(|lock| Some(lock.read())).collect();
        for index in 0..MANY {
            let index = (first + 7 * index) % MANY;
            assert!(locks[index].try_write().is_none());
            guards[index] = None;
            assert!(locks[index].try_write().is_some());
        }
    }
}

#[test]
fn an_upgradable_reader_excludes_others_of_its_kind_and_no_readers() {
    let lock = RwLock::new(1);
    for _ in 0..2 {
        let read = lock.upgradable_read();
        assert!(lock.try_upgradable_read().is_none() && lock.try_write().is_none());
        assert!(lock.is_locked() && !lock.is_locked_exclusive());
        let other = lock.try_read().expect("no writer");
        let read = RwLockUpgradableReadGuard::try_upgrade(read).expect_err("another thread reads");
        let limit = Duration::from_millis(1);
        let read = RwLockUpgradableReadGuard::try_upgrade_for(read, limit).expect_err("it still does");
        assert!(lock.try_read().is_some(), "readers are let in again");
        drop(other);
        let mut write = RwLockUpgradableReadGuard::try_upgrade(read).unwrap_or_else(|_| panic!("no reader"));
        assert!(lock.try_read().is_none());
        *write += 1;
        let read = RwLockWriteGuard::downgrade_to_upgradable(write);
        assert!(lock.try_read().is_some() && lock.try_write().is_none());
        let read = RwLockUpgradableReadGuard::downgrade(read);
        assert!(lock.try_upgradable_read().is_some() && lock.try_write().is_none());
        drop(read);
        read_often(&lock);
    }
    assert_eq!(lock.into_inner(), 3);
}

#[test]
fn an_upgrade_waits_for_readers() {
    let (lock, reads) = (RwLock::new(0), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let read = lock.read();
            reads.wait();
            thread::yield_now();
            assert_eq!(*read, 0);
        });
        let read = lock.upgradable_read();
        reads.wait();
        *RwLockUpgradableReadGuard::upgrade(read) = 1;
    });
    assert_eq!(lock.into_inner(), 1);
}

/// The reader does not leave before the writer has given up.
#[test]
fn a_writer_that_waits_for_readers_can_be_cancelled() {
    for reads in [0, READS] {
        let (lock, cancellation) = (RwLock::new(0), Cancellation::new());
        (0..reads).for_each(|_| drop(lock.read()));
        let read = lock.read();
        thread::scope(|scope| {
            let writer = scope.spawn(|| lock.write_cancellable(&cancellation).is_err());
            await_writer(&lock);
            cancellation.cancel();
            assert!(writer.join().unwrap());
        });
        assert!(lock.try_read().is_some() && *read == 0);
    }
}

/// Each release lets the waiting reader in, sooner or later.
#[test]
fn a_writer_that_releases_fairly_lets_readers_in() {
    let (lock, has_read) = (RwLock::new(()), AtomicBool::new(false));
    thread::scope(|scope| {
        let mut write = lock.write();
        scope.spawn(|| {
            drop(lock.read());
            has_read.store(true, Relaxed);
        });
        while !has_read.load(Relaxed) {
            RwLockWriteGuard::bump(&mut write);
        }
        RwLockWriteGuard::unlock_fair(write);
    });
    assert!(!lock.is_locked());
}

/// A thread gives its line back after the destructors of its thread-local data.
#[test]
fn a_guard_may_be_dropped_by_a_destructor_of_thread_local_data() {
    static LOCK: RwLock<u32> = RwLock::new(1);
    thread_local! {
        static KEPT: RefCell<Option<RwLockReadGuard<'static, u32>>> = const { RefCell::new(None) };
    }
    read_often(&LOCK);
    for _ in 0..3 {
        thread::spawn(|| {
            KEPT.set(Some(LOCK.read()));
            assert!(LOCK.try_write().is_none());
        })
        .join()
        .unwrap();
        assert!(LOCK.try_write().is_some());
    }
}

/// A line has the ids of locks, which are not used again.
#[test]
fn a_forgotten_guard_keeps_no_later_lock() {
    for _ in 0..2 * MANY {
        let mut lock = Box::new(RwLock::new(1));
        read_often(&lock);
        mem::forget(lock.read());
        assert!(lock.try_write().is_none());
        *lock = RwLock::new(2);
        assert!(lock.try_write().is_some());
    }
}

#[test]
fn a_lock_that_is_locked_is_shown_without_a_wait() {
    let lock = RwLock::new(1);
    assert_eq!(format!("{lock:?}"), "RwLock { data: 1 }");
    let write = lock.write();
    assert_eq!(format!("{lock:?}"), "RwLock { data: <locked> }");
    drop(write);
}
