//! The locks of the FreeBSD kernel.
//!
//! - [`Mtx`], 8 bytes: `mtx` of type `MTX_DEF`. A waiter spins while the owner runs, or sleeps. Not
//!   fair: an unlock wakes all waiters, and they compete.
//! - [`SpinMtx`], 8 bytes: `mtx` of type `MTX_SPIN`. A waiter spins, with growing delays. Not fair.
//! - [`Rw`], 16 bytes: `rw`. A waiter spins while the holder runs, or sleeps. Writers go before
//!   readers.
//! - [`Sx`], 16 bytes: `sx`. As `Rw`, but a waiter may give up.
//! - [`LockMgr`], 32 bytes: `lockmgr`. A waiter spins while an exclusive holder runs and no thread
//!   waits, or sleeps. It may give up. Exclusive waiters go before sharers.
//!
//! These locks know their holders. So a program can ask for the holder ([`Ownership`]), locking can
//! detect mistakes ([`Checked`], [`RwChecked`]), and there are recursive forms ([`RecursiveMtx`],
//! [`RecursiveRw`] and others). Sleeping waiters are in a table of the process and not in the lock.
//! A lock is not accessed any more once it is free.
//!
//! The functions and flags of the kernel, and their counterparts here:
//!
//! - `mtx_trylock`, `rw_try_rlock`, `sx_try_xlock` and others: `try_lock`, `try_read`, `try_write`.
//!   With the reason of a failure: [`Checked`], [`RwChecked`].
//! - `mtx_owned`, `rw_wowned`, `sx_xlocked`, `sx_xholder`: [`Ownership`].
//! - `mtx_recursed`: [`RecursiveGuard::is_recursed`], [`RecursiveWriteGuard::is_recursed`].
//! - `mtx_assert`, `rw_assert`, `sx_assert`, `lockmgr_assert`: a guard as an argument, which shows
//!   that the lock is held; or `assert!` of [`Ownership::is_owned`], [`LockMgr::status`].
//! - `mtx_wait_unlocked`, `mtx_spin_wait_unlocked`: [`WaitUnlocked`].
//! - `rw_try_upgrade`, `sx_try_upgrade`: [`TryUpgrade::try_upgrade`].
//! - `rw_downgrade`, `sx_downgrade`:
//!   [`RwWriteGuard::downgrade`](crate::lock_api::RwLockWriteGuard::downgrade).
//! - `sx_slock_sig`, `sx_xlock_sig`: [`Interruptible`].
//! - `MTX_RECURSE`, `RW_RECURSE`, `SX_RECURSE`: separate types, [`RecursiveMtx`], [`RecursiveRw`]
//!   and others.
//! - `lockmgr` and its flags: [`LockMgr`], [`LockMgrOptions`].
//! - `mtx_destroy`, `rw_destroy`, `sx_destroy`, `lockdestroy`: [`Destroy::destroy`], or a drop.
//!
//! # Earlier versions of the kernel
//!
//! The types above are those of the current kernel. Earlier forms, and in particular the pre-reads
//! of 2015, are presets of [`tuning`]. These are parameters of the raw locks:
//!
//! ```
//! use nearlock::freebsd::{RawMtx, tuning};
//! use nearlock::lock_api::Mutex;
//!
//! /// As it was in FreeBSD 10.1.
//! type OldMtx<T> = Mutex<RawMtx<tuning::Era2014>, T>;
//!
//! let count = OldMtx::new(1);
//! *count.lock() += 1;
//! assert_eq!(count.into_inner(), 2);
//! ```
//!
//! # Mistakes
//!
//! Debug assertions panic where the kernel stops the machine:
//!
//! * The caller locks a lock that it holds already, and that is not recursive.
//! * A thread unlocks a lock that another thread holds. This needs `unsafe`.
//! * A lock is destroyed while it is held.
//!
//! Without debug assertions the first of these deadlocks. With a [`LockMgr`] it is
//! [`LockError::Deadlock`], or a panic where no error can be returned. The errors that the kernel
//! returns are errors here, with and without debug assertions.
//!
//! A thread may keep a guard in its thread-local data, and may lock while these data are destroyed.
//! It keeps its id until it ends.

