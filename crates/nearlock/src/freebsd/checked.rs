//! Locking that detects a thread's deadlock with itself.

use nearlock_collection::freebsd::mtx::Mtx;
use nearlock_collection::freebsd::rwsx::{Kind, RwSx};
use nearlock_collection::freebsd::spin_mtx::{LongSpin, SpinMtx};
use nearlock_collection::freebsd::tuning::Tuning;
use nearlock_os::Os;

use super::{LockError, Ownership};
use crate::lock_api::{self, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::raw::Nodeless;

/// Locks a mutex, with an error instead of a deadlock if the caller holds it.
///
/// In the kernel it is a mistake to lock a mutex that the caller holds, and the kernel stops. If a
/// program does not know whether it holds the mutex, it can use this trait. A
/// [`RecursiveMutex`](super::RecursiveMutex) does not have it, since such locking is no mistake
/// there.
///
/// ```
/// use nearlock::freebsd::{Checked, LockError, Mtx};
///
/// let log = Mtx::new(String::new());
/// let mut mine = log.lock_checked()?;
/// mine.push_str("begun");
/// assert_eq!(log.lock_checked().unwrap_err(), LockError::Deadlock);
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert_eq!(log.try_lock_checked().unwrap_err(), LockError::Busy));
/// });
/// # Ok::<(), LockError>(())
/// ```
pub trait Checked {
    /// The guard that gives access to the data.
    type Guard<'a>
    where
        Self: 'a;

    /// As `lock`, with this error.
    ///
    /// # Errors
    ///
    /// [`LockError::Deadlock`], if the caller holds the mutex.
    fn lock_checked(&self) -> Result<Self::Guard<'_>, LockError>;

    /// As `try_lock`, with the reason if it fails.
    ///
    /// # Errors
    ///
    /// [`LockError::Deadlock`], if the caller holds the mutex. [`LockError::Busy`], if another
    /// thread holds it.
    fn try_lock_checked(&self) -> Result<Self::Guard<'_>, LockError>;
}

/// Returns an error if the caller holds the lock exclusively.
pub(super) fn unless_owned(lock: &(impl Ownership + ?Sized)) -> Result<(), LockError> {
    if lock.is_owned() { Err(LockError::Deadlock) } else { Ok(()) }
}

macro_rules! checked {
    ($([$($parameter:tt)*] $raw:ty;)*) => {
        $(impl<$($parameter)*, T: ?Sized> Checked for Mutex<Nodeless<$raw>, T>
        where
            Nodeless<$raw>: lock_api::RawMutex,
            Self: Ownership,
        {
            type Guard<'a>
                = MutexGuard<'a, Nodeless<$raw>, T>
            where
                Self: 'a;

            fn lock_checked(&self) -> Result<Self::Guard<'_>, LockError> {
                unless_owned(self)?;
                Ok(self.lock())
            }

            fn try_lock_checked(&self) -> Result<Self::Guard<'_>, LockError> {
                unless_owned(self)?;
                self.try_lock().ok_or(LockError::Busy)
            }
        })*
    };
}

checked! {
    [K: Tuning] Mtx<Os, K>;
    [K: Tuning, D: LongSpin] SpinMtx<Os, K, D>;
}

/// The same for a reader-writer lock. The lock does not know its readers. So it does not detect a
/// thread that locks it for writing while it reads.
///
/// ```
/// use nearlock::freebsd::{LockError, Rw, RwChecked};
///
/// let table = Rw::new([1, 2]);
/// let writes = table.write_checked()?;
/// assert_eq!(table.read_checked().unwrap_err(), LockError::Deadlock);
/// drop(writes);
/// let reads = table.read_checked()?;
/// assert_eq!(table.try_write_checked().unwrap_err(), LockError::Busy);
/// # Ok::<(), LockError>(())
/// ```
pub trait RwChecked {
    /// The guard that gives shared access to the data.
    type ReadGuard<'a>
    where
        Self: 'a;
    /// The guard that gives exclusive access to the data.
    type WriteGuard<'a>
    where
        Self: 'a;

    /// As `read`, with this error.
    ///
    /// # Errors
    ///
    /// [`LockError::Deadlock`], if the caller writes.
    fn read_checked(&self) -> Result<Self::ReadGuard<'_>, LockError>;

    /// As `write`, with this error.
    ///
    /// # Errors
    ///
    /// [`LockError::Deadlock`], if the caller writes and the lock is not recursive.
    fn write_checked(&self) -> Result<Self::WriteGuard<'_>, LockError>;

    /// As `try_read`, with the reason if it fails.
    ///
    /// # Errors
    ///
    /// [`LockError::Deadlock`], if the caller writes. [`LockError::Busy`], if another thread
    /// writes.
    fn try_read_checked(&self) -> Result<Self::ReadGuard<'_>, LockError>;

    /// As `try_write`, with the reason if it fails.
    ///
    /// # Errors
    ///
    /// [`LockError::Deadlock`], if the caller writes and the lock is not recursive.
    /// [`LockError::Busy`], if another thread writes, or any thread reads.
    fn try_write_checked(&self) -> Result<Self::WriteGuard<'_>, LockError>;
}

impl<K: Tuning, S: Kind, T: ?Sized> RwChecked for RwLock<Nodeless<RwSx<Os, K, S>>, T> {
    type ReadGuard<'a>
        = RwLockReadGuard<'a, Nodeless<RwSx<Os, K, S>>, T>
    where
        Self: 'a;
    type WriteGuard<'a>
        = RwLockWriteGuard<'a, Nodeless<RwSx<Os, K, S>>, T>
    where
        Self: 'a;

    fn read_checked(&self) -> Result<Self::ReadGuard<'_>, LockError> {
        unless_owned(self)?;
        Ok(self.read())
    }

    fn write_checked(&self) -> Result<Self::WriteGuard<'_>, LockError> {
        unless_owned(self)?;
        Ok(self.write())
    }

    fn try_read_checked(&self) -> Result<Self::ReadGuard<'_>, LockError> {
        unless_owned(self)?;
        self.try_read().ok_or(LockError::Busy)
    }

    fn try_write_checked(&self) -> Result<Self::WriteGuard<'_>, LockError> {
        unless_owned(self)?;
        self.try_write().ok_or(LockError::Busy)
    }
}
