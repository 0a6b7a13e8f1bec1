//! A program written for `parking_lot` compiles with `use nearlock as parking_lot`.

#![forbid(unsafe_code)]

use std::time::Duration;

use nearlock as parking_lot;
use parking_lot::lock_api::{GetThreadId, RawMutex as _};
use parking_lot::{
    Condvar, FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard,
    MappedRecursiveRwLockReadGuard, MappedRecursiveRwLockWriteGuard, MappedReentrantMutexGuard,
    MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, MutexGuard, Once, OnceState, RawCondvar,
    RawFairMutex, RawMutex, RawRwLock, RawRwLockRecursive, RawThreadId, RecursiveRwLock,
    RecursiveRwLockReadGuard, RecursiveRwLockUpgradableReadGuard, RecursiveRwLockWriteGuard, ReentrantMutex,
    ReentrantMutexGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
    WaitTimeoutResult, const_fair_mutex, const_mutex, const_reentrant_mutex, const_rwlock,
};

static MUTEX: Mutex<(u32, u32)> = const_mutex((1, 2));
static FAIR: FairMutex<(u32, u32)> = const_fair_mutex((1, 2));
static AGAIN: ReentrantMutex<(u32, u32)> = const_reentrant_mutex((1, 2));
static TABLE: RwLock<(u32, u32)> = const_rwlock((1, 2));
static RECURSIVE: RecursiveRwLock<(u32, u32)> = RecursiveRwLock::new((1, 2));
static CHANGED: Condvar = Condvar::new();
static START: Once = Once::new();

#[test]
fn mutexes_have_the_names_of_parking_lot() {
    let mut guard: MutexGuard<'_, (u32, u32)> = MUTEX.lock();
    let result: WaitTimeoutResult = CHANGED.wait_for(&mut guard, Duration::from_millis(1));
    assert!(result.timed_out());
    let mapped: MappedMutexGuard<'_, u32> = MutexGuard::map(guard, |pair| &mut pair.0);
    assert_eq!(*mapped, 1);
    let guard: FairMutexGuard<'_, (u32, u32)> = FAIR.lock();
    let mapped: MappedFairMutexGuard<'_, u32> = FairMutexGuard::map(guard, |pair| &mut pair.0);
    assert_eq!(*mapped, 1);
    let guard: ReentrantMutexGuard<'_, (u32, u32)> = AGAIN.lock();
    let mapped: MappedReentrantMutexGuard<'_, u32> = ReentrantMutexGuard::map(guard, |pair| &pair.0);
    assert_eq!(*mapped, 1);
    START.call_once(|| assert_ne!(RawThreadId.nonzero_thread_id().get(), 0));
    assert_eq!(START.state(), OnceState::Done);
}

#[test]
fn rwlocks_have_the_names_of_parking_lot() {
    let guard: RwLockReadGuard<'_, (u32, u32)> = TABLE.read();
    let mapped: MappedRwLockReadGuard<'_, u32> = RwLockReadGuard::map(guard, |pair| &pair.0);
    assert_eq!(*mapped, 1);
    drop(mapped);
    let guard: RwLockUpgradableReadGuard<'_, (u32, u32)> = TABLE.upgradable_read();
    let guard: RwLockWriteGuard<'_, (u32, u32)> = RwLockUpgradableReadGuard::upgrade(guard);
    let mapped: MappedRwLockWriteGuard<'_, u32> = RwLockWriteGuard::map(guard, |pair| &mut pair.0);
    assert_eq!(*mapped, 1);
    let guard: RecursiveRwLockReadGuard<'_, (u32, u32)> = RECURSIVE.read();
    let mapped: MappedRecursiveRwLockReadGuard<'_, u32> =
        RecursiveRwLockReadGuard::map(guard, |pair| &pair.0);
    assert_eq!(*mapped, 1);
    drop(mapped);
    let guard: RecursiveRwLockUpgradableReadGuard<'_, (u32, u32)> = RECURSIVE.upgradable_read();
    let guard: RecursiveRwLockWriteGuard<'_, (u32, u32)> = RecursiveRwLockUpgradableReadGuard::upgrade(guard);
    let mapped: MappedRecursiveRwLockWriteGuard<'_, u32> =
        RecursiveRwLockWriteGuard::map(guard, |pair| &mut pair.0);
    assert_eq!(*mapped, 1);
}

#[test]
fn raw_locks_have_the_names_of_parking_lot() {
    use parking_lot::lock_api::{Condvar, Mutex, RwLock};
    let (raw, fair) = (RawMutex::INIT, RawFairMutex::INIT);
    assert!(!raw.is_locked() && !fair.is_locked());
    let lock = RwLock::<RawRwLock, u32>::new(1);
    let recursive = RwLock::<RawRwLockRecursive, u32>::new(2);
    assert_eq!(*lock.read() + *recursive.read(), 3);
    let mutex = Mutex::<RawMutex, u32>::new(1);
    assert!(!Condvar::<RawCondvar>::new().notify_one());
    assert_eq!(*mutex.lock(), 1);
}
