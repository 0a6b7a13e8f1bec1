//! Locks whose throughput does not collapse on machines with many processors.
//!
//! They protect data like the locks of `std` and `parking_lot`, but without poisoning (except in
//! [`poison`]):
//!
//! ```
//! use nearlock::Mutex;
//!
//! static HITS: Mutex<Vec<u64>> = Mutex::new(Vec::new()); // the lock is 4 bytes
//!
//! std::thread::scope(|scope| {
//!     for thread in 0..4 {
//!         scope.spawn(move || HITS.lock().push(thread));
//!     }
//! });
//! assert_eq!(HITS.lock().len(), 4);
//! ```
//!
//! [`Mutex`], [`RwLock`] and [`Condvar`] are the main types, and need no feature. The feature
//! `collection` adds the locks of the literature, of Linux and of FreeBSD (modules `classic`,
//! `linux` and `freebsd`).
//!
//! # Which lock
//!
//! | critical sections | threads | lock |
//! |---|---|---|
//! | of any length, with waits inside, or unknown: begin with this | any | [`Mutex`] |
//! | the same, and mostly reads | any | [`RwLock`] |
//! | a few instructions to a few microseconds, many waiters | any | [`linux::SpinLock`] |
//! | the same | on several NUMA nodes | [`linux::CnaLock`] |
//! | the same, first come, first served | one processor each | [`linux::FifoSpinLock`] |
//!
//! A [`Condvar`], together with a [`Mutex`], lets threads wait for an event. A [`Barrier`] lets a
//! number of threads wait for each other. A [`Semaphore`] limits how many threads do something at a
//! time, first come, first served.
//!
//! # In place of parking_lot
//!
//! The crate has the names of `parking_lot` 0.13, with the same methods: besides the types above,
//! [`FairMutex`], [`ReentrantMutex`], [`RecursiveRwLock`], [`Once`], their guards, and the raw
//! locks. A program for `parking_lot` needs one line to use them: `use nearlock as parking_lot`.
//! Names of 0.12 that 0.13 has not are here too ([`const_mutex`], ...). With the feature
//! `lock_api_04`, the module `parking_lot_012` has all names of 0.12, over `lock_api` 0.4.
//!
//! The differences:
//!
//! - A thread that reads a [`RwLock`] may read it again, and never waits then. In `parking_lot` it
//!   waits if a writer waits, which is a deadlock. `try_read` fails there.
//! - [`RwLock::is_locked_exclusive`](lock_api::RwLock::is_locked_exclusive) may be true while no
//!   thread writes or waits to write: for a moment, while a reader changes how the lock is read.
//! - A read takes 0.5 ms longer if it begins when a writer has just begun to wait, in a
//!   [`RecursiveRwLock`] and with [`ReadRecursive`].
//! - The features `deadlock_detection` and `send_guard` do not change these types. They add the
//!   modules `deadlock` and `send`, which have others.
//!
//! [`LazyLock`] and [`OnceLock`] are those of `std`, and [`Once`] is a `std::sync::Once` that tells
//! its state: initialization happens once, and after that an access is one load.
//!
//! # Properties
//!
//! The next list has the properties of the locks: size, what a waiter does, and fairness. The locks
//! that are not named above are for comparison, and for special needs:
//!
//! - [`Mutex`], 4 bytes. A waiter spins for a while as the first in the queue, or sleeps. Its queue
//!   node is on its stack. Newcomers overtake the queue for 20 to 32 us, or for 2 ms if the first
//!   waiter sleeps. A waiter of another NUMA node is overtaken for 1 ms, and by up to 32 waiters
//!   after that.
//! - [`RwLock`], 32 bytes. Readers of a lock that is mostly read write to memory of their own only.
//!   A waiting writer lets no new reader in. Writers, and readers that have waited for 0.5 ms, wait
//!   as with a `Mutex`.
//! - [`FairMutex`], 4 bytes. As `Mutex`, but each unlock hands it over to the first waiter.
//! - [`ReentrantMutex`], 24 bytes. As `Mutex`. Its holder can lock it again.
//! - [`RecursiveRwLock`], 32 bytes. As `RwLock`, but a waiting writer lets new readers in after
//!   some microseconds. Readers may keep writers out for ever.
//! - [`Semaphore`], 40 bytes. A waiter sleeps in a queue. Its place is on its stack. First come,
//!   first served.
//! - [`linux::SpinLock`], 4 bytes. A waiter spins in the queue, then sleeps. Its queue node belongs
//!   to its thread. Newcomers overtake the queue while the first waiter sleeps.
//! - [`linux::FifoSpinLock`], 4 bytes. A waiter spins in the queue. Its queue node belongs to its
//!   thread. First come, first served.
//! - [`linux::CnaLock`], 4 bytes. As `SpinLock`, but waiters of the holder's NUMA node go first.
//!   Waiters of other NUMA nodes are overtaken for a threshold (1 ms) at a time.
//! - [`linux::Mutex`], 32 bytes. Waiters spin while the holder runs, one at a time, or sleep. The
//!   queue node of a waiter is on its stack. Newcomers overtake the queue until the first waiter
//!   has been woken without success.
//! - [`linux::RwSem`], 40 bytes. As `linux::Mutex`, but readers sleep. A waiter that is first in
//!   the queue and has waited for 4 ms is not overtaken.
//! - [`linux::CounterMutex`], 32 bytes. A waiter spins with all other waiters while the holder
//!   runs, then sleeps. Not fair: a wait has no bound.
//! - [`freebsd::Mtx`], 8 bytes. A waiter spins while the holder runs, with growing delays, or
//!   sleeps. Not fair: an unlock wakes all waiters, and they compete.
//! - [`freebsd::Rw`], [`freebsd::Sx`], 16 bytes. A waiter spins or sleeps as with `freebsd::Mtx`.
//!   Writers go before readers. Not fair among writers.
//! - [`freebsd::SpinMtx`], 8 bytes. A waiter spins on the lock's word with all other waiters, with
//!   growing delays. Not fair.
//! - [`classic::McsLock`], a pointer. A waiter spins in the queue. Its queue node is in a pool or
//!   on its stack. First come, first served.
//! - [`classic::ClhLock`], a pointer. As `McsLock`.
//! - [`classic::TtasLock`], 4 bytes. A waiter spins on the lock's word with all other waiters. Not
//!   fair: a wait has no bound.
//!
//! Two effects ruin the throughput of a contended lock on a big machine. The first is that waiters
//! write to the lock's word although these writes cannot succeed. So the locks of this crate read
//! the word before they write it, and let waiters queue. The second is that the lock moves between
//! NUMA nodes at each hand-over. So the lock is handed over to a waiter near by, without starvation
//! of the others.
//!
//! # What spinning means
//!
//! This section is about the spin locks. These are all locks except [`Mutex`], [`RwLock`], their
//! variants, [`linux::Mutex`], [`linux::RwSem`], [`linux::CounterMutex`], [`freebsd::Mtx`],
//! [`freebsd::Rw`], [`freebsd::Sx`], [`freebsd::LockMgr`] and [`classic::GlibcMutex`]. A waiter
//! spins for 128 turns, which take a few microseconds. A waiter of a [`linux::SpinLock`] or
//! [`linux::CnaLock`] then sleeps. A waiter of any other spin lock never sleeps. It yields its
//! processor to other threads at each further turn ([`SpinThenYield`](nearlock_os::SpinThenYield)).
//!
//! * **Critical sections must be short**: no I/O, no sleep, no wait for another thread, and no
//!   allocation if possible. Each critical section costs each waiter processor time, or a sleep and
//!   a wake-up.
//! * **More runnable threads than processors**: [`linux::SpinLock`] and [`linux::CnaLock`] are made
//!   for this case. With a lock that is first come, first served a program is correct, but slow.
//!   Such a lock goes to the next waiter in the queue even if that thread has no processor. All
//!   others wait until the scheduler runs it again, for milliseconds.
//! * **Priorities**: no lock inherits priorities, and **a wait for a spin lock has no bound** if
//!   the waiter has preempted the holder. A real-time thread (`SCHED_FIFO`) that spins for an
//!   ordinary thread on the same processor keeps it from running: its yields go only to threads of
//!   its own priority. The sleeping locks that are named above contain no such wait. If a thread
//!   finds one of their queues locked, it spins for a bounded time, below 1 ms, and then sleeps.
//!   (`nearlock-collection` has these locks as kernels have them, with queues under spin locks. No
//!   type of this crate is one of those.)
//!   **A release may wait likewise**: that of a queue lock waits for a waiter that has joined the
//!   queue and has not linked its node yet, and that of [`classic::ClhLock`] until the next waiter
//!   has seen it.
//! * **Locking twice** in one thread is a deadlock. Only FreeBSD's locks can detect it, since they
//!   know their holder ([`freebsd::Checked`]). [`ReentrantMutex`] and FreeBSD's recursive forms
//!   ([`freebsd::RecursiveMtx`]) can be locked again. The locks of the module `deadlock` (feature
//!   `deadlock_detection`) report this and other deadlocks.
//! * **Panics** unlock the lock. The data stays as the panicking critical section left it. There is
//!   no poisoning, except in [`poison`].
//! * **Async**: a guard is not `Send`, except in the module `send` (feature `send_guard`). So a
//!   task that holds a guard across an `.await` cannot be spawned on an executor with several
//!   threads. On an executor with a single thread it compiles, and may deadlock: the next task that
//!   locks the lock blocks the only thread. Drop guards before `.await`.
//! * **Signal handlers** may lock a lock that the interrupted code neither holds nor waits for. To
//!   ensure this, block the signal while other code uses the lock. A thread with such handlers
//!   calls [`process::register_thread`] first. Guards of [`classic::McsLock`] and
//!   [`classic::ClhLock`] may allocate. In a handler, use [`lock_with`](classic::LockWith) instead.
//! * **`fork`**: the child may use each lock that no other thread of the parent held, waited for or
//!   was about to unlock. Other locks may stay locked in the child. The same applies to a
//!   [`Cancellation`] that another thread was using. A signal handler that interrupts a lock
//!   operation must not fork.
//!
//! Sleeping waiters of [`Mutex`] and of FreeBSD's locks are in a table that the process shares. A
//! signal handler must not lock or unlock such a lock, unless the signal is blocked wherever any of
//! them is used. It may always call [`Cancellation::cancel`]. In the child of a `fork` the table is
//! empty, whatever other threads of the parent waited for.
//!
//! # Generic code
//!
//! All locks except [`freebsd::LockMgr`] and the recursive locks of FreeBSD are mutexes or
//! reader-writer locks of [`lock_api`] 0.5 (re-exported) over the raw locks of [`raw`]. With the
//! feature `lock_api_04`, raw locks whose guards hold nothing also implement the traits of
//! `lock_api` 0.4. Use [`MutexGuard::map`] to narrow a guard to a part of the data, see
//! [`MappedMutexGuard`].
//!
//! Waits for [`Mutex`], [`RwLock`], [`Semaphore`], [`linux::Mutex`], [`linux::RwSem`],
//! [`linux::CounterMutex`] and [`freebsd::Sx`] can have a timeout (`try_lock_for`,
//! `try_read_until`, ...) and can be cancelled ([`Cancellation`]). [`freebsd::LockMgr`] has options
//! for both. Other waits end only with the lock.
//!
//! The features:
//!
//! - `collection` adds the modules `classic`, `linux` and `freebsd`.
//! - `lock_api_04`: [`raw::Nodeless`] implements `RawMutex`, `RawRwLock` and their timed forms of
//!   `lock_api` 0.4. The raw locks of the front page implement all its traits, and the module
//!   `parking_lot_012` has the types.
//! - `arc_lock` adds `lock_arc`, and guards that keep the lock alive (`ArcMutexGuard`, ...).
//! - `serde`: locks are serialized as the data that they protect.
//! - `deadlock_detection` adds the module `deadlock`: locks whose deadlocks can be found.
//! - `send_guard` adds the module `send`: locks whose guards can be sent to other threads.
//!
//! No feature is on by default, and none changes a lock. The module [`process`] has the state of
//! the process and its threads: settings, counters, and the NUMA node that a thread claims.

