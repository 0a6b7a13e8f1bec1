//! Locks whose deadlocks can be found: [`Mutex`], [`FairMutex`], [`RwLock`], [`RecursiveRwLock`],
//! [`ReentrantMutex`] and [`Condvar`].
//!
//! A deadlock is a cycle of threads, each of which waits for a lock that the next one holds. With
//! these types, [`check_deadlock`] finds the deadlocks of the process, and returns the backtraces
//! of their threads. The functions are those of `parking_lot`. The locks of the rest of this crate
//! are not observed, and cost what they did.
//!
//! ```
//! use nearlock::deadlock::{Mutex, check_deadlock};
//!
//! static LOCK: Mutex<u32> = Mutex::new(1);
//!
//! std::thread::spawn(|| {
//!     let _first = LOCK.lock();
//!     let _second = LOCK.lock(); // waits for itself
//! });
//! let deadlocks = loop {
//!     let deadlocks = check_deadlock(); // a program does this every 10 s, say
//!     if !deadlocks.is_empty() {
//!         break deadlocks;
//!     }
//!     std::thread::yield_now();
//! };
//! for thread in &deadlocks[0] {
//!     println!("{:?} waits at\n{:?}", thread.thread_id(), thread.backtrace());
//! }
//! assert!(check_deadlock().is_empty(), "it is reported once");
//! ```
//!
//! # What is found
//!
//! All cycles of waits for these locks: exclusive, shared and upgradable acquisitions, upgrades,
//! and those by which a wait of a [`Condvar`] locks its mutex again. A reader that waits for a
//! writer, which waits for other readers, is part of a cycle too. A wait with a timeout is not,
//! since it ends by itself. Nor is a wait for a notification, for a thread, or for another kind of
//! lock.
//!
//! A report is never wrong: the threads were in a deadlock. A guard that was forgotten, a thread
//! that has ended, or a lock that was moved or dropped cause no false report.
//!
//! # How it is found
//!
//! A lock knows the thread that has it exclusively or upgradably. A thread knows which locks it
//! reads. A thread that is about to wait enters this, and what it waits for, into a list that the
//! process shares. `check_deadlock` looks for cycles in that list, under its lock. Each thread in
//! the list has entered it after its last release. So the list and the locks say the truth about
//! those threads, all at one moment. There is one exception. A reader may have entered, and not yet
//! have left the list. So `check_deadlock` has all threads of a cycle wake up (by a
//! [`Cancellation`]), readers first. If a reader has not entered by then, it cannot any more. Each
//! thread returns its backtrace, and waits again.
//!
//! So threads of a deadlock go on waiting. (Those of `parking_lot` do not wait for the lock any
//! more.) They lose their places in queues. If a writer waits for readers, its wake-up lets other
//! readers in, which may end the deadlock.
//!
//! # Cost
//!
//! A mutex takes 24 bytes and a reader-writer lock 48, beside the data. An acquisition and its
//! release write the thread's number to the lock and remove it, or note a read in memory of the
//! thread. A wait locks the list twice. A wait and a notification of a `Condvar` lock a mutex of
//! the condition variable. Backtraces are taken only of threads in a deadlock.
//!
//! A memory allocator must not use these locks, because they allocate. In a child made by `fork`,
//! they must not be used, unless the parent had a single thread.
//!
//! [`Cancellation`]: crate::Cancellation

mod condvar;
mod cycles;
mod known;
mod mutex;
mod rwlock;
mod waits;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::mpsc::{self, Receiver};
use std::thread::ThreadId;
use std::time::Duration;

use backtrace::Backtrace;

use self::waits::{Answer, Outcome, Serial};
use crate::lock_api::{self, GetThreadId};
use crate::near::{self, Fair, Recursive};

pub use self::condvar::{Condvar, RawCondvar};
pub use self::mutex::{Detected, RawMutex};
pub use self::rwlock::RawRwLock;
pub use crate::near::WaitTimeoutResult;

guarded! {
    /// A [`nearlock::Mutex`](crate::Mutex) whose deadlocks can be found.
    ///
    /// Space: 24 bytes and the data. Waiting, fairness and ordering: as there. Cost: see the
    /// [module](self), which has an example.
    Mutex, MutexGuard, MappedMutexGuard = RawMutex;
}

