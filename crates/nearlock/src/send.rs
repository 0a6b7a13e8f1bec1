//! Locks whose guards can be sent to other threads: [`Mutex`], [`FairMutex`], [`RwLock`],
//! [`RecursiveRwLock`] and [`Condvar`].
//!
//! The guards are `Send` if the data are, as with the feature `send_guard` of `parking_lot`. The
//! thread that drops a guard unlocks the lock.
//!
//! ```
//! use nearlock::send::{Mutex, RwLock};
//!
//! let (total, names) = (Mutex::new(1), RwLock::new(vec!["lock"]));
//! let (mut guard, read) = (total.lock(), names.read());
//! std::thread::scope(|scope| {
//!     scope.spawn(move || *guard += read.len());
//! });
//! assert_eq!(*total.lock(), 2); // unlocked by the other thread
//! assert!(names.try_write().is_some());
//! ```
//!
//! They are the locks of the crate's root, with two differences:
//!
//! - A mutex does not name its holder. So a notification of a [`Condvar`] wakes a waiter even if
//!   the notifier holds the mutex. A lock has one more store.
//! - A read is counted in the lock, and not noted in memory of the thread. So readers write to the
//!   lock, as with most reader-writer locks, and contend. No thread is known to read a lock. So **a
//!   nested read may wait for ever**: it waits for a waiting writer, which waits for the reader.
//!   `parking_lot` has the same rule for `read`. The reads of a [`RecursiveRwLock`] do not wait for
//!   such a writer, nor do those of [`ReadRecursive`](crate::near::ReadRecursive).
//!
//! A task that holds such a guard across an `.await` can move between threads. While it is
//! suspended, all other tasks that want the lock block their threads. If these are all threads of
//! the executor, nothing goes on.

mod condvar;
mod mutex;
mod rwlock;

use crate::lock_api;
use crate::near::{Fair, Recursive};

pub use self::condvar::{Condvar, RawCondvar};
pub use self::mutex::RawMutex;
pub use self::rwlock::RawRwLock;
pub use crate::near::WaitTimeoutResult;

guarded! {
    /// A [`nearlock::Mutex`](crate::Mutex) whose guards can be sent to other threads.
    ///
    /// Space, waiting, fairness and ordering: as there. The [module](self) has the differences, and
    /// an example.
    ///
    /// The data must be `Send`:
    ///
    /// ```compile_fail,E0277
    /// use std::rc::Rc;
    /// use nearlock::send::Mutex;
    ///
    /// let mutex = Mutex::new(Rc::new(1));
    /// let guard = mutex.lock();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || drop(guard));
    /// });
    /// ```
    Mutex, MutexGuard, MappedMutexGuard = RawMutex;
}

/// The raw lock of [`FairMutex`]: a [`RawMutex`] whose unlocks all hand it over.
pub type RawFairMutex = Fair<RawMutex>;

guarded! {
    /// A [`nearlock::FairMutex`](crate::FairMutex) whose guards can be sent to other threads.
    ///
    /// Space, waiting, fairness and ordering: as there. The [module](self) has the differences.
    ///
    /// ```
    /// use nearlock::send::FairMutex;
    ///
    /// let turn = FairMutex::new(1);
    /// let mut guard = turn.lock();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || *guard += 1);
    /// });
    /// assert_eq!(*turn.lock(), 2);
    /// ```
    FairMutex, FairMutexGuard, MappedFairMutexGuard = RawFairMutex;
}

guarded_rw! {
    /// A [`nearlock::RwLock`](crate::RwLock) whose guards can be sent to other threads.
    ///
    /// Space and ordering: as there. Waiting and fairness: as there, but readers share the lock's
    /// cache line, and nested reads wait for waiting writers. The [module](self) has an example.
    ///
    /// ```
    /// use nearlock::send::RwLock;
    ///
    /// let lock = RwLock::new(1);
    /// let write = lock.write();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || drop(write));
    /// });
    /// assert_eq!(*lock.read(), 1);
    /// ```
    RwLock, RwLockReadGuard, RwLockWriteGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard = RawRwLock;
}

/// Shared access to what a [`RwLock`] protects, which can become exclusive. Unlocks when it is
/// dropped.
///
/// ```
/// use nearlock::send::{RwLock, RwLockUpgradableReadGuard};
///
/// let lock = RwLock::new(1);
/// let read = lock.upgradable_read();
/// std::thread::scope(|scope| {
///     scope.spawn(move || *RwLockUpgradableReadGuard::upgrade(read) = 2);
/// });
/// assert_eq!(*lock.read(), 2);
/// ```
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

/// The raw lock of [`RecursiveRwLock`]: a [`RawRwLock`] whose shared acquisitions are all
/// recursive.
pub type RawRwLockRecursive = Recursive<RawRwLock>;

guarded_rw! {
    /// A [`nearlock::RecursiveRwLock`](crate::RecursiveRwLock) whose guards can be sent to other
    /// threads.
    ///
    /// Space, waiting, fairness and ordering: as there, but readers share the lock's cache line.
    ///
    /// ```
    /// use nearlock::send::RecursiveRwLock;
    ///
    /// let lock = RecursiveRwLock::new(1);
    /// let read = lock.read();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || assert_eq!(*read, 1));
    /// });
    /// assert!(lock.try_write().is_some());
    /// ```
    RecursiveRwLock, RecursiveRwLockReadGuard, RecursiveRwLockWriteGuard, MappedRecursiveRwLockReadGuard, MappedRecursiveRwLockWriteGuard = RawRwLockRecursive;
}

/// Shared access to what a [`RecursiveRwLock`] protects, which can become exclusive. Unlocks when
/// it is dropped.
///
/// ```
/// use nearlock::send::{RecursiveRwLock, RecursiveRwLockUpgradableReadGuard};
///
/// let lock = RecursiveRwLock::new(1);
/// *RecursiveRwLockUpgradableReadGuard::upgrade(lock.upgradable_read()) += 1;
/// assert_eq!(lock.into_inner(), 2);
/// ```
pub type RecursiveRwLockUpgradableReadGuard<'a, T> =
    lock_api::RwLockUpgradableReadGuard<'a, RawRwLockRecursive, T>;

const _: () = assert!(size_of::<Mutex<()>>() == 4);
const _: () = assert!(size_of::<RwLock<()>>() == 32);
