//! The names of parking_lot 0.12.5, each of which must exist.

#[cfg(feature = "arc_lock")]
#[allow(unused_imports)]
use parking_lot::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};
#[allow(unused_imports)]
use parking_lot::{
    Condvar, FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard, MappedReentrantMutexGuard,
    MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, MutexGuard, Once, OnceState, RawFairMutex,
    RawMutex, RawRwLock, RawThreadId, ReentrantMutex, ReentrantMutexGuard, RwLock, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard, WaitTimeoutResult, const_fair_mutex, const_mutex,
    const_reentrant_mutex, const_rwlock, lock_api,
};

/// The traits of `lock_api` that parking_lot's raw locks implement.
#[test]
fn raw_locks_implement_the_traits() {
    fn mutex<R: lock_api::RawMutex + lock_api::RawMutexFair + lock_api::RawMutexTimed>() {}
    fn rwlock<R>()
    where
        R: lock_api::RawRwLock
            + lock_api::RawRwLockFair
            + lock_api::RawRwLockDowngrade
            + lock_api::RawRwLockTimed
            + lock_api::RawRwLockUpgrade
            + lock_api::RawRwLockUpgradeFair
            + lock_api::RawRwLockUpgradeDowngrade
            + lock_api::RawRwLockUpgradeTimed,
    {
    }
    mutex::<RawMutex>();
    mutex::<RawFairMutex>();
    rwlock::<RawRwLock>();
}

/// With `send_guard`, a thread that reads is not known, so code that needs this does not compile.
#[cfg(not(feature = "send_guard"))]
#[test]
fn reads_can_be_recursive() {
    fn rwlock<R: lock_api::RawRwLockRecursive + lock_api::RawRwLockRecursiveTimed>() {}
    rwlock::<RawRwLock>();
    let lock = RwLock::new(1);
    assert_eq!(*lock.read() + *lock.read_recursive(), 2);
}