/// The raw lock of [`FairMutex`]: a [`RawMutex`] whose unlocks all hand it over.
pub type RawFairMutex = Fair<RawMutex>;

guarded! {
    /// A [`nearlock::FairMutex`](crate::FairMutex) whose deadlocks can be found.
    ///
    /// Space: 24 bytes and the data. Waiting, fairness and ordering: as there. Cost: see the
    /// [module](self).
    ///
    /// ```
    /// use nearlock::deadlock::FairMutex;
    ///
    /// let turn = FairMutex::new(1);
    /// *turn.lock() += 1;
    /// assert_eq!(*turn.lock(), 2);
    /// ```
    FairMutex, FairMutexGuard, MappedFairMutexGuard = RawFairMutex;
}

/// The raw lock of [`RecursiveRwLock`]: a [`RawRwLock`] whose shared acquisitions are all
/// recursive.
pub type RawRwLockRecursive = Recursive<RawRwLock>;

guarded_rw! {
    /// A [`nearlock::RecursiveRwLock`](crate::RecursiveRwLock) whose deadlocks can be found.
    ///
    /// Space: 48 bytes and the data. Waiting, fairness and ordering: as there. Cost: see the
    /// [module](self).
    ///
    /// ```
    /// use nearlock::deadlock::RecursiveRwLock;
    ///
    /// let lock = RecursiveRwLock::new(1);
    /// *lock.write() += 1;
    /// assert_eq!(*lock.read() + *lock.read(), 4);
    /// ```
    RecursiveRwLock, RecursiveRwLockReadGuard, RecursiveRwLockWriteGuard, MappedRecursiveRwLockReadGuard, MappedRecursiveRwLockWriteGuard = RawRwLockRecursive;
}

guarded_rw! {
    /// A [`nearlock::RwLock`](crate::RwLock) whose deadlocks can be found.
    ///
    /// Space: 48 bytes and the data. Waiting, fairness and ordering: as there. Cost: see the
    /// [module](self).
    ///
    /// ```
    /// use nearlock::deadlock::RwLock;
    ///
    /// let lock = RwLock::new(1);
    /// *lock.write() += 1;
    /// assert_eq!(*lock.read(), 2);
    /// ```
    RwLock, RwLockReadGuard, RwLockWriteGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard = RawRwLock;
}

/// Shared access to what a [`RwLock`] protects, which can become exclusive. Unlocks when it is
/// dropped.
///
/// ```
/// use nearlock::deadlock::{RwLock, RwLockUpgradableReadGuard};
///
/// let lock = RwLock::new(1);
/// *RwLockUpgradableReadGuard::upgrade(lock.upgradable_read()) = 2;
/// assert_eq!(*lock.read(), 2);
/// ```
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

/// Shared access to what a [`RecursiveRwLock`] protects, which can become exclusive. Unlocks when
/// it is dropped.
///
/// ```
/// use nearlock::deadlock::{RecursiveRwLock, RecursiveRwLockUpgradableReadGuard};
///
/// let lock = RecursiveRwLock::new(1);
/// *RecursiveRwLockUpgradableReadGuard::upgrade(lock.upgradable_read()) = 2;
/// assert_eq!(*lock.read(), 2);
/// ```
pub type RecursiveRwLockUpgradableReadGuard<'a, T> =
    lock_api::RwLockUpgradableReadGuard<'a, RawRwLockRecursive, T>;

/// A mutex that its holder can lock again, and whose deadlocks can be found. Its guards give shared
/// access.
///
/// ```
/// use nearlock::deadlock::ReentrantMutex;
///
/// let mutex = ReentrantMutex::new(1);
/// let (first, second) = (mutex.lock(), mutex.lock());
/// assert_eq!(*first + *second, 2);
/// ```
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;

