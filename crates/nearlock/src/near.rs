//! This project's own locks, for programs: [`Mutex`] and [`Condvar`].
//!
//! # Freeing a lock
//!
//! Nothing of a lock is read or written once it can be had by somebody else. So the thread that has
//! locked it last may free it when it has unlocked, though the `drop` of an earlier guard has not
//! returned.
//!
//! # Cheap releases
//!
//! A release needs an asymmetric fence of the kernel's, membarrier. The process is registered for
//! it before `main`, or when a library with this crate is loaded. If that is with several threads
//! it may take some milliseconds. Where the kernel refuses, or there is none, releases have an
//! ordinary fence. A program that forbids itself the call (seccomp) must do so before its first
//! release, or allow it. The first release decides whether locks rely on it. If the kernel refuses
//! it later, they take its slow form (`MEMBARRIER_CMD_GLOBAL`), of milliseconds. If that is refused
//! too, the process aborts, with a message on its standard error.

mod condvar;

use nearlock_core::near::NearPlatform;
use nearlock_core::near::mutex::NearMutex;
use nearlock_os::Os;

use crate::lock_api::{self, GuardNoSend};
use crate::raw::Nodeless;

pub use condvar::{Condvar, RawCondvar, WaitCancellable, WaitTimeoutResult};

/// The raw lock of [`Mutex`], for code that is generic over `lock_api`'s `RawMutex`, `RawMutexFair`
/// or `RawMutexTimed`.
pub type RawMutex = Nodeless<NearMutex<Os>>;

guarded! {
    /// Mutex around data: for sections and waits of any length, and any number of threads.
    ///
    /// Space: 4 bytes and the data; a waiter's place in the queue is on its stack.
    ///
    /// Waiting: a few looks, some microseconds; then in the queue, where the first looks now and then for 20 to 50 us and sleeps (for 0.1 ms in
    /// between where one thread takes the mutex again and again), and the others sleep at once. If nobody waits, `lock` is one swap, and `unlock` a plain store.
    ///
    /// Fairness: newcomers overtake the queue until its first has looked for 20 to 32 us. The next release then hands the
    /// mutex over to it. A first that sleeps, or has no processor, is handed the mutex by the first release that looks at the
    /// queue after 2 ms. Where one thread takes the mutex again and again these times are 0.1 ms and 0.25 ms. Releases look
    /// every 4 to 16 us, and at the latest after 4096 of them. The queue is first come, first served, with two exceptions.
    /// Waiters of one NUMA node go together, for 1 ms and up to 32 that have been moved by then. A waiter that was woken to
    /// compete with newcomers, and lost, stands at the end of the queue again, once.
    /// [`MutexGuard::unlock_fair`] hands over at once, and [`MutexGuard::bump`] lets those in who wait.
    ///
    /// Ordering: what happened in one section happens before what follows in the next.
    ///
    /// Panics release the mutex; there is no poisoning, but in [`poison`](crate::poison). It is `const` to make, and a `static` needs no initialization.
    ///
    /// ```
    /// use nearlock::Mutex;
    ///
    /// static LOG: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    ///
    /// std::thread::scope(|scope| {
    ///     for line in ["first", "second"] {
    ///         scope.spawn(move || LOG.lock().push(line));
    ///     }
    /// });
    /// assert_eq!(LOG.lock().len(), 2);
    /// ```
    ///
    /// Waits may have an end, and be cancelled ([`Cancellation`](crate::Cancellation)):
    ///
    /// ```
    /// use std::time::Duration;
    /// use nearlock::{Mutex, MutexGuard};
    ///
    /// let mutex = Mutex::new(1);
    /// let guard = mutex.lock();
    /// assert!(mutex.try_lock_for(Duration::from_millis(1)).is_none());
    /// MutexGuard::unlock_fair(guard);
    /// assert_eq!(*mutex.try_lock().expect("is free"), 1);
    /// ```
    ///
    /// A guard stays on its thread:
    ///
    /// ```compile_fail,E0277
    /// use nearlock::Mutex;
    ///
    /// let mutex = Mutex::new(1);
    /// let guard = mutex.lock();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || drop(guard));
    /// });
    /// ```
    Mutex, MutexGuard, MappedMutexGuard = RawMutex;
}

const _: () = assert!(size_of::<Mutex<()>>() == 4);
const _: () = assert!(size_of::<MutexGuard<'_, u8>>() == size_of::<usize>());

// SAFETY: it releases; whoever it is handed to has been waiting for it.
unsafe impl<P: NearPlatform> lock_api::RawMutexFair for Nodeless<NearMutex<P>> {
    #[inline]
    unsafe fn unlock_fair(&self, _guard: GuardNoSend) {
        // SAFETY: the caller's.
        unsafe { self.0.unlock_fair() };
    }
}

// SAFETY: as above.
#[cfg(feature = "lock_api_04")]
unsafe impl<P: NearPlatform> lock_api_04::RawMutexFair for Nodeless<NearMutex<P>> {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: the caller's.
        unsafe { self.0.unlock_fair() };
    }
}
