//! The condition variable. Where acquisitions are counted, a wait counts, as it locks the mutex
//! again.

use std::fmt;
use std::time::{Duration, Instant};

use nearlock::lock_api::{self, RawCondvar as _, RawCondvarTimed as _};

use super::bare;
use super::raw::Bare as _;
use super::types::MutexGuard;

/// The guard's state in `lock_api` 0.5, which contains nothing.
type Guard = <bare::RawMutex as lock_api::RawMutex>::Guard;

/// Whether a wait has timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether it has.
    pub fn timed_out(self) -> bool {
        self.0
    }
}

/// `nearlock::Condvar` for guards of `lock_api` 0.4.
#[derive(Default)]
pub struct Condvar(bare::RawCondvar);

impl Condvar {
    /// A condition variable for which no thread waits.
    pub const fn new() -> Self {
        Self(bare::RawCondvar::INIT)
    }

    /// Notifies the first waiter.
    pub fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    /// Notifies all waiters.
    pub fn notify_all(&self) -> usize {
        self.0.notify_all()
    }

    /// Waits for a notification.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        // SAFETY: the guard holds its mutex, and is not used before the wait ends.
        unsafe { self.0.wait(raw(guard), &mut Guard::new()) }
    }

    /// Waits for a notification until then.
    pub fn wait_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Instant,
    ) -> WaitTimeoutResult {
        // SAFETY: as above.
        WaitTimeoutResult(unsafe { self.0.wait_until(raw(guard), &mut Guard::new(), &timeout) })
    }

    /// Waits for a notification for so long.
    pub fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> WaitTimeoutResult {
        // SAFETY: as above.
        WaitTimeoutResult(unsafe { self.0.wait_for(raw(guard), &mut Guard::new(), &timeout) })
    }

    /// Waits while the condition holds.
    pub fn wait_while<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(guard) {
            self.wait(guard);
        }
    }

    /// Waits while the condition holds, until then.
    pub fn wait_while_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        timeout: Instant,
    ) -> WaitTimeoutResult {
        let mut result = WaitTimeoutResult(false);
        while !result.timed_out() && condition(guard) {
            result = self.wait_until(guard, timeout);
        }
        result
    }

    /// Waits while the condition holds, for so long.
    pub fn wait_while_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: impl FnMut(&mut T) -> bool,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        match Instant::now().checked_add(timeout) {
            Some(until) => self.wait_while_until(guard, condition, until),
            None => {
                self.wait_while(guard, condition);
                WaitTimeoutResult(false)
            }
        }
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Condvar { .. }")
    }
}

/// The mutex of a guard that is about to wait.
fn raw<'a, T: ?Sized>(guard: &'a MutexGuard<'_, T>) -> &'a bare::RawMutex {
    #[cfg(nearlock_count)]
    crate::count::count();
    // SAFETY: the wait releases the mutex and locks it again, while the guard is borrowed.
    unsafe { MutexGuard::mutex(guard).raw() }.bare()
}
