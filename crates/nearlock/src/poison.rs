//! Locks that a panic poisons, with the signatures of `std::sync`: [`Mutex`], [`RwLock`] and
//! [`Condvar`].
//!
//! A panic unlocks the locks of this crate, and the next holder finds the data as the critical
//! section left it. The locks of this module report this. Once a panic has dropped a guard that
//! gives mutable access, `lock`, `read` and `write` return an error that contains the guard. The
//! results are `std`'s own types, except `WaitTimeoutResult`.
//!
//! The module has all stable types of `std::sync` that can be poisoned. So a program may replace
//! `use std::sync::{...}` by `use nearlock::poison::{...}` for these. [`Once`], [`OnceLock`] and
//! [`LazyLock`] are those of `std`. After the initialization, each use is one load. Threads contend
//! only while the first of them initializes. A lock of this crate would gain nothing there.
//!
//! ```
//! use nearlock::poison::{Condvar, Mutex};
//!
//! let (queue, filled) = (Mutex::new(vec![1]), Condvar::new());
//! let mut guard = filled.wait_while(queue.lock().unwrap(), |queue| queue.is_empty()).unwrap();
//! assert_eq!(guard.pop(), Some(1));
//! ```
//!
//! A mutex that is poisoned, and then repaired:
//!
//! ```
//! use nearlock::poison::Mutex;
//!
//! let total = Mutex::new(1);
//! let panicked = std::thread::scope(|scope| {
//!     let section = || {
//!         let _total = total.lock().unwrap();
//!         panic!("in the middle of a section");
//!     };
//!     scope.spawn(section).join()
//! });
//! assert!(panicked.is_err() && total.is_poisoned());
//! *total.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = 0;
//! total.clear_poison();
//! assert_eq!(*total.lock().unwrap(), 0);
//! ```

mod condvar;
mod mutex;
mod rwlock;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

pub use self::condvar::Condvar;
pub use self::mutex::{Mutex, MutexGuard};
pub use self::rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use crate::near::WaitTimeoutResult;
pub use std::sync::{
    LazyLock, LockResult, Once, OnceLock, OnceState, PoisonError, TryLockError, TryLockResult,
};

/// Whether a lock is poisoned. Set while the lock is held exclusively, so its accesses need no
/// ordering. (`clear` is called without the lock. It overwrites what it overtakes, in `std` too.)
#[derive(Default)]
struct Poison(AtomicBool);

impl Poison {
    #[inline]
    const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    #[inline]
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// The mark of a guard that begins now.
    #[inline]
    fn mark(&self) -> Mark<'_> {
        Mark { poison: self, was_panicking: thread::panicking() }
    }

    /// An error with the value if the lock is poisoned.
    #[inline]
    fn result<T>(&self, value: T) -> LockResult<T> {
        if self.is_set() { Err(PoisonError::new(value)) } else { Ok(value) }
    }
}

/// Poisons the lock if it is dropped by a panic that began while the mark existed. The part of a
/// guard that is dropped before the lock is unlocked.
struct Mark<'a> {
    poison: &'a Poison,
    was_panicking: bool,
}

impl Drop for Mark<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.was_panicking && thread::panicking() {
            self.poison.0.store(true, Ordering::Relaxed);
        }
    }
}
