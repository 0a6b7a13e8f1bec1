//! The lockmgr that protects data.

mod guards;
mod options;

use std::cell::UnsafeCell;
use std::fmt;

use nearlock_collection::freebsd::lockmgr::{self, Attributes, Interlock, NoInterlock, Operation, Status};
use nearlock_os::Os;

use super::ownership::{check, unless_idle};
use super::{Destroy, LockError};

pub use guards::{LockMgrDisowned, LockMgrExclusiveGuard, LockMgrSharedGuard};
pub use options::LockMgrOptions;

/// FreeBSD's `lockmgr` that protects data: shared or exclusive, for long critical sections, and
/// with more options than any other lock.
///
/// The functions and flags of the kernel, and their counterparts here:
///
/// - `lockmgr_slock`, `lockmgr_xlock`: [`read`](Self::read), [`write`](Self::write).
/// - `LK_SHARED`, `LK_EXCLUSIVE` with flags: [`read_with`](Self::read_with),
///   [`write_with`](Self::write_with).
/// - `LK_INTERLOCK`: [`read_releasing`](Self::read_releasing),
///   [`write_releasing`](Self::write_releasing), [`drain_releasing`](Self::drain_releasing),
///   [`upgrade_releasing`](LockMgrSharedGuard::upgrade_releasing); operations that never wait do
///   not need it.
/// - `LK_UPGRADE`, `LK_TRYUPGRADE`: [`LockMgrSharedGuard::upgrade`],
///   [`try_upgrade`](LockMgrSharedGuard::try_upgrade).
/// - `LK_DOWNGRADE`, `lockmgr_disown`: [`LockMgrExclusiveGuard::downgrade`],
///   [`disown`](LockMgrExclusiveGuard::disown).
/// - `LK_DRAIN`: [`drain`](Self::drain).
/// - `LK_NOWAIT`, `LK_SLEEPFAIL`, `LK_TIMELOCK`, `PCATCH`, `LK_NODDLKTREAT`: [`LockMgrOptions`].
/// - `LK_NOSHARE` and the time limit of `lockinit`: [`LockMgr::with`].
/// - `lockstatus`: [`status`](Self::status).
/// - `lockdestroy`: [`Destroy::destroy`], or a drop.
///
/// `LK_CANRECURSE` is not available around data, since there would be two `&mut`. The lock of
/// `nearlock-collection` has it.
///
/// Space: 32 bytes and the data. A waiter's queue node is on its stack.
///
/// Waiting: a waiter spins while an exclusive holder runs and no other thread waits, for at most
/// `spin.budget-ns` ([`Setting::SpinBudgetNs`](crate::process::Setting::SpinBudgetNs)). Then it
/// sleeps.
///
/// Fairness: none. Exclusive waiters go before sharers, which can starve. But a thread that shares
/// one of these locks already does not wait behind exclusive waiters. A downgrade wakes no thread.
///
/// Ordering: an exclusive critical section happens before all later critical sections. Shared
/// critical sections happen before the next exclusive one.
///
/// ```
/// use nearlock::freebsd::{LockError, LockMgr, LockMgrOptions};
///
/// let file = LockMgr::new(vec![1, 2]);
/// let reads = file.read();
/// assert_eq!(file.write_with(&LockMgrOptions::new().no_wait()).unwrap_err(), LockError::Busy);
/// // The upgrade overtakes all waiters. It would wait for other readers.
/// let mut writes = reads.upgrade(&LockMgrOptions::new())?;
/// writes.push(3);
/// let error = file.read_with(&LockMgrOptions::new()).unwrap_err();
/// assert_eq!((error, error.errno_name()), (LockError::Deadlock, "EDEADLK"));
/// let reads = writes.downgrade();
/// assert_eq!(reads.len(), 3);
/// # Ok::<(), LockError>(())
/// ```
///
/// A guard cannot be sent to another thread, because the lock contains the id of its holder. Only a
/// guard that is [disowned](LockMgrExclusiveGuard::disown) can:
///
/// ```compile_fail,E0277
/// use nearlock::freebsd::LockMgr;
///
/// let lock = LockMgr::new(1);
/// let guard = lock.write();
/// std::thread::scope(|scope| {
///     scope.spawn(move || drop(guard));
/// });
/// ```
#[derive(Default)]
pub struct LockMgr<T: ?Sized> {
    raw: lockmgr::LockMgr<Os>,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time has `&mut T`, or several have `&T`.
unsafe impl<T: ?Sized + Send> Send for LockMgr<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for LockMgr<T> {}

impl<T> LockMgr<T> {
    /// Creates an unlocked lock.
    pub const fn new(value: T) -> Self {
        Self { raw: lockmgr::LockMgr::new(), value: UnsafeCell::new(value) }
    }

