//! The condition variable for mutexes of `lock_api` 0.4, which has none.

use std::fmt;
use std::time::{Duration, Instant};

use nearlock_core::parking::Limit;
use nearlock_os::Os;

use super::MutexGuard;
use crate::lock_api::RawCondvar as _;
use crate::near::RawCondvar;
use crate::raw::timed::{until, within};

/// A [`Condvar`](crate::Condvar) for the [`Mutex`](super::Mutex) of `lock_api` 0.4. It has the same
/// methods and the same properties.
///
/// # Panics
///
/// All threads that wait at the same time must use the same mutex. A wait with another mutex
/// panics, and that mutex is still locked then.
///
/// ```
/// use nearlock::parking_lot_012::{Condvar, Mutex};
///
/// let (ready, changed) = (Mutex::new(false), Condvar::new());
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         *ready.lock() = true;
///         changed.notify_one();
///     });
///     let mut ready = ready.lock();
///     while !*ready {
///         changed.wait(&mut ready);
///     }
/// });
/// ```
#[derive(Default)]
#[repr(transparent)]
pub struct Condvar(RawCondvar);

/// Says whether a wait of a [`Condvar`] has timed out, without a notification before.
///
/// ```
/// use std::time::Duration;
/// use nearlock::parking_lot_012::{Condvar, Mutex};
///
/// let (mutex, never) = (Mutex::new(()), Condvar::new());
/// let result = never.wait_for(&mut mutex.lock(), Duration::from_millis(1));
/// assert!(result.timed_out());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the wait has timed out.
    #[inline]
    pub const fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    /// Creates a condition variable for which no thread waits.
    #[inline]
    pub const fn new() -> Self {
        Self(RawCondvar::INIT)
    }

    /// Notifies the thread that has waited longest. Returns whether there was one.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    /// Notifies all threads that wait. Returns how many there were.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.0.notify_all()
    }

    /// Unlocks the mutex, waits for a notification, and locks the mutex again.
    #[inline]
    pub fn wait<T: ?Sized>(&self, mutex_guard: &mut MutexGuard<'_, T>) {
        // Without a limit it does not time out.
        self.wait_within(mutex_guard, &Limit::NONE);
    }

    /// As [`wait`](Self::wait), until this moment at most.
    #[inline]
    pub fn wait_until<T: ?Sized>(
        &self,
        mutex_guard: &mut MutexGuard<'_, T>,
        timeout: Instant,
    ) -> WaitTimeoutResult {
        self.wait_within(mutex_guard, &until(timeout))
    }

    /// As [`wait`](Self::wait), for this time at most.
    #[inline]
    pub fn wait_for<T: ?Sized>(
        &self,
        mutex_guard: &mut MutexGuard<'_, T>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.wait_within(mutex_guard, &within(timeout))
    }

    /// Waits as long as the condition holds.
    pub fn wait_while<T, F>(&self, mutex_guard: &mut MutexGuard<'_, T>, condition: F)
    where
        T: ?Sized,
        F: FnMut(&mut T) -> bool,
    {
        self.wait_while_within(mutex_guard, condition, &Limit::NONE);
    }

    /// Waits as long as the condition holds, until this moment at most. As in `parking_lot` 0.12,
    /// the condition is not evaluated after that.
    pub fn wait_while_until<T, F>(
        &self,
        mutex_guard: &mut MutexGuard<'_, T>,
        condition: F,
        timeout: Instant,
    ) -> WaitTimeoutResult
    where
        T: ?Sized,
        F: FnMut(&mut T) -> bool,
    {
        self.wait_while_within(mutex_guard, condition, &until(timeout))
    }

    /// As [`wait_while_until`](Self::wait_while_until), for this time at most.
    pub fn wait_while_for<T: ?Sized, F>(
        &self,
        mutex_guard: &mut MutexGuard<'_, T>,
        condition: F,
        timeout: Duration,
    ) -> WaitTimeoutResult
    where
        F: FnMut(&mut T) -> bool,
    {
        self.wait_while_within(mutex_guard, condition, &within(timeout))
    }

    fn wait_within<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        limit: &Limit<'_, Os>,
    ) -> WaitTimeoutResult {
        // SAFETY: the raw mutex is only used for the wait, during which the guard is borrowed.
        let raw = unsafe { MutexGuard::mutex(guard).raw() };
        // SAFETY: the guard's mutex is held, and so it is afterwards.
        WaitTimeoutResult(unsafe { self.0.wait_within(raw, limit) }.is_err())
    }

    fn wait_while_within<T: ?Sized, F: FnMut(&mut T) -> bool>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: F,
        limit: &Limit<'_, Os>,
    ) -> WaitTimeoutResult {
        let mut result = WaitTimeoutResult(false);
        while !result.timed_out() && condition(&mut **guard) {
            result = self.wait_within(guard, limit);
        }
        result
    }
}

/// Never blocks. Says nothing about the state, as in `parking_lot`.
impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Condvar { .. }")
    }
}
