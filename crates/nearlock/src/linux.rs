//! The locks of the Linux kernel.
//!
//! Their queue nodes belong to the threads. In a process with more than 16383 threads that have
//! waited for such a lock, further ones wait without a place in the queue, and can starve.
//!
//! [`SpinLock`] and [`CnaLock`] are the forms for programs, whose threads may lose their
//! processors: newcomers may take the lock ahead of a queue that is not ready for it, and waiters
//! sleep. [`FifoSpinLock`] and the raw spin locks named after nothing else are the kernel's forms
//! for threads that have a processor each.
//!
//! [`Mutex`] and [`RwSem`] are for sections that last: waiters spin only while it is worth it, and
//! sleep in a queue. They can be waited for within a time, or until somebody cancels.
//!
//! # Freeing a sleeping lock
//!
//! A guard's drop looks at its lock after others may have it. Borrows and `Arc` see to it that the
//! lock is alive by then; unsafe code that frees one must know that every guard's drop has
//! returned, not just that it has locked last.

use nearlock_collection::linux::{cna, cna_v13, counter_mutex, mutex, qspinlock, rwsem};
use nearlock_core::parking::QueueLock;
use nearlock_core::tuning::Standard;
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

/// CNA as version 13 of its patch series had it, the one of the published tables, without data. Its
/// threshold is 10 ms.
pub type RawCnaV13Lock = cna_v13::CnaV13Lock<Os>;

/// The raw lock of [`SpinLock`], for code that is generic over `lock_api`'s `RawMutex`.
pub type RawSpinLock = Nodeless<RawPreemptibleQSpinLock>;

/// The raw lock of [`FifoSpinLock`], for code that is generic over `lock_api`'s `RawMutex`.
pub type RawFifoSpinLock = Nodeless<RawQSpinLock>;

/// The raw lock of [`CnaLock`], for code that is generic over `lock_api`'s `RawMutex`.
pub type RawCnaLock = Nodeless<RawPreemptibleCnaLock>;

/// Linux' mutex since 4.9, without data.
pub type RawLinuxMutex = mutex::LinuxMutex<Os>;

/// Linux' mutex of version 3.7, with the patch that reads before it writes, without data. In place
/// of the kernel's ticket lock, which excludes at most 2^16 threads, its queue has a [`QueueLock`],
/// whose waiters sleep.
pub type RawLinuxCounterMutex =
    counter_mutex::CounterMutex<Os, counter_mutex::Crowd, Standard, QueueLock<Os>>;

/// Linux' reader-writer semaphore since 5.11, without data. Its queue has the lock of that of
/// [`RawLinuxMutex`].
pub type RawLinuxRwsem = rwsem::Rwsem<Os, Standard, QueueLock<Os>>;

/// The raw lock of [`Mutex`], for code that is generic over `lock_api`'s `RawMutex` or
/// `RawMutexTimed`.
pub type RawMutex = Nodeless<RawLinuxMutex>;

/// The raw lock of [`CounterMutex`], for code that is generic over `lock_api`'s `RawMutex` or
/// `RawMutexTimed`.
pub type RawCounterMutex = Nodeless<RawLinuxCounterMutex>;

/// The raw lock of [`RwSem`], for code that is generic over `lock_api`'s `RawRwLock` or
/// `RawRwLockTimed`.
pub type RawRwSem = Nodeless<RawLinuxRwsem>;

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
    /// Priorities: a waiter that has preempted the holder, or one before it in the queue, waits
    /// without bound if its priority is higher.
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
    /// Priorities: a waiter that has preempted the holder, or one before it in the queue, waits
    /// without bound if its priority is higher.
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
    /// Priorities: a waiter that has preempted the holder, or one before it in the queue, waits
    /// without bound if its priority is higher.
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