mod checked;
mod error;
mod interruptible;
mod lockmgr;
mod ownership;
mod recursive;
mod upgrade;
mod wait_unlocked;

#[cfg(feature = "lock_api_04")]
use nearlock_collection::freebsd::rwsx;
use nearlock_collection::freebsd::{mtx, rw, spin_mtx, sx};
use nearlock_core::tuning::Standard;
use nearlock_os::Os;

use crate::raw::Nodeless;

pub use checked::{Checked, RwChecked};
pub use error::LockError;
pub use interruptible::Interruptible;
pub use lockmgr::{LockMgr, LockMgrDisowned, LockMgrExclusiveGuard, LockMgrOptions, LockMgrSharedGuard};
pub use nearlock_collection::freebsd::lockmgr::{Attributes, Bypass, Status};
pub use nearlock_collection::freebsd::mtx::InUse;
pub use nearlock_collection::freebsd::spin_mtx::{Counted, LongSpin, TooLong};
pub use nearlock_collection::freebsd::tuning;
pub use ownership::{Destroy, Ownership};
pub use recursive::{
    RawRecursiveLock, RecursiveGuard, RecursiveMutex, RecursiveReadGuard, RecursiveRwLock,
    RecursiveWriteGuard,
};
pub use upgrade::TryUpgrade;
pub use wait_unlocked::WaitUnlocked;

/// The raw lock of [`Mtx`], for code that is generic over `lock_api`'s `RawMutex`. `K` is a preset
/// of [`tuning`].
pub type RawMtx<K = Standard> = Nodeless<mtx::Mtx<Os, K>>;

/// The raw lock of [`SpinMtx`], for code that is generic over `lock_api`'s `RawMutex`. `K` is a
/// preset of [`tuning`]. `D` is notified of waits that are too long.
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RawSpinMtx<K = Standard, D = Counted> = Nodeless<spin_mtx::SpinMtx<Os, K, D>>;

/// The raw lock of [`Rw`], for code that is generic over `lock_api`'s `RawRwLock`. `K` is a preset
/// of [`tuning`].
pub type RawRw<K = Standard> = Nodeless<rw::Rw<Os, K>>;

/// The raw lock of [`Sx`], for code that is generic over `lock_api`'s `RawRwLock` or
/// `RawRwLockTimed`. `K` is a preset of [`tuning`].
pub type RawSx<K = Standard> = Nodeless<sx::Sx<Os, K>>;

guarded! {
    /// FreeBSD's mutex (`mtx` of type `MTX_DEF`) that protects data.
    ///
    /// For critical sections of any length. [`linux::Mutex`](crate::linux::Mutex) is four times as
    /// big, and lets one waiter spin. Here all waiters spin, with growing delays.
    ///
    /// Space: 8 bytes and the data. A waiter's queue node is on its stack.
    ///
    /// Waiting: a waiter spins while the owner runs, for at most `spin.budget-ns`
    /// ([`Setting::SpinBudgetNs`](crate::process::Setting::SpinBudgetNs)). After that, or if the
    /// owner sleeps, it sleeps. If no thread waits, `lock` and `unlock` are one compare-exchange
    /// each.
    ///
    /// Fairness: none. An unlock wakes all sleeping waiters, and they compete with newcomers.
    ///
    /// Ordering: each critical section happens before the next one.
    ///
    /// ```
    /// use nearlock::freebsd::{Mtx, Ownership};
    ///
    /// static NAMES: Mtx<Vec<&str>> = Mtx::new(Vec::new());
    ///
    /// let mut names = NAMES.lock();
    /// names.push("mtx");
    /// assert!(NAMES.is_owned() && NAMES.try_lock().is_none());
    /// drop(names);
    /// assert_eq!(NAMES.lock().len(), 1);
    /// ```
    ///
    /// A guard cannot be sent to another thread, because the mutex contains the id of its holder:
    ///
    /// ```compile_fail,E0277
    /// use nearlock::freebsd::Mtx;
    ///
    /// let lock = Mtx::new(1);
    /// let guard = lock.lock();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || drop(guard));
    /// });
    /// ```
    Mtx, MtxGuard, MappedMtxGuard = RawMtx;
}

