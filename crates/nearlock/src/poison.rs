//! Mutexes that a panic poisons, with the signatures of `std::sync`: [`Mutex`] and [`Condvar`].
//!
//! The locks of this crate are released by a panic, and whoever comes next finds the data as the
//! section has left them. These here say so: once a guard has been dropped by a panic, `lock`
//! returns an error, which has the guard. The results are `std`'s own types, but for
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
//! A mutex that was poisoned, and is repaired:
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

/// A [`nearlock::Mutex`](near::Mutex) that is poisoned by a panic of whoever holds it.
///
/// Space: 5 bytes and the data. Fairness and ordering: as there.
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    /// Written under the mutex, but for `clear_poison`; so its accesses need no ordering.
    is_poisoned: AtomicBool,
    mutex: near::Mutex<T>,
}

// Whoever panics leaves a mark for those who come.
impl<T: ?Sized> UnwindSafe for Mutex<T> {}
impl<T: ?Sized> RefUnwindSafe for Mutex<T> {}

/// Access to what a [`Mutex`] protects. Unlocks when it is dropped, and poisons the mutex if a
/// panic drops it that began while it lived.
#[must_use = "if unused the Mutex will immediately unlock"]
pub struct MutexGuard<'a, T: ?Sized> {
    mark: Mark<'a>,
    guard: near::MutexGuard<'a, T>,
}

// As `std`'s: a panic that leaves the data half changed poisons the mutex, and the next to lock it
// is told.
impl<T: ?Sized> UnwindSafe for MutexGuard<'_, T> {}
impl<T: ?Sized> RefUnwindSafe for MutexGuard<'_, T> {}

// SAFETY: a shared guard gives shared references to the data, and nothing else: it cannot unlock,
// nor lead to the mutex. So the data need not be `Send`, which the guard within asks for, as its
// mutex can be had from it.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

/// Poisons when it is dropped by a panic. A part of a guard that is dropped before the mutex is
/// released.
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
    /// Unlocked, and not poisoned.
    pub const fn new(value: T) -> Self {
        Self { is_poisoned: AtomicBool::new(false), mutex: near::Mutex::new(value) }
    }

    /// The data, for whoever owns the mutex.
    ///
    /// # Errors
    ///
    /// If it is poisoned; the error has the data.
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

    /// Waits for the mutex, and locks it.
    ///
    /// # Errors
    ///
    /// If it is poisoned; the error has the guard.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.guard(self.mutex.lock())
    }

    /// Locks the mutex if it is free.
    ///
    /// # Errors
    ///
    /// If it is not free; or if it is poisoned, and then the error has the guard.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let guard = self.mutex.try_lock().ok_or(TryLockError::WouldBlock)?;
        Ok(self.guard(guard)?)
    }

    /// Whether somebody has panicked while holding it. Stale by the time it is known, unless the
    /// caller holds it.
    pub fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::Relaxed)
    }

    /// Says that the data are as they should be.
    pub fn clear_poison(&self) {
        self.is_poisoned.store(false, Ordering::Relaxed);
    }

    /// The data, for whoever has the only reference.
    ///
    /// # Errors
    ///
    /// If it is poisoned; the error has the reference.
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

/// Whether the mutex has been poisoned by now, which whoever waits finds out when it returns.
fn after_wait<T: ?Sized>(guard: MutexGuard<'_, T>) -> LockResult<MutexGuard<'_, T>> {
    result(guard.mark.is_poisoned, guard)
}

/// The same, with what the wait has come to.
fn after_timed<T: ?Sized>(
    guard: MutexGuard<'_, T>,
    waited: WaitTimeoutResult,
) -> LockResult<(MutexGuard<'_, T>, WaitTimeoutResult)> {
    result(guard.mark.is_poisoned, (guard, waited))
}

impl Condvar {
    /// Nobody waits.
    pub const fn new() -> Self {
        Self(near::Condvar::new())
    }

    /// Waits for a notification.
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned; the error has the guard. So of all waits here.
    ///
    /// # Panics
    ///
    /// If others wait with another mutex. So all waits here.
    pub fn wait<'a, T: ?Sized>(&self, mut guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.0.wait(&mut guard.guard);
        after_wait(guard)
    }

    /// Waits as long as the condition holds.
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

    /// Waits for a notification, for so long at most.
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

    /// Waits as long as the condition holds, for so long at most.
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

    /// Notifies whoever has waited longest.
    #[inline]
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Notifies all that wait.
    #[inline]
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
