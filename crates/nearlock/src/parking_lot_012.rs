//! The names of `parking_lot` 0.12, over `lock_api` 0.4 (feature `lock_api_04`).
//!
//! [`Mutex`](crate::Mutex), [`RwLock`](crate::RwLock) and the other types of the front page are
//! those of `lock_api` 0.5. A few signatures differ: `force_unlock_read` has an argument there, and
//! a type or a trait of `lock_api` 0.4 is another one than that of 0.5. A program that depends on
//! this uses the types of this module. They have the same raw locks. So they have the properties
//! that the front page describes.
//!
//! Everything that `parking_lot` 0.12 exports is here, except its `deadlock` module.
//!
//! ```
//! use nearlock::parking_lot_012 as parking_lot;
//! use parking_lot::{Condvar, Mutex, RwLock};
//!
//! let (jobs, there_is_one, runs) = (Mutex::new(Vec::new()), Condvar::new(), RwLock::new(0));
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         let mut jobs = jobs.lock();
//!         there_is_one.wait_while(&mut jobs, |jobs| jobs.is_empty());
//!         *runs.write() += jobs.pop().unwrap();
//!     });
//!     jobs.lock().push(3);
//!     there_is_one.notify_one();
//! });
//! assert_eq!(*runs.read_recursive(), 3);
//! ```

mod condvar;

pub use crate::lock_api_04 as lock_api;
#[cfg(feature = "arc_lock")]
pub use crate::lock_api_04::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};
pub use crate::near::{RawFairMutex, RawMutex, RawRwLock, RawThreadId};
pub use crate::once::{Once, OnceState};
pub use condvar::{Condvar, WaitTimeoutResult};

guarded! {
    lock_api_04:
    /// A [`Mutex`](crate::Mutex) of `lock_api` 0.4.
    ///
    /// ```
    /// use nearlock::parking_lot_012::Mutex;
    ///
    /// static COUNT: Mutex<u32> = Mutex::new(1);
    ///
    /// *COUNT.lock() += 1;
    /// assert_eq!(*COUNT.lock(), 2);
    /// ```
    Mutex, MutexGuard, MappedMutexGuard = RawMutex;
}

guarded! {
    lock_api_04:
    /// A [`FairMutex`](crate::FairMutex) of `lock_api` 0.4.
    ///
    /// ```
    /// use nearlock::parking_lot_012::FairMutex;
    ///
    /// let turn = FairMutex::new(1);
    /// assert_eq!(*turn.lock(), 1);
    /// ```
    FairMutex, FairMutexGuard, MappedFairMutexGuard = RawFairMutex;
}

guarded_rw! {
    lock_api_04:
    /// A [`RwLock`](crate::RwLock) of `lock_api` 0.4. It has recursive reads as methods:
    /// [`ReadRecursive`](crate::ReadRecursive) describes them.
    ///
    /// ```
    /// use nearlock::parking_lot_012::RwLock;
    ///
    /// let lock = RwLock::new(1);
    /// std::mem::forget(lock.read());
    /// assert!(lock.try_write().is_none());
    /// // SAFETY: the guard was forgotten.
    /// unsafe { lock.force_unlock_read() };
    /// *lock.write() += 1;
    /// assert_eq!(*lock.read_recursive(), 2);
    /// ```
    RwLock, RwLockReadGuard, RwLockWriteGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard = RawRwLock;
}

/// Shared access to what a [`RwLock`] protects, which can become exclusive. Unlocks when it is
/// dropped.
///
/// ```
/// use nearlock::parking_lot_012::{RwLock, RwLockUpgradableReadGuard};
///
/// let lock = RwLock::new(1);
/// *RwLockUpgradableReadGuard::upgrade(lock.upgradable_read()) = 2;
/// assert_eq!(*lock.read(), 2);
/// ```
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

/// A [`ReentrantMutex`](crate::ReentrantMutex) of `lock_api` 0.4.
///
/// ```
/// use nearlock::parking_lot_012::ReentrantMutex;
///
/// let mutex = ReentrantMutex::new(1);
/// let (first, second) = (mutex.lock(), mutex.lock());
/// assert_eq!(*first + *second, 2);
/// ```
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;

/// Shared access to what a [`ReentrantMutex`] protects. Unlocks it once when it is dropped.
///
/// ```
/// use nearlock::parking_lot_012::{ReentrantMutex, ReentrantMutexGuard};
///
/// let mutex = ReentrantMutex::new(1);
/// ReentrantMutexGuard::unlock_fair(mutex.lock());
/// assert!(!mutex.is_locked());
/// ```
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// Shared access to a part of what a [`ReentrantMutex`] protects. Unlocks it once when it is
/// dropped.
///
/// ```
/// use nearlock::parking_lot_012::{ReentrantMutex, ReentrantMutexGuard};
///
/// let pair = ReentrantMutex::new((1, 2));
/// assert_eq!(*ReentrantMutexGuard::map(pair.lock(), |pair| &pair.1), 2);
/// ```
pub type MappedReentrantMutexGuard<'a, T> = lock_api::MappedReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// Creates a [`Mutex`]. The same as `Mutex::new`.
///
/// ```
/// use nearlock::parking_lot_012::{Mutex, const_mutex};
///
/// static COUNT: Mutex<u32> = const_mutex(1);
///
/// assert_eq!(*COUNT.lock(), 1);
/// ```
pub const fn const_mutex<T>(val: T) -> Mutex<T> {
    Mutex::const_new(<RawMutex as lock_api::RawMutex>::INIT, val)
}

/// Creates a [`FairMutex`]. The same as `FairMutex::new`.
///
/// ```
/// use nearlock::parking_lot_012::{FairMutex, const_fair_mutex};
///
/// static TURN: FairMutex<u32> = const_fair_mutex(1);
///
/// assert_eq!(*TURN.lock(), 1);
/// ```
pub const fn const_fair_mutex<T>(val: T) -> FairMutex<T> {
    FairMutex::const_new(<RawFairMutex as lock_api::RawMutex>::INIT, val)
}

/// Creates a [`RwLock`]. The same as `RwLock::new`.
///
/// ```
/// use nearlock::parking_lot_012::{RwLock, const_rwlock};
///
/// static NAMES: RwLock<Vec<&str>> = const_rwlock(Vec::new());
///
/// assert!(NAMES.read().is_empty());
/// ```
pub const fn const_rwlock<T>(val: T) -> RwLock<T> {
    RwLock::const_new(<RawRwLock as lock_api::RawRwLock>::INIT, val)
}

/// Creates a [`ReentrantMutex`]. The same as `ReentrantMutex::new`.
///
/// ```
/// use nearlock::parking_lot_012::{ReentrantMutex, const_reentrant_mutex};
///
/// static DEPTH: ReentrantMutex<u32> = const_reentrant_mutex(1);
///
/// assert_eq!(*DEPTH.lock(), 1);
/// ```
pub const fn const_reentrant_mutex<T>(val: T) -> ReentrantMutex<T> {
    let (mutex, id) = (<RawMutex as lock_api::RawMutex>::INIT, RawThreadId);
    ReentrantMutex::const_new(mutex, id, val)
}