guarded! {
    /// FreeBSD's spin mutex (`mtx` of type `MTX_SPIN`) that protects data.
    ///
    /// The holder should not sleep, because all waiters spin meanwhile. This is not checked. A
    /// forgotten guard leaves this mutex locked, and has no effect on other locks.
    ///
    /// Space: 8 bytes and the data.
    ///
    /// Waiting: a waiter spins with growing delays, and never sleeps. In the kernel it may be
    /// interrupted meanwhile. `unlock` is one store.
    ///
    /// Fairness: none.
    ///
    /// Priorities: a waiter that has preempted the holder waits without bound if its priority is
    /// higher.
    ///
    /// Ordering: each critical section happens before the next one.
    ///
    /// Not for long critical sections: see [What spinning means](crate#what-spinning-means).
    ///
    /// ```
    /// use nearlock::freebsd::SpinMtx;
    ///
    /// static TICKS: SpinMtx<u64> = SpinMtx::new(0);
    ///
    /// *TICKS.lock() += 1;
    /// assert_eq!(*TICKS.lock(), 1);
    /// ```
    ///
    /// A type parameter of the raw lock is notified of waits that are too long:
    ///
    /// ```
    /// use nearlock::freebsd::{LongSpin, RawSpinMtx, TooLong, tuning};
    /// use nearlock::lock_api::Mutex;
    ///
    /// struct Warn;
    ///
    /// impl LongSpin for Warn {
    ///     fn held_too_long(wait: &TooLong) {
    ///         eprintln!("a lock is held by {:?} for {} pauses", wait.owner, wait.pauses);
    ///     }
    /// }
    ///
    /// static TICKS: Mutex<RawSpinMtx<tuning::Current, Warn>, u64> = Mutex::new(0);
    /// *TICKS.lock() += 1;
    /// ```
    ///
    /// ```compile_fail,E0277
    /// use nearlock::freebsd::SpinMtx;
    ///
    /// let lock = SpinMtx::new(1);
    /// let guard = lock.lock(); // the section belongs to this thread
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || drop(guard));
    /// });
    /// ```
    SpinMtx, SpinMtxGuard, MappedSpinMtxGuard = RawSpinMtx;
}

guarded_rw! {
    /// FreeBSD's reader-writer lock (`rw`) that protects data: many readers or one writer.
    ///
    /// For data that is mostly read. With short critical sections a [`Mtx`] is faster, since all
    /// readers write to the lock's word.
    ///
    /// Space: 16 bytes and the data. A waiter's queue node is on its stack.
    ///
    /// Waiting: a waiter spins while the writer runs. While readers may be about to unlock, it
    /// spins ten times at most. Then it sleeps.
    ///
    /// Fairness: writers go before readers, which can starve. A thread that reads a lock may read
    /// it again, any number of times: a thread that reads one of these locks does not wait behind
    /// waiting writers.
    ///
    /// Ordering: a writer's critical section happens before all later critical sections. Critical
    /// sections of readers happen before that of the next writer.
    ///
    /// ```
    /// use nearlock::freebsd::{Rw, RwWriteGuard, TryUpgrade};
    ///
    /// let table = Rw::new(vec![1, 2]);
    /// let reads = table.read();
    /// assert_eq!(reads.len(), 2);
    /// // The only reader may become the writer, with no other holder in between.
    /// let mut writes = reads.try_upgrade().expect("the only reader");
    /// writes.push(3);
    /// let reads = RwWriteGuard::downgrade(writes);
    /// assert_eq!(reads.len(), 3);
    /// ```
    ///
    /// ```compile_fail,E0277
    /// use nearlock::freebsd::Rw;
    ///
    /// let lock = Rw::new(1);
    /// let guard = lock.read(); // the lock's thread counts what it reads
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || drop(guard));
    /// });
    /// ```
    Rw, RwReadGuard, RwWriteGuard, MappedRwReadGuard, MappedRwWriteGuard = RawRw;
}

