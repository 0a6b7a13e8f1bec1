//! The condition variable for programs.

use std::time::{Duration, Instant};

use nearlock_core::near::condvar::{NearCondvar, Unnotified};
use nearlock_core::parking::{GaveUp, Limit};
use nearlock_core::unwinding::without_unwinding;
use nearlock_os::Os;

use super::{MutexGuard, RawMutex};
use crate::cancellation::{Cancellation, Cancelled};
use crate::lock_api::{self, GuardNoSend};
use crate::raw::timed::{until, within};

/// The raw condition variable of [`Condvar`], for code that is generic over `lock_api`'s
/// `RawCondvar`. It never wakes for no reason, and notifications say how many they have woken.
#[derive(Default)]
#[repr(transparent)]
pub struct RawCondvar(NearCondvar<Os>);

/// Waits, with a [`Mutex`](super::Mutex), for what another thread does.
///
/// Space: as large as a pointer; a waiter's place in the queue is on its stack.
///
/// Waiting: a waiter releases the mutex, sleeps until it is notified, and has the mutex when it
/// returns. It returns for no other reason but
/// its limit ([`wait_for`](lock_api::Condvar::wait_for),
/// [`wait_until`](lock_api::Condvar::wait_until)) or its [`Cancellation`] ([`WaitCancellable`]).
/// Who has been notified in time has not timed out, however late it has the mutex: so that no
/// notification is used up by one that says it had none. Limits are by the clock of
/// `std::time::Instant`: setting the system's time moves none of them.
///
/// Notifying: [`notify_all`](lock_api::Condvar::notify_all) does not wake them all, to compete for
/// a mutex that one of them can have. It puts them into the mutex's queue, asleep, and wakes at
/// most the first. [`notify_one`](lock_api::Condvar::notify_one) wakes whoever has waited longest.
/// Both return whom they have notified: how many there were, and whether there was one. They may be
/// called with the mutex or without. If nobody waits they are a look at a word.
///
/// Fairness: first come, first served, among those who wait; then as for whoever comes to the
/// mutex.
///
/// Ordering: what the notifier did before it notifies happens before the return of those it has
/// notified.
///
/// Freeing: a notification touches nothing of the condition variable once the last that it lets go
/// can return. So whoever is last to return may free it.
///
/// # Panics
///
/// All that wait at the same time must have the same mutex: a wait with another one panics, and
/// still has its mutex then.
///
/// ```
/// use nearlock::{Condvar, Mutex};
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
/// With a limit:
///
/// ```
/// use std::time::Duration;
/// use nearlock::{Condvar, Mutex};
///
/// let (mutex, never) = (Mutex::new(()), Condvar::new());
/// assert!(never.wait_for(&mut mutex.lock(), Duration::from_millis(1)).timed_out());
/// ```
pub type Condvar = lock_api::Condvar<RawCondvar>;

const _: () = assert!(size_of::<Condvar>() == size_of::<usize>());

/// Whether a wait of a [`Condvar`] has timed out, and was not notified before.
pub use crate::lock_api::WaitTimeoutResult;

impl RawCondvar {
    /// Whether it has been notified; or why not.
    ///
    /// Safety: the caller holds the mutex.
    #[inline]
    unsafe fn wait_within(&self, mutex: &RawMutex, limit: &Limit<'_, Os>) -> Result<(), GaveUp> {
        // A panic after the release would let the guard unlock a mutex that another thread holds.
        // SAFETY: the caller's.
        let result = without_unwinding(|| unsafe { self.0.wait(&mutex.0, limit) });
        match result {
            Ok(()) => Ok(()),
            Err(Unnotified::GaveUp(why)) => Err(why),
            Err(Unnotified::OtherMutex) => {
                panic!("attempted to use a condition variable with more than one mutex")
            }
        }
    }
}

// SAFETY: a waiter queues before it releases the mutex, and a notification takes whoever is in the
// queue. It returns with the mutex, which is the same acquisition to a guard that holds nothing. It
// panics only before it releases.
unsafe impl lock_api::RawCondvar for RawCondvar {
    const INIT: Self = Self(NearCondvar::new());
    type RawMutex = RawMutex;

    #[inline]
    unsafe fn wait(&self, mutex: &RawMutex, _guard: &mut GuardNoSend) {
        // SAFETY: the caller's. Without a limit nobody gives up.
        _ = unsafe { self.wait_within(mutex, &Limit::NONE) };
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.0.notify_all()
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawCondvarTimed for RawCondvar {
    #[inline]
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        Instant::now().checked_add(*timeout)
    }

    #[inline]
    unsafe fn wait_until(&self, mutex: &RawMutex, _guard: &mut GuardNoSend, timeout: &Instant) -> bool {
        // SAFETY: the caller's.
        unsafe { self.wait_within(mutex, &until(*timeout)) }.is_err()
    }

    #[inline]
    unsafe fn wait_for(&self, mutex: &RawMutex, _guard: &mut GuardNoSend, timeout: &Duration) -> bool {
        // SAFETY: the caller's.
        unsafe { self.wait_within(mutex, &within(*timeout)) }.is_err()
    }
}

/// Waiting for a notification until somebody cancels.
///
/// ```
/// use nearlock::{Cancellation, Cancelled, Condvar, Mutex, WaitCancellable};
///
/// let (mutex, never, shutdown) = (Mutex::new(()), Condvar::new(), Cancellation::new());
/// std::thread::scope(|scope| {
///     let waiter = scope.spawn(|| never.wait_cancellable(&mut mutex.lock(), &shutdown));
///     shutdown.cancel();
///     assert_eq!(waiter.join().unwrap(), Err(Cancelled));
/// });
/// ```
pub trait WaitCancellable {
    /// Waits until it is notified, or until `by` is cancelled. Either way the mutex is held
    /// afterwards, as before.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], if the wait was cancelled before it was notified.
    ///
    /// # Panics
    ///
    /// As all waits of a [`Condvar`].
    fn wait_cancellable<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        by: &Cancellation,
    ) -> Result<(), Cancelled>;
}

impl WaitCancellable for Condvar {
    fn wait_cancellable<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        by: &Cancellation,
    ) -> Result<(), Cancelled> {
        // SAFETY: only to wait with it, by a guard that is borrowed for as long.
        let raw = unsafe { MutexGuard::mutex(guard).raw() };
        // SAFETY: the guard's mutex is held.
        unsafe { self.raw().wait_within(raw, &by.limit()) }.map_err(|_| Cancelled)
    }
}
