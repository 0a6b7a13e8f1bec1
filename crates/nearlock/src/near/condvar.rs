//! The condition variable.

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
/// `RawCondvar`. It has no spurious wakeups. Notifications return how many waiters they have
/// notified.
#[derive(Default)]
#[repr(transparent)]
pub struct RawCondvar(NearCondvar<Os>);

/// A condition variable. Together with a [`Mutex`](super::Mutex), it lets a thread sleep until
/// another thread notifies it.
///
/// Space: the size of a pointer. A waiter's queue node is on its stack.
///
/// Waiting: a waiter unlocks the mutex, sleeps until it is notified, and holds the mutex again when
/// it returns. If notifications have come soon lately, it spins for up to 3 us before it sleeps.
/// There are no spurious wakeups. A wait also ends with its timeout
/// ([`wait_for`](lock_api::Condvar::wait_for), [`wait_until`](lock_api::Condvar::wait_until)) or
/// its [`Cancellation`] ([`WaitCancellable`]). A waiter that is notified in time does not time out,
/// however late it gets the mutex. So a wait that returns a timeout has not used up a notification.
/// Timeouts use the clock of `std::time::Instant`. Changes of the system time do not affect them.
///
/// Notifying: [`notify_all`](lock_api::Condvar::notify_all) does not wake all waiters, since only
/// one of them could lock the mutex. It wakes the first, and moves the others into the mutex's
/// queue. [`notify_one`](lock_api::Condvar::notify_one) wakes the thread that has
/// waited longest. `notify_all` returns how many threads it has notified. `notify_one` returns
/// whether there was one. The caller may hold the mutex or not. If no thread waits, a notification
/// only reads a word.
///
/// Fairness: first come, first served among waiters. A notified waiter then waits for the mutex
/// like any thread that arrives at this moment. The first waiter of `notify_all` may overtake
/// threads that wait for the mutex, or be overtaken by the other waiters.
///
/// Ordering: the effects of the notifier before a notification happen before the return of the
/// threads that it notifies.
///
/// Freeing: a notification does not access the condition variable any more once the last thread
/// that it notifies can return. So the last thread to return may free it.
///
/// # Panics
///
/// All threads that wait at the same time must use the same mutex. A wait with another mutex
/// panics, and that mutex is still locked then.
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
/// With a timeout:
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

/// Says whether a wait of a [`Condvar`] has timed out, without a notification before.
pub use crate::lock_api::WaitTimeoutResult;

impl RawCondvar {
    /// As [`wait_within`](Self::wait_within), with the mutex of this guard. It is held afterwards
    /// in all cases.
    #[inline]
    pub(crate) fn wait_with<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        limit: &Limit<'_, Os>,
    ) -> Result<(), GaveUp> {
        // SAFETY: the raw mutex is only used for the wait, during which the guard is borrowed.
        let raw = unsafe { MutexGuard::mutex(guard).raw() };
        // SAFETY: the guard's mutex is held.
        unsafe { self.wait_within(raw, limit) }
    }

    /// Waits until it is notified. If it is not, returns the reason.
    ///
    /// Safety: the caller holds the mutex.
    #[inline]
    pub(crate) unsafe fn wait_within(&self, mutex: &RawMutex, limit: &Limit<'_, Os>) -> Result<(), GaveUp> {
        // A panic after the wait has unlocked the mutex would let the guard unlock it again, though
        // another thread may hold it.
        // SAFETY: upheld by the caller.
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

// SAFETY: a waiter joins the queue before it unlocks the mutex, and a notification takes waiters
// from the queue. The wait returns with the mutex locked. To a guard that holds nothing this is the
// same acquisition. The wait panics only before it unlocks the mutex.
unsafe impl lock_api::RawCondvar for RawCondvar {
    const INIT: Self = Self(NearCondvar::new());
    type RawMutex = RawMutex;

    #[inline]
    unsafe fn wait(&self, mutex: &RawMutex, _guard: &mut GuardNoSend) {
        // SAFETY: upheld by the caller. Without a limit the wait does not give up.
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
        // SAFETY: upheld by the caller.
        unsafe { self.wait_within(mutex, &until(*timeout)) }.is_err()
    }

    #[inline]
    unsafe fn wait_for(&self, mutex: &RawMutex, _guard: &mut GuardNoSend, timeout: &Duration) -> bool {
        // SAFETY: upheld by the caller.
        unsafe { self.wait_within(mutex, &within(*timeout)) }.is_err()
    }
}

/// Waits for a notification that can be cancelled.
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
    /// Waits until it is notified, or until `by` is cancelled. The mutex is held afterwards in both
    /// cases, as before.
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
    #[inline]
    fn wait_cancellable<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        by: &Cancellation,
    ) -> Result<(), Cancelled> {
        self.raw().wait_with(guard, &by.limit()).map_err(|_| Cancelled)
    }
}
