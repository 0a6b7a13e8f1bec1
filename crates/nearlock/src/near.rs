//! This project's own locks, for programs: [`Mutex`], [`Condvar`] and [`BiasedMutex`].
//!
//! # Freeing a lock
//!
//! Nothing of a lock is read or written once it can be had by somebody else. So the thread that has locked it last may free
//! it when it has unlocked, though the `drop` of an earlier guard has not returned.
//!
//! # Cheap releases
//!
//! A release needs an asymmetric fence of the kernel's, membarrier. The process is registered for it by its first release,
//! which may take some milliseconds if it has several threads by then; [`process::register_membarrier`](crate::process::register_membarrier)
//! does so ahead of time. Where the kernel refuses, or there is none, releases have an ordinary fence.
//! A program that forbids itself the call (seccomp) must do so before its first release, or allow it: refused after it has been registered for, it ends the program, since
//! locks rely on it.

mod condvar;

use nearlock_core::near::Host;
use nearlock_core::near::biased::{BiasHost, BiasTuning, NearBiasedMutex};
use nearlock_core::near::mutex::NearMutex;
use nearlock_core::tuning::Standard;
use nearlock_os::Os;

use crate::lock_api::{self, GuardNoSend};
use crate::raw::Nodeless;

pub use condvar::{Condvar, RawCondvar, WaitCancellable, WaitTimeoutResult};

/// The raw lock of [`Mutex`], for code that is generic over `lock_api`'s `RawMutex`, `RawMutexFair` or `RawMutexTimed`.
pub type RawMutex = Nodeless<NearMutex<Os>>;

guarded! {
    /// Mutex around data: for sections and waits of any length, and any number of threads.
    ///
    /// Space: 4 bytes and the data; a waiter's place in line is on its stack.
    ///
    /// Waiting: a few looks, some microseconds; then in line, where the first looks now and then for 20 to 50 us and sleeps (for 0.1 ms in
    /// between where one thread takes the mutex again and again), and the others sleep at once. If nobody waits, `lock` is one swap, and `unlock` a plain store.
    ///
    /// Fairness: newcomers overtake the line until its first has looked for 20 to 32 us; then the next release hands the mutex over to it. If
    /// it sleeps, or has no processor, it is handed over by the first release that looks at the line after 2 ms. Where one thread takes the mutex again and again it is 0.1 ms,
    /// and 0.25 ms. Releases look every 4 to 16 us, and at the latest after 4096 of them. The line is first come, first served, but waiters of one NUMA node go together, for
    /// 1 ms and up to 32 that have been moved by then; and but for who was woken to compete with newcomers and
    /// lost: that stands at its end again, once.
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
unsafe impl<P: Host> lock_api::RawMutexFair for Nodeless<NearMutex<P>> {
    #[inline]
    unsafe fn unlock_fair(&self, _guard: GuardNoSend) {
        // SAFETY: the caller's.
        unsafe { self.0.unlock_fair() };
    }
}

// SAFETY: as above.
#[cfg(feature = "lock_api_04")]
unsafe impl<P: Host> lock_api_04::RawMutexFair for Nodeless<NearMutex<P>> {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: the caller's.
        unsafe { self.0.unlock_fair() };
    }
}

/// The raw lock of [`BiasedMutex`], for code that is generic over `lock_api`'s `RawMutex`, `RawMutexFair` or `RawMutexTimed`. The
/// thread that has locked it releases it. `T` says how soon a lock is biased.
pub type RawBiasedMutex<T = Standard> = Nodeless<NearBiasedMutex<Os, T>>;

guarded! {
    /// Mutex around data that mostly one thread uses: after 128 acquisitions in a row it is that thread's, which locks and unlocks it
    /// without an atomic read-modify-write from then on. For a thread's own queue that others rarely look into, a counter per thread that is
    /// summed up now and then, or a library that locks though the program has one thread.
    ///
    /// When another thread comes, it ends that: it waits until the thread has left, by a fence on all processors that run the program, of
    /// some microseconds. Each time it takes twice as long until the mutex is a thread's again, up to 16384 acquisitions in a row, so a mutex that
    /// changes hands all the time is little dearer than a [`Mutex`](crate::Mutex); but that is the one to take for it.
    ///
    /// Space: 8 bytes and the data; and 64 bytes for each thread. A thread has four places for mutexes that are its own; of two that have one
    /// place by their addresses, it locks the one that it has not locked last as a [`Mutex`](crate::Mutex), and so the inner one if it holds
    /// both.
    ///
    /// Waiting: as [`Mutex`](crate::Mutex); and whoever waits for the thread whose mutex it is looks for 20 us, and then sleeps.
    ///
    /// Fairness: as [`Mutex`](crate::Mutex).
    ///
    /// Ordering: what happened in one section happens before what follows in the next.
    ///
    /// The thread that has locked it must unlock it, which guards see to. A guard that is forgotten keeps the mutex locked; if it is
    /// moved then it may be unlocked, and the place of its thread stays taken. Where the kernel has no membarrier, or refuses it, no mutex is ever a
    /// thread's own.
    ///
    /// ```
    /// use nearlock::near::BiasedMutex;
    ///
    /// let events = BiasedMutex::new(Vec::new());
    /// for i in 0..1000 {
    ///     events.lock().push(i);
    /// }
    /// let taken = std::thread::scope(|scope| scope.spawn(|| std::mem::take(&mut *events.lock())).join());
    /// assert_eq!(taken.unwrap().len(), 1000);
    /// assert!(events.lock().is_empty());
    /// ```
    BiasedMutex, BiasedMutexGuard, MappedBiasedMutexGuard = RawBiasedMutex;
}

const _: () = assert!(size_of::<BiasedMutex<()>>() == 8);

// SAFETY: it releases; whoever it is handed to has been waiting for it.
unsafe impl<P: BiasHost, T: BiasTuning> lock_api::RawMutexFair for Nodeless<NearBiasedMutex<P, T>> {
    #[inline]
    unsafe fn unlock_fair(&self, _guard: GuardNoSend) {
        // SAFETY: the caller's.
        unsafe { self.0.unlock_fair() };
    }
}

// SAFETY: as above.
#[cfg(feature = "lock_api_04")]
unsafe impl<P: BiasHost, T: BiasTuning> lock_api_04::RawMutexFair for Nodeless<NearBiasedMutex<P, T>> {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: the caller's.
        unsafe { self.0.unlock_fair() };
    }
}
