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
            + lock_api::RawRwLockRecursive
            + lock_api::RawRwLockRecursiveTimed
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

#[cfg(feature = "deadlock_detection")]
#[test]
fn no_deadlock_is_found() {
    assert!(parking_lot::deadlock::check_deadlock().is_empty());
}
