//! The locks of the Linux kernel.
//!
//! Queue nodes belong to threads. Each thread that waits for such a lock gets its nodes, up to
//! 16383 threads of the process. Further threads wait without a place in the queue, and can starve.
//!
//! [`SpinLock`] and [`CnaLock`] are the forms for programs, whose threads may be preempted.
//! Newcomers may take the lock ahead of a queue that is not ready for it, and waiters sleep. The
//! kernel's forms are for threads that have a processor each: [`FifoSpinLock`], [`RawQSpinLock`],
//! [`RawCnaV15Lock`] and [`RawCnaV13Lock`].
//!
//! [`Mutex`] and [`RwSem`] are for long critical sections. Waiters spin only while it is worth it,
//! and then sleep in a queue. A wait can have a timeout, and can be cancelled.
//!
//! # Freeing a sleeping lock
//!
//! The drop of a guard accesses its lock after other threads may have locked it. Borrows and `Arc`
//! keep the lock alive until then. Unsafe code that frees such a lock must know that the drops of
//! all guards have returned. It is not enough that its thread was the last to lock it.

use nearlock_collection::linux::{cna, cna_v13, counter_mutex, mutex, qspinlock, rwsem};
use nearlock_core::parking::QueueLock;
use nearlock_core::tuning::Standard;
use nearlock_os::Os;

use crate::raw::Nodeless;

/// Linux' queued spinlock, without data.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawQSpinLock = qspinlock::QSpinLock<Os>;

/// The same for threads that may be preempted, without data.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawPreemptibleQSpinLock = qspinlock::QSpinLock<Os, qspinlock::Fifo, qspinlock::Preemptible>;

/// CNA in its final form, version 15 of its patch series, without data.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawCnaV15Lock = cna::CnaLock<Os>;

/// The same for threads that may be preempted, without data.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawPreemptibleCnaLock = qspinlock::QSpinLock<Os, cna::Cna, qspinlock::Preemptible>;

/// CNA as in version 13 of its patch series, without data. This is the version of the published
/// tables. Its threshold is 10 ms.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawCnaV13Lock = cna_v13::CnaV13Lock<Os>;

/// The raw lock of [`SpinLock`], for code that is generic over `lock_api`'s `RawMutex`.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawSpinLock = Nodeless<RawPreemptibleQSpinLock>;

/// The raw lock of [`FifoSpinLock`], for code that is generic over `lock_api`'s `RawMutex`.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawFifoSpinLock = Nodeless<RawQSpinLock>;

/// The raw lock of [`CnaLock`], for code that is generic over `lock_api`'s `RawMutex`.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawCnaLock = Nodeless<RawPreemptibleCnaLock>;

/// Linux' mutex since 4.9, without data.
pub type RawLinuxMutex = mutex::LinuxMutex<Os>;

/// The mutex of Linux 3.7, with the patch that reads before it writes, without data. Its queue is
/// under a [`QueueLock`], whose waiters sleep. The kernel's ticket lock would exclude at most 2^16
/// threads.
pub type RawLinuxCounterMutex =
    counter_mutex::CounterMutex<Os, counter_mutex::Crowd, Standard, QueueLock<Os>>;

