//! The mutex.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{LockResult, TryLockError, TryLockResult};

use super::{Mark, Poison};
use crate::near;

/// A [`nearlock::Mutex`](near::Mutex) that is poisoned if its holder panics.
///
/// Space: 5 bytes and the data. Fairness and ordering: as there.
///
/// See the [module](super) for an example.
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    poison: Poison,
    mutex: near::Mutex<T>,
}

// A panic poisons the mutex, so that later holders know of it.
impl<T: ?Sized> UnwindSafe for Mutex<T> {}
impl<T: ?Sized> RefUnwindSafe for Mutex<T> {}

/// A guard that gives access to the data of a [`Mutex`]. Unlocks the mutex when dropped. Poisons
/// the mutex if it is dropped by a panic that began while the guard existed.
///
/// ```
/// use nearlock::poison::{Mutex, MutexGuard};
///
/// fn add(mut total: MutexGuard<'_, u32>) {
///     *total += 1;
/// } // unlocked here
///
/// let total = Mutex::new(1);
/// add(total.lock().unwrap());
/// assert_eq!(total.into_inner().unwrap(), 2);
/// ```
#[must_use = "if unused the Mutex will immediately unlock"]
pub struct MutexGuard<'a, T: ?Sized> {
    pub(super) mark: Mark<'a>,
    pub(super) guard: near::MutexGuard<'a, T>,
}

// As `std`'s: a panic that leaves the data half changed poisons the mutex, and the next holder is
// told.
impl<T: ?Sized> UnwindSafe for MutexGuard<'_, T> {}
impl<T: ?Sized> RefUnwindSafe for MutexGuard<'_, T> {}

// SAFETY: a shared reference to the guard gives shared references to the data, and nothing else. It
// cannot unlock the mutex, nor give access to it. So the data need not be `Send`. The guard inside
// requires `Send`, because it gives access to its mutex.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex that is not poisoned.
    #[inline]
    pub const fn new(value: T) -> Self {
        Self { poison: Poison::new(), mutex: near::Mutex::new(value) }
    }

    /// Consumes the mutex, and returns the data.
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned. The error contains the data.
    #[inline]
    pub fn into_inner(self) -> LockResult<T> {
        self.poison.result(self.mutex.into_inner())
    }
}

impl<T: ?Sized> Mutex<T> {
    #[inline]
    fn guard<'a>(&'a self, guard: near::MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.poison.result(MutexGuard { mark: self.poison.mark(), guard })
    }

    /// Locks the mutex. Waits until it is free.
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned. The error contains the guard.
    #[inline]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.guard(self.mutex.lock())
    }

    /// Locks the mutex if it is free.
    ///
    /// # Errors
    ///
    /// If the mutex is not free. Also if it is poisoned, and then the error contains the guard.
    #[inline]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let guard = self.mutex.try_lock().ok_or(TryLockError::WouldBlock)?;
        Ok(self.guard(guard)?)
    }

    /// Returns whether the mutex is poisoned. The result may be out of date at once, unless the
    /// caller holds the mutex.
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.poison.is_set()
    }

    /// Clears the poison of the mutex. The caller says by this that the data is consistent.
    #[inline]
    pub fn clear_poison(&self) {
        self.poison.clear();
    }

    /// Returns a mutable reference to the data. The caller has the only reference to the mutex.
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned. The error contains the reference.
    #[inline]
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.poison.result(self.mutex.get_mut())
    }
}

impl<T> From<T> for Mutex<T> {
    #[inline]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    #[inline]
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
    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