    /// Creates an unlocked lock with these attributes, except that it is never recursive. If it
    /// cannot be shared, a shared guard holds it exclusively, and gives `&T`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use nearlock::freebsd::{Attributes, LockError, LockMgr, LockMgrOptions};
    ///
    /// const ATTRIBUTES: Attributes = Attributes::new().no_share().timeout_ns(1_000_000);
    /// const TIMED: LockMgrOptions = LockMgrOptions::new().timeout_of_lock();
    /// static DEVICE: LockMgr<u32> = LockMgr::with(ATTRIBUTES, 0);
    ///
    /// let device = DEVICE.read_with(&LockMgrOptions::new())?;
    /// std::thread::scope(|scope| {
    ///     let other = scope.spawn(|| DEVICE.read_with(&TIMED).map(|_| ()));
    ///     assert_eq!(other.join().unwrap(), Err(LockError::TimedOut));
    /// });
    /// assert_eq!(*device, 0);
    /// # Ok::<(), LockError>(())
    /// ```
    pub const fn with(attributes: Attributes, value: T) -> Self {
        Self { raw: lockmgr::LockMgr::with(attributes.cannot_recurse()), value: UnsafeCell::new(value) }
    }

    /// Consumes the lock, and returns the data.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> LockMgr<T> {
    /// Locks it shared.
    ///
    /// # Panics
    ///
    /// If the caller holds it exclusively. [`read_with`](Self::read_with) returns an error then.
    pub fn read(&self) -> LockMgrSharedGuard<'_, T> {
        self.read_with(&LockMgrOptions::new()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Locks it exclusively.
    ///
    /// # Panics
    ///
    /// If the caller holds it exclusively.
    pub fn write(&self) -> LockMgrExclusiveGuard<'_, T> {
        self.write_with(&LockMgrOptions::new()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Locks it shared, as the options say.
    ///
    /// # Errors
    ///
    /// As the options say. Also [`LockError::Deadlock`], if the caller holds it exclusively.
    pub fn read_with(&self, options: &LockMgrOptions<'_>) -> Result<LockMgrSharedGuard<'_, T>, LockError> {
        self.perform(Operation::Shared, options, NoInterlock)?;
        Ok(LockMgrSharedGuard::new(self))
    }

    /// Locks it exclusively, as the options say.
    ///
    /// # Errors
    ///
    /// As the options say. Also, if the caller holds it exclusively: [`LockError::Busy`] with
    /// [`no_wait`](LockMgrOptions::no_wait), otherwise [`LockError::Deadlock`], where debug
    /// assertions panic.
    pub fn write_with(
        &self,
        options: &LockMgrOptions<'_>,
    ) -> Result<LockMgrExclusiveGuard<'_, T>, LockError> {
        self.perform(Operation::Exclusive, options, NoInterlock)?;
        Ok(LockMgrExclusiveGuard::new(self))
    }

    /// As [`read_with`](Self::read_with), and drops `held`, the guard of another lock. It drops
    /// `held` before it sleeps, and at the latest when it returns, with any result. It does not
    /// spin then.
    ///
    /// # Errors
    ///
    /// As [`read_with`](Self::read_with).
    pub fn read_releasing<G>(
        &self,
        options: &LockMgrOptions<'_>,
        held: G,
    ) -> Result<LockMgrSharedGuard<'_, T>, LockError> {
        self.perform(Operation::Shared, options, || drop(held))?;
        Ok(LockMgrSharedGuard::new(self))
    }

    /// As [`write_with`](Self::write_with), and drops `held`, the guard of another lock. It drops
    /// `held` before it sleeps, and at the latest when it returns, with any result. It does not
    /// spin then.
    ///
    /// ```
    /// use nearlock::freebsd::{LockMgr, LockMgrOptions, Mtx};
    ///
    /// let (index, file) = (Mtx::new(vec!["file"]), LockMgr::new(0));
    /// let names = index.lock();
    /// assert_eq!(names.first(), Some(&"file"));
    /// // Other threads may use the index while this one waits for the file.
    /// *file.write_releasing(&LockMgrOptions::new(), names)? += 1;
    /// assert!(index.try_lock().is_some());
    /// # Ok::<(), nearlock::freebsd::LockError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`write_with`](Self::write_with).
    pub fn write_releasing<G>(
        &self,
        options: &LockMgrOptions<'_>,
        held: G,
    ) -> Result<LockMgrExclusiveGuard<'_, T>, LockError> {
        self.perform(Operation::Exclusive, options, || drop(held))?;
        Ok(LockMgrExclusiveGuard::new(self))
    }