/// Access to what a [`ReentrantMutex`] protects.
///
/// ```
/// use nearlock::deadlock::{ReentrantMutex, ReentrantMutexGuard};
///
/// fn look(value: &ReentrantMutexGuard<'_, u32>) -> u32 {
///     **value
/// }
/// assert_eq!(look(&ReentrantMutex::new(1).lock()), 1);
/// ```
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// Access to a part of what a [`ReentrantMutex`] protects.
///
/// ```
/// use nearlock::deadlock::{MappedReentrantMutexGuard, ReentrantMutex, ReentrantMutexGuard};
///
/// fn first(pair: &ReentrantMutex<(u32, u32)>) -> MappedReentrantMutexGuard<'_, u32> {
///     ReentrantMutexGuard::map(pair.lock(), |pair| &pair.0)
/// }
/// assert_eq!(*first(&ReentrantMutex::new((1, 2))), 1);
/// ```
pub type MappedReentrantMutexGuard<'a, T> = lock_api::MappedReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// How a [`ReentrantMutex`] tells threads apart.
///
/// ```
/// use nearlock::deadlock::RawThreadId;
/// use nearlock::lock_api::GetThreadId;
///
/// assert_eq!(RawThreadId.nonzero_thread_id(), RawThreadId.nonzero_thread_id());
/// ```
pub struct RawThreadId;

// SAFETY: the address of memory that the thread has as long as it lives.
unsafe impl GetThreadId for RawThreadId {
    const INIT: Self = Self;

    fn nonzero_thread_id(&self) -> NonZeroUsize {
        known::address_of_thread()
    }
}

const _: () = assert!(size_of::<Mutex<()>>() == 24);
const _: () = assert!(size_of::<RwLock<()>>() == 48);

/// A thread in a deadlock.
///
/// The [module](self) has an example.
pub struct DeadlockedThread {
    thread_id: ThreadId,
    backtrace: Backtrace,
}

impl DeadlockedThread {
    /// Which thread it is.
    pub fn thread_id(&self) -> ThreadId {
        self.thread_id
    }

    /// Where it waits. Without frames, if the thread did not run for 10 s.
    pub fn backtrace(&self) -> &Backtrace {
        &self.backtrace
    }
}

impl fmt::Debug for DeadlockedThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlockedThread").field("thread_id", &self.thread_id).finish_non_exhaustive()
    }
}

/// How long `check_deadlock` waits for the answer of a thread that it has woken. That takes a few
/// microseconds if the thread gets a processor. With 0 nothing is found.
const PATIENCE: Duration = Duration::from_secs(10);

/// Only one thread looks for deadlocks at a time: a thread that waits answers one question.
static DETECTOR: near::Mutex<()> = near::Mutex::new(());

/// Finds the deadlocks of the process that have come about since the last call. Each of the inner
/// vectors has the threads of one deadlock. The [module](self) has an example, and says what is
/// found.
///
/// It wakes the threads of a deadlock, and waits for their answers. Otherwise it takes a few
/// microseconds, and more if many threads wait.
pub fn check_deadlock() -> Vec<Vec<DeadlockedThread>> {
    let _one_at_a_time = DETECTOR.lock();
    waits::deadlocks().iter().filter_map(|threads| confirmed(threads)).collect()
}

/// Asks the threads of a presumed deadlock. Returns them if it is one.
fn confirmed(threads: &[Asked]) -> Option<Vec<DeadlockedThread>> {
    let (readers, others): (Vec<&Asked>, Vec<&Asked>) = threads.iter().partition(|thread| thread.is_reader);
    // A writer that keeps a reader out does so until it is asked itself.
    let mut answers = answers_of(&readers);
    let still_waits =
        |answer: &Option<Answer>| matches!(answer, Some(Answer { outcome: Outcome::Waits, .. }));
    if !answers.iter().all(still_waits) {
        return None;
    }
    answers.extend(answers_of(&others));
    waits::note_reported(threads.iter().map(|thread| thread.serial));
    let deadlocked = readers.iter().chain(&others).zip(answers).map(|(thread, answer)| {
        let mut backtrace = answer.map_or_else(|| Backtrace::from(Vec::new()), |answer| answer.backtrace);
        backtrace.resolve();
        DeadlockedThread { thread_id: thread.thread_id, backtrace }
    });
    Some(deadlocked.collect())
}

/// A thread of a presumed deadlock.
struct Asked {
    serial: Serial,
    thread_id: ThreadId,
    is_reader: bool,
}

/// Wakes the threads, and waits for their answers.
fn answers_of(threads: &[&Asked]) -> Vec<Option<Answer>> {
    let asked: Vec<Receiver<Answer>> = threads
        .iter()
        .map(|thread| {
            let (question, answer) = mpsc::channel();
            waits::ask(thread.serial, question);
            answer
        })
        .collect();
    asked.iter().map(|answer| answer.recv_timeout(PATIENCE).ok()).collect()
}