// The documentation links to locks of the collection throughout.
#![cfg_attr(not(feature = "collection"), allow(rustdoc::broken_intra_doc_links))]

pub use lock_api;
#[cfg(feature = "lock_api_04")]
pub use lock_api_04;

/// Defines a mutex over a raw lock, and its guards.
macro_rules! guarded {
    ($(#[$doc:meta])* $lock:ident, $guard:ident, $mapped:ident = $raw:ty;) => {
        guarded! { lock_api: $(#[$doc])* $lock, $guard, $mapped = $raw; }
    };
    // Over this version of `lock_api`.
    ($api:ident: $(#[$doc:meta])* $lock:ident, $guard:ident, $mapped:ident = $raw:ty;) => {
        $(#[$doc])*
        pub type $lock<T> = crate::$api::Mutex<$raw, T>;

        #[doc = concat!("Access to what a [`", stringify!($lock), "`] protects. Unlocks when it is dropped.")]
        ///
        /// ```
        #[doc = concat!("use ", module_path!(), "::{", stringify!($lock), ", ", stringify!($guard), "};")]
        ///
        #[doc = concat!("fn add(mut total: ", stringify!($guard), "<'_, u32>, amount: u32) {")]
        ///     *total += amount;
        /// } // unlocked here
        ///
        #[doc = concat!("let total = ", stringify!($lock), "::new(1);")]
        /// add(total.lock(), 2);
        /// assert_eq!(total.into_inner(), 3);
        /// ```
        pub type $guard<'a, T> = crate::$api::MutexGuard<'a, $raw, T>;

        #[doc = concat!("Access to a part of what a [`", stringify!($lock), "`] protects. Unlocks when it is dropped.")]
        ///
        /// ```
        #[doc = concat!("use ", module_path!(), "::{", stringify!($lock), ", ", stringify!($guard), ", ", stringify!($mapped), "};")]
        ///
        #[doc = concat!("fn first(pair: &", stringify!($lock), "<(u32, u32)>) -> ", stringify!($mapped), "<'_, u32> {")]
        #[doc = concat!("    ", stringify!($guard), "::map(pair.lock(), |pair| &mut pair.0)")]
        /// }
        ///
        #[doc = concat!("let pair = ", stringify!($lock), "::new((1, 2));")]
        /// *first(&pair) = 3;
        /// assert_eq!(pair.into_inner(), (3, 2));
        /// ```
        pub type $mapped<'a, T> = crate::$api::MappedMutexGuard<'a, $raw, T>;
    };
}

/// Defines a reader-writer lock over a raw lock, and its guards.
macro_rules! guarded_rw {
    ($(#[$doc:meta])* $lock:ident, $read:ident, $write:ident, $mapped_read:ident, $mapped_write:ident = $raw:ty;) => {
        guarded_rw! { lock_api: $(#[$doc])* $lock, $read, $write, $mapped_read, $mapped_write = $raw; }
    };
    ($api:ident: $(#[$doc:meta])* $lock:ident, $read:ident, $write:ident, $mapped_read:ident, $mapped_write:ident = $raw:ty;) => {
        $(#[$doc])*
        pub type $lock<T> = crate::$api::RwLock<$raw, T>;

        #[doc = concat!("Shared access to what a [`", stringify!($lock), "`] protects. Unlocks when it is dropped.")]
        ///
        /// ```
        #[doc = concat!("use ", module_path!(), "::{", stringify!($lock), ", ", stringify!($read), "};")]
        ///
        #[doc = concat!("fn letters(words: &", stringify!($read), "<'_, Vec<&str>>) -> usize {")]
        ///     words.iter().map(|word| word.len()).sum()
        /// }
        ///
        #[doc = concat!("let words = ", stringify!($lock), "::new(vec![\"lock\", \"waiter\"]);")]
        /// assert_eq!(letters(&words.read()), 10);
        /// ```
        pub type $read<'a, T> = crate::$api::RwLockReadGuard<'a, $raw, T>;

        #[doc = concat!("Exclusive access to what a [`", stringify!($lock), "`] protects. Unlocks when it is dropped.")]
        ///
        /// ```
        #[doc = concat!("use ", module_path!(), "::{", stringify!($lock), ", ", stringify!($write), "};")]
        ///
        #[doc = concat!("let words = ", stringify!($lock), "::new(vec![\"lock\"]);")]
        /// let mut writes = words.write();
        /// writes.push("waiter");
        #[doc = concat!("let reads = ", stringify!($write), "::downgrade(writes); // no other writer in between")]
        /// assert_eq!(reads.len(), 2);
        /// ```
        pub type $write<'a, T> = crate::$api::RwLockWriteGuard<'a, $raw, T>;

        #[doc = concat!("Shared access to a part of what a [`", stringify!($lock), "`] protects. Unlocks when it is dropped.")]
        ///
        /// ```
        #[doc = concat!("use ", module_path!(), "::{", stringify!($lock), ", ", stringify!($read), "};")]
        ///
        #[doc = concat!("let pair = ", stringify!($lock), "::new((1, 2));")]
        #[doc = concat!("let first = ", stringify!($read), "::map(pair.read(), |pair| &pair.0);")]
        /// assert_eq!(*first, 1);
        /// ```
        pub type $mapped_read<'a, T> = crate::$api::MappedRwLockReadGuard<'a, $raw, T>;

        #[doc = concat!("Exclusive access to a part of what a [`", stringify!($lock), "`] protects. Unlocks when it is dropped.")]
        ///
        /// ```
        #[doc = concat!("use ", module_path!(), "::{", stringify!($lock), ", ", stringify!($write), "};")]
        ///
        #[doc = concat!("let pair = ", stringify!($lock), "::new((1, 2));")]
        #[doc = concat!("*", stringify!($write), "::map(pair.write(), |pair| &mut pair.0) = 3;")]
        /// assert_eq!(pair.into_inner(), (3, 2));
        /// ```
        pub type $mapped_write<'a, T> = crate::$api::MappedRwLockWriteGuard<'a, $raw, T>;
    };
}

mod barrier;
mod cancellation;
#[cfg(feature = "collection")]
pub mod classic;
#[cfg(feature = "deadlock_detection")]
pub mod deadlock;
#[cfg(feature = "collection")]
pub mod freebsd;
#[cfg(feature = "collection")]
pub mod linux;
pub mod near;
mod once;
#[cfg(feature = "lock_api_04")]
pub mod parking_lot_012;
pub mod poison;
#[cfg(feature = "collection")]
mod pool;
pub mod process;
pub mod raw;
mod semaphore;
#[cfg(feature = "send_guard")]
pub mod send;

pub use barrier::{Barrier, BarrierWaitResult};
pub use cancellation::{Cancellation, Cancelled, LockCancellable, RwLockCancellable};
#[cfg(feature = "arc_lock")]
pub use lock_api::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};
pub use near::{
    Condvar, FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard,
    MappedRecursiveRwLockReadGuard, MappedRecursiveRwLockWriteGuard, MappedReentrantMutexGuard,
    MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, MutexGuard, RawCondvar, RawFairMutex, RawMutex,
    RawRwLock, RawRwLockRecursive, RawThreadId, ReadRecursive, RecursiveRwLock, RecursiveRwLockReadGuard,
    RecursiveRwLockUpgradableReadGuard, RecursiveRwLockWriteGuard, ReentrantMutex, ReentrantMutexGuard,
    RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard, WaitCancellable, WaitTimeoutResult,
    const_fair_mutex, const_mutex, const_reentrant_mutex, const_rwlock,
};
pub use once::{Once, OnceState};
pub use semaphore::{Semaphore, SemaphoreGuard};
/// A place for a value that is initialized once, from `std`. After that, an access is one load. So
/// a lock of this crate would gain nothing.
///
/// ```
/// use nearlock::{LazyLock, Mutex, OnceLock};
///
/// static NAME: OnceLock<String> = OnceLock::new();
/// static LOG: LazyLock<Mutex<String>> = LazyLock::new(|| Mutex::new(String::from("log")));
///
/// assert_eq!(NAME.get_or_init(|| String::from("near")), "near");
/// assert_eq!(*LOG.lock(), "log");
/// ```
#[doc(inline)]
pub use std::sync::{LazyLock, OnceLock};

/// The examples of the README are compiled and run.
#[cfg(all(doctest, feature = "collection"))]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;

/// The biased mutex is gone, since two threads could hold it after a move
/// (`docs/internals/history-own.md`).
///
/// ```compile_fail,E0432
/// use nearlock::near::BiasedMutex;
/// ```
#[cfg(doctest)]
struct Retired;
