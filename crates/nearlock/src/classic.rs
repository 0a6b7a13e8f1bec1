//! Locks from the literature, and that of the C library.
//!
//! Each `XLock<T>` guards data; the `RawXLock` in it has none, and its caller keeps the promises of
//! [`RawLock`](crate::raw::RawLock). The callers of some bring a queue node for each acquisition.
//! Their guards take it from a pool of the thread; [`LockWith`] has it on the stack instead.

use nearlock_collection::classic::{clh, cohort, glibc_mutex, hmcs, mcs, tas, ticket, ttas};
use nearlock_os::Os;

pub use crate::pool::LockWith;
use crate::raw::{Nodeless, Pooled};

/// Queue lock whose nodes the callers bring, and keep in place until they have unlocked. Without
/// that burden, and half as big: [`RawQSpinLock`](crate::linux::RawQSpinLock).
pub type RawMcsLock = mcs::McsLock<Os>;

/// The node that an acquisition of [`RawMcsLock`] brings.
pub type RawMcsNode = mcs::Node<Os>;

/// Queue lock with nodes of 4 bytes that the callers bring; otherwise as [`RawMcsLock`]. Its
/// `unlock` waits until the next waiter has seen that the lock is free.
pub type RawClhLock = clh::ClhLock<Os>;

/// The node that an acquisition of [`RawClhLock`] brings.
pub type RawClhNode = clh::Node<Os>;

/// An MCS queue for each NUMA node, and an MCS lock that they compete for. For locks contended by
/// threads of several NUMA nodes, where a wait must not last a threshold of milliseconds, and a
/// lock may have 1152 bytes. Has no guards: it must stay where it is while it is held.
pub type RawHmcsLock = hmcs::HmcsLock<Os>;

/// The node that an acquisition of [`RawHmcsLock`] brings.
pub type RawHmcsNode = hmcs::Node<Os>;

/// Lock cohorting: as [`RawHmcsLock`], with a ticket lock above the queues.
pub type RawCohortLock = cohort::CohortLock<Os>;

/// The node that an acquisition of [`RawCohortLock`] brings.
pub type RawCohortNode = cohort::Node<Os, RawMcsNode>;

/// Two counters in one word that everybody spins on: first come, first served, for locks with few
/// waiters. Has no guards: it excludes only as long as at most 2^16 threads hold and wait for it.
pub type RawTicketLock = ticket::TicketLock<Os>;

/// One word, and waiters that sleep at once: the C library's mutex. For comparison with
/// [`linux::Mutex`](crate::linux::Mutex), whose waiters spin first.
pub type RawGlibcMutex = glibc_mutex::GlibcMutex<Os>;

/// One word that everybody tries to write. The baseline: [`RawTtasLock`] is better in every way.
pub type RawTasLock = tas::TasLock<Os>;

/// One word that everybody spins on. For locks that are hardly ever contended; unfair.
pub type RawTtasLock = ttas::TtasLock<Os>;

guarded! {
    /// MCS queue lock around data: each waiter spins on its own cache line.
    ///
    /// For programs that need first come, first served without exception, or have more threads than
    /// [`linux::SpinLock`](crate::linux::SpinLock) has places for. Otherwise that is smaller and no slower.
    ///
    /// Space: a pointer and the data; for each acquisition under way 128 bytes of a pool of the thread, or 16 on the
    /// stack with [`LockWith`].
    ///
    /// Fairness: first come, first served.
    ///
    /// Priorities: a waiter that has preempted the holder, or one before it in the queue, waits
    /// without bound if its priority is higher.
    ///
    /// Ordering: what happened in one section happens before what follows in the next.
    ///
    /// Not for long sections, nor for more runnable threads than processors: see
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
    /// CLH queue lock around data: each waiter spins on the node of the one before it.
    ///
    /// For comparison with [`McsLock`]: a release that has a successor also waits until that one has seen it.
    ///
    /// Space: a pointer and the data; for each acquisition under way 128 bytes of a pool of the thread, or 4 on the
    /// stack with [`LockWith`].
    ///
    /// Fairness: first come, first served.
    ///
    /// Priorities: a waiter that has preempted the holder, or one before it in the queue, waits
    /// without bound if its priority is higher.
    ///
    /// Ordering: what happened in one section happens before what follows in the next.
    ///
    /// Not for long sections, nor for more runnable threads than processors: see
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
    /// Test-and-test-and-set lock around data: one word, everybody spins on it.
    ///
    /// For locks that are hardly ever contended, and as the baseline of comparisons.
    ///
    /// Space: 4 bytes and the data.
    ///
    /// Fairness: none. After a release any waiter or newcomer may win, and a wait has no bound.
    ///
    /// Priorities: a waiter that has preempted the holder, or one before it in the queue, waits
    /// without bound if its priority is higher.
    ///
    /// Ordering: what happened in one section happens before what follows in the next.
    ///
    /// Not for long sections: see [What spinning means](crate#what-spinning-means). With more runnable threads than
    /// processors it does better than the queue locks, because whoever runs may take it.
    ///
    /// ```
    /// use nearlock::classic::TtasLock;
    ///
    /// let mut hits = TtasLock::new(0_u64);
    /// *hits.lock() += 1;
    /// *hits.get_mut() += 1; // nobody else can have it: no locking
    /// assert_eq!(hits.into_inner(), 2);
    /// ```
    TtasLock, TtasLockGuard, MappedTtasLockGuard = Nodeless<RawTtasLock>;
}

guarded! {
    /// The C library's mutex around data: one word, and waiters that sleep at once.
    ///
    /// For comparison with what `pthread_mutex_t` does under a Rust program, and for programs that hold it for long. Who is
    /// held up for a microsecond only is better off with [`linux::Mutex`](crate::linux::Mutex), whose waiters spin first.
    ///
    /// Space: 4 bytes and the data.
    ///
    /// Fairness: none. A release wakes a waiter, and whoever comes first takes it.
    ///
    /// Ordering: what happened in one section happens before what follows in the next.
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
