//! Locks from the literature, and the mutex of the C library.
//!
//! Each `XLock<T>` protects data. A `RawXLock` is the lock in it, without data, whose caller
//! upholds the contract of [`RawLock`](crate::raw::RawLock). Some locks need a queue node from the
//! caller for each acquisition. Their guards take it from a pool of the thread. [`LockWith`] has it
//! on the stack instead.

use nearlock_collection::classic::{clh, cohort, glibc_mutex, hmcs, mcs, tas, ticket, ttas};
use nearlock_os::Os;

pub use crate::pool::LockWith;
use crate::raw::{Nodeless, Pooled};

/// MCS queue lock, with queue nodes from the callers. The caller keeps its node in place until it
/// has unlocked the lock. [`RawQSpinLock`](crate::linux::RawQSpinLock) needs no nodes from its
/// callers, and is half as big.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawMcsLock = mcs::McsLock<Os>;

/// The queue node of an acquisition of [`RawMcsLock`].
pub type RawMcsNode = mcs::Node<Os>;

/// CLH queue lock, with queue nodes of 4 bytes from the callers; otherwise as [`RawMcsLock`]. Its
/// `unlock` waits until the next waiter has seen that the lock is free.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawClhLock = clh::ClhLock<Os>;

/// The queue node of an acquisition of [`RawClhLock`].
pub type RawClhNode = clh::Node<Os>;

/// HMCS lock: an MCS queue for each NUMA node, and an MCS lock that these queues compete for. For
/// locks that threads of several NUMA nodes contend for, where a wait must not last for a threshold
/// of milliseconds, and 1152 bytes are acceptable. It has no guards, because it must not move while
/// it is held.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawHmcsLock = hmcs::HmcsLock<Os>;

/// The queue node of an acquisition of [`RawHmcsLock`].
pub type RawHmcsNode = hmcs::Node<Os>;

/// Cohort lock: as [`RawHmcsLock`], with a ticket lock that the queues compete for.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawCohortLock = cohort::CohortLock<Os>;

/// The queue node of an acquisition of [`RawCohortLock`].
pub type RawCohortNode = cohort::Node<Os, RawMcsNode>;

/// Ticket lock: two counters in one word, on which all waiters spin. First come, first served, for
/// locks with few waiters. It has no guards: it excludes only as long as at most 2^16 threads hold
/// it or wait for it.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawTicketLock = ticket::TicketLock<Os>;

/// The C library's mutex: one word, and waiters that sleep at once. For comparison with
/// [`linux::Mutex`](crate::linux::Mutex), whose waiters spin first.
pub type RawGlibcMutex = glibc_mutex::GlibcMutex<Os>;

/// Test-and-set lock: one word, to which all waiters write. It is the baseline of comparisons.
/// [`RawTtasLock`] is better in every way.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawTasLock = tas::TasLock<Os>;

/// Test-and-test-and-set lock: one word, on which all waiters spin. For locks that are hardly ever
/// contended. Unfair.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawTtasLock = ttas::TtasLock<Os>;

guarded! {
    /// MCS queue lock that protects data: each waiter spins on its own cache line.
    ///
    /// For programs that need first come, first served without exception, or that have more threads
    /// than [`linux::SpinLock`](crate::linux::SpinLock) has queue nodes for. Otherwise `SpinLock`
    /// is smaller and no slower.
    ///
    /// Space: a pointer and the data. For each acquisition that waits or holds the lock, 128 bytes
    /// from a pool of the thread, or 16 bytes on the stack with [`LockWith`].
    ///
    /// Fairness: first come, first served.
    ///
    /// Priorities: a waiter that has preempted the holder, or a waiter before it in the queue,
    /// waits without bound if its priority is higher.
    /// So does a holder that unlocks, if it has preempted the next waiter while that one joins the
    /// queue.
    ///
    /// Ordering: each critical section happens before the next one.
    ///
    /// Not for long critical sections, nor for more runnable threads than processors: see
    /// [What spinning means](crate#what-spinning-means).
    ///
    /// ```
    /// use nearlock::classic::{LockWith, McsLock};
    ///
    /// let jobs = McsLock::new(vec!["sweep", "wash"]);
    /// jobs.lock().push("iron"); // node from the thread's pool
    /// let next = jobs.lock_with(|jobs| jobs.pop()); // node on the stack
    /// assert_eq!(next, Some("iron"));
    /// ```
    McsLock, McsLockGuard, MappedMcsLockGuard = Pooled<RawMcsLock>;
}

