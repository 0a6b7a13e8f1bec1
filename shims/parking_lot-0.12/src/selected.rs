//! What the crate consists of, if its raw locks are not those of nearlock's front page: a feature
//! has selected others, or acquisitions are counted.

mod condvar;
#[cfg(any(feature = "send_guard", feature = "deadlock_detection"))]
mod version_04;

#[path = "../../raw.rs"]
mod bare;

/// The raw locks for `lock_api` 0.4, with what counts them.
mod raw {
    use super::bare;
    #[cfg(any(feature = "send_guard", feature = "deadlock_detection"))]
    use super::version_04::Version04;
    #[cfg(nearlock_count)]
    use crate::counted::Counted;

    /// Those of nearlock's front page have its traits.
    #[cfg(not(any(feature = "send_guard", feature = "deadlock_detection")))]
    type Version04<R> = R;
    #[cfg(not(nearlock_count))]
    type Counted<R> = R;

    pub type RawMutex = Counted<Version04<bare::RawMutex>>;
    pub type RawFairMutex = Counted<Version04<bare::RawFairMutex>>;
    pub type RawRwLock = Counted<Version04<bare::RawRwLock>>;

    /// A mutex with others around it.
    pub trait Bare {
        fn bare(&self) -> &bare::RawMutex;
    }

    impl Bare for bare::RawMutex {
        fn bare(&self) -> &bare::RawMutex {
            self
        }
    }

    #[cfg(any(feature = "send_guard", feature = "deadlock_detection"))]
    impl<R: Bare> Bare for Version04<R> {
        fn bare(&self) -> &bare::RawMutex {
            self.0.bare()
        }
    }

    #[cfg(nearlock_count)]
    impl<R: Bare> Bare for Counted<R> {
        fn bare(&self) -> &bare::RawMutex {
            self.0.bare()
        }
    }
}

#[path = "../../types.rs"]
mod types;

pub use condvar::{Condvar, WaitTimeoutResult};
#[cfg(feature = "arc_lock")]
pub use lock_api::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};
pub use nearlock::parking_lot_012::{Once, OnceState, lock_api};
pub use types::*;

pub const fn const_mutex<T>(value: T) -> Mutex<T> {
    Mutex::const_new(<RawMutex as lock_api::RawMutex>::INIT, value)
}

pub const fn const_fair_mutex<T>(value: T) -> FairMutex<T> {
    FairMutex::const_new(<RawFairMutex as lock_api::RawMutex>::INIT, value)
}

pub const fn const_rwlock<T>(value: T) -> RwLock<T> {
    RwLock::const_new(<RawRwLock as lock_api::RawRwLock>::INIT, value)
}

pub const fn const_reentrant_mutex<T>(value: T) -> ReentrantMutex<T> {
    ReentrantMutex::const_new(<RawMutex as lock_api::RawMutex>::INIT, RawThreadId, value)
}
