//! The condition variable.

use std::time::{Duration, Instant};

use nearlock_core::parking::Limit;
use nearlock_os::Os;

use super::RawMutex;
use crate::lock_api::{self, GuardSend};
use crate::near;
use crate::raw::timed::{until, within};

/// The raw condition variable of [`Condvar`]. It has no spurious wakeups. Notifications return how
/// many waiters they have notified.
#[derive(Default)]
#[repr(transparent)]
pub struct RawCondvar(near::RawCondvar);

/// A [`nearlock::Condvar`](crate::Condvar) for guards of a [`Mutex`](super::Mutex) that can be
/// sent. Otherwise as there.
///
/// ```
/// use nearlock::send::{Condvar, Mutex};
///
/// let (jobs, there_is_one) = (&Mutex::new(Vec::new()), &Condvar::new());
/// std::thread::scope(|scope| {
///     let mut guard = jobs.lock();
///     let worker = scope.spawn(move || {
///         there_is_one.wait_while(&mut guard, |jobs| jobs.is_empty());
///         guard.pop()
///     });
///     jobs.lock().push("sweep"); // while the worker waits, or after the guard was dropped
///     there_is_one.notify_one();
///     assert_eq!(worker.join().unwrap(), Some("sweep"));
/// });
/// ```
///
/// # Panics
///
/// All threads that wait at the same time must use the same mutex. A wait with another mutex
/// panics, and that mutex is still locked then.
pub type Condvar = lock_api::Condvar<RawCondvar>;

impl RawCondvar {
    /// Waits until it is notified. Returns false if it gave up.
    ///
    /// Safety: the caller holds the mutex.
    unsafe fn wait_within(&self, mutex: &RawMutex, limit: &Limit<'_, Os>) -> bool {
        // SAFETY: upheld by the caller.
        let is_notified = unsafe { self.0.wait_within(&mutex.0, limit) }.is_ok();
        // SAFETY: the wait has locked it again.
        unsafe { mutex.let_anyone_release() };
        is_notified
    }
}

// SAFETY: it is the condition variable inside. To a guard that holds nothing the new acquisition is
// the same as before.
unsafe impl lock_api::RawCondvar for RawCondvar {
    #[allow(clippy::declare_interior_mutable_const)] // as in the trait
    const INIT: Self = Self(<near::RawCondvar as lock_api::RawCondvar>::INIT);
    type RawMutex = RawMutex;

    #[inline]
    unsafe fn wait(&self, mutex: &RawMutex, _guard: &mut GuardSend) {
        // SAFETY: upheld by the caller. Without a limit the wait does not give up.
        _ = unsafe { self.wait_within(mutex, &Limit::NONE) };
    }

    #[inline]
    fn notify_one(&self) -> bool {
        lock_api::RawCondvar::notify_one(&self.0)
    }

    #[inline]
    fn notify_all(&self) -> usize {
        lock_api::RawCondvar::notify_all(&self.0)
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawCondvarTimed for RawCondvar {
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        Instant::now().checked_add(*timeout)
    }

    unsafe fn wait_until(&self, mutex: &RawMutex, _guard: &mut GuardSend, timeout: &Instant) -> bool {
        // SAFETY: upheld by the caller.
        !unsafe { self.wait_within(mutex, &until(*timeout)) }
    }

    unsafe fn wait_for(&self, mutex: &RawMutex, _guard: &mut GuardSend, timeout: &Duration) -> bool {
        // SAFETY: upheld by the caller.
        !unsafe { self.wait_within(mutex, &within(*timeout)) }
    }
}
