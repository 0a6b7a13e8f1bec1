//! The main types of this crate: [`Mutex`], [`RwLock`] and [`Condvar`], and variants of the locks.
//!
//! # Freeing a lock
//!
//! A lock is not accessed any more once another thread can lock it. So the last thread to lock it
//! may free it after it has unlocked it, although the `drop` of an earlier guard has not returned.
//!
//! # Cheap releases
//!
//! An unlock relies on an asymmetric fence of the kernel, membarrier. The process registers for it
//! before `main`, or when a library with this crate is loaded. If the process has several threads
//! by then, this may take some milliseconds. If the kernel refuses, or has no membarrier, unlocks
//! use an ordinary fence. A program that forbids itself the call (seccomp) must do so before its
//! first unlock, or allow the call. The first unlock decides whether locks rely on membarrier. If
//! the kernel refuses it later, locks use its slow form (`MEMBARRIER_CMD_GLOBAL`), which takes
//! milliseconds. If the kernel refuses that too, the process aborts, with a message on its standard
//! error.

mod condvar;
mod fair_mutex;
mod recursive_rwlock;
mod reentrant;
mod rwlock;
#[cfg(feature = "lock_api_04")]
mod version_04;

use nearlock_core::near::NearPlatform;
use nearlock_core::near::mutex::NearMutex;
pub use nearlock_core::near::mutex::{Diagnosis, QueueState, WaiterState};
use nearlock_os::Os;

use crate::lock_api::{self, GuardNoSend};
use crate::raw::Nodeless;

pub use condvar::{Condvar, RawCondvar, WaitCancellable, WaitTimeoutResult};
pub use fair_mutex::{Fair, RawFairMutex};
pub use recursive_rwlock::{RawReadRecursive, RawRwLockRecursive, ReadRecursive, Recursive};
pub use reentrant::{
    MappedReentrantMutexGuard, RawThreadId, ReentrantMutex, ReentrantMutexGuard, const_reentrant_mutex,
};
pub use rwlock::RawRwLock;

/// The raw lock of [`Mutex`], for code that is generic over `lock_api`'s `RawMutex`, `RawMutexFair`
/// or `RawMutexTimed`.
pub type RawMutex = Nodeless<NearMutex<Os>>;

