//! What the crate consists of, if its raw locks are not those of nearlock's front page: a feature
//! has selected others, or acquisitions are counted.

#[path = "../../raw.rs"]
pub(crate) mod bare;

/// The raw locks, with what counts them.
mod raw {
    use nearlock::near::Recursive;

    use super::bare;
    #[cfg(nearlock_count)]
    use crate::counted::Counted as Layer;
    #[cfg(nearlock_count)]
    pub use crate::counted::RawCondvar;
    #[cfg(not(nearlock_count))]
    pub use bare::RawCondvar;

    #[cfg(not(nearlock_count))]
    type Layer<R> = R;

    pub type RawMutex = Layer<bare::RawMutex>;
    pub type RawFairMutex = Layer<bare::RawFairMutex>;
    pub type RawRwLock = Layer<bare::RawRwLock>;
    pub type RawRwLockRecursive = Layer<Recursive<bare::RawRwLock>>;
}

#[path = "../../types.rs"]
mod types;

pub use raw::{RawCondvar, RawRwLockRecursive};
pub use types::*;

pub type Condvar = lock_api::Condvar<RawCondvar>;

pub type RecursiveRwLock<T> = lock_api::RwLock<RawRwLockRecursive, T>;
pub type RecursiveRwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLockRecursive, T>;
pub type RecursiveRwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLockRecursive, T>;
pub type RecursiveRwLockUpgradableReadGuard<'a, T> =
    lock_api::RwLockUpgradableReadGuard<'a, RawRwLockRecursive, T>;
pub type MappedRecursiveRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLockRecursive, T>;
pub type MappedRecursiveRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLockRecursive, T>;