guarded! {
    /// Linux' mutex around data: for sections that are long, or wait for something.
    ///
    /// Space: 32 bytes and the data; a waiter's place in the queue is on its stack.
    ///
    /// Waiting: one waiter at a time spins while the holder runs, for at most `spin.budget-ns`
    /// ([`Setting::SpinBudgetNs`](crate::process::Setting::SpinBudgetNs), 20 us); the others sleep, and so does whoever waits
    /// for a holder that sleeps. If nobody waits, `lock` and `unlock` are one compare-exchange each.
    ///
    /// Fairness: newcomers and spinners overtake the queue until its first has been woken once in vain. From then on others
    /// have the mutex once more at most. There is no bound in time.
    ///
    /// Ordering: what happened in one section happens before what follows in the next.
    ///
    /// Timed by `try_lock_for` and `try_lock_until`; until cancelled by
    /// [`lock_cancellable`](crate::LockCancellable::lock_cancellable). A mutex that is free is locked even if the time
    /// has passed; who spins for one that is not sees that it has, and gives up.
    ///
    /// Not for signal handlers, nor to be locked twice by one thread, which never returns.
    ///
    /// ```
    /// use std::time::Duration;
    /// use nearlock::linux::Mutex;
    ///
    /// static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());
    ///
    /// LOG.lock().push("begun".to_owned());
    /// match LOG.try_lock_for(Duration::from_millis(10)) {
    ///     Some(mut log) => log.push("ended".to_owned()),
    ///     None => eprintln!("somebody writes the log for long"),
    /// }
    /// assert_eq!(LOG.lock().len(), 2);
    /// ```
    Mutex, MutexGuard, MappedMutexGuard = RawMutex;
}

guarded! {
    /// Linux' mutex of version 3.7 around data, for comparison with [`Mutex`].
    ///
    /// Space: 32 bytes and the data; a waiter's place in the queue is on its stack.
    ///
    /// Waiting: all who come spin while the holder runs, for at most `spin.budget-ns`, and sleep then. If nobody waits,
    /// `lock` and `unlock` are an atomic instruction each.
    ///
    /// Fairness: none. A waiter that has been woken has to compete with all who come, each time anew.
    ///
    /// Ordering: what happened in one section happens before what follows in the next.
    ///
    /// Timed and cancellable as [`Mutex`].
    ///
    /// ```
    /// use nearlock::linux::CounterMutex;
    ///
    /// let count = CounterMutex::new(0);
    /// std::thread::scope(|scope| {
    ///     for _ in 0..4 {
    ///         scope.spawn(|| *count.lock() += 1);
    ///     }
    /// });
    /// assert_eq!(count.into_inner(), 4);
    /// ```
    CounterMutex, CounterMutexGuard, MappedCounterMutexGuard = RawCounterMutex;
}

guarded_rw! {
    /// Linux' reader-writer semaphore around data: many readers or one writer, for sections that last.
    ///
    /// For data that are mostly read, in sections that are long enough for readers to be in them together. With short ones
    /// a [`Mutex`] or a [`SpinLock`] is faster, as all readers write to the lock's word.
    ///
    /// Space: 40 bytes and the data; a waiter's place in the queue is on its stack.
    ///
    /// Waiting: as [`Mutex`]; readers sleep at once.
    ///
    /// Fairness: who has waited for 4 ms and is first in the queue is not overtaken any more, as soon as it, or somebody
    /// who wakes it, looks. Readers of the queue are let in together, 256 at a time, past the writers between them.
    ///
    /// Ordering: a writer's section happens before the sections that follow; those of readers before the next writer's.
    ///
    /// Timed by `try_read_for`, `try_write_for` and their `_until`; until cancelled by
    /// [`RwLockCancellable`](crate::RwLockCancellable). Write guards can be downgraded.
    ///
    /// A thread that reads already must not read again: a writer that waits in between stops it for ever. Not for
    /// signal handlers.
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use nearlock::linux::{RwSem, RwSemWriteGuard};
    ///
    /// static ROUTES: RwSem<Option<HashMap<&str, u16>>> = RwSem::new(None);
    ///
    /// let mut routes = ROUTES.write();
    /// routes.get_or_insert_default().insert("home", 1);
    /// let routes = RwSemWriteGuard::downgrade(routes);
    /// let others = ROUTES.read(); // readers are there together
    /// assert_eq!(routes.as_ref().unwrap()["home"], others.as_ref().unwrap().len() as u16);
    /// ```
    RwSem, RwSemReadGuard, RwSemWriteGuard, MappedRwSemReadGuard, MappedRwSemWriteGuard = RawRwSem;
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
/// Bytes of the sleeping mutexes: three words of four, and the two pointers of a queue. 32, or 20
/// where pointers have four.
const MUTEX_SIZE: usize = (12 + 2 * size_of::<usize>()).next_multiple_of(size_of::<usize>());
const _: () = assert!(size_of::<Mutex<()>>() == MUTEX_SIZE);
const _: () = assert!(size_of::<CounterMutex<()>>() == MUTEX_SIZE);
const _: () = assert!(size_of::<RwSem<()>>() == (20 + 2 * size_of::<usize>()).next_multiple_of(8));
const _: () = assert!(size_of::<MutexGuard<'_, u8>>() == size_of::<usize>());
const _: () = assert!(size_of::<RwSemReadGuard<'_, u8>>() == size_of::<usize>());