/// Linux' reader-writer semaphore since 5.11, without data. Its queue is under the same lock as
/// that of [`RawLinuxMutex`].
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
    /// Linux' queued spinlock that protects data: the first choice among the spin locks.
    ///
    /// Space: 4 bytes and the data. A waiter's queue node belongs to its thread. A thread has four
    /// nodes, so that up to three signal handlers on top of each other can wait as well.
    ///
    /// Waiting: a waiter spins for 128 turns (1 to 6 us), and then sleeps. If no thread waits,
    /// `lock` and `unlock` are one compare-exchange each.
    ///
    /// Fairness: newcomers overtake the queue while its first waiter sleeps or wakes up, however
    /// many arrive in that time. Once it has woken up about a thousand times without success, no
    /// thread overtakes it any more. The queue itself is first come, first served.
    ///
    /// Priorities: a waiter that has preempted the holder, or a waiter before it in the queue,
    /// waits without bound if its priority is higher.
    /// So does a thread that has just locked the lock, if it has preempted the next waiter while
    /// that one joins the queue.
    ///
    /// Ordering: each critical section happens before the next one.
    ///
    /// Not for long critical sections: see [What spinning means](crate#what-spinning-means).
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
    /// A guard cannot be sent to another thread:
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
    /// The kernel's form of Linux' queued spinlock, for threads that have a processor each. It
    /// protects data.
    ///
    /// Space: as [`SpinLock`].
    ///
    /// Waiting: a waiter pauses 128 times, and then yields its processor to other threads at each
    /// further turn. It never sleeps. `unlock` is one byte store.
    ///
    /// Fairness: first come, first served, with one exception: the first waiter to find the lock
    /// held goes ahead of the queue.
    ///
    /// Priorities: a waiter that has preempted the holder, or a waiter before it in the queue,
    /// waits without bound if its priority is higher.
    /// So does a thread that has just locked the lock, if it has preempted the next waiter while
    /// that one joins the queue.
    ///
    /// Ordering: each critical section happens before the next one.
    ///
    /// Not for more runnable threads than processors, where the scheduler limits its throughput:
    /// see [What spinning means](crate#what-spinning-means).
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
    /// NUMA-aware queued spinlock that protects data. The lock stays within a NUMA node for as long
    /// as its threshold allows.
    ///
    /// For locks that threads of several NUMA nodes contend for. With one NUMA node it has a cost
    /// and no benefit.
    ///
    /// Space: as [`SpinLock`].
    ///
    /// Fairness: that of [`SpinLock`] within a NUMA node. Waiters of the other NUMA nodes are
    /// overtaken for a threshold (1 ms, see
    /// [`Setting::CnaThresholdNs`](crate::process::Setting::CnaThresholdNs)) at a time. If there
    /// are several other NUMA nodes, this may happen to a waiter a few times.
    ///
    /// Priorities: a waiter that has preempted the holder, or a waiter before it in the queue,
    /// waits without bound if its priority is higher.
    /// So does a thread that has just locked the lock, if it has preempted the next waiter while
    /// that one joins the queue.
    ///
    /// Ordering: each critical section happens before the next one.
    ///
    /// Not for long critical sections: see [What spinning means](crate#what-spinning-means).
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
    /// Linux' mutex that protects data, for critical sections that are long, or wait for something.
    ///
    /// Space: 32 bytes and the data. A waiter's queue node is on its stack.
    ///
    /// Waiting: a waiter spins while the holder runs, for at most `spin.budget-ns`
    /// ([`Setting::SpinBudgetNs`](crate::process::Setting::SpinBudgetNs), 20 us). One waiter at a
    /// time spins on the mutex, and further ones wait for their turn. A waiter that has spun for so
    /// long, or finds the holder asleep, sleeps. If no thread waits, `lock` and `unlock` are one
    /// compare-exchange each.
    ///
    /// Fairness: newcomers and spinning waiters overtake the queue until its first waiter has been
    /// woken once without success. After that, other threads lock the mutex at most once more.
    /// There is no bound in time.
    ///
    /// Ordering: each critical section happens before the next one.
    ///
    /// A wait can have a timeout (`try_lock_for`, `try_lock_until`), and can be cancelled
    /// ([`lock_cancellable`](crate::LockCancellable::lock_cancellable)). A free mutex is locked
    /// even if the time has passed. A waiter that spins for a held mutex notices that the time has
    /// passed, and gives up.
    ///
    /// Not for signal handlers. A thread that locks the mutex twice deadlocks.
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
    ///     None => eprintln!("another thread writes the log for long"),
    /// }
    /// assert_eq!(LOG.lock().len(), 2);
    /// ```
    Mutex, MutexGuard, MappedMutexGuard = RawMutex;
}

guarded! {
    /// The mutex of Linux 3.7 that protects data, for comparison with [`Mutex`].
    ///
    /// Space: 32 bytes and the data. A waiter's queue node is on its stack.
    ///
    /// Waiting: all waiters spin at the same time while the holder runs, for at most
    /// `spin.budget-ns`, and then sleep. If no thread waits, `lock` and `unlock` are one atomic
    /// instruction each.
    ///
    /// Fairness: none. A waiter that has been woken competes with all newcomers, each time again.
    ///
    /// Ordering: each critical section happens before the next one.
    ///
    /// Timeouts and cancellation: as [`Mutex`].
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
    /// Linux' reader-writer semaphore that protects data: many readers or one writer, for long
    /// critical sections.
    ///
    /// For data that is mostly read, in critical sections that are long enough for readers to
    /// overlap. With short critical sections a [`Mutex`] or a [`SpinLock`] is faster, since all
    /// readers write to the lock's word.
    ///
    /// Space: 40 bytes and the data. A waiter's queue node is on its stack.
    ///
    /// Waiting: as [`Mutex`]; readers sleep at once.
    ///
    /// Fairness: a waiter that is first in the queue is not overtaken any more after it has waited
    /// for 4 ms. This takes effect when the waiter, or a thread that wakes it, checks the lock.
    /// Readers in the queue are let in together, 256 at a time, past the writers between them.
    ///
    /// Ordering: a writer's critical section happens before all later critical sections. Critical
    /// sections of readers happen before that of the next writer.
    ///
    /// A wait can have a timeout (`try_read_for`, `try_write_for` and their `_until` forms), and
    /// can be cancelled ([`RwLockCancellable`](crate::RwLockCancellable)). Write guards can be
    /// downgraded.
    ///
    /// A thread that reads must not read again: if a writer waits in between, the thread deadlocks.
    /// Not for signal handlers.
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
/// Bytes of the sleeping mutexes: three words of 4 bytes, and the two pointers of a queue. 32
/// bytes, or 20 where a pointer has 4 bytes.
const MUTEX_SIZE: usize = (12 + 2 * size_of::<usize>()).next_multiple_of(size_of::<usize>());
const _: () = assert!(size_of::<Mutex<()>>() == MUTEX_SIZE);
const _: () = assert!(size_of::<CounterMutex<()>>() == MUTEX_SIZE);
const _: () = assert!(size_of::<RwSem<()>>() == (20 + 2 * size_of::<usize>()).next_multiple_of(8));
const _: () = assert!(size_of::<MutexGuard<'_, u8>>() == size_of::<usize>());
const _: () = assert!(size_of::<RwSemReadGuard<'_, u8>>() == size_of::<usize>());
