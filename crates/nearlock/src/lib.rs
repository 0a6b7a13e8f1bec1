//! Locks whose throughput does not collapse on machines with many processors.
//!
//! They guard data as `std`'s and `parking_lot`'s do, without poisoning (but see [`poison`]):
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
//! [`Mutex`] and [`Condvar`] are the product, and need no feature. The locks of the literature, of
//! Linux and of FreeBSD (`classic`, `linux`, `freebsd`) are there with the feature `collection`.
//!
//! # Which lock
//!
//! | your sections | your threads | take |
//! |---|---|---|
//! | a few instructions to a few microseconds | any | [`linux::SpinLock`] |
//! | the same | run on several NUMA nodes | [`linux::CnaLock`] |
//! | the same, and must have their turns in order | have a processor each | [`linux::FifoSpinLock`] |
//! | longer, or they wait for something, or you do not know | any | [`Mutex`] |
//! | the same, and mostly read | any | [`linux::RwSem`] |
//!
//! To wait for what another thread does there is a [`Condvar`], which goes with [`Mutex`]. Both
//! have the methods of `parking_lot`'s: a program for these takes them by one line, `use nearlock
//! as parking_lot`.
//!
//! The others are for comparison, and for special needs:
//!
//! | lock | bytes | a waiter | fairness |
//! |---|---|---|---|
//! | [`Mutex`] | 4 | looks for a while, first in the queue, or sleeps in a queue on its stack | newcomers overtake the queue for 20 to 32 us, or 2 ms if its first sleeps; one of another NUMA node is overtaken for 1 ms, and by up to 32 after that |
//! | [`linux::SpinLock`] | 4 | queues, in a node of its thread, and sleeps after a while | newcomers overtake a queue whose first is asleep |
//! | [`linux::FifoSpinLock`] | 4 | queues, in a node of its thread | first come, first served |
//! | [`linux::CnaLock`] | 4 | as `SpinLock`, but those near by go first | as `SpinLock`; and the others are overtaken for a threshold (1 ms) at a time |
//! | [`linux::Mutex`] | 32 | spins while the holder runs, one at a time, or sleeps in a queue on its stack | newcomers overtake the queue until its first has been woken in vain |
//! | [`linux::RwSem`] | 40 | the same; readers sleep | nobody overtakes who has waited for 4 ms, and is first |
//! | [`linux::CounterMutex`] | 32 | spins with all the others while the holder runs, then sleeps | none: a wait has no bound |
//! | [`freebsd::Mtx`] | 8 | spins while the holder runs, with growing delays, or sleeps | none: all are woken, and compete |
//! | [`freebsd::Rw`], [`freebsd::Sx`] | 16 | the same | none among writers; they go before readers |
//! | [`freebsd::SpinMtx`] | 8 | watches the word, with all the others and growing delays | none |
//! | [`classic::McsLock`] | a pointer | queues, in a node of a pool or on its stack | first come, first served |
//! | [`classic::ClhLock`] | a pointer | the same | the same |
//! | [`classic::TtasLock`] | 4 | watches the word, with all the others | none: a wait has no bound |
//!
//! What ruins a contended lock on a big machine is that threads hammer its word with writes that
//! cannot succeed: so they read first, and queue. And that the lock travels between NUMA nodes at
//! every hand-over: so it goes to a waiter near by, without starving the others.
//!
//! # What spinning means
//!
//! This is about the spin locks, that is all but [`Mutex`], [`linux::Mutex`], [`linux::RwSem`],
//! [`linux::CounterMutex`], [`freebsd::Mtx`], [`freebsd::Rw`], [`freebsd::Sx`],
//! [`freebsd::LockMgr`] and [`classic::GlibcMutex`]. A waiter pauses for 128 turns, a few
//! microseconds. A [`linux::SpinLock`] or [`linux::CnaLock`] then puts it to sleep; with the others
//! it never sleeps, but offers its processor to other threads at every further turn
//! ([`SpinThenYield`](nearlock_os::SpinThenYield)).
//!
//! * **Sections are short**: no I/O, no allocation if it can be helped, no sleep, nothing that
//!   waits for another thread. Those who wait spend a processor, or a sleep and a wake-up, on every
//!   section.
//! * **More runnable threads than processors** is what [`linux::SpinLock`] and [`linux::CnaLock`]
//!   are made for. With a lock that is first come, first served a program is correct, but slow. The
//!   lock goes to the next in the queue even if that thread is off its processor. All others wait until
//!   the scheduler brings it back, for milliseconds.
//! * **Priorities**: none is inherited, and **a wait for a spin lock has no bound** where the
//!   waiter has preempted the holder. A real-time thread (`SCHED_FIFO`) that spins for an ordinary
//!   one on the same processor keeps it from running, because its yields go to threads of its own
//!   priority only. The sleeping locks that are named above have no such wait inside: a thread that
//!   finds a queue of theirs locked looks for a bounded time, below 1 ms, and then sleeps. ([`raw`]
//!   has others, for comparison, that queue under spin locks.)
//! * **Locking twice** from one thread never returns. Nothing detects it, but that FreeBSD's locks
//!   know their holder ([`freebsd::Checked`]), and have forms that can be locked again
//!   ([`freebsd::RecursiveMtx`]).
//! * **Panics** release the lock. The data stays as the panicking section left it: there is no
//!   poisoning, but in [`poison`].
//! * **Async**: a guard is not `Send`, so that a task which holds one across an `.await` cannot be
//!   spawned on an executor with several threads. On one with a single thread it compiles, and the
//!   next task that wants the lock hangs them all. Drop guards before `.await`.
//! * **Signal handlers** may lock what the code they interrupt neither holds nor waits for:
//!   elsewhere, block the signal around such a lock. A thread with such handlers calls
//!   [`process::register_thread`] first. Guards of [`classic::McsLock`] and [`classic::ClhLock`]
//!   may allocate; in a handler, use [`lock_with`](classic::LockWith).
//! * **`fork`**: the child may use each lock that no other thread of the parent held, waited for or
//!   was about to release. Others may stay locked in the child. The same holds of a
//!   [`Cancellation`] that another thread was using. A signal handler that interrupts a lock must
//!   not fork.
//!
//! Waiters of [`Mutex`] and FreeBSD's locks that sleep are in a table that the process shares. A
//! signal handler must not lock or unlock one, unless the signal is blocked wherever any of them is
//! used. It may always call [`Cancellation::cancel`]. In the child of a `fork` the table is empty,
//! whatever other threads of the parent waited for.
//!
//! # Generic code
//!
//! All are mutexes or reader-writer locks of [`lock_api`] 0.5 (re-exported) over the raw locks of
//! [`raw`]. With the feature `lock_api_04`, raw locks whose guards hold nothing are those of
//! `lock_api` 0.4 too. [`MutexGuard::map`] narrows a guard to a part of the data; see
//! [`MappedMutexGuard`]. Waiters of the sleeping locks can leave the queue: they are timed
//! (`try_lock_for`, `try_read_until`, ...), and can be cancelled ([`Cancellation`]). Those of spin
//! locks cannot.
//!
//! | feature | what it adds |
//! |---|---|
//! | `collection` | the modules `classic`, `linux` and `freebsd` |
//! | `lock_api_04` | [`raw::Nodeless`] implements `RawMutex`, `RawRwLock` and their timed forms of `lock_api` 0.4 |
//! | `arc_lock` | `lock_arc` and guards that keep the lock alive |
//! | `serde` | locks are serialized as what they protect |
//!
//! None is on by default, and none changes a lock. [`process`] has what belongs to the process and
//! its threads: settings, counters, and the NUMA node that a thread claims.

