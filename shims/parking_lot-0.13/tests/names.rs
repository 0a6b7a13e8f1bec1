//! The names of parking_lot 0.13.0, each of which must exist.

#[cfg(feature = "arc_lock")]
#[allow(unused_imports)]
use parking_lot::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};
#[allow(unused_imports)]
use parking_lot::{
    Condvar, FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard,
    MappedRecursiveRwLockReadGuard, MappedRecursiveRwLockWriteGuard, MappedReentrantMutexGuard,
    MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, MutexGuard, Once, OnceState, RawCondvar,
    RawFairMutex, RawMutex, RawRwLock, RawRwLockRecursive, RawThreadId, RecursiveRwLock,
    RecursiveRwLockReadGuard, RecursiveRwLockUpgradableReadGuard, RecursiveRwLockWriteGuard, ReentrantMutex,
    ReentrantMutexGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
    WaitTimeoutResult, lock_api,
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
    fn condvar<R: lock_api::RawCondvarTimed<RawMutex = RawMutex>>() {}
    mutex::<RawMutex>();
    mutex::<RawFairMutex>();
    rwlock::<RawRwLock>();
    rwlock::<RawRwLockRecursive>();
    condvar::<RawCondvar>();
}