    /// Locks it exclusively as soon as no thread holds it and no thread sleeps for it. The only
    /// option that it uses is [`no_wait`](LockMgrOptions::no_wait).
    ///
    /// # Errors
    ///
    /// [`LockError::Busy`], if it must not wait. [`LockError::Deadlock`], if the caller holds it
    /// exclusively, where debug assertions panic.
    pub fn drain(&self, options: &LockMgrOptions<'_>) -> Result<LockMgrExclusiveGuard<'_, T>, LockError> {
        self.perform(Operation::Drain, options, NoInterlock)?;
        Ok(LockMgrExclusiveGuard::new(self))
    }

    /// As [`drain`](Self::drain), and drops `held`, the guard of another lock. It drops `held`
    /// before it sleeps, and at the latest when it returns, with any result.
    ///
    /// ```
    /// use nearlock::freebsd::{Destroy, LockMgr, LockMgrOptions, Mtx};
    ///
    /// let (index, file) = (Mtx::new(vec!["file"]), LockMgr::new("text"));
    /// let mut names = index.lock();
    /// // No thread can find the file now. Threads that have found it may need the index to finish.
    /// names.clear();
    /// let last = file.drain_releasing(&LockMgrOptions::new(), names)?;
    /// assert!(index.lock().is_empty());
    /// drop(last);
    /// assert_eq!(file.destroy(), "text");
    /// # Ok::<(), nearlock::freebsd::LockError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`drain`](Self::drain).
    pub fn drain_releasing<G>(
        &self,
        options: &LockMgrOptions<'_>,
        held: G,
    ) -> Result<LockMgrExclusiveGuard<'_, T>, LockError> {
        self.perform(Operation::Drain, options, || drop(held))?;
        Ok(LockMgrExclusiveGuard::new(self))
    }

    /// Returns how it is held. The result may be out of date at once, unless the caller holds it.
    pub fn status(&self) -> Status {
        self.raw.status()
    }

    /// Returns whether a thread has slept for it since it was last free.
    pub fn has_waiters(&self) -> bool {
        self.raw.has_waiters()
    }

    /// Returns a mutable reference to the data. No guard can exist meanwhile.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Locks it. The caller makes a guard of this.
    fn perform(
        &self,
        operation: Operation,
        options: &LockMgrOptions<'_>,
        interlock: impl Interlock,
    ) -> Result<(), LockError> {
        // SAFETY: the guard unlocks it. While the guard exists, the lock is neither moved nor
        // dropped.
        Ok(unsafe { self.raw.perform(operation, &options.begin(), interlock) }?)
    }
}

impl<T> Destroy for LockMgr<T> {
    type Value = T;

    fn destroy(self) -> T {
        check(unless_idle(&self.raw, self.raw.destroy()));
        self.into_inner()
    }
}

impl<T> From<T> for LockMgr<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for LockMgr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("LockMgr");
        match self.read_with(&LockMgrOptions::new().no_wait()) {
            Ok(guard) => out.field("value", &&*guard).finish(),
            Err(_) => out.field("value", &format_args!("<locked>")).finish(),
        }
    }
}

const _: () = assert!(size_of::<LockMgr<()>>() == 32);
const _: () = assert!(size_of::<LockMgrSharedGuard<'_, u8>>() == size_of::<usize>());
