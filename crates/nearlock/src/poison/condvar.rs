//! The condition variable.

use std::fmt;
use std::sync::{LockResult, PoisonError};
use std::time::Duration;

use super::MutexGuard;
use crate::near::{self, WaitTimeoutResult};

/// A [`nearlock::Condvar`](near::Condvar) for guards of a [`Mutex`](super::Mutex) that can be
/// poisoned.
///
/// See the [module](super) for an example.
#[derive(Default)]
pub struct Condvar(near::Condvar);

/// An error if the mutex has been poisoned by now. A waiter learns this when it returns.
fn after_wait<T: ?Sized>(guard: MutexGuard<'_, T>) -> LockResult<MutexGuard<'_, T>> {
    guard.mark.poison.result(guard)
}

/// The same, with the result of the wait.
fn after_timed<T: ?Sized>(
    guard: MutexGuard<'_, T>,
    waited: WaitTimeoutResult,
) -> LockResult<(MutexGuard<'_, T>, WaitTimeoutResult)> {
    guard.mark.poison.result((guard, waited))
}

impl Condvar {
    /// Creates a condition variable without waiters.
    #[inline]
    pub const fn new() -> Self {
        Self(near::Condvar::new())
    }

    /// Waits for a notification.
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned. The error contains the guard. The same applies to all waits here.
    ///
    /// # Panics
    ///
    /// If other threads wait with another mutex. The same applies to all waits here.
    #[inline]
    pub fn wait<'a, T: ?Sized>(&self, mut guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.0.wait(&mut guard.guard);
        after_wait(guard)
    }

    /// Waits while the condition holds.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    #[inline]
    pub fn wait_while<'a, T: ?Sized, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>>
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// Waits for a notification, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    #[inline]
    pub fn wait_timeout<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let waited = self.0.wait_for(&mut guard.guard, timeout);
        after_timed(guard, waited)
    }

    /// Waits for a notification, for at most `ms` milliseconds. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    #[deprecated(note = "use `wait_timeout`")]
    #[inline]
    pub fn wait_timeout_ms<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        ms: u32,
    ) -> LockResult<(MutexGuard<'a, T>, bool)> {
        let is_notified = |(guard, waited): (_, WaitTimeoutResult)| (guard, !waited.timed_out());
        match self.wait_timeout(guard, Duration::from_millis(ms.into())) {
            Ok(waited) => Ok(is_notified(waited)),
            Err(poisoned) => Err(PoisonError::new(is_notified(poisoned.into_inner()))),
        }
    }

    /// Waits while the condition holds, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    #[inline]
    pub fn wait_timeout_while<'a, T: ?Sized, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
        condition: F,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)>
    where
        F: FnMut(&mut T) -> bool,
    {
        let waited = self.0.wait_while_for(&mut guard.guard, condition, timeout);
        after_timed(guard, waited)
    }

    /// Notifies the thread that has waited longest.
    #[inline]
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Notifies all threads that wait.
    #[inline]
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl fmt::Debug for Condvar {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
