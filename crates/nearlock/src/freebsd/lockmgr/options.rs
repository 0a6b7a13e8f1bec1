//! Options of a lockmgr.

use std::time::Duration;

use nearlock_collection::freebsd::lockmgr::{Bypass, Options, Timeout};
use nearlock_os::Os;

use crate::Cancellation;
use crate::raw::timed::within;

/// Options of an operation on a [`LockMgr`](super::LockMgr). A free lock for which no thread waits
/// is locked whatever the options say. If threads may wait for it, an exclusive request with
/// [`no_wait`](Self::no_wait) fails although the lock is free.
///
/// ```
/// use std::time::Duration;
/// use nearlock::freebsd::{LockError, LockMgr, LockMgrOptions};
///
/// const PATIENT: LockMgrOptions = LockMgrOptions::new().timeout(Duration::from_millis(1));
///
/// let file = LockMgr::new("text");
/// let reads = file.read();
/// std::thread::scope(|scope| {
///     let others = scope.spawn(|| {
///         let busy = file.write_with(&PATIENT.no_wait()).map(|_| ());
///         let timed_out = file.write_with(&PATIENT).map(|_| ());
///         assert_eq!((busy, timed_out), (Err(LockError::Busy), Err(LockError::TimedOut)));
///     });
///     others.join().unwrap();
/// });
/// assert_eq!(reads.len(), 4);
/// ```
#[derive(Clone, Copy)]
#[must_use = "these only say how something is to be done"]
pub struct LockMgrOptions<'a> {
    options: Options<'a, Os>,
    time: Option<Duration>,
}

impl<'a> LockMgrOptions<'a> {
    /// Waits as long as it takes. Spins first if this is worth it.
    pub const fn new() -> Self {
        Self { options: Options::new().adaptive(), time: None }
    }

    /// Does not wait, and fails with [`LockError::Busy`](super::LockError::Busy) instead
    /// (`LK_NOWAIT`). It may fail with a free lock too, if threads that have waited for the lock
    /// may still be there.
    pub const fn no_wait(mut self) -> Self {
        self.options = self.options.no_wait();
        self
    }

    /// Fails after a sleep, once it has been woken, with
    /// [`LockError::SleepFail`](super::LockError::SleepFail) (`LK_SLEEPFAIL`). For objects that
    /// must be looked up again after a wait.
    ///
    /// ```
    /// use nearlock::freebsd::{LockError, LockMgr, LockMgrOptions};
    ///
    /// const ONCE: LockMgrOptions = LockMgrOptions::new().no_spin().sleep_fail();
    ///
    /// let file = LockMgr::new(1);
    /// let writes = file.write();
    /// std::thread::scope(|scope| {
    ///     let once = scope.spawn(|| file.read_with(&ONCE).map(|_| ()));
    ///     while !once.is_finished() && !file.has_waiters() {
    ///         std::thread::yield_now();
    ///     }
    ///     drop(writes);
    ///     let error = once.join().unwrap().unwrap_err();
    ///     assert_eq!((error, error.errno_name()), (LockError::SleepFail, "ENOLCK"));
    /// });
    /// ```
    pub const fn sleep_fail(mut self) -> Self {
        self.options = self.options.sleep_fail();
        self
    }

    /// Waits for at most `time`, from the beginning of each acquisition. Then fails with
    /// [`LockError::TimedOut`](super::LockError::TimedOut) (`LK_TIMELOCK`).
    pub const fn timeout(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }

    /// Waits for at most the time in the lock's attributes (`LK_TIMELOCK` without a time).
    pub const fn timeout_of_lock(mut self) -> Self {
        self.time = None;
        self.options = self.options.timeout(Timeout::OfLock);
        self
    }

    /// Waits until `by` is cancelled. Then fails with
    /// [`LockError::Interrupted`](super::LockError::Interrupted) (`PCATCH`).
    pub const fn interruptible(mut self, by: &'a Cancellation) -> Self {
        self.options = self.options.interruptible(by.raw());
        self
    }

    /// Does not spin before it sleeps, as without `LK_ADAPTIVE`.
    pub const fn no_spin(mut self) -> Self {
        self.options = self.options.not_adaptive();
        self
    }

    /// Says whether a request for a share waits for exclusive waiters. `LK_NODDLKTREAT` is
    /// [`Bypass::Nobody`].
    pub const fn bypass(mut self, bypass: Bypass) -> Self {
        self.options = self.options.bypass(bypass);
        self
    }

    /// The options of an acquisition that begins now.
    pub(super) fn begin(&self) -> Options<'a, Os> {
        let until_ns = self.time.map(within).and_then(|limit| limit.until_ns);
        match (self.time, until_ns) {
            (None, _) => self.options,
            (Some(_), None) => self.options.timeout(Timeout::Never),
            (Some(_), Some(ns)) => self.options.timeout(Timeout::At(ns)),
        }
    }
}

impl Default for LockMgrOptions<'_> {
    fn default() -> Self {
        Self::new()
    }
}
