//! The semaphore.
//!
//! Its state is under a [`Mutex`]. A waiter joins a queue, and waits for a condition variable of
//! its own. A thread that returns permits gives them to the first waiters of the queue, as long as
//! there are enough, and notifies these. So a waiter is woken once, with its permits.
//!
//! 1. If a thread waits, the first waiter needs more permits than are available. Each change of the
//!    queue or of the permits restores this before the mutex is unlocked.
//! 2. A thread that waits is in the queue, or has its permits. Only it leaves the queue by itself,
//!    when it gives up.

mod queue;

use std::fmt;
use std::time::{Duration, Instant};

use nearlock_core::parking::{GaveUp, Limit};
use nearlock_os::Os;

use crate::cancellation::{Cancellation, Cancelled};
use crate::near::{Mutex, MutexGuard};
use crate::raw::timed::{until, within};
use queue::{Queue, Waiter};

/// A counting semaphore: permits, of which threads acquire some and return them later.
///
/// Space: 40 bytes on a 64-bit system. A waiter's place in the queue is on its stack.
///
/// Waiting: a thread that finds too few permits sleeps. A thread that returns permits gives them to
/// the waiters that they suffice for, and wakes those. An acquisition that need not wait locks and
/// unlocks a [`Mutex`] once, and so does the return of permits.
///
/// Fairness: first come, first served. A thread waits behind all that wait already, also if there
/// are enough permits for it. So small requests do not starve a large one. Threads that arrive at
/// the same time are in the order in which they lock the mutex. If a waiter gives up, those behind
/// it get what it has kept from them.
///
/// Ordering: what a thread did before it returned permits happens before what other threads do with
/// these permits.
///
/// ```
/// use nearlock::Semaphore;
///
/// static CONNECTIONS: Semaphore = Semaphore::new(2);
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             let _permit = CONNECTIONS.acquire();
///             // At most two threads are here.
///         }); // The permit is returned here.
///     }
/// });
/// assert_eq!(CONNECTIONS.available_permits(), 2);
/// ```
///
/// An acquisition can have a timeout, and can be cancelled:
///
/// ```
/// use std::time::Duration;
/// use nearlock::{Cancellation, Cancelled, Semaphore};
///
/// let (semaphore, shutdown) = (Semaphore::new(2), Cancellation::new());
/// let both = semaphore.acquire_many(2);
/// assert!(semaphore.try_acquire_for(Duration::from_millis(1)).is_none());
/// shutdown.cancel();
/// assert_eq!(semaphore.acquire_cancellable(&shutdown).err(), Some(Cancelled));
/// drop(both);
/// assert!(semaphore.acquire_cancellable(&shutdown).is_ok(), "it need not wait");
/// ```
pub struct Semaphore {
    state: Mutex<State>,
}

struct State {
    /// The permits that no thread has.
    available: usize,
    /// All permits.
    total: usize,
    queue: Queue,
}

impl State {
    /// Takes the permits, if there are enough and no thread waits.
    #[inline]
    fn take(&mut self, permits: usize) -> bool {
        let can = permits == 0 || self.queue.is_empty() && permits <= self.available;
        if can {
            self.available -= permits;
        }
        can
    }

    /// Gives permits to the waiters that they suffice for: restores 1.
    #[inline]
    fn serve(&mut self) {
        while let Some(permits) = self.queue.first_request()
            && permits <= self.available
        {
            self.available -= permits;
            self.queue.grant_first();
        }
    }
}

/// Permits of a [`Semaphore`]. Returns them when it is dropped.
///
/// A guard may be sent to another thread. If it is forgotten ([`std::mem::forget`]), the permits
/// are lost, as they are with [`forget`](Self::forget).
///
/// ```
/// use nearlock::{Semaphore, SemaphoreGuard};
///
/// fn copy(_permit: &SemaphoreGuard<'_>) { /* ... */ }
///
/// let disk = Semaphore::new(1);
/// let permit = disk.acquire();
/// copy(&permit);
/// drop(permit);
/// assert_eq!(disk.available_permits(), 1);
/// ```
#[must_use = "the permits are returned when it is dropped"]
pub struct SemaphoreGuard<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
}

