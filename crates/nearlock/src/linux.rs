//! The locks of the Linux kernel.
//!
//! Their queue nodes belong to the threads. In a process with more than 16383 threads that have waited for
//! such a lock, further ones wait without a place in the queue, and can starve.
//!
//! [`SpinLock`] and [`CnaLock`] are the forms for programs, whose threads may lose their processors:
//! newcomers may take the lock ahead of a queue that is not ready for it, and waiters sleep. [`FifoSpinLock`] and
//! the raw locks named after nothing else are the kernel's forms for threads that have a processor each.

use nearlock_core::linux::{cna, cna_v13, qspinlock};
use nearlock_os::Os;

use crate::raw::Nodeless;

/// Linux' queued spinlock, without data.
pub type RawQSpinLock = qspinlock::QSpinLock<Os>;

/// The same for threads that may lose their processors, without data.
pub type RawPreemptibleQSpinLock = qspinlock::QSpinLock<Os, qspinlock::Fifo, qspinlock::Preemptible>;

/// CNA in its final form, version 15 of its patch series, without data.
pub type RawCnaV15Lock = cna::CnaLock<Os>;

/// The same for threads that may lose their processors, without data.
pub type RawPreemptibleCnaLock = qspinlock::QSpinLock<Os, cna::Cna, qspinlock::Preemptible>;

/// CNA as version 13 of its patch series had it, the one of the published tables, without data. Its threshold is 10 ms.
pub type RawCnaV13Lock = cna_v13::CnaV13Lock<Os>;

/// The raw lock of [`SpinLock`], for code that is generic over `lock_api`'s `RawMutex`.
pub type RawSpinLock = Nodeless<RawPreemptibleQSpinLock>;

/// The raw lock of [`FifoSpinLock`], for code that is generic over `lock_api`'s `RawMutex`.
pub type RawFifoSpinLock = Nodeless<RawQSpinLock>;

/// The raw lock of [`CnaLock`], for code that is generic over `lock_api`'s `RawMutex`.
pub type RawCnaLock = Nodeless<RawPreemptibleCnaLock>;

guarded! {
    /// Linux' queued spinlock around data: the lock to begin with.
    ///
    /// Space: 4 bytes and the data. A waiter's queue node belongs to its thread, which has four, for slow
    /// paths in signal handlers on top of each other.
    ///
    /// Waiting: 128 looks (1 to 6 us), then the waiter sleeps. With a lock that nobody waits for, `lock` and
    /// `unlock` are one compare-exchange each.
    ///
    /// Fairness: newcomers overtake the queue while the first in it is asleep or on its way back, however many come in
    /// that time. Once it has come back in vain about a thousand times, nobody overtakes it any more. The queue itself
    /// is first come, first served.
    ///
    /// Ordering: what happened in one section happens before what follows in the next.
    ///
    /// Not for long sections: see [What spinning means](crate#what-spinning-means).
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use nearlock::linux::SpinLock;
    ///
    /// let stock = SpinLock::new(HashMap::from([("apples", 3)]));
    /// {
    ///     let mut stock = stock.lock();
    ///     *stock.entry("apples").or_insert(0) -= 1;
    /// } // unlocked here
    /// assert_eq!(stock.try_lock().expect("is free")["apples"], 2);
    /// assert!(!stock.is_locked());
    /// ```
    ///
    /// A guard stays on its thread:
    ///
    /// ```compile_fail,E0277
    /// use nearlock::linux::SpinLock;
    ///
    /// let lock = SpinLock::new(1);
    /// let guard = lock.lock();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || drop(guard));
    /// });
    /// ```
    SpinLock, SpinLockGuard, MappedSpinLockGuard = RawSpinLock;
}

guarded! {
    /// Linux' queued spinlock as the kernel has it, around data: for threads that have a processor each.
    ///
    /// Space: as [`SpinLock`].
    ///
    /// Waiting: by pauses, and by offering the processor to others after 128 of them. Never sleeps; the release is one
    /// byte store.
    ///
    /// Fairness: first come, first served; one waiter, the first to find the lock taken, goes ahead of the queue.
    ///
    /// Ordering: what happened in one section happens before what follows in the next.
    ///
    /// Not for more runnable threads than processors, where its throughput falls to that of the scheduler: see
    /// [What spinning means](crate#what-spinning-means).
    ///
    /// ```
    /// use nearlock::linux::FifoSpinLock;
    ///
    /// static TURNS: FifoSpinLock<Vec<u32>> = FifoSpinLock::new(Vec::new());
    ///
    /// TURNS.lock().push(1);
    /// assert_eq!(*TURNS.lock(), [1]);
    /// ```
    FifoSpinLock, FifoSpinLockGuard, MappedFifoSpinLockGuard = RawFifoSpinLock;
}

guarded! {
    /// The NUMA-aware queued spinlock around data: the lock stays within a NUMA node for as long as its threshold
    /// allows.
    ///
    /// For locks that threads of several NUMA nodes contend for. With one node it only costs.
    ///
    /// Space: as [`SpinLock`].
    ///
    /// Fairness: that of [`SpinLock`] within a NUMA node. In the queue the other nodes are overtaken for a threshold
    /// (1 ms, see [`Setting::CnaThresholdNs`](crate::process::Setting::CnaThresholdNs)) at a time, a few times where
    /// there are several.
    ///
    /// Ordering: what happened in one section happens before what follows in the next.
    ///
    /// Not for long sections: see [What spinning means](crate#what-spinning-means).
    ///
    /// ```
    /// use nearlock::linux::CnaLock;
    ///
    /// static NEXT_ID: CnaLock<u64> = CnaLock::new(1);
    ///
    /// fn next_id() -> u64 {
    ///     let mut next = NEXT_ID.lock();
    ///     *next += 1;
    ///     *next - 1
    /// }
    /// assert_eq!((next_id(), next_id()), (1, 2));
    /// ```
    CnaLock, CnaLockGuard, MappedCnaLockGuard = RawCnaLock;
}

const _: () = assert!(size_of::<RawQSpinLock>() == 4);
const _: () = assert!(size_of::<RawCnaV15Lock>() == 4);
const _: () = assert!(size_of::<RawCnaV13Lock>() == 4);
const _: () = assert!(size_of::<RawPreemptibleQSpinLock>() == 4);
const _: () = assert!(size_of::<RawPreemptibleCnaLock>() == 4);
const _: () = assert!(size_of::<SpinLock<()>>() == 4);
const _: () = assert!(size_of::<FifoSpinLock<()>>() == 4);
const _: () = assert!(size_of::<CnaLock<()>>() == 4);
const _: () = assert!(size_of::<SpinLockGuard<'_, u8>>() == size_of::<usize>());
const _: () = assert!(size_of::<CnaLockGuard<'_, u8>>() == size_of::<usize>());
