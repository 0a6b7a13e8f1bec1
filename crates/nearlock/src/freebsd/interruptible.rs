//! Waits for an sx that may end without the lock.

use std::time::Duration;

use nearlock_collection::freebsd::sx::Sx;
use nearlock_collection::freebsd::tuning::Tuning;
use nearlock_core::parking::{Limit, RawTimedLock, RawTimedRwLock};
use nearlock_os::Os;

use super::LockError;
use super::checked::unless_owned;
use crate::Cancellation;
use crate::lock_api::{GuardNoSend, RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::raw::Nodeless;
use crate::raw::timed::within;

/// Locks with waits that can be interrupted, or that have a timeout.
///
/// In the kernel a signal interrupts a waiter. In a program a [`Cancellation`] does this. A free
/// lock is locked even if the wait is interrupted already, or if the time is 0.
///
/// ```
/// use nearlock::Cancellation;
/// use nearlock::freebsd::{Interruptible, LockError, Sx};
///
/// let (tree, stop) = (Sx::new(vec!["usr"]), Cancellation::new());
/// let writes = tree.write();
/// std::thread::scope(|scope| {
///     let reader = scope.spawn(|| tree.read_sig(&stop).map(|tree| tree.len()));
///     stop.cancel();
///     assert_eq!(reader.join().unwrap(), Err(LockError::Interrupted));
/// });
/// drop(writes);
/// assert_eq!(tree.read_sig(&stop)?.len(), 1);
/// # Ok::<(), LockError>(())
/// ```
pub trait Interruptible {
    /// The guard that gives shared access to the data.
    type ReadGuard<'a>
    where
        Self: 'a;
    /// The guard that gives exclusive access to the data.
    type WriteGuard<'a>
    where
        Self: 'a;

    /// Locks for reading, with a wait that can be interrupted: `sx_slock_sig`.
    ///
    /// # Errors
    ///
    /// [`LockError::Interrupted`], if the wait was interrupted. [`LockError::Deadlock`], if the
    /// caller writes.
    fn read_sig(&self, by: &Cancellation) -> Result<Self::ReadGuard<'_>, LockError>;

    /// Locks for writing, with a wait that can be interrupted: `sx_xlock_sig`.
    ///
    /// # Errors
    ///
    /// [`LockError::Interrupted`], if the wait was interrupted. [`LockError::Deadlock`], if the
    /// caller writes and the lock is not recursive.
    fn write_sig(&self, by: &Cancellation) -> Result<Self::WriteGuard<'_>, LockError>;

    /// Locks for reading. Waits for at most `time`.
    ///
    /// # Errors
    ///
    /// [`LockError::TimedOut`], if the time has passed. [`LockError::Deadlock`], if the caller
    /// writes.
    fn read_timed(&self, time: Duration) -> Result<Self::ReadGuard<'_>, LockError>;

    /// Locks for writing. Waits for at most `time`.
    ///
    /// # Errors
    ///
    /// [`LockError::TimedOut`], if the time has passed. [`LockError::Deadlock`], if the caller
    /// writes and the lock is not recursive.
    fn write_timed(&self, time: Duration) -> Result<Self::WriteGuard<'_>, LockError>;
}

type Lock<K, T> = RwLock<Nodeless<Sx<Os, K>>, T>;
type ReadGuard<'a, K, T> = RwLockReadGuard<'a, Nodeless<Sx<Os, K>>, T>;
type WriteGuard<'a, K, T> = RwLockWriteGuard<'a, Nodeless<Sx<Os, K>>, T>;

fn read<'a, K: Tuning, T: ?Sized>(
    lock: &'a Lock<K, T>,
    limit: &Limit<'_, Os>,
) -> Result<ReadGuard<'a, K, T>, LockError> {
    unless_owned(lock)?;
    // SAFETY: the node is (), which any number of acquisitions may share. The same holds below.
    unsafe { lock.raw().0.lock_shared_within(&(), limit) }?;
    // SAFETY: locked above. The same holds below.
    Ok(unsafe { lock.make_read_guard_unchecked(GuardNoSend::new()) })
}

fn write<'a, K: Tuning, T: ?Sized>(
    lock: &'a Lock<K, T>,
    limit: &Limit<'_, Os>,
) -> Result<WriteGuard<'a, K, T>, LockError> {
    unless_owned(lock)?;
    // SAFETY: as above.
    unsafe { lock.raw().0.lock_within(&(), limit) }?;
    // SAFETY: as above.
    Ok(unsafe { lock.make_write_guard_unchecked(GuardNoSend::new()) })
}

impl<K: Tuning, T: ?Sized> Interruptible for Lock<K, T> {
    type ReadGuard<'a>
        = ReadGuard<'a, K, T>
    where
        Self: 'a;
    type WriteGuard<'a>
        = WriteGuard<'a, K, T>
    where
        Self: 'a;

    fn read_sig(&self, by: &Cancellation) -> Result<Self::ReadGuard<'_>, LockError> {
        read(self, &by.limit())
    }

    fn write_sig(&self, by: &Cancellation) -> Result<Self::WriteGuard<'_>, LockError> {
        write(self, &by.limit())
    }

    fn read_timed(&self, time: Duration) -> Result<Self::ReadGuard<'_>, LockError> {
        read(self, &within(time))
    }

    fn write_timed(&self, time: Duration) -> Result<Self::WriteGuard<'_>, LockError> {
        write(self, &within(time))
    }
}