guarded_rw! {
    /// FreeBSD's shared-exclusive lock (`sx`) that protects data: an [`Rw`] for long critical
    /// sections, whose waiters may give up.
    ///
    /// Space, waiting and ordering: as [`Rw`].
    ///
    /// Fairness: as [`Rw`], but a writer's downgrade wakes readers although writers wait.
    ///
    /// A wait can have a timeout (`try_read_for`, `try_write_for` and their `_until` forms). The
    /// waits of [`Interruptible`] can be interrupted, and return an error with the reason.
    ///
    /// ```
    /// use std::time::Duration;
    /// use nearlock::freebsd::{Interruptible, LockError, Sx};
    ///
    /// let tree = Sx::new(vec!["usr", "tmp"]);
    /// let reads = tree.read();
    /// let error = tree.write_timed(Duration::from_millis(1)).unwrap_err();
    /// assert_eq!(error, LockError::TimedOut);
    /// assert_eq!(error.errno_name(), "EWOULDBLOCK");
    /// drop(reads);
    /// tree.write_timed(Duration::from_millis(1))?.push("var");
    /// # Ok::<(), LockError>(())
    /// ```
    ///
    /// ```compile_fail,E0277
    /// use nearlock::freebsd::Sx;
    ///
    /// let lock = Sx::new(1);
    /// let guard = lock.write();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || drop(guard));
    /// });
    /// ```
    Sx, SxReadGuard, SxWriteGuard, MappedSxReadGuard, MappedSxWriteGuard = RawSx;
}

// SAFETY: a thread that reads already does not wait for waiting writers (`SharedHolds`).
#[cfg(feature = "lock_api_04")]
unsafe impl<K: tuning::Tuning, S: rwsx::Kind> lock_api_04::RawRwLockRecursive
    for Nodeless<rwsx::RwSx<Os, K, S>>
{
    #[inline]
    fn lock_shared_recursive(&self) {
        lock_api_04::RawRwLock::lock_shared(self);
    }

    #[inline]
    fn try_lock_shared_recursive(&self) -> bool {
        lock_api_04::RawRwLock::try_lock_shared(self)
    }
}

/// A [`Mtx`] that its holder may lock again, as with `MTX_RECURSE`. See [`RecursiveMutex`].
pub type RecursiveMtx<T> = RecursiveMutex<mtx::Mtx<Os>, T>;

/// A [`SpinMtx`] that its holder may lock again. `try_lock` fails for the holder, as in the kernel.
/// See [`RecursiveMutex`].
///
/// Waits have no bound: see [What spinning means](crate#what-spinning-means).
pub type RecursiveSpinMtx<T> = RecursiveMutex<spin_mtx::SpinMtx<Os>, T>;

/// An [`Rw`] whose writer may write again, as with `RW_RECURSE`. See [`RecursiveRwLock`].
pub type RecursiveRw<T> = RecursiveRwLock<rw::Rw<Os>, T>;

/// An [`Sx`] whose writer may write again, as with `SX_RECURSE`. See [`RecursiveRwLock`].
pub type RecursiveSx<T> = RecursiveRwLock<sx::Sx<Os>, T>;

const _: () = assert!(size_of::<Mtx<()>>() == 8);
const _: () = assert!(size_of::<SpinMtx<()>>() == 8);
const _: () = assert!(size_of::<Rw<()>>() == 16);
const _: () = assert!(size_of::<Sx<()>>() == 16);
const _: () = assert!(size_of::<MtxGuard<'_, u8>>() == size_of::<usize>());
const _: () = assert!(size_of::<RwReadGuard<'_, u8>>() == size_of::<usize>());
