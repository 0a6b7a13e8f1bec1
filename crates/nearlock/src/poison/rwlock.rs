//! The reader-writer lock.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{LockResult, TryLockError, TryLockResult};

use super::{Mark, Poison};
use crate::near;

/// A [`nearlock::RwLock`](near::RwLock) that is poisoned if a writer panics. A reader that panics
/// does not poison it.
///
/// Space: 33 bytes, up to the alignment, and the data. Fairness and ordering: as there. The same
/// applies to nested reads: they do not wait, and do not panic.
///
/// ```
/// use nearlock::poison::{RwLock, RwLockWriteGuard};
///
/// let names = RwLock::new(vec!["lock"]);
/// let mut write = names.write().unwrap();
/// write.push("waiter");
/// let read = RwLockWriteGuard::downgrade(write); // no other writer in between
/// assert_eq!(read.len(), names.read().unwrap().len());
/// ```
#[derive(Default)]
pub struct RwLock<T: ?Sized> {
    poison: Poison,
    lock: near::RwLock<T>,
}

// A panic of a writer poisons the lock, so that later holders know of it.
impl<T: ?Sized> UnwindSafe for RwLock<T> {}
impl<T: ?Sized> RefUnwindSafe for RwLock<T> {}

/// A guard that gives shared access to the data of an [`RwLock`]. Unlocks the lock when dropped.
///
/// ```
/// use nearlock::poison::{RwLock, RwLockReadGuard};
///
/// fn letters(words: RwLockReadGuard<'_, Vec<&str>>) -> usize {
///     words.iter().map(|word| word.len()).sum()
/// }
///
/// let words = RwLock::new(vec!["lock", "waiter"]);
/// assert_eq!(letters(words.read().unwrap()), 10);
/// ```
#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    // A mapped guard, which gives access to the data only, as `std`'s does. So it is covariant, and
    // is `Sync` if the data are.
    guard: near::MappedRwLockReadGuard<'a, T>,
}

/// A guard that gives exclusive access to the data of an [`RwLock`]. Unlocks the lock when dropped.
/// Poisons the lock if it is dropped by a panic that began while the guard existed.
///
/// ```
/// use nearlock::poison::{RwLock, RwLockWriteGuard};
///
/// fn add(mut total: RwLockWriteGuard<'_, u32>) {
///     *total += 1;
/// } // unlocked here
///
/// let total = RwLock::new(1);
/// add(total.write().unwrap());
/// assert_eq!(total.into_inner().unwrap(), 2);
/// ```
#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    mark: Mark<'a>,
    guard: near::RwLockWriteGuard<'a, T>,
}

// As `std`'s: a panic that leaves the data half changed poisons the lock.
impl<T: ?Sized> UnwindSafe for RwLockWriteGuard<'_, T> {}
impl<T: ?Sized> RefUnwindSafe for RwLockWriteGuard<'_, T> {}

// SAFETY: a shared reference to the guard gives shared references to the data, and nothing else. It
// cannot unlock the lock, nor give access to it. So the data need not be `Send`. The guard inside
// requires `Send`, because it gives access to its lock.
unsafe impl<T: ?Sized + Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<T> RwLock<T> {
    /// Creates an unlocked lock that is not poisoned.
    #[inline]
    pub const fn new(value: T) -> Self {
        Self { poison: Poison::new(), lock: near::RwLock::new(value) }
    }

    /// Consumes the lock, and returns the data.
    ///
    /// # Errors
    ///
    /// If the lock is poisoned. The error contains the data.
    #[inline]
    pub fn into_inner(self) -> LockResult<T> {
        self.poison.result(self.lock.into_inner())
    }
}

impl<T: ?Sized> RwLock<T> {
    #[inline]
    fn reads<'a>(&'a self, guard: near::RwLockReadGuard<'a, T>) -> LockResult<RwLockReadGuard<'a, T>> {
        self.poison.result(RwLockReadGuard { guard: near::RwLockReadGuard::map(guard, |data| data) })
    }

    #[inline]
    fn writes<'a>(&'a self, guard: near::RwLockWriteGuard<'a, T>) -> LockResult<RwLockWriteGuard<'a, T>> {
        self.poison.result(RwLockWriteGuard { mark: self.poison.mark(), guard })
    }

    /// Locks the lock for reading. Waits until no writer has it, unless the caller reads it
    /// already.
    ///
    /// # Errors
    ///
    /// If the lock is poisoned. The error contains the guard.
    #[inline]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        self.reads(self.lock.read())
    }

    /// Locks the lock for reading if it need not wait for a writer.
    ///
    /// # Errors
    ///
    /// If it would have to wait. Also if the lock is poisoned, and then the error contains the
    /// guard.
    #[inline]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let guard = self.lock.try_read().ok_or(TryLockError::WouldBlock)?;
        Ok(self.reads(guard)?)
    }

    /// Locks the lock for writing. Waits until no other thread has it.
    ///
    /// # Errors
    ///
    /// If the lock is poisoned. The error contains the guard.
    #[inline]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        self.writes(self.lock.write())
    }

    /// Locks the lock for writing if it is free.
    ///
    /// # Errors
    ///
    /// If the lock is not free. Also if it is poisoned, and then the error contains the guard.
    #[inline]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let guard = self.lock.try_write().ok_or(TryLockError::WouldBlock)?;
        Ok(self.writes(guard)?)
    }

    /// Returns whether the lock is poisoned. The result may be out of date at once, unless the
    /// caller holds the lock.
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.poison.is_set()
    }

    /// Clears the poison of the lock. The caller says by this that the data is consistent.
    #[inline]
    pub fn clear_poison(&self) {
        self.poison.clear();
    }

    /// Returns a mutable reference to the data. The caller has the only reference to the lock.
    ///
    /// # Errors
    ///
    /// If the lock is poisoned. The error contains the reference.
    #[inline]
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.poison.result(self.lock.get_mut())
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Turns exclusive access into shared access. No other writer has the lock in between.
    ///
    /// If a panic that began while the guard existed is unwinding, this poisons the lock. (`std`'s
    /// does not.)
    #[inline]
    pub fn downgrade(guard: Self) -> RwLockReadGuard<'a, T> {
        let Self { mark, guard } = guard;
        drop(mark);
        let guard = near::RwLockWriteGuard::downgrade(guard);
        RwLockReadGuard { guard: near::RwLockReadGuard::map(guard, |data| data) }
    }
}

impl<T> From<T> for RwLock<T> {
    #[inline]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("RwLock");
        match self.lock.try_read() {
            Some(guard) => fields.field("data", &&*guard),
            None => fields.field("data", &format_args!("<locked>")),
        };
        fields.field("poisoned", &self.is_poisoned()).finish_non_exhaustive()
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockReadGuard<'_, T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockWriteGuard<'_, T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
