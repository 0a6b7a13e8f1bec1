//! Cancellation of waits by another thread.

use std::error::Error;
use std::fmt;

use nearlock_core::parking::{self, Limit, RawTimedLock, RawTimedRwLock};
use nearlock_os::Os;

use crate::lock_api::{GuardNoSend, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::raw::{Nodeless, Unlocked};

/// Ends waits for locks from another thread. This is what a signal is for the interruptible locks
/// of the kernel.
///
/// Any number of threads may wait with one `Cancellation`, for any locks, by the methods of
/// [`LockCancellable`] and [`RwLockCancellable`]. A cancellation is final. Each wait with it gives
/// up, now or later, when it would sleep. Everything that the canceller did before is visible to a
/// thread that gives up.
///
/// A `Cancellation` allocates nothing, and can be a `static`. A signal handler can cancel it,
/// whatever code the handler has interrupted.
///
/// ```
/// use nearlock::{Cancellation, Cancelled, LockCancellable, Mutex};
///
/// let (printer, shutdown) = (Mutex::new("paper"), Cancellation::new());
/// let paper = printer.lock();
/// std::thread::scope(|scope| {
///     let waiter = scope.spawn(|| printer.lock_cancellable(&shutdown).map(|paper| paper.len()));
///     shutdown.cancel();
///     assert_eq!(waiter.join().unwrap(), Err(Cancelled));
/// });
/// drop(paper);
/// // A free lock is locked, cancelled or not.
/// assert_eq!(*printer.lock_cancellable(&shutdown).unwrap(), "paper");
/// ```
#[derive(Default)]
pub struct Cancellation(parking::Cancellation<Os>);

impl Cancellation {
    /// Creates a `Cancellation` that is not cancelled.
    #[inline]
    pub const fn new() -> Self {
        Self(parking::Cancellation::new())
    }

    /// Ends all waits with this `Cancellation`, the present ones and those to come.
    ///
    /// This method never waits for another thread. A signal handler may call it, whatever code the
    /// handler has interrupted: a wait with this `Cancellation`, or this very method. If another
    /// thread is about to begin or to end such a wait, that thread ends the waits of the others, a
    /// moment later.
    #[inline]
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Returns whether it has been cancelled.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    #[cfg(feature = "collection")]
    #[inline]
    pub(crate) const fn raw(&self) -> &parking::Cancellation<Os> {
        &self.0
    }

    #[inline]
    pub(crate) fn limit(&self) -> Limit<'_, Os> {
        Limit { until_ns: None, cancellation: Some(&self.0) }
    }
}

impl fmt::Debug for Cancellation {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellation").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// The error of a wait that was cancelled. A cancelled wait for a lock has not locked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the wait for a lock was cancelled")
    }
}

impl Error for Cancelled {}

/// Locks a mutex, with a wait that can be cancelled. See [`Cancellation`] for an example.
pub trait LockCancellable {
    /// The guard that gives access to the data.
    type Guard<'a>
    where
        Self: 'a;

    /// Locks the mutex. Waits for it until `by` is cancelled. A free mutex is locked even then.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], if the wait was cancelled.
    fn lock_cancellable<'a>(&'a self, by: &Cancellation) -> Result<Self::Guard<'a>, Cancelled>;
}

impl<L: RawTimedLock<Node = (), Platform = Os> + Unlocked, T: ?Sized> LockCancellable
    for Mutex<Nodeless<L>, T>
{
    type Guard<'a>
        = MutexGuard<'a, Nodeless<L>, T>
    where
        Self: 'a;

    #[inline]
    fn lock_cancellable<'a>(&'a self, by: &Cancellation) -> Result<Self::Guard<'a>, Cancelled> {
        // SAFETY: the raw mutex is only locked here, and the guard unlocks it.
        let raw = unsafe { self.raw() };
        if !raw.lock_within(&by.limit()) {
            return Err(Cancelled);
        }
        // SAFETY: locked above.
        Ok(unsafe { self.make_guard_unchecked(GuardNoSend::new()) })
    }
}

/// Locks a reader-writer lock, with waits that can be cancelled.
#[cfg_attr(feature = "collection", doc = "```")]
#[cfg_attr(not(feature = "collection"), doc = "```ignore")]
/// use nearlock::linux::RwSem;
/// use nearlock::{Cancellation, RwLockCancellable};
///
/// let (table, shutdown) = (RwSem::new(vec![1, 2]), Cancellation::new());
/// table.write_cancellable(&shutdown)?.push(3);
/// assert_eq!(table.read_cancellable(&shutdown)?.len(), 3);
/// # Ok::<(), nearlock::Cancelled>(())
/// ```
pub trait RwLockCancellable {
    /// The guard that gives shared access to the data.
    type ReadGuard<'a>
    where
        Self: 'a;
    /// The guard that gives exclusive access to the data.
    type WriteGuard<'a>
    where
        Self: 'a;

    /// Locks for reading. Waits until `by` is cancelled. If it need not wait, it locks even then.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], if the wait was cancelled.
    fn read_cancellable<'a>(&'a self, by: &Cancellation) -> Result<Self::ReadGuard<'a>, Cancelled>;

    /// Locks for writing, in the same way.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], if the wait was cancelled.
    fn write_cancellable<'a>(&'a self, by: &Cancellation) -> Result<Self::WriteGuard<'a>, Cancelled>;
}

impl<L: RawTimedRwLock<Node = (), Platform = Os> + Unlocked, T: ?Sized> RwLockCancellable
    for RwLock<Nodeless<L>, T>
{
    type ReadGuard<'a>
        = RwLockReadGuard<'a, Nodeless<L>, T>
    where
        Self: 'a;
    type WriteGuard<'a>
        = RwLockWriteGuard<'a, Nodeless<L>, T>
    where
        Self: 'a;

    #[inline]
    fn read_cancellable<'a>(&'a self, by: &Cancellation) -> Result<Self::ReadGuard<'a>, Cancelled> {
        // SAFETY: the raw lock is only locked here, and the guard unlocks it. The same holds below.
        let raw = unsafe { self.raw() };
        if !raw.lock_shared_within(&by.limit()) {
            return Err(Cancelled);
        }
        // SAFETY: locked above.
        Ok(unsafe { self.make_read_guard_unchecked(GuardNoSend::new()) })
    }

    #[inline]
    fn write_cancellable<'a>(&'a self, by: &Cancellation) -> Result<Self::WriteGuard<'a>, Cancelled> {
        // SAFETY: as above.
        let raw = unsafe { self.raw() };
        if !raw.lock_within(&by.limit()) {
            return Err(Cancelled);
        }
        // SAFETY: locked above.
        Ok(unsafe { self.make_write_guard_unchecked(GuardNoSend::new()) })
    }
}