// The locks of the collection are named throughout.
#![cfg_attr(not(feature = "collection"), allow(rustdoc::broken_intra_doc_links))]

pub use lock_api;
#[cfg(feature = "lock_api_04")]
pub use lock_api_04;

/// A mutex over a raw lock, and its guards.
macro_rules! guarded {
    ($(#[$doc:meta])* $lock:ident, $guard:ident, $mapped:ident = $raw:ty;) => {
        $(#[$doc])*
        pub type $lock<T> = crate::lock_api::Mutex<$raw, T>;

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
        pub type $guard<'a, T> = crate::lock_api::MutexGuard<'a, $raw, T>;

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
        pub type $mapped<'a, T> = crate::lock_api::MappedMutexGuard<'a, $raw, T>;
    };
}

/// A reader-writer lock over a raw lock, and its guards.
#[cfg(feature = "collection")]
macro_rules! guarded_rw {
    ($(#[$doc:meta])* $lock:ident, $read:ident, $write:ident, $mapped_read:ident, $mapped_write:ident = $raw:ty;) => {
        $(#[$doc])*
        pub type $lock<T> = crate::lock_api::RwLock<$raw, T>;

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
        pub type $read<'a, T> = crate::lock_api::RwLockReadGuard<'a, $raw, T>;

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
        pub type $write<'a, T> = crate::lock_api::RwLockWriteGuard<'a, $raw, T>;

        #[doc = concat!("Shared access to a part of what a [`", stringify!($lock), "`] protects. Unlocks when it is dropped.")]
        ///
        /// ```
        #[doc = concat!("use ", module_path!(), "::{", stringify!($lock), ", ", stringify!($read), "};")]
        ///
        #[doc = concat!("let pair = ", stringify!($lock), "::new((1, 2));")]
        #[doc = concat!("let first = ", stringify!($read), "::map(pair.read(), |pair| &pair.0);")]
        /// assert_eq!(*first, 1);
        /// ```
        pub type $mapped_read<'a, T> = crate::lock_api::MappedRwLockReadGuard<'a, $raw, T>;

        #[doc = concat!("Exclusive access to a part of what a [`", stringify!($lock), "`] protects. Unlocks when it is dropped.")]
        ///
        /// ```
        #[doc = concat!("use ", module_path!(), "::{", stringify!($lock), ", ", stringify!($write), "};")]
        ///
        #[doc = concat!("let pair = ", stringify!($lock), "::new((1, 2));")]
        #[doc = concat!("*", stringify!($write), "::map(pair.write(), |pair| &mut pair.0) = 3;")]
        /// assert_eq!(pair.into_inner(), (3, 2));
        /// ```
        pub type $mapped_write<'a, T> = crate::lock_api::MappedRwLockWriteGuard<'a, $raw, T>;
    };
}

mod cancellation;
#[cfg(feature = "collection")]
pub mod classic;
#[cfg(feature = "collection")]
pub mod freebsd;
#[cfg(feature = "collection")]
pub mod linux;
pub mod near;
pub mod poison;
#[cfg(feature = "collection")]
mod pool;
pub mod process;
pub mod raw;

pub use cancellation::{Cancellation, Cancelled, LockCancellable, RwLockCancellable};
pub use near::{
    Condvar, MappedMutexGuard, Mutex, MutexGuard, RawCondvar, RawMutex, WaitCancellable, WaitTimeoutResult,
};

/// The examples of the README are compiled and run.
#[cfg(all(doctest, feature = "collection"))]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;