guarded! {
    /// CLH queue lock that protects data: each waiter spins on the queue node of its predecessor.
    ///
    /// For comparison with [`McsLock`]: an unlock that has a successor also waits until the
    /// successor has seen it.
    ///
    /// Space: a pointer and the data. For each acquisition that waits or holds the lock, 128 bytes
    /// from a pool of the thread, or 4 bytes on the stack with [`LockWith`].
    ///
    /// Fairness: first come, first served.
    ///
    /// Priorities: a waiter that has preempted the holder, or a waiter before it in the queue,
    /// waits without bound if its priority is higher.
    /// So does a holder that unlocks, until the next waiter has seen that the lock is free.
    ///
    /// Ordering: each critical section happens before the next one.
    ///
    /// Not for long critical sections, nor for more runnable threads than processors: see
    /// [What spinning means](crate#what-spinning-means).
    ///
    /// ```
    /// use nearlock::classic::{ClhLock, LockWith};
    ///
    /// let longest = ClhLock::new(String::new());
    /// for word in ["lock", "word", "waiter", "node"] {
    ///     longest.lock_with(|longest| {
    ///         if word.len() > longest.len() {
    ///             *longest = word.to_owned();
    ///         }
    ///     });
    /// }
    /// assert_eq!(*longest.lock(), "waiter");
    /// ```
    ClhLock, ClhLockGuard, MappedClhLockGuard = Pooled<RawClhLock>;
}

guarded! {
    /// Test-and-test-and-set lock that protects data: one word, on which all waiters spin.
    ///
    /// For locks that are hardly ever contended, and as the baseline of comparisons.
    ///
    /// Space: 4 bytes and the data.
    ///
    /// Fairness: none. After an unlock any waiter or newcomer may lock the lock. A wait has no
    /// bound.
    ///
    /// Priorities: a waiter that has preempted the holder waits without bound if its priority is
    /// higher.
    ///
    /// Ordering: each critical section happens before the next one.
    ///
    /// Not for long critical sections: see [What spinning means](crate#what-spinning-means). With
    /// more runnable threads than processors it is faster than the queue locks, because any running
    /// thread may lock it.
    ///
    /// ```
    /// use nearlock::classic::TtasLock;
    ///
    /// let mut hits = TtasLock::new(0_u64);
    /// *hits.lock() += 1;
    /// *hits.get_mut() += 1; // no other thread can have it: no locking
    /// assert_eq!(hits.into_inner(), 2);
    /// ```
    TtasLock, TtasLockGuard, MappedTtasLockGuard = Nodeless<RawTtasLock>;
}

guarded! {
    /// The C library's mutex that protects data: one word, and waiters that sleep at once.
    ///
    /// For comparison with `pthread_mutex_t`, and for programs that hold the mutex for long. For
    /// waits of only a microsecond [`linux::Mutex`](crate::linux::Mutex) is better, since its
    /// waiters spin first.
    ///
    /// Space: 4 bytes and the data.
    ///
    /// Fairness: none. An unlock wakes one waiter, which competes with newcomers.
    ///
    /// Ordering: each critical section happens before the next one.
    ///
    /// ```
    /// use nearlock::classic::GlibcMutex;
    ///
    /// let names = GlibcMutex::new(vec!["swap"]);
    /// names.lock().push("exchange");
    /// assert_eq!(names.into_inner().len(), 2);
    /// ```
    GlibcMutex, GlibcMutexGuard, MappedGlibcMutexGuard = Nodeless<RawGlibcMutex>;
}

const _: () = assert!(size_of::<McsLock<()>>() == size_of::<usize>());
const _: () = assert!(size_of::<McsLockGuard<'_, u8>>() == 2 * size_of::<usize>());
const _: () = assert!(size_of::<ClhLock<()>>() == size_of::<usize>());
const _: () = assert!(size_of::<TtasLock<()>>() == 4);
const _: () = assert!(size_of::<GlibcMutex<()>>() == 4);
const _: () = assert!(size_of::<RawTasLock>() == 4);
const _: () = assert!(size_of::<RawTicketLock>() == 4);
const _: () = assert!(size_of::<RawHmcsLock>() == 9 * 128);
const _: () = assert!(size_of::<RawCohortLock>() == 9 * 128);
const _: () = assert!(size_of::<TtasLockGuard<'_, u8>>() == size_of::<usize>());