impl Semaphore {
    /// Creates a semaphore with this number of permits.
    #[inline]
    pub const fn new(permits: usize) -> Self {
        let state = State { available: permits, total: permits, queue: Queue::new() };
        Self { state: Mutex::new(state) }
    }

    /// Acquires one permit. Waits for it.
    ///
    /// ```
    /// let semaphore = nearlock::Semaphore::new(1);
    /// let permit = semaphore.acquire();
    /// assert!(semaphore.try_acquire().is_none());
    /// # drop(permit);
    /// ```
    #[inline]
    pub fn acquire(&self) -> SemaphoreGuard<'_> {
        self.acquire_many(1)
    }

    /// Acquires this number of permits, all at once. Waits for them: for ever, if the semaphore has
    /// fewer and none are [added](Self::add_permits). With 0 it never waits.
    ///
    /// ```
    /// let semaphore = nearlock::Semaphore::new(3);
    /// let two = semaphore.acquire_many(2);
    /// assert_eq!((two.permits(), semaphore.available_permits()), (2, 1));
    /// ```
    #[inline]
    pub fn acquire_many(&self, permits: usize) -> SemaphoreGuard<'_> {
        // Without a limit it returns only with the permits.
        _ = self.acquire_within(permits, &Limit::NONE);
        SemaphoreGuard { semaphore: self, permits }
    }

    /// Acquires one permit, if there is one and no thread waits.
    #[inline]
    pub fn try_acquire(&self) -> Option<SemaphoreGuard<'_>> {
        self.try_acquire_many(1)
    }

    /// Acquires this number of permits, if there are as many and no thread waits.
    ///
    /// ```
    /// let semaphore = nearlock::Semaphore::new(3);
    /// assert!(semaphore.try_acquire_many(4).is_none());
    /// assert_eq!(semaphore.try_acquire_many(3).map(|guard| guard.permits()), Some(3));
    /// ```
    #[inline]
    pub fn try_acquire_many(&self, permits: usize) -> Option<SemaphoreGuard<'_>> {
        let took = self.state.lock().take(permits);
        took.then(|| SemaphoreGuard { semaphore: self, permits })
    }

    /// Acquires one permit. Waits for it for this time at most.
    #[inline]
    pub fn try_acquire_for(&self, timeout: Duration) -> Option<SemaphoreGuard<'_>> {
        self.try_acquire_many_for(1, timeout)
    }

    /// Acquires one permit. Waits for it until this moment at most.
    #[inline]
    pub fn try_acquire_until(&self, timeout: Instant) -> Option<SemaphoreGuard<'_>> {
        self.try_acquire_many_until(1, timeout)
    }

    /// Acquires this number of permits, all at once. Waits for them for this time at most.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let semaphore = nearlock::Semaphore::new(3);
    /// assert!(semaphore.try_acquire_many_for(3, Duration::ZERO).is_some());
    /// assert!(semaphore.try_acquire_many_for(4, Duration::from_millis(1)).is_none());
    /// ```
    #[inline]
    pub fn try_acquire_many_for(&self, permits: usize, timeout: Duration) -> Option<SemaphoreGuard<'_>> {
        self.guard_within(permits, &within(timeout)).ok()
    }

    /// Acquires this number of permits, all at once. Waits for them until this moment at most.
    #[inline]
    pub fn try_acquire_many_until(&self, permits: usize, timeout: Instant) -> Option<SemaphoreGuard<'_>> {
        self.guard_within(permits, &until(timeout)).ok()
    }

    /// Acquires one permit. Waits for it until `by` is cancelled.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], if the wait was cancelled. It has acquired nothing then.
    #[inline]
    pub fn acquire_cancellable(&self, by: &Cancellation) -> Result<SemaphoreGuard<'_>, Cancelled> {
        self.acquire_many_cancellable(1, by)
    }

    /// Acquires this number of permits, all at once. Waits for them until `by` is cancelled. If it
    /// need not wait, it acquires them even then.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], if the wait was cancelled. It has acquired nothing then.
    #[inline]
    pub fn acquire_many_cancellable(
        &self,
        permits: usize,
        by: &Cancellation,
    ) -> Result<SemaphoreGuard<'_>, Cancelled> {
        self.guard_within(permits, &by.limit()).map_err(|_| Cancelled)
    }

    /// The number of permits that no thread has, at this moment. It waits for the mutex inside,
    /// which no thread keeps for long.
    #[inline]
    pub fn available_permits(&self) -> usize {
        self.state.lock().available
    }

    /// Adds permits. Waiters may get them at once.
    ///
    /// ```
    /// let semaphore = nearlock::Semaphore::new(0);
    /// semaphore.add_permits(2);
    /// assert!(semaphore.try_acquire_many(2).is_some());
    /// ```
    ///
    /// # Panics
    ///
    /// If all permits, those that threads have included, would be more than [`usize::MAX`]. The
    /// semaphore has not changed then.
    #[inline]
    pub fn add_permits(&self, permits: usize) {
        let mut state = self.state.lock();
        let Some(total) = state.total.checked_add(permits) else {
            drop(state);
            panic!("a semaphore cannot have more than usize::MAX permits");
        };
        state.total = total;
        state.available += permits;
        state.serve();
    }

    #[inline]
    fn guard_within(&self, permits: usize, limit: &Limit<'_, Os>) -> Result<SemaphoreGuard<'_>, GaveUp> {
        self.acquire_within(permits, limit).map(|()| SemaphoreGuard { semaphore: self, permits })
    }

    #[inline]
    fn acquire_within(&self, permits: usize, limit: &Limit<'_, Os>) -> Result<(), GaveUp> {
        let mut state = self.state.lock();
        if state.take(permits) { Ok(()) } else { Self::wait(&mut state, permits, limit) }
    }

    /// Waits in the queue for permits.
    #[cold]
    #[inline]
    fn wait(state: &mut MutexGuard<'_, State>, permits: usize, limit: &Limit<'_, Os>) -> Result<(), GaveUp> {
        let waiter = Waiter::new(permits);
        // SAFETY: the waiter stays here until it has been granted its permits, or has left. Both
        // happen before this function returns. `wait_within` does not unwind.
        unsafe { state.queue.push(&waiter) };
        loop {
            let result = waiter.wait_within(state, limit);
            if waiter.is_granted(&state.queue) {
                return Ok(());
            }
            if let Err(why) = result {
                // SAFETY: it is in this queue.
                unsafe { state.queue.remove(&waiter) };
                // The next waiters may need fewer permits.
                state.serve();
                return Err(why);
            }
        }
    }
}

impl fmt::Debug for Semaphore {
    /// Never blocks.
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Semaphore");
        match self.state.try_lock() {
            Some(state) => debug.field("available_permits", &state.available),
            None => debug.field("available_permits", &format_args!("<locked>")),
        };
        debug.finish()
    }
}

impl SemaphoreGuard<'_> {
    /// The number of permits.
    #[inline]
    pub const fn permits(&self) -> usize {
        self.permits
    }

    /// Takes the permits from the semaphore for good. [`Semaphore::add_permits`] can add others.
    ///
    /// ```
    /// let semaphore = nearlock::Semaphore::new(2);
    /// semaphore.acquire().forget();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// ```
    #[inline]
    pub fn forget(mut self) {
        self.semaphore.state.lock().total -= self.permits;
        self.permits = 0;
    }
}

impl Drop for SemaphoreGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.permits != 0 {
            let mut state = self.semaphore.state.lock();
            // At most the total.
            state.available += self.permits;
            state.serve();
        }
    }
}

impl fmt::Debug for SemaphoreGuard<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SemaphoreGuard").field("permits", &self.permits).finish_non_exhaustive()
    }
}
