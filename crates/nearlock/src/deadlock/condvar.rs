//! The condition variable.
//!
//! A waiter of [`nearlock::Condvar`](crate::Condvar) locks its mutex again within the wait, which
//! cannot be observed from outside. So here the condition variable has a mutex of its own, with
//! which waiters wait. Then they lock the user's mutex like any thread.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicUsize};
use std::time::{Duration, Instant};

use nearlock_core::parking::Limit;
use nearlock_core::unwinding::without_unwinding;
use nearlock_os::Os;

use super::RawMutex;
use crate::lock_api::{self, GuardNoSend, RawMutex as _};
use crate::near;
use crate::raw::timed::{until, within};

/// The raw condition variable of [`Condvar`]. It has no spurious wakeups. Notifications return how
/// many waiters they have notified.
#[derive(Default)]
pub struct RawCondvar {
    /// Waiters wait with `own`. Notifications hold it.
    condvar: near::RawCondvar,
    own: near::RawMutex,
    /// The mutex of the waiters, if there are any. Written, like the next, while `own` is held.
    mutex: AtomicPtr<RawMutex>,
    /// How many threads wait that are not notified.
    waiters: AtomicUsize,
}

/// A [`nearlock::Condvar`](crate::Condvar) for guards of a [`Mutex`](super::Mutex) whose deadlocks
/// can be found. Its waiters take part in deadlocks when they lock their mutex again.
///
/// Space: 32 bytes. Fairness: first come, first served among waiters. A notified waiter then waits
/// for the mutex like any thread that arrives at this moment. Otherwise as there.
///
/// ```
/// use nearlock::deadlock::{Condvar, Mutex};
///
/// let (jobs, there_is_one) = (Mutex::new(Vec::new()), Condvar::new());
/// std::thread::scope(|scope| {
///     let worker = scope.spawn(|| {
///         let mut jobs = jobs.lock();
///         there_is_one.wait_while(&mut jobs, |jobs| jobs.is_empty());
///         jobs.pop()
///     });
///     jobs.lock().push("sweep");
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
        let mutex_ptr = ptr::from_ref(mutex).cast_mut();
        let own = self.own.lock();
        if self.waiters.load(Relaxed) != 0 && self.mutex.load(Relaxed) != mutex_ptr {
            // SAFETY: locked above. The same holds below.
            unsafe { self.own.unlock(own) };
            panic!("attempted to use a condition variable with more than one mutex");
        }
        self.mutex.store(mutex_ptr, Relaxed);
        self.waiters.fetch_add(1, Relaxed);
        // After a panic the guard would unlock the mutex, which this has not locked again.
        without_unwinding(|| {
            // SAFETY: upheld by the caller.
            unsafe { mutex.unlock(GuardNoSend::new()) };
            // SAFETY: as above.
            let is_notified = unsafe { self.condvar.wait_within(&self.own, limit) }.is_ok();
            if !is_notified {
                self.waiters.fetch_sub(1, Relaxed);
            }
            // SAFETY: as above.
            unsafe { self.own.unlock(own) };
            mutex.lock();
            is_notified
        })
    }

    /// Whether a notification may find a waiter. A waiter is counted while it holds its mutex.
    /// Since then the notifier, or a thread before it, has locked the mutex.
    #[inline]
    fn has_waiters(&self) -> bool {
        self.waiters.load(Relaxed) != 0
    }

    /// Notifies while `own` is held. Returns how many waiters there were.
    fn notify(&self, notify: impl FnOnce(&near::RawCondvar) -> usize) -> usize {
        if !self.has_waiters() {
            return 0;
        }
        let own = self.own.lock();
        let count = notify(&self.condvar);
        self.waiters.fetch_sub(count, Relaxed);
        // SAFETY: locked above.
        unsafe { self.own.unlock(own) };
        count
    }
}

// SAFETY: a waiter begins to wait in `condvar` before it unlocks `own`, which notifications hold,
// and it holds `own` from before it unlocks the mutex. The wait returns with the mutex locked. To a
// guard that holds nothing this is the same acquisition. The wait panics only before it unlocks the
// mutex.
unsafe impl lock_api::RawCondvar for RawCondvar {
    #[allow(clippy::declare_interior_mutable_const)] // as in the trait
    const INIT: Self = Self {
        condvar: near::RawCondvar::INIT,
        own: near::RawMutex::INIT,
        mutex: AtomicPtr::new(ptr::null_mut()),
        waiters: AtomicUsize::new(0),
    };
    type RawMutex = RawMutex;

    unsafe fn wait(&self, mutex: &RawMutex, _guard: &mut GuardNoSend) {
        // SAFETY: upheld by the caller. Without a limit the wait does not give up.
        _ = unsafe { self.wait_within(mutex, &Limit::NONE) };
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.notify(|condvar| condvar.notify_one().into()) != 0
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.notify(near::RawCondvar::notify_all)
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawCondvarTimed for RawCondvar {
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        near::RawCondvar::checked_duration_to_instant(timeout)
    }

    unsafe fn wait_until(&self, mutex: &RawMutex, _guard: &mut GuardNoSend, timeout: &Instant) -> bool {
        // SAFETY: upheld by the caller.
        !unsafe { self.wait_within(mutex, &until(*timeout)) }
    }

    unsafe fn wait_for(&self, mutex: &RawMutex, _guard: &mut GuardNoSend, timeout: &Duration) -> bool {
        // SAFETY: upheld by the caller.
        !unsafe { self.wait_within(mutex, &within(*timeout)) }
    }
}
