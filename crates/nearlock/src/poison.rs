//! Mutexes that a panic poisons, with the signatures of `std::sync`: [`Mutex`] and [`Condvar`].
//!
//! A panic unlocks the locks of this crate, and the next holder finds the data as the critical
//! section left it. The locks of this module report this. Once a panic has dropped a guard, `lock`
//! returns an error that contains the guard. The results are `std`'s own types, except
//! `WaitTimeoutResult`.
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

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::near;

pub use crate::near::WaitTimeoutResult;
pub use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

/// A [`nearlock::Mutex`](near::Mutex) that is poisoned if its holder panics.
///
/// Space: 5 bytes and the data. Fairness and ordering: as there.
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    /// Written while the mutex is held, except by `clear_poison`. So its accesses need no ordering.
    is_poisoned: AtomicBool,
    mutex: near::Mutex<T>,
}

// A panic poisons the mutex, so that later holders know of it.
impl<T: ?Sized> UnwindSafe for Mutex<T> {}
impl<T: ?Sized> RefUnwindSafe for Mutex<T> {}

/// A guard that gives access to the data of a [`Mutex`]. Unlocks the mutex when dropped. Poisons
/// the mutex if it is dropped by a panic that began while the guard existed.
#[must_use = "if unused the Mutex will immediately unlock"]
pub struct MutexGuard<'a, T: ?Sized> {
    mark: Mark<'a>,
    guard: near::MutexGuard<'a, T>,
}

// As `std`'s: a panic that leaves the data half changed poisons the mutex, and the next holder is
// told.
impl<T: ?Sized> UnwindSafe for MutexGuard<'_, T> {}
impl<T: ?Sized> RefUnwindSafe for MutexGuard<'_, T> {}

// SAFETY: a shared reference to the guard gives shared references to the data, and nothing else. It
// cannot unlock the mutex, nor give access to it. So the data need not be `Send`. The guard inside
// requires `Send`, because it gives access to its mutex.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

/// Poisons the mutex if it is dropped by a panic. The part of a guard that is dropped before the
/// mutex is unlocked.
struct Mark<'a> {
    is_poisoned: &'a AtomicBool,
    was_panicking: bool,
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        if !self.was_panicking && thread::panicking() {
            self.is_poisoned.store(true, Ordering::Relaxed);
        }
    }
}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex that is not poisoned.
    pub const fn new(value: T) -> Self {
        Self { is_poisoned: AtomicBool::new(false), mutex: near::Mutex::new(value) }
    }

    /// Consumes the mutex, and returns the data.
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned. The error contains the data.
    pub fn into_inner(self) -> LockResult<T> {
        match self.is_poisoned() {
            true => Err(PoisonError::new(self.mutex.into_inner())),
            false => Ok(self.mutex.into_inner()),
        }
    }
}

fn result<T>(is_poisoned: &AtomicBool, value: T) -> LockResult<T> {
    if is_poisoned.load(Ordering::Relaxed) { Err(PoisonError::new(value)) } else { Ok(value) }
}

impl<T: ?Sized> Mutex<T> {
    fn guard<'a>(&'a self, guard: near::MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let mark = Mark { is_poisoned: &self.is_poisoned, was_panicking: thread::panicking() };
        result(&self.is_poisoned, MutexGuard { mark, guard })
    }

    /// Locks the mutex. Waits until it is free.
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned. The error contains the guard.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.guard(self.mutex.lock())
    }

    /// Locks the mutex if it is free.
    ///
    /// # Errors
    ///
    /// If the mutex is not free. Also if it is poisoned, and then the error contains the guard.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let guard = self.mutex.try_lock().ok_or(TryLockError::WouldBlock)?;
        Ok(self.guard(guard)?)
    }

    /// Returns whether the mutex is poisoned. The result may be out of date at once, unless the
    /// caller holds the mutex.
    pub fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::Relaxed)
    }

    /// Clears the poison of the mutex. The caller says by this that the data is consistent.
    pub fn clear_poison(&self) {
        self.is_poisoned.store(false, Ordering::Relaxed);
    }

    /// Returns a mutable reference to the data. The caller has the only reference to the mutex.
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned. The error contains the reference.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        result(&self.is_poisoned, self.mutex.get_mut())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Mutex");
        match self.mutex.try_lock() {
            Some(guard) => fields.field("data", &&*guard),
            None => fields.field("data", &format_args!("<locked>")),
        };
        fields.field("poisoned", &self.is_poisoned()).finish_non_exhaustive()
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A [`nearlock::Condvar`](near::Condvar) for guards of a [`Mutex`] that can be poisoned.
#[derive(Debug, Default)]
pub struct Condvar(near::Condvar);

/// An error if the mutex has been poisoned by now. A waiter learns this when it returns.
fn after_wait<T: ?Sized>(guard: MutexGuard<'_, T>) -> LockResult<MutexGuard<'_, T>> {
    result(guard.mark.is_poisoned, guard)
}

/// The same, with the result of the wait.
fn after_timed<T: ?Sized>(
    guard: MutexGuard<'_, T>,
    waited: WaitTimeoutResult,
) -> LockResult<(MutexGuard<'_, T>, WaitTimeoutResult)> {
    result(guard.mark.is_poisoned, (guard, waited))
}

impl Condvar {
    /// Creates a condition variable without waiters.
    pub const fn new() -> Self {
        Self(near::Condvar::new())
    }

    /// Waits for a notification.
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned. The error contains the guard. The same applies to all waits here.
    ///
    /// # Panics
    ///
    /// If other threads wait with another mutex. The same applies to all waits here.
    pub fn wait<'a, T: ?Sized>(&self, mut guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.0.wait(&mut guard.guard);
        after_wait(guard)
    }

    /// Waits while the condition holds.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub fn wait_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// Waits for a notification, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub fn wait_timeout<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let waited = self.0.wait_for(&mut guard.guard, timeout);
        after_timed(guard, waited)
    }

    /// Waits while the condition holds, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub fn wait_timeout_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let waited = self.0.wait_while_for(&mut guard.guard, condition, timeout);
        after_timed(guard, waited)
    }

    /// Notifies the thread that has waited longest.
    #[inline]
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Notifies all threads that wait.
    #[inline]
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
