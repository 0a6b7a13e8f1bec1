//! Recursive reader-writer locks, with errors instead of deadlocks, and with waits that can be
//! interrupted or have a timeout.

use std::time::Duration;

use nearlock_collection::freebsd::rwsx::{Kind, RwSx};
use nearlock_collection::freebsd::sx::{Sx, SxKind};
use nearlock_collection::freebsd::tuning::Tuning;
use nearlock_core::parking::{Limit, RawTimedRwLock};
use nearlock_os::Os;

use super::{RawRecursiveLock, RecursiveReadGuard, RecursiveRwLock, RecursiveWriteGuard};
use crate::Cancellation;
use crate::freebsd::{Interruptible, LockError, RwChecked};
use crate::raw::timed::within;

impl<L: RawRecursiveLock, T: ?Sized> RecursiveRwLock<L, T> {
    /// Returns an error if the caller writes.
    fn unless_written_here(&self) -> Result<(), LockError> {
        if self.lock.raw.is_owned() { Err(LockError::Deadlock) } else { Ok(()) }
    }
}

/// The writer may write again, but must not read. Panics as [`write`](RecursiveRwLock::write).
///
/// ```
/// use nearlock::freebsd::{LockError, RecursiveRw, RwChecked};
///
/// let names = RecursiveRw::new(vec!["rw"]);
/// let writes = names.write_checked()?;
/// names.write_checked()?.borrow_mut().push("sx");
/// assert_eq!(names.read_checked().unwrap_err(), LockError::Deadlock);
/// drop(writes);
/// assert_eq!(names.read_checked()?.len(), 2);
/// # Ok::<(), LockError>(())
/// ```
impl<K: Tuning, S: Kind, T: ?Sized> RwChecked for RecursiveRwLock<RwSx<Os, K, S>, T> {
    type ReadGuard<'a>
        = RecursiveReadGuard<'a, K, S, T>
    where
        Self: 'a;
    type WriteGuard<'a>
        = RecursiveWriteGuard<'a, K, S, T>
    where
        Self: 'a;

    fn read_checked(&self) -> Result<Self::ReadGuard<'_>, LockError> {
        self.unless_written_here()?;
        Ok(self.read())
    }

    fn write_checked(&self) -> Result<Self::WriteGuard<'_>, LockError> {
        Ok(self.write())
    }

    fn try_read_checked(&self) -> Result<Self::ReadGuard<'_>, LockError> {
        self.unless_written_here()?;
        self.try_read().ok_or(LockError::Busy)
    }

    fn try_write_checked(&self) -> Result<Self::WriteGuard<'_>, LockError> {
        self.try_write().ok_or(LockError::Busy)
    }
}

impl<K: Tuning, T: ?Sized> RecursiveRwLock<Sx<Os, K>, T> {
    fn read_within(&self, limit: &Limit<'_, Os>) -> Result<RecursiveReadGuard<'_, K, SxKind, T>, LockError> {
        self.unless_written_here()?;
        // SAFETY: the node is (), and the guard unlocks.
        unsafe { self.lock.raw.lock_shared_within(&(), limit) }?;
        Ok(self.read_guard())
    }

    fn write_within(
        &self,
        limit: &Limit<'_, Os>,
    ) -> Result<RecursiveWriteGuard<'_, K, SxKind, T>, LockError> {
        self.lock.enter_within(limit)?;
        Ok(self.write_guard())
    }
}

/// The writer may write again, and does not wait then. Panics as [`write`](RecursiveRwLock::write).
///
/// ```
/// use std::time::Duration;
/// use nearlock::freebsd::{Interruptible, LockError, RecursiveSx};
///
/// let tree = RecursiveSx::new(vec!["usr"]);
/// let writes = tree.write_timed(Duration::from_millis(1))?;
/// tree.write_timed(Duration::from_millis(1))?.borrow_mut().push("tmp");
/// assert_eq!(writes.borrow().len(), 2);
/// # Ok::<(), LockError>(())
/// ```
impl<K: Tuning, T: ?Sized> Interruptible for RecursiveRwLock<Sx<Os, K>, T> {
    type ReadGuard<'a>
        = RecursiveReadGuard<'a, K, SxKind, T>
    where
        Self: 'a;
    type WriteGuard<'a>
        = RecursiveWriteGuard<'a, K, SxKind, T>
    where
        Self: 'a;

    fn read_sig(&self, by: &Cancellation) -> Result<Self::ReadGuard<'_>, LockError> {
        self.read_within(&by.limit())
    }

    fn write_sig(&self, by: &Cancellation) -> Result<Self::WriteGuard<'_>, LockError> {
        self.write_within(&by.limit())
    }

    fn read_timed(&self, time: Duration) -> Result<Self::ReadGuard<'_>, LockError> {
        self.read_within(&within(time))
    }

    fn write_timed(&self, time: Duration) -> Result<Self::WriteGuard<'_>, LockError> {
        self.write_within(&within(time))
    }
}
