//! Waits that another thread can end.

use std::error::Error;
use std::fmt;

use nearlock_core::parking::{self, Limit, RawTimedLock, RawTimedRwLock};
use nearlock_os::Os;

use crate::lock_api::{GuardNoSend, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::raw::{Nodeless, Unlocked};

/// Ends waits for locks from another thread: what a signal is to the kernel's interruptible locks.
///
/// Any number of threads may wait by one, for any locks, by the methods of [`LockCancellable`] and
/// [`RwLockCancellable`]. Once cancelled it stays so: whoever waits by it gives up, now or later,
/// when it would sleep. What the canceller did before is visible to whoever gives up.
///
/// It allocates nothing, can be a `static`, and can be cancelled from a signal handler, whatever
/// that interrupts.
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
/// // What is free is had, cancelled or not.
/// assert_eq!(*printer.lock_cancellable(&shutdown).unwrap(), "paper");
/// ```
#[derive(Default)]
pub struct Cancellation(parking::Cancellation<Os>);

impl Cancellation {
    /// Not cancelled.
    pub const fn new() -> Self {
        Self(parking::Cancellation::new())
    }

    /// Ends all waits by it, the present ones and those to come.
    ///
    /// Never waits for another thread, and may be called from a signal handler that has interrupted
    /// anything: a wait by it, or this very function. If another thread is just about to begin or
    /// to end a wait by it, then that thread ends the others' waits, a moment later.
    #[inline]
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it has been cancelled.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    #[cfg(feature = "collection")]
    pub(crate) const fn raw(&self) -> &parking::Cancellation<Os> {
        &self.0
    }

    pub(crate) fn limit(&self) -> Limit<'_, Os> {
        Limit { until_ns: None, cancellation: Some(&self.0) }
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellation").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// A wait was cancelled: the lock was not acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the wait for a lock was cancelled")
    }
}

impl Error for Cancelled {}

/// Locking a mutex until somebody cancels. See [`Cancellation`] for an example.
pub trait LockCancellable {
    /// What gives access to the data.
    type Guard<'a>
    where
        Self: 'a;

    /// Waits for the mutex, until `by` is cancelled. If it is free it is locked even then.
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

    fn lock_cancellable<'a>(&'a self, by: &Cancellation) -> Result<Self::Guard<'a>, Cancelled> {
        // SAFETY: only to lock it; the guard unlocks.
        let raw = unsafe { self.raw() };
        if !raw.lock_within(&by.limit()) {
            return Err(Cancelled);
        }
        // SAFETY: locked above.
        Ok(unsafe { self.make_guard_unchecked(GuardNoSend::new()) })
    }
}

/// Locking a reader-writer lock until somebody cancels.
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
    /// What gives access to the data, shared.
    type ReadGuard<'a>
    where
        Self: 'a;
    /// What gives access to the data, exclusively.
    type WriteGuard<'a>
    where
        Self: 'a;

    /// Waits until it may read, or until `by` is cancelled. If nobody has to be waited for it may
    /// even then.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], if the wait was cancelled.
    fn read_cancellable<'a>(&'a self, by: &Cancellation) -> Result<Self::ReadGuard<'a>, Cancelled>;

    /// The same for a writer.
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

    fn read_cancellable<'a>(&'a self, by: &Cancellation) -> Result<Self::ReadGuard<'a>, Cancelled> {
        // SAFETY: only to lock it; the guard unlocks; so below.
        let raw = unsafe { self.raw() };
        if !raw.lock_shared_within(&by.limit()) {
            return Err(Cancelled);
        }
        // SAFETY: locked above.
        Ok(unsafe { self.make_read_guard_unchecked(GuardNoSend::new()) })
    }

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
