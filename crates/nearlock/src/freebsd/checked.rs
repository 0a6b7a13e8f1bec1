//! Locking that finds mistakes.

use nearlock_collection::freebsd::mtx::Mtx;
use nearlock_collection::freebsd::rwsx::{Kind, RwSx};
use nearlock_collection::freebsd::spin_mtx::{LongSpin, SpinMtx};
use nearlock_collection::freebsd::tuning::Tuning;
use nearlock_os::Os;

use super::{LockError, Ownership};
use crate::lock_api::{self, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::raw::Nodeless;

/// Locking a mutex with an error instead of a wait for oneself.
///
/// The kernel takes it for a mistake to lock what one holds, and stops; where a program cannot
/// know, it asks here. Not of a [`RecursiveMutex`](super::RecursiveMutex), of which that is no
/// mistake.
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
    /// What gives access to the data.
    type Guard<'a>
    where
        Self: 'a;

    /// As `lock`.
    ///
    /// # Errors
    ///
    /// [`LockError::Deadlock`], if the caller holds it.
    fn lock_checked(&self) -> Result<Self::Guard<'_>, LockError>;

    /// As `try_lock`.
    ///
    /// # Errors
    ///
    /// [`LockError::Deadlock`], if the caller holds it; [`LockError::Busy`], if another thread
    /// does.
    fn try_lock_checked(&self) -> Result<Self::Guard<'_>, LockError>;
}

/// Unless the caller holds it.
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

/// The same for a lock with readers. Who reads is not known: to write what one reads is not found.
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
    /// What gives access to the data, shared.
    type ReadGuard<'a>
    where
        Self: 'a;
    /// What gives access to the data, exclusively.
    type WriteGuard<'a>
    where
        Self: 'a;

    /// As `read`.
    ///
    /// # Errors
    ///
    /// [`LockError::Deadlock`], if the caller writes it.
    fn read_checked(&self) -> Result<Self::ReadGuard<'_>, LockError>;

    /// As `write`.
    ///
    /// # Errors
    ///
    /// [`LockError::Deadlock`], if the caller writes it and must not again.
    fn write_checked(&self) -> Result<Self::WriteGuard<'_>, LockError>;

    /// As `try_read`.
    ///
    /// # Errors
    ///
    /// [`LockError::Deadlock`], if the caller writes it; [`LockError::Busy`], if another thread
    /// does.
    fn try_read_checked(&self) -> Result<Self::ReadGuard<'_>, LockError>;

    /// As `try_write`.
    ///
    /// # Errors
    ///
    /// [`LockError::Deadlock`], if the caller writes it and must not again; [`LockError::Busy`], if
    /// anybody else does, or reads.
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