guarded! {
    /// A mutex that protects data, for critical sections and waits of any length, and for any
    /// number of threads.
    ///
    /// Space: 4 bytes and the data. A waiter's queue node is on its stack.
    ///
    /// Waiting: a waiter spins for some microseconds, and then joins the queue. The first waiter in
    /// the queue checks the mutex from time to time for 40 to 52 us, and then sleeps. If one thread
    /// locks the mutex again and again, the first waiter sleeps for 0.2 ms in between. The other
    /// waiters in the queue sleep at once. If no thread waits, `lock` is one compare-and-exchange,
    /// and `unlock` is a plain store.
    ///
    /// Fairness: newcomers overtake the queue until its first waiter has checked the mutex for 20
    /// to 32 us. The next unlock then hands the mutex over to it. If the first waiter sleeps, or
    /// has no processor, it is handed the mutex by the first unlock that checks the queue after 2
    /// ms. If one thread locks the mutex again and again, these times are 0.2 ms and 0.35 ms, as
    /// long as sections are shorter than 77 us. But a first waiter that sleeps until its turn then,
    /// and has no processor at its turn, waits until it has one. Waiters do not spin for longer
    /// sections: the next unlock wakes the first waiter to compete with newcomers. If the threads
    /// that hold many mutexes have no processor, the next unlock of these hands over.
    /// Unlocks check the queue every 4 to 16 us, and at the latest after 4096 unlocks. The queue is
    /// first come, first served, with two exceptions. Waiters of one NUMA node go first for 1 ms,
    /// and up to 32 of them that have been moved by then go first after that. A waiter that was
    /// woken to compete with newcomers, and failed, joins the queue again at its end, once. With
    /// [`MutexGuard::unlock_fair`] the holder hands the mutex over at once. With
    /// [`MutexGuard::bump`] it lets waiters in and locks the mutex again.
    ///
    /// Ordering: each critical section happens before the next one.
    ///
    /// A panic unlocks the mutex. There is no poisoning, except in [`poison`](crate::poison). The
    /// constructor is `const`, so a `static` mutex needs no initialization.
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
    /// A wait can have a timeout, and can be cancelled ([`Cancellation`](crate::Cancellation)):
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
    /// A guard cannot be sent to another thread:
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

guarded! {
    /// A [`Mutex`](crate::Mutex) that each unlock hands over to the thread that has waited longest.
    ///
    /// A program whose threads must take turns needs it. Each section of a contended `FairMutex`
    /// waits for a thread to wake up, so it does far less work than a `Mutex`. With
    /// [`MutexGuard::unlock_fair`] a program can decide for each unlock.
    ///
    /// Space, ordering, panics: as for a `Mutex`. The constructor is `const`.
    ///
    /// Waiting: as for a `Mutex`. A waiter spins for some microseconds before it joins the queue.
    ///
    /// Fairness: an unlock hands the mutex over to the first thread in the queue, which is first
    /// come, first served, with the exceptions of a `Mutex`. If there is none, any thread may lock
    /// it.
    ///
    /// ```
    /// use nearlock::FairMutex;
    ///
    /// static TURNS: FairMutex<Vec<u32>> = FairMutex::new(Vec::new());
    ///
    /// std::thread::scope(|scope| {
    ///     for thread in 0..2 {
    ///         scope.spawn(move || (0..3).for_each(|_| TURNS.lock().push(thread)));
    ///     }
    /// });
    /// assert_eq!(TURNS.lock().len(), 6);
    /// ```
    FairMutex, FairMutexGuard, MappedFairMutexGuard = RawFairMutex;
}

guarded_rw! {
    /// A reader-writer lock that protects data, for any number of threads, and reads and writes of
    /// any length. Made for data that are mostly read: readers share no cache line.
    ///
    /// Space: 32 bytes and the data. Each thread that reads has 64 bytes, for all locks.
    ///
    /// Readers: let a lock have been read 512 times since it was last written. Then a read is a
    /// plain store and a load or two, and no other reader writes to that memory. The next writer
    /// then interrupts all running threads of the process once (membarrier), at most every 0.1 ms
    /// for each lock. If there are fewer reads between two writes, a read is also a fence. If there
    /// are fewer than 64, one reader at a time takes what writers take, and others add to a count
    /// in the lock. If the sections are short then, one thread reads and writes for some 0.2 ms,
    /// while others sleep until their turn, as with a `Mutex`.
    ///
    /// A thread that reads may read again (nested reads). It does not wait then, even if a writer
    /// waits. So a writer waits as long as the reads of a thread overlap. If the thread reads more
    /// than seven locks at a time, a nested read may wait for some milliseconds beside a waiting
    /// writer, and an attempt may fail. It does not wait for ever.
    ///
    /// Fairness: a writer that waits lets no new reader in beside those that read. It waits for its
    /// turn as it would wait for a [`Mutex`](crate::Mutex) whose sections are writes, and reads of
    /// one reader at a time. Then it waits for the longest read. A reader waits until no writer
    /// waits or has the lock. If it has waited for 0.5 ms, it waits in turn with the writers, and
    /// at once if one thread uses the lock again and again. It looks after 8 ms, and then less and
    /// less often, whether it must still wait. At most 8,388,608 reads may exist at a time that are
    /// counted in the lock; one more ends the process.
    /// [`unlock_fair`](RwLockWriteGuard::unlock_fair) lets waiters in at once.
    ///
    /// Upgradable reads exclude writers and each other, and no other readers. They become writes
    /// without another write in between.
    ///
    /// Ordering: each write happens before the reads and writes that follow it, and each read
    /// happens before the next write.
    ///
    /// A panic unlocks the lock. There is no poisoning, except in [`poison`](crate::poison). The
    /// constructor is `const`, so a `static` lock needs no initialization.
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use nearlock::RwLock;
    ///
    /// let routes = RwLock::new(HashMap::from([("/", 1)]));
    /// std::thread::scope(|scope| {
    ///     for _ in 0..4 {
    ///         scope.spawn(|| assert_eq!(routes.read().get("/"), Some(&1)));
    ///     }
    /// });
    /// routes.write().insert("/new", 2);
    /// assert_eq!(routes.read().len(), 2);
    /// ```
    ///
    /// A reader that may write reads upgradably:
    ///
    /// ```
    /// use nearlock::{RwLock, RwLockUpgradableReadGuard};
    ///
    /// let names = RwLock::new(vec!["a"]);
    /// let read = names.upgradable_read();
    /// if !read.contains(&"b") {
    ///     RwLockUpgradableReadGuard::upgrade(read).push("b");
    /// }
    /// assert_eq!(names.read().len(), 2);
    /// ```
    ///
    /// A guard cannot be sent to another thread:
    ///
    /// ```compile_fail,E0277
    /// use nearlock::RwLock;
    ///
    /// let lock = RwLock::new(1);
    /// let guard = lock.read();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || drop(guard));
    /// });
    /// ```
    RwLock, RwLockReadGuard, RwLockWriteGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard = RawRwLock;
}

/// Shared access to what a [`RwLock`] protects, which can become exclusive. Unlocks when it is
/// dropped.
///
/// ```
/// use nearlock::{RwLock, RwLockUpgradableReadGuard};
///
/// let lock = RwLock::new(1);
/// let read = lock.upgradable_read();
/// assert!(lock.try_read().is_some() && lock.try_write().is_none());
/// *RwLockUpgradableReadGuard::upgrade(read) = 2;
/// assert_eq!(*lock.read(), 2);
/// ```
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

guarded_rw! {
    /// A [`RwLock`](crate::RwLock) whose readers do not wait for a writer that waits for readers.
    ///
    /// Take it if a reader may wait for another thread that reads. [`ReadRecursive`] has such reads
    /// for an ordinary `RwLock`, and says what they cost.
    ///
    /// Space, ordering, panics, upgradable reads: as for a `RwLock`. The constructor is `const`.
    ///
    /// Fairness: **readers that follow each other closely keep writers out for ever.** A writer
    /// that waits keeps readers out for some microseconds, and then not any more. Writers among
    /// themselves wait as for a `RwLock`.
    ///
    /// ```
    /// use nearlock::RecursiveRwLock;
    ///
    /// let config = RecursiveRwLock::new(7);
    /// let read = config.read();
    /// std::thread::scope(|scope| {
    ///     let writer = scope.spawn(|| *config.write() = 8);
    ///     let helper = scope.spawn(|| *config.read());
    ///     assert_eq!(helper.join().unwrap(), 7, "the writer waits for us");
    ///     drop(read);
    ///     writer.join().unwrap();
    /// });
    /// ```
    RecursiveRwLock, RecursiveRwLockReadGuard, RecursiveRwLockWriteGuard, MappedRecursiveRwLockReadGuard, MappedRecursiveRwLockWriteGuard = RawRwLockRecursive;
}

/// Shared access to what a [`RecursiveRwLock`] protects, which can become exclusive. Unlocks when
/// it is dropped.
///
/// ```
/// use nearlock::{RecursiveRwLock, RecursiveRwLockUpgradableReadGuard};
///
/// let lock = RecursiveRwLock::new(1);
/// let read = lock.upgradable_read();
/// *RecursiveRwLockUpgradableReadGuard::upgrade(read) = 2;
/// assert_eq!(*lock.read(), 2);
/// ```
pub type RecursiveRwLockUpgradableReadGuard<'a, T> =
    lock_api::RwLockUpgradableReadGuard<'a, RawRwLockRecursive, T>;

/// Creates a [`Mutex`], by the function's name in `parking_lot` 0.12. The same as `Mutex::new`.
///
/// ```
/// static COUNT: nearlock::Mutex<u32> = nearlock::const_mutex(1);
///
/// assert_eq!(*COUNT.lock(), 1);
/// ```
pub const fn const_mutex<T>(val: T) -> Mutex<T> {
    Mutex::new(val)
}

/// Creates a [`FairMutex`], by the function's name in `parking_lot` 0.12. The same as
/// `FairMutex::new`.
///
/// ```
/// static TURN: nearlock::FairMutex<u32> = nearlock::const_fair_mutex(1);
///
/// assert_eq!(*TURN.lock(), 1);
/// ```
pub const fn const_fair_mutex<T>(val: T) -> FairMutex<T> {
    FairMutex::new(val)
}

/// Creates a [`RwLock`], by the function's name in `parking_lot` 0.12. The same as `RwLock::new`.
///
/// ```
/// static NAMES: nearlock::RwLock<Vec<&str>> = nearlock::const_rwlock(Vec::new());
///
/// assert!(NAMES.read().is_empty());
/// ```
pub const fn const_rwlock<T>(val: T) -> RwLock<T> {
    RwLock::new(val)
}

/// Reads the state of a mutex and of its queue, for debugging: which waiters there are, which of
/// them sleep, and which have been woken. The result is an excerpt that may be out of date at once.
///
/// This never waits for the mutex, and does not change it. If another thread has the queue locked,
/// it spins for less than a millisecond, and then reports the rest. It does not sleep. A signal
/// handler must not call it, like the operations of the mutex.
///
/// ```
/// use nearlock::{Mutex, near};
///
/// let mutex = Mutex::new(1);
/// assert!(!near::diagnose(&mutex).is_held);
/// let guard = mutex.lock();
/// let state = near::diagnose(&mutex);
/// assert!(state.is_held && !state.is_free_but_awaited());
/// eprintln!("{state}");
/// # drop(guard);
/// ```
pub fn diagnose<T: ?Sized>(mutex: &Mutex<T>) -> Diagnosis {
    // SAFETY: the state is read, and the mutex is neither locked nor unlocked.
    unsafe { mutex.raw() }.0.diagnose()
}

const _: () = assert!(size_of::<Mutex<()>>() == 4);
const _: () = assert!(size_of::<MutexGuard<'_, u8>>() == size_of::<usize>());
const _: () = assert!(size_of::<FairMutex<()>>() == 4);
const _: () = assert!(size_of::<ReentrantMutex<()>>() == 3 * size_of::<usize>());
const _: () = assert!(size_of::<RwLock<()>>() == 32);
const _: () = assert!(size_of::<RecursiveRwLock<()>>() == 32);
const _: () = assert!(size_of::<RwLockReadGuard<'_, u8>>() == size_of::<usize>());

// SAFETY: it unlocks the mutex. If it hands the mutex over, the new holder has been waiting for it.
unsafe impl<P: NearPlatform> lock_api::RawMutexFair for Nodeless<NearMutex<P>> {
    #[inline]
    unsafe fn unlock_fair(&self, _guard: GuardNoSend) {
        // SAFETY: upheld by the caller.
        unsafe { self.0.unlock_fair() };
    }
}
